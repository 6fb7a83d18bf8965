#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl::engine {

/// How many messages of a partition may go into its next transaction. Contention halves it at once,
/// and good transactions raise it again slowly; what failed is halved until the culprit is alone.
/// One worker's.
class BatchPace {
 public:
  /// Good transactions in a row before the size doubles.
  static constexpr std::size_t kGoodOnes = 8;

  explicit BatchPace(std::size_t most) : most_(most), limit_(most) {}

  /// 1: the head message takes the way of single ones.
  [[nodiscard]] std::size_t size() const;

  /// A batch ends before a message at one of these offsets, which runs alone.
  [[nodiscard]] bool runs_alone(std::int64_t offset) const;
  void run_alone_at(std::vector<std::int64_t> offsets) { alone_at_ = std::move(offsets); }
  /// Each of the next messages runs alone.
  void run_alone(std::size_t messages) { alone_ = messages; }

  /// So many messages are behind, in one transaction; the last of them stood at `offset`.
  /// `one_had_failed`: it was one alone, and the culprit of what failed before.
  void passed(std::size_t messages, std::int64_t offset, bool one_had_failed);

  /// A batch of so many waited for others too long, or met them in a deadlock.
  void contended(std::size_t messages);
  /// Something in a batch of so many fails.
  void failed(std::size_t messages) { failing_ = smallest_failed_ = messages; }

 private:
  void shrink(std::size_t messages);

  std::size_t most_;
  std::size_t limit_;
  std::size_t good_ = 0;             ///< transactions since the size changed
  std::size_t alone_ = 0;            ///< messages from the head on that run alone
  std::size_t failing_ = 0;          ///< messages from the head on among which one fails
  std::size_t smallest_failed_ = 0;  ///< batch that failed
  std::vector<std::int64_t> alone_at_;
};

}  // namespace pawl::engine
