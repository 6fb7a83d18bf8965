#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace pawl::kafka {

/// What librdkafka and pawl need for a record beside its key and value, about.
inline constexpr std::size_t kRecordOverhead = 512;

/// How kafka.buffer is divided, in bytes. librdkafka cannot bound what it fetches by what all
/// partitions hold together; so its own queue, one for all, is kept short, and the rest is a pool
/// of which every partition takes what it needs (docs/design.md, "Fetching").
struct BufferPlan {
  std::size_t pool;      ///< taken out of librdkafka's queue and not processed yet
  std::size_t queue;     ///< librdkafka's queue: it fetches nothing while that holds so much
  std::size_t response;  ///< most of one answer of a broker
  std::size_t quantum;   ///< most of one partition in one answer
  std::size_t least;     ///< what a partition may hold whatever others do; all together half a pool

  [[nodiscard]] static BufferPlan of(std::size_t buffer, std::size_t partitions);

  /// Records at most in librdkafka's queue: many small ones take more than their bytes.
  [[nodiscard]] std::size_t queue_records() const;

  friend bool operator==(const BufferPlan&, const BufferPlan&) = default;
};

enum class Admission {
  kAccept,
  /// The partition has more than its part while others may need it: it is not fetched until its
  /// worker has processed some of it.
  kThrottle,
  /// There is no room for anybody.
  kWait,
};

/// What to do with a record of `bytes` for a partition that holds `held` of the `total` in use and
/// has a FetchWindow of `window`.
[[nodiscard]] Admission admit(const BufferPlan& plan, std::size_t total, std::size_t held,
                              std::size_t bytes, std::size_t window);

/// Whether a partition that was throttled is fetched again.
[[nodiscard]] bool may_resume(const BufferPlan& plan, std::size_t total, std::size_t held,
                              std::size_t window);

/// How much of the pool one partition may hold because its worker is quick enough to need it: who
/// is slow would only keep it from others. Not thread-safe.
class FetchWindow {
 public:
  explicit FetchWindow(const BufferPlan& plan) : plan_(&plan), bytes_(plan.quantum) {}

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// It was throttled, and its worker had nothing to do before more came.
  void ran_dry();
  /// Its worker took so long from the throttling until it could go on.
  void lasted(std::chrono::steady_clock::duration time);

 private:
  const BufferPlan* plan_;
  std::size_t bytes_;
};

/// The pool's account. Thread-safe.
class FetchBuffer {
 public:
  /// `on_room` is called from any thread when wait_for_room() was, and there is room again.
  FetchBuffer(const BufferPlan& plan, std::function<void()> on_room);

  [[nodiscard]] const BufferPlan& plan() const { return plan_; }
  [[nodiscard]] std::size_t total() const { return total_.load(); }
  void take(std::size_t bytes) { total_ += bytes; }
  void give_back(std::size_t bytes);
  /// False: there is room for `bytes` already. True: on_room will be called.
  [[nodiscard]] bool wait_for_room(std::size_t bytes);

 private:
  const BufferPlan plan_;
  const std::function<void()> on_room_;
  std::atomic<std::size_t> total_{0};
  std::atomic<std::size_t> wanted_{0};  ///< on_room is called when so much is free; 0: nobody waits
};

/// One partition's part of the pool. Thread-safe.
class BufferShare {
 public:
  explicit BufferShare(FetchBuffer& buffer) : buffer_(buffer) {}

  [[nodiscard]] std::size_t held() const { return held_.load(); }
  void take(std::size_t bytes) {
    held_ += bytes;
    buffer_.take(bytes);
  }
  void give_back(std::size_t bytes) {
    held_ -= bytes;
    buffer_.give_back(bytes);
  }

 private:
  FetchBuffer& buffer_;
  std::atomic<std::size_t> held_{0};
};

/// A record's bytes in the account, for as long as the record is held. The share must live longer.
class BufferHold {
 public:
  BufferHold() = default;
  BufferHold(BufferShare& share, std::size_t bytes) : share_(&share), bytes_(bytes) {
    share.take(bytes);
  }
  BufferHold(BufferHold&& other) noexcept
      : share_(std::exchange(other.share_, nullptr)), bytes_(other.bytes_) {}
  BufferHold& operator=(BufferHold&& other) noexcept {
    if (this != &other) {
      release();
      share_ = std::exchange(other.share_, nullptr);
      bytes_ = other.bytes_;
    }
    return *this;
  }
  BufferHold(const BufferHold&) = delete;
  BufferHold& operator=(const BufferHold&) = delete;
  ~BufferHold() { release(); }

 private:
  void release() {
    if (share_ != nullptr)
      share_->give_back(bytes_);
  }

  BufferShare* share_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace pawl::kafka
