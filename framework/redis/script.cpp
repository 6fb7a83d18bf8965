#include "redis/script.hpp"

#include <utility>

namespace pawl::redis {
namespace {

Command evalsha(const std::string& sha, const ScriptCall& call) {
  Command command{"EVALSHA", sha, std::to_string(call.keys.size())};
  command.insert(command.end(), call.keys.begin(), call.keys.end());
  command.insert(command.end(), call.arguments.begin(), call.arguments.end());
  return command;
}

bool is_unknown(const Reply& reply) {
  return reply.is_error() && error_code(reply.text) == "NOSCRIPT";
}

}  // namespace

std::string Script::known_sha() const {
  const std::scoped_lock lock(mutex_);
  return sha_;
}

std::string Script::load(Connection& connection) const {
  const auto reply = connection.run({"SCRIPT", "LOAD", std::string(text_)});
  if (reply.type != Reply::Type::kText)
    throw Error::malformed(connection.server(), "SCRIPT LOAD", describe(reply.type));
  const std::scoped_lock lock(mutex_);
  return sha_ = reply.text;
}

Reply Script::run(Connection& connection, ScriptCall call) const {
  auto reply = std::move(run_each(connection, {std::move(call)}).front());
  if (reply.is_error())
    throw connection.refused(reply, name_);
  return reply;
}

std::vector<Reply> Script::run_each(Connection& connection,
                                    const std::vector<ScriptCall>& calls) const {
  auto sha = known_sha();
  if (sha.empty())
    sha = load(connection);
  const auto send = [&](const std::vector<std::size_t>& which) {
    std::vector<Command> commands;
    for (const auto index : which)
      commands.push_back(evalsha(sha, calls[index]));
    return connection.exchange(commands);
  };
  std::vector<std::size_t> all(calls.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = i;
  auto replies = send(all);
  // A server that was restarted, or another one, does not know the script: those calls did nothing.
  std::vector<std::size_t> unknown;
  for (const auto index : all) {
    if (is_unknown(replies[index]))
      unknown.push_back(index);
  }
  if (!unknown.empty()) {
    sha = load(connection);
    auto again = send(unknown);
    for (std::size_t i = 0; i < unknown.size(); ++i)
      replies[unknown[i]] = std::move(again[i]);
  }
  return replies;
}

}  // namespace pawl::redis
