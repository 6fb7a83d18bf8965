#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace pawl::kafka {

/// Counts one thread of call_within() until the returned object is destroyed.
[[nodiscard]] std::shared_ptr<void> count_call();
/// Threads of call_within() that have not ended. If no thread waits in call_within(), these are
/// calls that were left behind.
[[nodiscard]] int calls_in_progress();

/// Runs a call that has no limit of its own on a new thread, and checks every 100 ms whether the
/// time is over. Nullopt: the time is over, and the call is left behind on its thread, which
/// nothing waits for. So the call owns all that it uses, and destroys it on that thread. Throws
/// what the call throws, and std::system_error if the process can start no thread.
template <typename Call>
std::optional<std::invoke_result_t<Call&>> call_within(Call call,
                                                       const std::function<bool()>& out_of_time) {
  constexpr std::chrono::milliseconds kPoll{100};
  std::packaged_task<std::invoke_result_t<Call&>()> task(std::move(call));
  auto result = task.get_future();
  std::thread thread([counted = count_call(), task = std::move(task)]() mutable {
    // Destroyed before the thread is no longer counted.
    auto mine = std::move(task);
    mine();
  });
  while (result.wait_for(kPoll) != std::future_status::ready) {
    if (out_of_time()) {
      thread.detach();
      return std::nullopt;
    }
  }
  thread.join();
  return result.get();
}

}  // namespace pawl::kafka
