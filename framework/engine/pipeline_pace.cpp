#include "engine/pipeline_pace.hpp"

#include <algorithm>

namespace pawl::engine {
namespace {

constexpr std::size_t kAloneAfterNone = 4;
constexpr std::size_t kMostAloneAfterNone = 256;

}  // namespace

PipelinePace::PipelinePace(std::size_t most) : most_(most), size_(std::min(kFirst, most)) {}

std::size_t PipelinePace::smallest() const {
  return std::min(kShortest, most_);
}

void PipelinePace::landed(std::size_t stored, bool complete, Duration took) {
  auto size = size_;
  if (!complete) {
    size /= 2;
  } else if (stored == size) {
    size *= 2;
  }
  if (took > kLongest && stored > 0)
    size = std::min(size, static_cast<std::size_t>(stored * kLongest / took));
  size_ = std::clamp(size, smallest(), most_);

  // Where not even one could go, as behind a parked record key, those behind it are likely to be
  // like it, and the more so the more often.
  if (stored > 0)
    alone_after_none_ = kAloneAfterNone;
  if (complete)
    return;
  alone_ = 1;
  if (stored == 0) {
    alone_ = std::max(alone_after_none_, kAloneAfterNone);
    alone_after_none_ = std::min(alone_ * 2, kMostAloneAfterNone);
  }
}

void PipelinePace::passed(std::size_t messages) {
  alone_ -= std::min(alone_, messages);
}

}  // namespace pawl::engine
