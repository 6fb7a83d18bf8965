#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace pawl::redis {

/// What went wrong between us and a Redis, or a Sentinel. what() names the server, never a
/// password, and says what to do where that is known.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    kConnection,  ///< not connected, lost, or no answer in time: whether it did anything is unknown
    kRefused,     ///< the server said no and did nothing: code() is its word for that
    kUnfit,       ///< it answers, but must not be used: a replica, or one that evicts keys
    kMalformed,   ///< an answer that is none to what was asked
  };

  Error(Kind kind, const std::string& message, std::string code = {})
      : std::runtime_error(message), kind_(kind), code_(std::move(code)) {}

  [[nodiscard]] Kind kind() const { return kind_; }
  /// Of kRefused: "OOM", "READONLY", "LOADING", "NOAUTH", "NOPERM", "WRONGPASS", ...
  [[nodiscard]] const std::string& code() const { return code_; }

  /// `server`: "Redis 127.0.0.1:6379"; `command`: what it was asked; `text`: its error reply.
  static Error refused(std::string_view server, std::string_view command, std::string_view text);
  static Error malformed(std::string_view server, std::string_view command, std::string_view what);

 private:
  Kind kind_;
  std::string code_;
};

/// The code of an error reply: its first word. An error inside of a script comes from Redis before
/// 7.0 wrapped into one of the script; then the inner one counts.
[[nodiscard]] std::string error_code(std::string_view reply);

/// What an operator must fix before Redis can be used, from the text of an Error. Equal for errors
/// with the same fix. Empty: Redis may respond again without that.
[[nodiscard]] std::string correction(std::string_view error);

}  // namespace pawl::redis
