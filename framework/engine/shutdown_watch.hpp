#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/observers.hpp"
#include "pawl/consumer.hpp"

namespace pawl::engine {

/// Ends the process when stopping takes longer than promised, whatever it hangs in: everything that
/// is not committed runs again elsewhere. While it lives; it has a thread of its own.
class ShutdownWatch {
 public:
  ShutdownWatch(std::chrono::milliseconds timeout, const Observers& observers);
  ~ShutdownWatch();
  ShutdownWatch(const ShutdownWatch&) = delete;
  ShutdownWatch& operator=(const ShutdownWatch&) = delete;

  /// All that was in hand is stored, so from now on this is how the process ends.
  void finished(RunResult result);

 private:
  void run(std::chrono::milliseconds timeout, const Observers& observers);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;                  // guarded by mutex_
  std::optional<RunResult> finished_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::engine
