#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "engine/position_checks.hpp"
#include "kafka/record.hpp"

namespace pawl::engine {

/// The leader epoch (KIP-320) of a record is below that of what stands before it: the log was
/// truncated, or is another one.
[[nodiscard]] constexpr bool goes_back(const std::optional<std::int32_t>& before,
                                       const std::optional<std::int32_t>& epoch) {
  return epoch && before && *epoch < *before;
}

/// What a worker has taken from a partition's stream and not processed yet, in the log's order.
/// Sees to it that nothing is passed over: each record stands behind the one that was taken before
/// it. One thread.
class Inbox {
 public:
  using Clock = std::chrono::steady_clock;

  /// A record, with the place behind its predecessor noted when it was taken from the stream: a
  /// record lost or reordered after that cannot pass the register's compare.
  struct Item {
    kafka::Record record;
    ledger::Position from;
    /// KIP-320: of the record, or of what stands before the end of the log; nullopt: unknown.
    std::optional<std::int32_t> leader_epoch;
    Clock::time_point taken_at = {};

    [[nodiscard]] bool is_message() const { return record.kind() == kafka::Record::Kind::kMessage; }
  };

  enum class Taken {
    kYes,
    kNotNext,  ///< it is not what was asked for: Kafka must be told the position again
    kError,    ///< an error in place of a record, about which somebody must do something
  };

  /// What Kafka says of a partition, asked beside its records.
  struct LogLook {
    std::int64_t end = -1;       ///< of the log
    std::int64_t end_seen = -1;  ///< by fetching
    std::uint64_t answers = 0;   ///< so often Kafka has said where the log ends
  };

  /// Records are awaited behind `stored`; what was there is dropped.
  void open(ledger::Position stored);
  /// Drops what is there.
  void clear();

  /// Takes what the stream has delivered, or leaves `record` as it is. An unreadable place in the
  /// log is taken like a record: its turn comes behind the messages before it.
  Taken take(kafka::Record& record, Clock::time_point now = {});
  /// Nothing is to be taken from behind an unreadable place.
  [[nodiscard]] bool ends_unreadable() const { return unreadable_; }

  /// Records or errors came, or could not come yet.
  void saw_life(Clock::time_point now, std::uint64_t answers);
  /// Nothing has come for long, although the log goes on and Kafka answers: its client is stuck.
  [[nodiscard]] bool is_stuck(Clock::time_point now, const LogLook& log) const;

  /// Kafka refuses to deliver from `next`, in a row with others at the same offset until something
  /// is taken.
  void note_refusal(std::int64_t next, const std::string& text);
  void forget_refusal() { refusal_.reset(); }
  [[nodiscard]] const std::optional<PositionRefusal>& refusal() const { return refusal_; }

  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const Item& front() const { return items_.front(); }
  [[nodiscard]] const Item& operator[](std::size_t index) const { return items_[index]; }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  void pop_front() { items_.pop_front(); }
  [[nodiscard]] Item take_front() {
    auto item = std::move(items_.front());
    items_.pop_front();
    return item;
  }
  /// Behind what was taken last; the end of the log stands for what is before it.
  [[nodiscard]] ledger::Position taken() const { return taken_; }
  /// Items up to the last message; only ends of the log are behind.
  [[nodiscard]] std::size_t up_to_last_message() const;

 private:
  [[nodiscard]] bool is_next(const kafka::Record& record);
  void found_its_place();
  void push(kafka::Record& record, Clock::time_point now);

  std::deque<Item> items_;
  ledger::Position taken_;
  bool first_pending_ = false;
  bool sought_twice_ = false;
  bool unreadable_ = false;
  std::optional<PositionRefusal> refusal_;
  Clock::time_point last_life_{};
  std::uint64_t answers_then_ = 0;
};

}  // namespace pawl::engine
