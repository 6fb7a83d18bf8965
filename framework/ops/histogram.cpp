#include "ops/histogram.hpp"

#include <algorithm>

namespace pawl::ops {

Histogram::Histogram(std::span<const std::int64_t> bounds)
    : bounds_(bounds), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds.size() + 1)) {}

void Histogram::observe(std::int64_t value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Counts Histogram::read() const {
  Counts counts;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    counts.by_bucket.push_back(counts_[i].load(std::memory_order_relaxed));
    counts.all += counts.by_bucket.back();
  }
  counts.sum = sum_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace pawl::ops
