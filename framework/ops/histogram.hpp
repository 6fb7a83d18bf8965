#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace pawl::ops {

/// Counts values by size, from any thread, without a lock.
class Histogram {
 public:
  /// `bounds`: of the buckets, ascending; a value belongs to the first that it does not exceed.
  /// They outlive it.
  explicit Histogram(std::span<const std::int64_t> bounds);

  void observe(std::int64_t value);

  struct Counts {
    std::vector<std::uint64_t> by_bucket;  ///< the last is that of all values above the bounds
    std::uint64_t all = 0;
    std::int64_t sum = 0;
  };
  [[nodiscard]] Counts read() const;
  [[nodiscard]] std::span<const std::int64_t> bounds() const { return bounds_; }

 private:
  const std::span<const std::int64_t> bounds_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<std::int64_t> sum_{0};
};

}  // namespace pawl::ops
