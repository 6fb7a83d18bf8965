#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace pawl::ops {

/// An outage that workers notice one after another, and its end likewise: only the whole is worth
/// telling. Any thread.
class Outage {
 public:
  using Clock = std::chrono::steady_clock;

  /// `quiet`: so long after the last worker is back nobody must have lost it again.
  explicit Outage(Clock::duration quiet) : quiet_(quiet) {}

  /// Where an outage stands.
  struct Standing {
    Clock::duration lasts;
    std::string why;  ///< the latest reason
  };

  /// A user of the server has lost it. True: to be logged, because it begins an outage. In an
  /// outage the latest reason of fails() remains.
  bool lost(Clock::time_point now, const std::string& why);
  /// An attempt to reach the server failed. True: an outage is in progress, and the reason is new.
  bool fails(const std::string& why);
  /// Somebody has it (again).
  void found(Clock::time_point now);
  /// Nullopt: there is none.
  [[nodiscard]] std::optional<Standing> standing(Clock::time_point now) const;
  /// How long an outage lasted that has ended. Each is returned once.
  std::optional<Clock::duration> take_ended(Clock::time_point now);

 private:
  /// Reasons that are logged per outage. If there are more, their texts vary without a new reason.
  static constexpr std::size_t kMostReasons = 8;

  bool is_news(const std::string& why);

  const Clock::duration quiet_;
  mutable std::mutex mutex_;
  std::optional<Clock::time_point> away_since_;  // guarded by mutex_
  std::optional<Clock::time_point> back_since_;  // guarded by mutex_
  std::string why_;                              // guarded by mutex_
  std::set<std::string> told_;                   // guarded by mutex_
};

}  // namespace pawl::ops
