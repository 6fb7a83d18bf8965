#include "engine/batch_pace.hpp"

#include <algorithm>
#include <utility>

namespace pawl::engine {

BatchPace::BatchPace(std::size_t most, Duration longest)
    : most_(most), longest_(longest), limit_(std::min(most, kFirst)) {}

std::size_t BatchPace::size() const {
  if (alone_ > 0)
    return 1;
  if (failing_ > 0)
    return std::clamp<std::size_t>(failing_ / 2, 1, limit_);
  return limit_;
}

bool BatchPace::runs_alone(std::int64_t offset) const {
  return std::find(alone_at_.begin(), alone_at_.end(), offset) != alone_at_.end();
}

void BatchPace::passed(std::size_t messages, std::int64_t offset, bool one_had_failed,
                       Duration took) {
  if (!alone_at_.empty())
    std::erase_if(alone_at_, [offset](std::int64_t other) { return other <= offset; });
  if (alone_ > 0) {
    if (one_had_failed)
      broke_ = 0;
    alone_ -= std::min(alone_, messages);
    if (alone_ == 0 && broke_ > 0)
      broke_together();
  }
  if (messages >= broke_before_)
    broke_before_ = 0;
  if (failing_ > 0 && !one_had_failed && messages >= failing_)
    too_many(smallest_failed_);
  failing_ -= std::min(failing_, messages);
  if (one_had_failed)
    failing_ = 0;
  grow(messages, took);
}

void BatchPace::forget_failures() {
  alone_ = 0;
  broke_ = 0;
  failing_ = 0;
}

void BatchPace::grow(std::size_t messages, Duration took) {
  if (messages > 1 && took > longest_) {
    const auto share = static_cast<double>(longest_.count()) / static_cast<double>(took.count());
    shrink_to(static_cast<std::size_t>(static_cast<double>(messages) * share));
    return;
  }
  if (messages >= blamed_) {
    blamed_ = 0;
    after_too_many_ = kGoodOnes;
  }
  // Less than a full one does not show what more would take.
  if (limit_ == most_ || messages < limit_ || took * 2 > longest_)
    return;
  if (++good_ < (blamed_ > 0 && limit_ * 2 >= blamed_ ? after_too_many_ : patience_))
    return;
  limit_ = std::min(most_, limit_ * 2);
  good_ = 0;
}

void BatchPace::contended(std::size_t messages) {
  shrink_to(messages / 2);
}

/// Each of them was fine, so it was their number: that is tried again seldom.
void BatchPace::too_many(std::size_t messages) {
  shrink_to(messages / 2);
  blamed_ = messages;
  after_too_many_ = std::min(after_too_many_ * kGoodOnes, kMostPatience);
}

/// Once may be an outage without a word of the server's.
void BatchPace::broke_together() {
  const auto messages = std::exchange(broke_, 0);
  if (broke_before_ > 0) {
    broke_before_ = 0;
    too_many(messages);
  } else {
    broke_before_ = messages;
  }
}

void BatchPace::shrink_to(std::size_t messages) {
  limit_ = std::clamp<std::size_t>(messages, 1, limit_);
  patience_ = std::max(patience_, kGoodOnes);
  good_ = 0;
}

}  // namespace pawl::engine
