#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pawl::engine {

/// Attempts in a row that failed with an SQLSTATE that speaks of the server or of the handler, not
/// of the message.
class Suspicion {
 public:
  /// One more. `passed`: how many others have passed up to now. Returns for how many attempts in a
  /// row others have passed since the attempt before.
  std::uint32_t failed(const std::string& sqlstate, std::uint64_t passed) {
    if (sqlstate_ != sqlstate)
      attempts_ = 0;
    else if (passed > passed_)
      ++attempts_;
    sqlstate_ = sqlstate;
    passed_ = passed;
    return attempts_;
  }

 private:
  std::string sqlstate_;  // empty: none has failed so
  std::uint64_t passed_ = 0;
  std::uint32_t attempts_ = 0;
};

/// What is known of the message that stands first in a partition, from its attempts before: see
/// is_plain() for what makes it go alone.
struct Head {
  std::uint32_t attempts = 0;            ///< as counted in the register
  std::uint32_t broken_connections = 0;  ///< in its handler, since it came to the head
  bool one_try_only = false;             ///< was halted at, and is tried once more by this process
  bool row_halted = false;               ///< the register's row says that the partition is halted
  /// Prepared statements were stale: a session was made anew for the message at this offset.
  std::optional<std::int64_t> prepared_anew_for = std::nullopt;
  /// The connection was lost while the handler of the message at this offset ran; that is counted
  /// when the message comes up again.
  std::optional<std::int64_t> broke_connection = std::nullopt;
  /// Of the attempts, those before it came to the head: it ran side by side with others then.
  std::uint32_t counted_ahead = 0;

  Suspicion suspicion = {};

  [[nodiscard]] bool is_plain() const {
    return !row_halted && !one_try_only && !broke_connection && attempts == 0;
  }
  /// Something failed of it. Where it passes alone, it was the culprit of the batch that failed.
  [[nodiscard]] bool had_failed() const {
    return attempts > 0 || row_halted || prepared_anew_for.has_value();
  }
  /// The partition stands elsewhere, or an operator begins anew.
  void forget_attempts() {
    attempts = 0;
    counted_ahead = 0;
    broken_connections = 0;
    suspicion = {};
  }
  /// It is behind: whatever comes next begins anew.
  void pass() { *this = {}; }
};

}  // namespace pawl::engine
