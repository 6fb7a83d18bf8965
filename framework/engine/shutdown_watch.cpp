#include "engine/shutdown_watch.hpp"

#include <cstdlib>

namespace pawl::engine {

ShutdownWatch::ShutdownWatch(std::chrono::milliseconds timeout, const Observers& observers)
    : thread_([this, timeout, &observers] { run(timeout, observers); }) {}

ShutdownWatch::~ShutdownWatch() {
  {
    const std::scoped_lock lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ShutdownWatch::finished(RunResult result) {
  const std::scoped_lock lock(mutex_);
  finished_ = result;
}

void ShutdownWatch::run(std::chrono::milliseconds timeout, const Observers& observers) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, timeout, [this] { return done_; }))
    return;
  observers.emit(warning_event(
      Warning::kShutdownTimedOut,
      finished_
          ? "consumer.shutdown_timeout has passed. All in-flight messages are stored, but "
            "Kafka or a background task has not responded. The process exits without it"
          : "consumer.shutdown_timeout has passed. The process exits, and in-flight messages are "
            "processed again"));
  std::_Exit(static_cast<int>(finished_.value_or(RunResult::kShutdownTimeout)));
}

}  // namespace pawl::engine
