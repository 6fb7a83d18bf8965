#include "engine/retries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// Of the longest wait: the middle of its upper three quarters.
constexpr double kMeanShare = 5.0 / 8;

double mean_wait(const FailureOptions& options, std::uint32_t attempts) {
  return kMeanShare * static_cast<double>(longest_wait(options, attempts).count());
}

}  // namespace

milliseconds longest_wait(const FailureOptions& options, std::uint32_t attempts) {
  auto wait = std::max(options.retry_initial, milliseconds{1});
  for (std::uint32_t n = 1; n < attempts && wait < options.retry_max; ++n)
    wait *= 2;
  return std::min(wait, std::max(options.retry_max, options.retry_initial));
}

milliseconds wait_before_retry(const FailureOptions& options, std::uint32_t attempts) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto longest = longest_wait(options, attempts).count();
  return milliseconds(
      std::uniform_int_distribution<milliseconds::rep>((longest + 3) / 4, longest)(random));
}

std::uint32_t attempts_allowed(const FailureOptions& options) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  const auto most = options.max_attempts == 0 ? kMost : options.max_attempts;
  auto left = static_cast<double>(options.retry_for.count());
  std::uint32_t attempts = 1;
  while (left > 0 && attempts < most && longest_wait(options, attempts) < options.retry_max) {
    left -= mean_wait(options, attempts);
    ++attempts;
  }
  if (left <= 0 || attempts >= most)
    return attempts;
  // From here on every wait is as long as the last.
  const auto more = std::ceil(left / mean_wait(options, attempts));
  return more < static_cast<double>(most - attempts) ? attempts + static_cast<std::uint32_t>(more)
                                                     : most;
}

}  // namespace pawl::engine
