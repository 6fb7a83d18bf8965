#include "redis/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pawl::redis {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kHints{{
    {"OOM", "give it more memory (maxmemory): it evicts nothing, so it takes nothing new"},
    {"READONLY", "it is a replica: name the master, or the Sentinels that know it"},
    {"LOADING", "it is reading its data after a start; wait for it"},
    {"NOAUTH", "set redis.password, and redis.user for an ACL user"},
    {"WRONGPASS", "check redis.user and redis.password"},
    {"NOPERM", "give the user the privileges that docs/external-calls-redis.md lists"},
    {"MISCONF", "it cannot write its data to disk: see its log"},
    {"NOREPLICAS", "too few replicas follow it (min-replicas-to-write)"},
    {"MASTERDOWN", "it is a replica that has lost its master: name the master"},
    {"BUSY", "a script or function runs for too long there: see SCRIPT KILL"},
    {"MOVED", "Redis Cluster is not supported: name a server of its own"},
    {"ASK", "Redis Cluster is not supported: name a server of its own"},
    {"CLUSTERDOWN", "Redis Cluster is not supported: name a server of its own"},
}};

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

Error Error::refused(std::string_view server, std::string_view command, std::string_view text) {
  auto code = error_code(text);
  const auto* const hint =
      std::ranges::find(kHints, code, [](const auto& one) { return one.first; });
  const auto message =
      hint == kHints.end()
          ? fmt::format("{} refused {}: {}", server, command, text)
          : fmt::format("{} refused {}: {}; {}", server, command, text, hint->second);
  return {Kind::kRefused, message, std::move(code)};
}

Error Error::malformed(std::string_view server, std::string_view command, std::string_view what) {
  return {Kind::kMalformed,
          fmt::format("{} answered {} with {}; is it a Redis of version 6.2 or later?", server,
                      command, what)};
}

}  // namespace pawl::redis
