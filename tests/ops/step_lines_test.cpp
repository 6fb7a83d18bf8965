#include "ops/step_lines.hpp"

#include <fmt/format.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "ops/event_table.hpp"

using pawl::Event;
using pawl::EventField;
using pawl::InvocationOptions;
using pawl::Step;
using pawl::ops::is_limited;
using pawl::ops::line_of;
using spdlog::level::level_enum;

namespace {

constexpr const char* kTraceparent = "00-26a5f6d603cdaacc48614032e3802dfa-00f067aa0ba902b7-01";

InvocationOptions invocation() {
  InvocationOptions options;
  options.config_file = "shop.toml";
  return options;
}

Event event(Step step, std::int64_t offset, std::string_view detail) {
  Event event{step};
  event.topic = "payments";
  event.partition = 3;
  event.offset = offset;
  event.detail = detail;
  return event;
}

/// "info  partition_paused ..."
std::string said(const Event& event) {
  const auto line = line_of(event, invocation());
  REQUIRE(line);
  return fmt::format("{:<5} {}", pawl::ops::level_name(line->level),
                     pawl::ops::text_of(*line, true));
}

struct Row {
  Event event;
  bool limited;
  std::string line;
};

}  // namespace

TEST_CASE("each event has a line") {
  std::vector<Row> rows{
      {event(Step::kPartitionFenced, 7, "why"), true,
       "warn  partition_fenced topic=payments partition=3: another process or an operator took "
       "over the partition (why). Acquiring it again"},
      {event(Step::kPartitionAssigned, -1, ""), false,
       "info  partition_assigned topic=payments partition=3 start_offset=0 first_assignment=true"},
      {event(Step::kPartitionAssigned, 7, ""), false,
       "info  partition_assigned topic=payments partition=3 start_offset=8"},
      {event(Step::kPartitionResumed, 7, ""), false,
       "info  partition_resumed topic=payments partition=3 next_offset=8"},
      {event(Step::kPartitionRevoked, 7, ""), false,
       "info  partition_revoked topic=payments partition=3 next_offset=8"},
      {event(Step::kPartitionPaused, 7, "maintenance"), false,
       "info  partition_paused topic=payments partition=3 next_offset=8: maintenance"},
      {event(Step::kPartitionHalted, 7, "why"), false,
       "error partition_halted topic=payments partition=3: why"},
      {event(Step::kMessageDeadLettered, 7, "why"), true,
       "warn  message_dead_lettered topic=payments partition=3 offset=7: why"},
      {event(Step::kAttemptFailed, 7, "why"), true,
       "warn  attempt_failed topic=payments partition=3 offset=7: why"},
      {event(Step::kCommitOutcomeUnknown, 7, "why"), true,
       "warn  commit_outcome_unknown topic=payments partition=3 offset=7: why. Reading the stored "
       "offset to determine the outcome"},
      {event(Step::kMessageCommitted, 7, ""), false,
       "debug message_committed topic=payments partition=3 offset=7"},
      {event(Step::kKeyClaimed, 7, ""), false,
       "debug key_claimed topic=payments partition=3 offset=7"},
      {Event{Step::kKafkaReachable}, false, "info  kafka_reachable"},
  };
  for (const auto& row : rows) {
    CHECK(said(row.event) == row.line);
    CHECK(is_limited(row.event) == row.limited);
  }
}

TEST_CASE("an operator who takes over a partition is no warning") {
  auto fenced = event(Step::kPartitionFenced, 7, "why");
  fenced.by_operator = true;
  CHECK(said(fenced) ==
        "info  partition_fenced topic=payments partition=3: an operator changed the partition. "
        "Acquiring it again");
  CHECK_FALSE(is_limited(fenced));
}

TEST_CASE("the first attempt that is retried is a warning, further ones and the last are not") {
  auto failed = event(Step::kAttemptFailed, 7, "no such account");
  failed.lag = 5;
  failed.key = "k-1";
  failed.handler = "pay";
  failed.reason = "error";
  failed.sqlstate = "23503";
  failed.traceparent = kTraceparent;
  failed.attempt = 1;
  const std::array fields{EventField{"max_attempts", 7}, EventField{"retry_in_ms", 100}};
  failed.fields = fields;
  CHECK(said(failed) ==
        "warn  attempt_failed topic=payments partition=3 offset=7 handler=pay attempt=1 "
        "max_attempts=7 retry_in_ms=100 reason=error sqlstate=23503 "
        "trace_id=26a5f6d603cdaacc48614032e3802dfa span_id=00f067aa0ba902b7: no such account");
  failed.attempt = 2;
  CHECK(said(failed).starts_with("debug attempt_failed topic=payments partition=3 offset=7"));
  CHECK(said(failed).find(" idempotency_key=k-1 ") != std::string::npos);
  failed.attempt = 1;
  failed.is_final = true;
  CHECK(said(failed).starts_with("debug "));
  // The last attempt, and only this line has PostgreSQL's DETAIL.
  failed.is_final = false;
  failed.attempt = 7;
  const std::array last{EventField{"max_attempts", 7}};
  failed.fields = last;
  CHECK(said(failed).starts_with("warn "));
}

TEST_CASE("a dead letter and a halt have what identifies the message, and the command that helps") {
  auto dead = event(Step::kMessageDeadLettered, 21, "value is not valid UTF-8");
  dead.handler = "keep-note";
  dead.reason = "undecodable";
  dead.dead_letter_id = 1;
  CHECK(said(dead) ==
        "warn  message_dead_lettered topic=payments partition=3 offset=21 handler=keep-note "
        "dead_letter_id=1 reason=undecodable: value is not valid UTF-8. Inspect the message:\n"
        "  pawl dlq show --config shop.toml 1");
  auto halted = event(Step::kPartitionHalted, 20, "why");
  halted.message_offset = 21;
  halted.key = "poison 2";
  halted.lag = 4;
  const std::array fields{EventField{"halt_kind", std::string_view("message")}};
  halted.fields = fields;
  CHECK(said(halted) ==
        "error partition_halted topic=payments partition=3 offset=21 halt_kind=message "
        "idempotency_key=\"poison 2\" lag=4: why");
}

TEST_CASE("events of the outbox name shard and batch") {
  Event acquired{Step::kOutboxShardAcquired};
  acquired.partition = 0;
  acquired.offset = 7;
  acquired.messages = 3;
  CHECK(said(acquired) == "info  outbox_shard_acquired shard=0 batch=7 messages=3");
}

TEST_CASE("a warning has its code as event") {
  auto stalled = event(Step::kWarning, 7, "Seeking again");
  stalled.warning = pawl::Warning::kFetchStalled;
  stalled.lag = 1;
  CHECK(said(stalled) == "warn  fetch_stalled topic=payments partition=3 lag=1: Seeking again");
  CHECK(is_limited(stalled));
}

TEST_CASE("the statement that failed is a field") {
  const std::array fields{EventField{"statement", "sql[0]"}};
  auto dead = event(Step::kMessageDeadLettered, 7, "why: handler[0].sql[0] (pay)");
  dead.handler = "pay";
  dead.fields = fields;
  CHECK(said(dead) ==
        "warn  message_dead_lettered topic=payments partition=3 offset=7 handler=pay "
        "statement=sql[0]: why: handler[0].sql[0] (pay)");
}

TEST_CASE("an incident is an event, topic, handler, and SQLSTATE, or text if there is none") {
  const auto failed = [](std::int32_t partition, std::string_view detail,
                         std::string_view sqlstate) {
    auto one = event(Step::kAttemptFailed, 7, detail);
    one.partition = partition;
    one.handler = "pay";
    one.sqlstate = sqlstate;
    return pawl::ops::incident_of(one);
  };
  CHECK(failed(3, "a", "23503") ==
        pawl::ops::Incident{"attempt_failed", "payments", "pay", "23503"});
  CHECK(failed(3, "a", "23503") == failed(4, "b", "23503"));
  CHECK(failed(3, "a", "23503") != failed(3, "a", "22P02"));
  CHECK(failed(3, "HTTP status 401", "") == failed(4, "HTTP status 401", ""));
  CHECK(failed(3, "HTTP status 401", "") != failed(3, "HTTP status 500", ""));
}

TEST_CASE("what another event or a count reports has no line of its own") {
  for (const auto step : {Step::kDatabaseDisconnected, Step::kLogEndChanged, Step::kDrainFinished,
                          Step::kOutboxSampled})
    CHECK_FALSE(line_of(event(step, 7, "detail"), invocation()));
}
