#include "redis/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pawl::redis {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kHints{{
    {"OOM", "Redis is out of memory and evicts nothing. Raise maxmemory"},
    {"READONLY", "This server is a replica. Configure the master, or its Sentinels"},
    {"LOADING", "Redis loads its data after a start. No action needed"},
    {"NOAUTH", "Set redis.password, and redis.user for an ACL user"},
    {"WRONGPASS", "Check redis.user and redis.password"},
    {"NOPERM", "Give the user the privileges that docs/external-calls-redis.md lists"},
    {"MISCONF", "Redis cannot write its data to disk. Check the log of Redis"},
    {"NOREPLICAS", "Too few replicas are connected (min-replicas-to-write)"},
    {"MASTERDOWN", "This server is a replica without its master. Configure the master"},
    {"BUSY", "A script or function runs for too long. See SCRIPT KILL"},
    {"MOVED", "Redis Cluster is not supported. Configure a standalone server"},
    {"ASK", "Redis Cluster is not supported. Configure a standalone server"},
    {"CLUSTERDOWN", "Redis Cluster is not supported. Configure a standalone server"},
}};

/// Words of errors of the kind kUnfit.
constexpr std::array<std::string_view, 3> kUnfit{"not a master", "maxmemory-policy",
                                                 "has no master"};

bool is_code(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

std::string error_code(std::string_view reply) {
  const auto word = reply.substr(0, reply.find(' '));
  constexpr std::string_view kInner = ": -";
  if (const auto inner = reply.rfind(kInner); word == "ERR" && inner != std::string_view::npos) {
    const auto rest = reply.substr(inner + kInner.size());
    const auto code = rest.substr(0, rest.find(' '));
    if (is_code(code))
      return std::string(code);
  }
  return is_code(word) ? std::string(word) : std::string("ERR");
}

std::string correction(std::string_view error) {
  const auto has = [error](std::string_view words) {
    return error.find(words) != std::string_view::npos;
  };
  const auto* const hint = std::ranges::find_if(
      kHints, [&](const auto& one) { return one.first != "LOADING" && has(one.second); });
  if (hint != kHints.end())
    return std::string(hint->second);
  const auto* const unfit = std::ranges::find_if(kUnfit, has);
  return unfit == kUnfit.end() ? "" : std::string(*unfit);
}

Error Error::refused(std::string_view server, std::string_view command, std::string_view text) {
  auto code = error_code(text);
  const auto* const hint =
      std::ranges::find(kHints, code, [](const auto& one) { return one.first; });
  auto message = fmt::format("{} rejected {}: {}", server, command,
                             text.substr(0, text.find_last_not_of(" .") + 1));
  if (hint != kHints.end())
    message += fmt::format(". {}", hint->second);
  return {Kind::kRefused, message, std::move(code)};
}

Error Error::malformed(std::string_view server, std::string_view command, std::string_view what) {
  return {Kind::kMalformed,
          fmt::format("{} responded to {} with {}. Is the server a Redis of version 6.2 or later?",
                      server, command, what)};
}

}  // namespace pawl::redis
