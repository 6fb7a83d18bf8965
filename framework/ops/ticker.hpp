#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace pawl::ops {

/// Calls something from a thread of its own, again and again, until it is stopped.
class Ticker {
 public:
  Ticker() = default;
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// Once. `call` does not throw.
  void start(std::chrono::milliseconds interval, std::function<void()> call);
  /// A call in progress is finished. Any number of times.
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::ops
