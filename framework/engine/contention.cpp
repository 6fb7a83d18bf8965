#include "engine/contention.hpp"

#include <algorithm>

#include "engine/errand.hpp"
#include "engine/retries.hpp"

namespace pawl::engine {

Contention::Clock::duration wait_in_contention(Contention::Clock::time_point begun,
                                               Contention::Clock::time_point now,
                                               const FailureOptions& options,
                                               Contention& contention, std::uint32_t& waits) {
  const auto rounds = contention.waited(begun, now);
  const auto wait = wait_before_retry(options, std::max(++waits, rounds));
  contention.pause(now + std::min(wait, wait_before_retry(options, rounds)) / 2);
  return wait;
}

Contention::Clock::duration wait_after(const Landing& landing, Contention::Clock::time_point begun,
                                       Contention::Clock::time_point now,
                                       const FailureOptions& options, Contention& contention,
                                       std::uint32_t& waits) {
  if (!landing.answered())
    return landing.wait;
  if (!landing.waited_for_lock) {
    contention.passed();
    waits = 0;
    return landing.wait;
  }
  return wait_in_contention(begun, now, options, contention, waits);
}

}  // namespace pawl::engine
