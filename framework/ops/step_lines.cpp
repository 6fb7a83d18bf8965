#include "ops/step_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/invocation.hpp"
#include "message/traceparent.hpp"
#include "ops/event_table.hpp"

namespace pawl::ops {
namespace {

bool is_of_shard(Step step) {
  return step >= Step::kOutboxShardAcquired && step <= Step::kOutboxShardReleased;
}

/// A position, and how the field is called that has it; nullopt: the offset is no position, or the
/// line need not have it.
std::optional<std::pair<std::string_view, std::int64_t>> position_of(const Event& event) {
  switch (event.step) {
    case Step::kPartitionAssigned:
      return {{"start_offset", event.offset + 1}};
    case Step::kHaltedPartitionRetried:
    case Step::kPartitionResumed:
    case Step::kPartitionPaused:
    case Step::kPartitionRevoked:
    case Step::kPartitionReleased:
      return {{"next_offset", event.offset + 1}};
    case Step::kFetchPositioned:
    case Step::kPartitionCaughtUp:
      return {{"next_offset", event.offset}};
    case Step::kMessageFetched:
    case Step::kLeaseAcquired:
    case Step::kCallFinished:
    case Step::kKeyClaimed:
    case Step::kHandlerReturned:
    case Step::kOffsetAdvancing:
    case Step::kCommitSent:
      return {{"offset", event.offset}};
    default:
      return std::nullopt;
  }
}

void add_place(LogLine& line, const Event& event) {
  line.add_text("topic", event.topic);
  if (is_of_shard(event.step)) {
    line.add_number("shard", event.partition);
    line.add_number("batch", event.offset);
    line.add_number("messages", event.messages);
  } else {
    line.add_number("partition", event.partition);
  }
  if (const auto offset = message_offset(event)) {
    line.add("offset", *offset);
  } else if (const auto position = position_of(event)) {
    line.add_number(position->first, position->second);
  }
  line.add_text("handler", event.handler);
  line.add_text("endpoint", event.endpoint);
}

void add_fields(LogLine& line, const Event& event) {
  if (event.attempt > 0)
    line.add("attempt", std::int64_t{event.attempt});
  for (const auto& [name, value] : event.fields) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      line.add(name, *number);
    else
      line.add_text(name, std::get<std::string_view>(value));
  }
  if (line.level <= spdlog::level::debug || event.step == Step::kPartitionHalted)
    line.add_text("idempotency_key", event.key);
  line.add_number("dead_letter_id", event.dead_letter_id);
  line.add_text("reason", event.reason);
  line.add_text("sqlstate", event.sqlstate);
  if (!is_of_message(event.step))
    line.add_number("lag", event.lag);
  if (event.step == Step::kPartitionAssigned && event.offset < 0)
    line.add("first_assignment", true);
  if (!event.traceparent.empty()) {
    line.add_text("trace_id", message::trace_id(event.traceparent));
    line.add_text("span_id", message::span_id(event.traceparent));
  }
}

/// Another line has the text as well: that of the first attempt, or that of the consequence. A last
/// attempt whose text has PostgreSQL's DETAIL is not final in this sense.
bool repeats_another_line(const Event& event) {
  const bool retried = std::ranges::any_of(
      event.fields, [](const auto& field) { return field.name == "retry_in_ms"; });
  return event.is_final || (event.attempt > 1 && retried);
}

spdlog::level::level_enum level_of(const Event& event) {
  const auto level = event_row(event).level;
  if (event.step == Step::kPartitionFenced && event.by_operator)
    return spdlog::level::info;
  if (event.step == Step::kAttemptFailed && repeats_another_line(event))
    return spdlog::level::debug;
  return level;
}

}  // namespace

std::string event_text(const Event& event, const InvocationOptions& invocation) {
  switch (event.step) {
    case Step::kMessageDeadLettered:
      return event.dead_letter_id < 0
                 ? std::string(event.detail)
                 : fmt::format("{}. Inspect the message:\n  {} {}", event.detail,
                               command_text(invocation, "dlq show"), event.dead_letter_id);
    case Step::kKafkaUnreachable:
      return fmt::format("{}. Retrying", event.detail);
    case Step::kRedisUnreachable:
      return fmt::format("{}. Calls wait. Retrying", event.detail);
    case Step::kCommitOutcomeUnknown:
      return fmt::format("{}. Reading the stored offset to determine the outcome", event.detail);
    case Step::kPartitionFenced:
      return event.by_operator ? "an operator changed the partition. Acquiring it again"
                               : fmt::format(
                                     "another process or an operator took over the partition ({}). "
                                     "Acquiring it again",
                                     event.detail);
    default:
      return std::string(event.detail);
  }
}

std::optional<LogLine> line_of(const Event& event, const InvocationOptions& invocation) {
  LogLine line{level_of(event), event_row(event).code};
  if (line.level == spdlog::level::off)
    return std::nullopt;
  add_place(line, event);
  add_fields(line, event);
  line.text = event_text(event, invocation);
  return line;
}

bool is_limited(const Event& event) {
  switch (event.step) {
    case Step::kMessageDeadLettered:
    case Step::kRetryScheduled:
    case Step::kProbationStarted:
    case Step::kProbationAttemptCrashed:
    case Step::kAttemptFailed:
    case Step::kWarning:
    case Step::kCommitOutcomeUnknown:
    case Step::kOutboxMessageRejected:
      return true;
    case Step::kPartitionFenced:
      return !event.by_operator;
    default:
      return false;
  }
}

Incident incident_of(const Event& event) {
  Incident incident{event_row(event).code, std::string(event.topic), std::string(event.handler),
                    std::string(event.sqlstate)};
  if (incident.sqlstate.empty())
    incident.text = event.detail;
  return incident;
}

}  // namespace pawl::ops
