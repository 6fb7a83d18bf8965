#include "engine/position_checks.hpp"

#include <fmt/format.h>

#include "prelude.hpp"

using namespace pawl::engine;
using pawl::ledger::Acquired;
using pawl::ledger::Halt;
using pawl::ledger::Position;

namespace {

Acquired acquired(std::int64_t last, std::string topic_id = "old") {
  Acquired row;
  row.stored = Position::behind(last);
  row.topic_id = std::move(topic_id);
  return row;
}

kafka::LogRange range(std::int64_t start, std::int64_t end) {
  kafka::LogRange log;
  log.start = start;
  log.end = end;
  return log;
}

/// Code and parameters, as text.
std::string facts(const std::optional<Halt>& halt) {
  if (!halt)
    return "none";
  CHECK(halt->kind == "position");
  CHECK_FALSE(halt->message_offset);
  auto text = halt->code;
  for (const auto& [name, value] : halt->parameters)
    text += fmt::format(" {}={}", name, value);
  return text;
}

}  // namespace

TEST_CASE("a position within the log, at its end or before its first record, is gone on from") {
  struct Row {
    std::int64_t last, start, end;
  };
  for (const auto& [last, start, end] : std::vector<Row>{
           {-1, 0, 0},   // nothing yet, in an empty log
           {-1, 0, 10},  // from the start
           {4, 5, 10},   // the next one is the oldest that is left
           {7, 5, 10},   // within
           {9, 5, 10},   // caught up
           {9, 10, 10},  // caught up, and retention has removed all of it
       }) {
    CAPTURE(last, start, end);
    CHECK_FALSE(outside_log(Position::behind(last), range(start, end)));
  }
}

TEST_CASE("a position outside of the log halts with the position and the edge of the log") {
  CHECK(facts(outside_log(Position::behind(3), range(5, 10))) ==
        "log_start_moved log_start=5 next_offset=4");
  CHECK(facts(outside_log(Position::behind(-1), range(5, 10))) ==
        "log_start_moved log_start=5 next_offset=0");
  CHECK(facts(outside_log(Position::behind(10), range(5, 10))) ==
        "log_truncated log_end=10 next_offset=11");
}

TEST_CASE("only two known ids that differ are another topic") {
  const LastLook look{5, 5};
  CHECK_FALSE(other_topic(acquired(4, "old"), "old", look));
  CHECK_FALSE(other_topic(acquired(4, ""), "new", look));
  CHECK_FALSE(other_topic(acquired(4, "old"), "", look));
  CHECK(other_topic(acquired(4, "old"), "new", look));
}

TEST_CASE("a recreated topic halts with what is known of both topics") {
  struct Row {
    std::int64_t stored;
    LastLook look;
    std::string has;
  };
  const std::string ids = " old_topic_id=old topic_id=new";
  for (const auto& [stored, look, has] : std::vector<Row>{
           {4, {std::nullopt, std::nullopt}, "next_offset=5" + ids},
           {4, {3, std::nullopt}, "applied_from=3 next_offset=5" + ids},
           // processed to the end that Kafka last reported
           {4, {5, 5}, "applied_from=5 log_end=5 next_offset=5" + ids},
           {4, {5, 3}, "applied_from=5 log_end=3 next_offset=5" + ids},
           // messages that were never processed
           {4, {5, 6}, "applied_from=5 log_end=6 next_offset=5" + ids + " unprocessed=1"},
           {4, {5, 10}, "applied_from=5 log_end=10 next_offset=5" + ids + " unprocessed=5"},
           {-1, {0, 3}, "applied_from=0 log_end=3 next_offset=0" + ids + " unprocessed=3"},
           // what was applied since the last look may be of the new topic
           {4, {3, 10}, "applied_from=3 log_end=10 next_offset=5" + ids + " uncertain_from=3"},
           {4, {3, 3}, "applied_from=3 log_end=3 next_offset=5" + ids},
       }) {
    CAPTURE(has);
    CHECK(facts(other_topic(acquired(stored), "new", look)) == "topic_recreated " + has);
  }

  // After the stored offset some were completed, and one was only attempted.
  auto row = acquired(4);
  for (const std::int64_t offset : {6, 7, 12})
    row.ahead.push_back({{offset, std::nullopt, 0}, pawl::ledger::Outcome::kApplied});
  row.ahead.push_back({{8, std::nullopt, 0}, std::nullopt, 3});
  CHECK(other_topic(row, "new", {5, 10}).value().parameter("unprocessed") == "3");
}

TEST_CASE("a halt that replaces another one has the code and the cause of that") {
  auto row = acquired(4);
  row.halt = pawl::ledger::make_halt(pawl::ledger::halt_code::kMessageFailed);
  row.halt.cause = "no number";
  const auto truncated = outside_log(row.stored, range(0, 3)).value();
  // It has ended.
  CHECK(after_earlier_halt(truncated, row) == truncated);
  row.state = pawl::ledger::PartitionState::kHalted;
  CHECK(facts(after_earlier_halt(truncated, row)) ==
        "log_truncated earlier_cause=no number earlier_halt=message_failed log_end=3 "
        "next_offset=5");
  row.halt.parameters[pawl::ledger::halt_parameter::kStatement] = "sql[1]";
  CHECK(after_earlier_halt(truncated, row).parameter("earlier_cause") == "sql[1]: no number");
}

TEST_CASE("a refusal of the record is believed when it came twice for this very position") {
  const PositionRefusal twice{5, 2, "Broker: epoch is fenced. Reset to earliest"};
  CHECK_FALSE(other_log(acquired(4), std::nullopt));
  CHECK_FALSE(other_log(acquired(4), PositionRefusal{5, 1, "once"}));
  CHECK_FALSE(other_log(acquired(3), twice));
  auto row = acquired(4);
  const auto without = other_log(row, twice);
  CHECK(facts(without) == "record_replaced next_offset=5");
  // The action of librdkafka's own policy is not part of the cause.
  CHECK(without->cause == "Broker: epoch is fenced");
  row.leader_epoch = 7;
  CHECK(facts(other_log(row, twice)) == "record_replaced next_offset=5 stored_leader_epoch=7");
}
