#include <fmt/format.h>

#include <pawl/testing/wait.hpp>
#include <thread>

namespace pawl::testing {

void wait_until(const std::function<bool()>& predicate, std::chrono::milliseconds deadline,
                const std::string& description) {
  constexpr std::chrono::milliseconds kPollInterval{2};
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= end) {
      throw Timeout{fmt::format(
          "waited {} ms for {}; look at what should have brought it about, or allow more time",
          deadline.count(), description)};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace pawl::testing
