#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "dead_letters/store/due_letters.hpp"

namespace pawl::engine {

/// Dead letters whose time has come, on their way from the thread that finds them to the threads
/// that try them: each to one of them, and of a record key one at a time. Any thread.
class DueQueue {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Adds those that are not here yet. Returns how many.
  std::size_t offer(const std::vector<ledger::DueLetter>& due);
  /// Waiting and in hand.
  [[nodiscard]] std::size_t size() const;
  /// Until none waits that could be taken, at most so long. True: none does.
  bool wait_until_taken(Milliseconds most) const;

  /// The next one. Nullopt: there was none for so long, or the end has come. `kept`: this one only,
  /// which the caller has begun.
  std::optional<ledger::DueLetter> take(Milliseconds most, std::optional<std::int64_t> kept = {});
  /// It is not in hand any more. `keeps`: the caller alone takes it again.
  void done(const ledger::DueLetter& letter, bool keeps = false);

  /// Anybody may take it again.
  void release(std::int64_t kept);

  /// Drops what waits, and ends all waits.
  void end();
  [[nodiscard]] bool ending() const;
  /// Waits for so long, or until the end.
  void rest(Milliseconds time) const;

 private:
  using Waiting = std::vector<ledger::DueLetter>;

  [[nodiscard]] Waiting::const_iterator find(std::optional<std::int64_t> kept) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by mutex_:
  Waiting waiting_;  ///< in the order in which they became due
  std::map<std::int64_t, ledger::DueLetter> in_hand_;
  std::set<std::int64_t> kept_;
  bool ending_ = false;
};

}  // namespace pawl::engine
