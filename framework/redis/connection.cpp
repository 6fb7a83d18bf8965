#include "redis/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "redis/authentication.hpp"

namespace pawl::redis {
namespace {

/// A line of INFO, "name:value"; empty: there is none.
std::string_view info_field(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    const auto end = std::min(info.find("\r\n"), info.size());
    const auto line = info.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':')
      return line.substr(name.size() + 1);
    info.remove_prefix(std::min(end + 2, info.size()));
  }
  return {};
}

void require_master(const Reply& role, const std::string& server) {
  const auto& what = ItemReader(role, server, "ROLE").text(0);
  if (what != "master") {
    throw Error(Error::Kind::kUnfit,
                fmt::format("{} is a {}, not a master. Configure the master, or its Sentinels "
                            "(redis.sentinels)",
                            server, what == "slave" ? "replica" : what));
  }
}

void require_no_eviction(const Reply& info, const std::string& server) {
  const auto policy = info_field(info.text, "maxmemory_policy");
  if (policy.empty())
    throw Error::malformed(server, "INFO memory", "no maxmemory_policy");
  if (policy != "noeviction") {
    throw Error(Error::Kind::kUnfit,
                fmt::format("{} has maxmemory-policy {}, so it would evict attempts if its memory "
                            "is full. Set maxmemory-policy noeviction",
                            server, policy));
  }
}

}  // namespace

Connection::Connection(const Settings& settings, const Address& address)
    : transport_(address, settings.tls, settings.timeout, "Redis " + address.text()) {
  std::vector<Command> commands;
  add_authentication(settings.credentials, commands);
  if (settings.database != 0)
    commands.push_back({"SELECT", std::to_string(settings.database)});
  commands.push_back({"ROLE"});
  commands.push_back({"INFO", "memory"});
  const auto replies = exchange(commands);
  // What comes behind one that is refused is refused for want of it.
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].is_error())
      throw Error::refused(server(), commands[i].front(), replies[i].text);
  }
  require_master(replies[replies.size() - 2], server());
  require_no_eviction(replies.back(), server());
}

Reply Connection::run(const Command& command) {
  auto replies = exchange({command});
  if (replies.front().is_error())
    throw refused(replies.front(), command.front());
  return std::move(replies.front());
}

Error Connection::refused(const Reply& reply, std::string_view command) {
  constexpr std::array<std::string_view, 4> kElsewhere{"READONLY", "LOADING", "MASTERDOWN",
                                                       "NOAUTH"};
  auto error = Error::refused(server(), command, reply.text);
  if (std::ranges::find(kElsewhere, error.code()) != kElsewhere.end())
    transport_.close();
  return error;
}

}  // namespace pawl::redis
