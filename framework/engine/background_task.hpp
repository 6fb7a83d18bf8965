#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "engine/context.hpp"

namespace pawl::engine {

/// What goes on beside the workers for as long as they run, on a thread and connections of its own,
/// so that nothing waits for it. Its thread begins with the object; the destructor waits for it.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  virtual ~BackgroundTask() = default;
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  /// Begins to end: what goes on afterwards must be done by `deadline`. `finish`: what was not
  /// begun with as well, as far as there is time. From any thread.
  virtual void stop(std::chrono::steady_clock::time_point deadline, bool finish) = 0;
};

/// Makes one for this consumer; null where it is not configured. The context outlives it.
using MakeTask = std::function<std::unique_ptr<BackgroundTask>(Context&)>;

}  // namespace pawl::engine
