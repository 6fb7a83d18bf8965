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

/// Dead letters that are due, from the thread that finds them to the threads that retry them: each
/// is given to one thread, and of each record key one at a time. Any thread.
class DueQueue {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Adds those that are not here yet. Returns how many.
  std::size_t offer(const std::vector<ledger::DueLetter>& due);
  /// Those that wait or are being retried.
  [[nodiscard]] std::size_t size() const;
  /// Waits for at most `most` until none that waits can be taken. True: none can.
  bool wait_until_taken(Milliseconds most) const;

  /// The next one. Nullopt: there was none for `most`, or end() was called. `kept`: only this one,
  /// which the caller kept before.
  std::optional<ledger::DueLetter> take(Milliseconds most, std::optional<std::int64_t> kept = {});
  /// The retry has ended. `keeps`: only the caller may take it again.
  void done(const ledger::DueLetter& letter, bool keeps = false);

  /// Each thread may take it again.
  void release(std::int64_t kept);

  /// Drops what waits, and ends all waits.
  void end();
  [[nodiscard]] bool ending() const;
  /// Waits for `time`, or until end() is called.
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
