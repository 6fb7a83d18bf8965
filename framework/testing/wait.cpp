#include <fmt/format.h>

#include <algorithm>
#include <pawl/testing/wait.hpp>
#include <thread>

namespace pawl::testing {

void wait_until(const std::function<bool()>& predicate, std::chrono::milliseconds deadline,
                const std::string& description) {
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration kShortest = std::chrono::milliseconds{2};
  constexpr Clock::duration kLongest = std::chrono::milliseconds{100};
  const auto end = Clock::now() + deadline;
  for (;;) {
    const auto asked_at = Clock::now();
    if (predicate())
      return;
    const auto answered_at = Clock::now();
    if (answered_at >= end) {
      throw Timeout{fmt::format("waited {} ms for {}. Check the cause, or increase the deadline",
                                deadline.count(), description)};
    }
    // To ask may cost a connection to PostgreSQL or a request to a broker. Nine tenths of the
    // time are for what is waited for.
    std::this_thread::sleep_for(std::clamp(9 * (answered_at - asked_at), kShortest, kLongest));
  }
}

}  // namespace pawl::testing
