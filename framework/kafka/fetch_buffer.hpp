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
/// partitions hold together; so its own queue, one for all, is kept short, and the rest is a pool.
/// Of the pool each partition has a reserved share; beyond it every partition takes what it needs
/// (docs/architecture/fetching.md).
struct BufferPlan {
  std::size_t pool;      ///< taken out of librdkafka's queue and not processed yet
  std::size_t queue;     ///< librdkafka's queue: it fetches nothing while that holds so much
  std::size_t response;  ///< most of one answer of a broker
  std::size_t quantum;   ///< most of one partition in one answer
  std::size_t least;     ///< reserved for each partition; all together at most half a pool

  [[nodiscard]] static BufferPlan of(std::size_t buffer, std::size_t partitions);

  /// Records at most in librdkafka's queue: many small ones take more than their bytes.
  [[nodiscard]] std::size_t queue_records() const;

  friend bool operator==(const BufferPlan&, const BufferPlan&) = default;
};

/// How much of the pool is reserved, and what partitions hold beyond their reserved shares.
struct BufferUse {
  std::size_t reserved = 0;  ///< whether it is held or not
  std::size_t in_turn = 0;   ///< by partitions whose messages run one after another
  std::size_t ahead = 0;     ///< by those whose messages may stay after they were run
};

/// One partition's part of the pool.
struct BufferPart {
  std::size_t reserved = 0;
  std::size_t held = 0;
  /// Messages of the partition run ahead of its stored offset (engine/window.hpp). So it keeps what
  /// it holds for as long as its first message is retried.
  bool ahead = false;
};

enum class Admission {
  kAccept,
  /// The partition has more than its part while others may need it: it is not fetched until its
  /// worker has processed some of it.
  kThrottle,
  /// The record is larger than what is left. It is the next one to get room, which partitions whose
  /// messages run one after another return.
  kWait,
};

/// What to do with a record of `bytes` for a partition that has this part of the pool and a
/// FetchWindow of `window`. A record that fits into the partition's reserved share is always
/// accepted.
[[nodiscard]] Admission admit(const BufferPlan& plan, const BufferUse& use, const BufferPart& part,
                              std::size_t bytes, std::size_t window);

/// Whether a partition that was throttled holds so little that it is fetched again.
[[nodiscard]] bool may_resume(const BufferPlan& plan, const BufferUse& use, const BufferPart& part,
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
  [[nodiscard]] BufferUse use() const;

  /// A share for one more partition, in bytes. 0: half of the pool is reserved, as where there are
  /// more partitions than when the process started.
  [[nodiscard]] std::size_t reserve();
  void cancel(std::size_t reserved);

  // What a partition holds beyond its reserved share; `ahead`: as BufferPart has it.
  void take(std::size_t bytes, bool ahead) {
    (ahead ? ahead_ : in_turn_) += static_cast<std::ptrdiff_t>(bytes);
  }
  void give_back(std::size_t bytes, bool ahead);

  /// False: there is room for `bytes` already. True: on_room will be called.
  [[nodiscard]] bool wait_for_room(std::size_t bytes);
  [[nodiscard]] bool waits_for_room() const { return wanted_ != 0; }

 private:
  [[nodiscard]] bool has_room(std::size_t bytes) const;
  void tell_of_room();

  const BufferPlan plan_;
  const std::function<void()> on_room_;
  std::atomic<std::size_t> reserved_{0};
  // Below 0 for a moment: when one thread has returned bytes before another one has counted what it
  // took of the same share.
  std::atomic<std::ptrdiff_t> in_turn_{0};
  std::atomic<std::ptrdiff_t> ahead_{0};
  std::atomic<std::size_t> wanted_{0};  ///< on_room is called when so much is free; 0: nobody waits
};

/// One partition's part of the pool, with its reserved share until cancel(). Thread-safe, but for
/// cancel() and run_ahead().
class BufferShare {
 public:
  explicit BufferShare(FetchBuffer& buffer) : buffer_(buffer), reserved_(buffer.reserve()) {}
  BufferShare(const BufferShare&) = delete;
  BufferShare& operator=(const BufferShare&) = delete;

  /// Before anything is taken.
  void run_ahead() { ahead_ = true; }
  /// The partition takes nothing more.
  void cancel() {
    if (!std::exchange(canceled_, true))
      buffer_.cancel(reserved_);
  }
  [[nodiscard]] BufferPart part() const { return {reserved_, held_, ahead_}; }
  void take(std::size_t bytes) {
    const auto before = held_.fetch_add(bytes);
    buffer_.take(beyond(before + bytes) - beyond(before), ahead_);
  }
  void give_back(std::size_t bytes) {
    const auto before = held_.fetch_sub(bytes);
    buffer_.give_back(beyond(before) - beyond(before - bytes), ahead_);
  }

 private:
  [[nodiscard]] std::size_t beyond(std::size_t held) const {
    return held > reserved_ ? held - reserved_ : 0;
  }

  FetchBuffer& buffer_;
  const std::size_t reserved_;
  bool ahead_ = false;
  bool canceled_ = false;
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
