#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl::engine {

/// How many messages of a partition may go into its next transaction. It begins small and doubles;
/// contention halves it at once, and from then on good transactions raise it slowly; a transaction
/// that takes long makes it as small as fits; what failed is halved until the culprit is alone. One
/// worker's.
class BatchPace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::size_t kFirst = 32;
  /// Good transactions in a row before the size doubles again after it had to shrink.
  static constexpr std::size_t kGoodOnes = 8;
  /// The same for a size at which the number itself had made them fail: more and more, at most so
  /// many.
  static constexpr std::size_t kMostPatience = 4096;

  /// `most`: messages, at least 1. `longest`: what a transaction may take.
  BatchPace(std::size_t most, Duration longest);

  /// 1: the head message takes the way of single ones.
  [[nodiscard]] std::size_t size() const;

  /// A batch ends before a message at one of these offsets, which runs alone.
  [[nodiscard]] bool runs_alone(std::int64_t offset) const;
  void run_alone_at(const std::vector<std::int64_t>& offsets) {
    alone_at_.insert(alone_at_.end(), offsets.begin(), offsets.end());
  }
  /// Each of the next messages runs alone: with them in hand the connection broke.
  void run_alone(std::size_t messages) { alone_ = broke_ = messages; }

  /// So many messages are behind, in one transaction that took `took`; the last of them stood at
  /// `offset`. `one_had_failed`: it was one alone, and the culprit of what failed before.
  void passed(std::size_t messages, std::int64_t offset, bool one_had_failed, Duration took);

  /// A batch of so many waited for others too long, or met them in a deadlock.
  void contended(std::size_t messages);
  /// Something in a batch of so many fails.
  void failed(std::size_t messages) { failing_ = smallest_failed_ = messages; }
  /// The messages at the head are others now.
  void forget_failures();

 private:
  void shrink_to(std::size_t messages);
  void too_many(std::size_t messages);
  void broke_together();
  void grow(std::size_t messages, Duration took);

  std::size_t most_;
  Duration longest_;
  std::size_t limit_;
  std::size_t good_ = 0;                    ///< full transactions since the size changed
  std::size_t patience_ = 1;                ///< so many before it doubles
  std::size_t blamed_ = 0;                  ///< size of a batch that failed by its number
  std::size_t after_too_many_ = kGoodOnes;  ///< so many before that size is tried again
  std::size_t alone_ = 0;                   ///< messages from the head on that run alone
  std::size_t broke_ = 0;                   ///< as many as there were, while each of them is fine
  std::size_t broke_before_ = 0;     ///< the same of the last time, unless as many passed since
  std::size_t failing_ = 0;          ///< messages from the head on among which one fails
  std::size_t smallest_failed_ = 0;  ///< batch that failed
  std::vector<std::int64_t> alone_at_;
};

}  // namespace pawl::engine
