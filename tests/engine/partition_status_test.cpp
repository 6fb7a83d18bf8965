#include "engine/partition_status.hpp"

#include "prelude.hpp"

using pawl::engine::PartitionStatus;
using pawl::engine::StatusBoard;

TEST_CASE("what is applied before a look at the topic is of the topic that the look still names") {
  PartitionStatus status({"t", 0});
  CHECK(status.last_look().next == -1);
  status.position = 10;
  status.acquired_in("A", 10);
  CHECK(status.last_look().next == 10);

  status.position = 20;
  const auto look = status.before_look();
  CHECK(look.topic_id == "A");
  status.position = 25;
  status.named(look);
  CHECK(status.last_look().next == 20);

  // Acquired again, for example over a new connection: nobody looked since.
  status.acquired_in("A", 25);
  CHECK(status.last_look().next == 20);
  // The register may have gone back.
  status.acquired_in("A", 15);
  CHECK(status.last_look().next == 15);
  // An operator's position is of the topic that is there now.
  status.acquired_in("B", 3);
  CHECK(status.last_look().next == 3);
}

TEST_CASE("a look that an acquire overtook says nothing") {
  PartitionStatus status({"t", 0});
  status.position = 100;
  status.acquired_in("A", 100);
  const auto look = status.before_look();
  status.acquired_in("A", 50);
  status.named(look);
  CHECK(status.last_look().next == 50);
}

TEST_CASE("the end of a topic's log is the one that was known before a look named the topic") {
  PartitionStatus status({"t", 0});
  status.acquired_in("A", 10);
  status.log_end = 15;
  CHECK(status.last_look().log_end == -1);
  const auto look = status.before_look();
  // Perhaps of another topic by now.
  status.log_end = 3;
  status.named(look);
  CHECK(status.last_look().log_end == 15);
  status.acquired_in("A", 12);
  CHECK(status.last_look().log_end == 15);
  status.acquired_in("B", 0);
  CHECK(status.last_look().log_end == -1);
}

TEST_CASE(
    "a partition that comes back has the look of its assignment before until it is acquired") {
  StatusBoard board;
  auto status = board.add({"t", 0});
  status->position = 20;
  status->acquired_in("A", 10);
  status->log_end = 30;
  status->named(status->before_look());
  board.remove(status);
  const auto back = board.add({"t", 0});
  CHECK(back->last_look().topic_id == "A");
  CHECK(back->last_look().next == 20);
  CHECK(back->last_look().log_end == 30);
  // Nothing to compare before it is acquired.
  CHECK(back->before_look().topic_id.empty());
  // In an assignment that replaces one that nobody has removed yet, too.
  CHECK(board.add({"t", 0})->last_look().next == 20);
  CHECK(board.add({"t", 1})->last_look().topic_id.empty());
  back->acquired_in("A", 25);
  CHECK(back->last_look().next == 25);
  CHECK(back->last_look().log_end == -1);
}

TEST_CASE("a halted partition has the reason that it has now, and another one has none") {
  PartitionStatus status({"t", 0});
  CHECK(status.snapshot().halt_reason.empty());
  CHECK_FALSE(status.halt("a table is missing"));
  CHECK(status.snapshot().halt_reason == "a table is missing");
  // Tried again by itself, and halted by something else: that is told to nobody.
  CHECK(status.halt("a right is missing"));
  CHECK(status.snapshot().halted);
  CHECK(status.snapshot().halt_reason == "a right is missing");
  status.halted = false;
  CHECK(status.snapshot().halt_reason.empty());
}

TEST_CASE("a partition that was paused and halts is halted") {
  PartitionStatus status({"t", 0});
  status.paused = true;
  status.halt("the log begins behind it");
  CHECK(status.snapshot().halted);
  CHECK_FALSE(status.snapshot().paused);
}

TEST_CASE("an end of the log that Kafka has not told again is not known any more") {
  PartitionStatus status({"t", 0});
  status.position = 7;
  CHECK_FALSE(status.snapshot().lag());
  const auto now = PartitionStatus::Clock::now();
  status.log_end = 7;
  status.log_end_told(now);
  CHECK(status.snapshot(now + std::chrono::seconds(14)).lag() == 0);
  const auto later = status.snapshot(now + std::chrono::seconds(15));
  CHECK_FALSE(later.log_end);
  CHECK_FALSE(later.lag());
}

TEST_CASE(
    "what runs ahead of the end that was told has no lag, and what is halted there one unknown") {
  PartitionStatus status({"t", 0});
  status.position = 9;
  status.log_end = 7;
  status.log_end_told();
  CHECK(status.snapshot().lag() == 0);
  status.halt("another topic of that name");
  CHECK_FALSE(status.snapshot().lag());
  status.log_end = 10;
  CHECK(status.snapshot().lag() == 1);
}

TEST_CASE("a message that waits is part of the lag that its events tell") {
  struct Row {
    std::int64_t next;
    std::int64_t log_end;
    bool halted;
    std::optional<std::int64_t> message;
    std::int64_t lag;
  };
  const auto none = std::nullopt;
  for (const auto& row : {Row{6, 9, false, none, 3}, Row{6, 9, false, 6, 3},
                          // Kafka told of the end before it had the message.
                          Row{6, 6, false, 6, 1}, Row{6, 6, true, 6, 1}, Row{6, -1, false, 6, 1},
                          // One that runs ahead of the stored offset.
                          Row{6, 6, false, 8, 3},
                          // It is processed.
                          Row{7, 6, false, 6, 0}, Row{7, 7, false, 6, 0},
                          // Another log, or one that was cut.
                          Row{6, 3, true, none, -1}, Row{6, 3, false, none, 0},
                          Row{6, -1, false, none, -1}, Row{-1, 6, false, none, -1}}) {
    INFO(row.next << " " << row.log_end << " " << row.message.value_or(-1));
    CHECK(engine::lag_to_tell(row.next, row.log_end, row.halted, row.message) == row.lag);
  }
}

TEST_CASE("a partition is at work while the process has it and it is not paused") {
  StatusBoard board;
  CHECK_FALSE(board.is_at_work({"t", 0}));
  const auto first = board.add({"t", 0});
  CHECK(board.is_at_work({"t", 0}));
  CHECK_FALSE(board.is_at_work({"t", 1}));
  first->paused = true;
  CHECK_FALSE(board.is_at_work({"t", 0}));
  // It is assigned anew before the one before is let go of.
  const auto second = board.add({"t", 0});
  board.remove(first);
  CHECK(board.is_at_work({"t", 0}));
  board.remove(second);
  CHECK_FALSE(board.is_at_work({"t", 0}));
}
