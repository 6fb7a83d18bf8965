#include "ops/ticker.hpp"

#include <utility>

namespace pawl::ops {

void Ticker::start(std::chrono::milliseconds interval, std::function<void()> call) {
  thread_ = std::thread([this, interval, call = std::move(call)] {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, interval, [this] { return ending_; })) {
      lock.unlock();
      call();
      lock.lock();
    }
  });
}

void Ticker::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable())
    thread_.join();
}

}  // namespace pawl::ops
