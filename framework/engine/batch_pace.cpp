#include "engine/batch_pace.hpp"

#include <algorithm>

namespace pawl::engine {

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

void BatchPace::passed(std::size_t messages, std::int64_t offset, bool one_had_failed) {
  if (!alone_at_.empty())
    std::erase_if(alone_at_, [offset](std::int64_t other) { return other <= offset; });
  alone_ -= std::min(alone_, messages);
  if (failing_ > 0 && !one_had_failed && messages >= failing_) {
    // Each was fine, so it was their number.
    shrink(smallest_failed_);
  }
  failing_ -= std::min(failing_, messages);
  if (one_had_failed)
    failing_ = 0;
  if (limit_ < most_ && ++good_ >= kGoodOnes) {
    limit_ = std::min(most_, limit_ * 2);
    good_ = 0;
  }
}

void BatchPace::contended(std::size_t messages) {
  shrink(messages);
}

void BatchPace::shrink(std::size_t messages) {
  limit_ = std::max<std::size_t>(1, std::min(limit_, messages) / 2);
  good_ = 0;
}

}  // namespace pawl::engine
