#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace pawl::engine {

/// Exponential delays with jitter: the n-th is uniform in the upper three quarters of [0, min(max,
/// initial * 2^n)], so that a fleet does not come back in step. Owned by one thread.
class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Backoff(Milliseconds initial, Milliseconds max) : initial_(initial), max_(max), bound_(initial) {}

  Milliseconds next() {
    thread_local std::minstd_rand random{std::random_device{}()};
    const auto bound = std::max<Milliseconds::rep>(1, bound_.count());
    const auto delay = std::uniform_int_distribution<Milliseconds::rep>(bound / 4, bound)(random);
    bound_ = std::min(max_, bound_ * 2);
    return Milliseconds(delay);
  }
  void reset() { bound_ = initial_; }

 private:
  Milliseconds initial_;
  Milliseconds max_;
  Milliseconds bound_;
};

}  // namespace pawl::engine
