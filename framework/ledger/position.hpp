#pragma once

#include <compare>
#include <cstdint>

namespace pawl::ledger {

/// Where a partition stands: between the last offset that is behind it and the next one. The
/// register stores the former, Kafka speaks of the latter; who reads or writes either says which.
class Position {
 public:
  /// At the log's beginning.
  constexpr Position() = default;
  /// `last`: -1 is the log's beginning.
  [[nodiscard]] static constexpr Position behind(std::int64_t last) { return Position(last + 1); }
  [[nodiscard]] static constexpr Position before(std::int64_t next) { return Position(next); }

  /// Offset of the last message (or hole) that is processed; -1: nothing is.
  [[nodiscard]] constexpr std::int64_t last() const { return next_ - 1; }
  /// Offset of the next message to process.
  [[nodiscard]] constexpr std::int64_t next() const { return next_; }

  friend constexpr auto operator<=>(Position, Position) = default;

 private:
  explicit constexpr Position(std::int64_t next) : next_(next) {}

  std::int64_t next_ = 0;
};

}  // namespace pawl::ledger
