#include "ops/step_lines.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using pawl::Event;
using pawl::Step;
using pawl::ops::line_of;
using spdlog::level::level_enum;

namespace {

Event event(Step step, std::int64_t offset, std::string_view detail) {
  Event event{step};
  event.topic = "payments";
  event.partition = 3;
  event.offset = offset;
  event.detail = detail;
  return event;
}

struct Row {
  Event event;
  level_enum level;
  bool limited;
  std::string text;
};

}  // namespace

TEST_CASE("each step is said in its way") {
  std::vector<Row> rows{
      {event(Step::kFenced, 7, "why"), level_enum::warn, true,
       "another owner or an operator has taken the partition (why); asking for it again"},
      {event(Step::kAcquired, -1, ""), level_enum::info, false,
       "assigned, nothing is processed yet: begins at offset 0"},
      {event(Step::kAcquired, 7, ""), level_enum::info, false, "assigned, resuming at offset 8"},
      {event(Step::kAcquired, 7, "the cause of its halt is gone"), level_enum::info, false,
       "the cause of its halt is gone: resuming at offset 8"},
      {event(Step::kRevoked, 7, ""), level_enum::info, false, "revoked, stored offset 7"},
      {event(Step::kPaused, 7, ""), level_enum::info, false, "paused by an operator"},
      {event(Step::kPaused, 7, "maintenance"), level_enum::info, false,
       "paused by an operator: maintenance"},
      {event(Step::kHalted, 7, "why"), level_enum::err, false, "HALTED: why"},
      {event(Step::kDeadLettered, 7, "error: why"), level_enum::warn, true,
       "dead letter: error: why"},
      {event(Step::kFailed, 7, "why"), level_enum::warn, true, "one try failed: why"},
      {event(Step::kWarning, -1, "why"), level_enum::warn, true, "why"},
      {event(Step::kTopicRefused, -1, "why"), level_enum::err, false, "why"},
      {event(Step::kRelayed, -1, "how many"), level_enum::debug, false, "how many"},
      {event(Step::kOutboxRefused, -1, "why"), level_enum::warn, true, "why"},
      {event(Step::kOutboxLeftOut, -1, "why"), level_enum::warn, false, "why"},
      {event(Step::kOutboxLate, -1, "why"), level_enum::warn, false, "why"},
      {event(Step::kOutboxAcquired, 7, "which"), level_enum::info, false, "which"},
      {event(Step::kOutboxReleased, 7, "why"), level_enum::info, false, "why"},
      {event(Step::kOutboxCaughtUp, -1, "why"), level_enum::info, false, "why"},
      {event(Step::kClaimed, 7, ""), level_enum::debug, false, "claimed 7 "},
  };
  auto by_operator = event(Step::kFenced, 7, "why");
  by_operator.by_operator = true;
  rows.push_back({by_operator, level_enum::info, false,
                  "an operator's command changed the partition; asking for it again"});
  for (const auto& row : rows) {
    CAPTURE(pawl::to_string(row.event.step));
    const auto line = line_of(row.event);
    REQUIRE(line);
    CHECK(line->level == row.level);
    CHECK(line->limited == row.limited);
    CHECK(line->text == row.text);
  }
}

TEST_CASE("what is counted or said otherwise has no line of its own") {
  for (const auto step :
       {Step::kCommitted, Step::kDuplicate, Step::kSkipped, Step::kParked, Step::kConnected,
        Step::kDisconnected, Step::kLogEnd, Step::kDrained, Step::kOutboxSeen})
    CHECK_FALSE(line_of(event(step, 7, "detail")));
}
