#include "ops/outage.hpp"

namespace pawl::ops {

bool Outage::lost(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  back_since_.reset();
  if (away_since_)
    return false;
  away_since_ = now;
  return true;
}

void Outage::found(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (away_since_)
    back_since_ = now;
}

std::optional<Outage::Clock::duration> Outage::take_ended(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (!away_since_ || !back_since_ || now - *back_since_ < quiet_)
    return std::nullopt;
  const auto took = *back_since_ - *away_since_;
  away_since_.reset();
  back_since_.reset();
  return took;
}

}  // namespace pawl::ops
