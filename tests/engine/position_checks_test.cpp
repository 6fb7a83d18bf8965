#include "engine/position_checks.hpp"

#include "prelude.hpp"

using namespace pawl::engine;
using pawl::ledger::Acquired;
using pawl::ledger::Position;

namespace {

const std::string kGroup = "payments";
const TopicPartition kPartition{"orders", 3};
const pawl::InvocationOptions kInvocation{"payments", "/etc/my file.toml", {}};
const PositionPlace kPlace{kGroup, kPartition, kInvocation};

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

/// What they all say: where, and the command that states another position.
void require_place_and_command(const std::optional<std::string>& reason, const std::string& to) {
  REQUIRE(reason);
  CHECK_THAT(*reason, StartsWith("payments orders [3]: "));
  CHECK_THAT(*reason, EndsWith("payments offsets set --config '/etc/my file.toml' --topic orders "
                               "--partition 3 --to " +
                               to));
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
    CHECK_FALSE(outside_log(kPlace, Position::behind(last), range(start, end)));
  }
}

TEST_CASE("a position before the log says how many were removed unread") {
  const auto reason = outside_log(kPlace, Position::behind(3), range(5, 10));
  require_place_and_command(reason, "OFFSET");
  CHECK_THAT(*reason, ContainsSubstring("stored offset is 3, but Kafka's log begins at 5: "
                                        "retention removed 1 offsets before they were processed"));
  CHECK_THAT(outside_log(kPlace, Position::behind(-1), range(5, 10)).value(),
             ContainsSubstring("no offset is stored, but Kafka's log begins at 5: retention "
                               "removed 5 offsets"));
}

TEST_CASE("a position behind the log's end tells of the end") {
  const auto reason = outside_log(kPlace, Position::behind(10), range(5, 10));
  require_place_and_command(reason, "OFFSET");
  CHECK_THAT(*reason, ContainsSubstring("stored offset is 10, but Kafka's log ends at 10: the log "
                                        "was truncated or the topic was recreated"));
}

TEST_CASE("only two known ids that differ are another topic") {
  const LastLook look{5, 5};
  CHECK_FALSE(other_topic(kPlace, acquired(4, "old"), "old", look));
  CHECK_FALSE(other_topic(kPlace, acquired(4, ""), "new", look));
  CHECK_FALSE(other_topic(kPlace, acquired(4, "old"), "", look));
  require_place_and_command(other_topic(kPlace, acquired(4, "old"), "new", look), "earliest");
}

TEST_CASE("what was applied of a recreated topic is told as far as it is known") {
  struct Row {
    std::optional<std::int64_t> looked_at;
    std::string says;
  };
  for (const auto& [looked_at, says] : std::vector<Row>{
           {std::nullopt,
            "before this was seen, if anything, is not known; it comes again, as duplicates where "
            "its keys are stored. To process"},
           {3, "Offsets 3 to 4 were applied after Kafka last named the old one"},
           {4, "Offsets 4 to 4 were applied after Kafka last named the old one"},
           {5, "Nothing of the new one was applied"},
       }) {
    CAPTURE(says);
    const auto reason = other_topic(kPlace, acquired(4), "new", {looked_at, std::nullopt});
    REQUIRE(reason);
    CHECK_THAT(*reason, ContainsSubstring("(topic id was old, is new); stored offset 4 belongs"));
    CHECK_THAT(*reason, ContainsSubstring(says));
    // Nothing that cannot tell is asked.
    CHECK_THAT(*reason, !ContainsSubstring(" audit"));
  }
}

TEST_CASE("what a deleted topic had that was never processed is told as far as it is known") {
  struct Row {
    std::int64_t stored;
    std::optional<std::int64_t> log_end;
    std::string says;
  };
  const std::string lost = "offsets of the old one that were never processed, at least ";
  for (const auto& [stored, log_end, says] : std::vector<Row>{
           {4, std::nullopt, "How many offsets of the old one were never processed, if any, is"},
           {4, 5, "The old one was processed up to 5, the end that Kafka last reported"},
           {4, 3, "The old one was processed up to 3"},
           {4, 6, lost + "1 from 5 on: have them sent again, or accept the loss"},
           {4, 10, lost + "5 from 5 on"},
           {-1, 3,
            "no offset of the old one is stored. The deletion removed " + lost + "3 from 0 on"},
       }) {
    CAPTURE(says);
    CHECK_THAT(other_topic(kPlace, acquired(stored), "new", {stored + 1, log_end}).value(),
               ContainsSubstring(says));
  }

  // Those that were applied since the look may be of the new topic.
  CHECK_THAT(
      other_topic(kPlace, acquired(4), "new", {3, 10}).value(),
      ContainsSubstring("Whether offsets 3 to 9 of the old one were processed is not known"));
  CHECK_THAT(other_topic(kPlace, acquired(4), "new", {3, 3}).value(),
             ContainsSubstring("The old one was processed up to 3"));

  // Behind the stored offset some were finished, and one only tried.
  auto row = acquired(4);
  for (const std::int64_t offset : {6, 7, 12})
    row.ahead.push_back({{offset, std::nullopt, 0}, pawl::ledger::Outcome::kApplied});
  row.ahead.push_back({{8, std::nullopt, 0}, std::nullopt, 3});
  CHECK_THAT(other_topic(kPlace, row, "new", {5, 10}).value(),
             ContainsSubstring(lost + "3 from 5 on"));
}

TEST_CASE("the halt before is named with its cause, without its advice") {
  auto row = acquired(4);
  row.reason = "payments orders [3] offset 5 key \"a\": no number (attempts: 1). Correct it: this";
  // It ended: an operator's reason is none of a halt.
  CHECK(earlier_halt(row).empty());
  row.state = pawl::ledger::PartitionState::kHalted;
  const auto earlier = earlier_halt(row);
  CHECK(earlier ==
        " The partition had halted before: payments orders [3] offset 5 key \"a\": no number "
        "(attempts: 1).");

  const PositionPlace place{kGroup, kPartition, kInvocation, earlier};
  for (const auto& [reason, to] : std::vector<std::pair<std::optional<std::string>, std::string>>{
           {other_topic(place, row, "new", {5, 5}), "earliest"},
           {outside_log(place, row.stored, range(7, 10)), "OFFSET"},
           {outside_log(place, row.stored, range(0, 3)), "OFFSET"},
           {other_log(place, row, PositionRefusal{5, 2, "fenced"}), "OFFSET"},
       }) {
    require_place_and_command(reason, to);
    CHECK_THAT(*reason, ContainsSubstring("." + earlier + " "));
  }
}

TEST_CASE("a refusal of the record is believed when it came twice for this very position") {
  const PositionRefusal twice{5, 2, "Broker: epoch is fenced. Reset to earliest"};
  CHECK_FALSE(other_log(kPlace, acquired(4), std::nullopt));
  CHECK_FALSE(other_log(kPlace, acquired(4), PositionRefusal{5, 1, "once"}));
  CHECK_FALSE(other_log(kPlace, acquired(3), twice));
  auto row = acquired(4);
  const auto without = other_log(kPlace, row, twice);
  require_place_and_command(without, "OFFSET");
  CHECK_THAT(*without, ContainsSubstring("stored offset is 4 (of an unknown leader epoch)"));
  // What librdkafka's own policy would do is none of the operator's concern.
  CHECK_THAT(*without,
             ContainsSubstring("any more: Broker: epoch is fenced. The log lost its end"));
  row.leader_epoch = 7;
  CHECK_THAT(other_log(kPlace, row, twice).value(), ContainsSubstring("(leader epoch 7)"));
}
