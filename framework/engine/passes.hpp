#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace pawl::engine {

/// Counts what this process commits, once somebody compares: where others pass, the server and the
/// handler are in order, and what fails again and again is to blame itself. Any thread.
class Passes {
 public:
  /// A message of the handler was applied.
  void applied(const std::string& handler) {
    if (!watched_.load(std::memory_order_relaxed))
      return;
    const std::scoped_lock lock(mutex_);
    ++by_handler_[handler];
    ++all_;
  }
  /// pawl's own row was written, for which no message is needed.
  void heartbeat() {
    const std::scoped_lock lock(mutex_);
    ++all_;
  }

  /// Up to now, of messages of the handler. Counts from the first call on.
  [[nodiscard]] std::uint64_t of(const std::string& handler) {
    watched_ = true;
    const std::scoped_lock lock(mutex_);
    return by_handler_[handler];
  }
  /// Up to now, of anything.
  [[nodiscard]] std::uint64_t of_all() {
    watched_ = true;
    const std::scoped_lock lock(mutex_);
    return all_;
  }

 private:
  /// Spares the lock while nothing fails.
  std::atomic<bool> watched_{false};
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> by_handler_;  // guarded by mutex_
  std::uint64_t all_ = 0;                            // guarded by mutex_
};

}  // namespace pawl::engine
