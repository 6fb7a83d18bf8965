#include "ops/outage.hpp"

namespace pawl::ops {

bool Outage::lost(Clock::time_point now, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  const bool stands = away_since_ && !back_since_;
  back_since_.reset();
  if (!away_since_) {
    away_since_ = now;
    told_.clear();
  }
  return !stands && is_news(why);
}

bool Outage::fails(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  return away_since_ && !back_since_ && is_news(why);
}

bool Outage::is_news(const std::string& why) {
  why_ = why;
  return told_.size() < kMostReasons && told_.insert(why).second;
}

void Outage::found(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (away_since_)
    back_since_ = now;
}

std::optional<Outage::Standing> Outage::standing(Clock::time_point now) const {
  const std::scoped_lock lock(mutex_);
  if (!away_since_ || back_since_)
    return std::nullopt;
  return Standing{now - *away_since_, why_};
}

std::optional<Outage::Clock::duration> Outage::take_ended(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (!away_since_ || !back_since_ || now - *back_since_ < quiet_)
    return std::nullopt;
  const auto lasted = *back_since_ - *away_since_;
  away_since_.reset();
  back_since_.reset();
  return lasted;
}

}  // namespace pawl::ops
