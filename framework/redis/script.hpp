#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "redis/connection.hpp"
#include "redis/reply.hpp"

namespace pawl::redis {

struct ScriptCall {
  std::vector<std::string> keys;
  std::vector<std::string> arguments;
};

/// A Lua script that Redis runs as one step: sent once, then called by its SHA-1. Any thread; each
/// call with a connection of the caller's.
class Script {
 public:
  /// Both must live on. `name`: for error texts.
  Script(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  /// Throws Error.
  Reply run(Connection& connection, ScriptCall call) const;

  /// All in one round trip, each by itself: errors of the server are replies. Throws Error.
  [[nodiscard]] std::vector<Reply> run_each(Connection& connection,
                                            const std::vector<ScriptCall>& calls) const;

  [[nodiscard]] std::string_view name() const { return name_; }

 private:
  [[nodiscard]] std::string known_sha() const;
  [[nodiscard]] std::string load(Connection& connection) const;

  std::string_view name_;
  std::string_view text_;
  mutable std::mutex mutex_;
  mutable std::string sha_;  // guarded by mutex_; empty: no server has told it yet
};

}  // namespace pawl::redis
