#include "engine/halt_rendering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "config/units.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "handlers/handler_statement.hpp"
#include "text/count.hpp"
#include "text/located.hpp"

namespace pawl::engine {
namespace {

namespace code = ledger::halt_code;
namespace parameter = ledger::halt_parameter;

/// A halt and its reader.
struct Reading {
  const ledger::Halt& halt;
  const Options& options;
  const TopicPartition& partition;

  [[nodiscard]] std::string of(const char* name) const { return halt.parameter(name); }
  [[nodiscard]] bool has(const char* name) const { return halt.parameters.contains(name); }
  /// 0 if it is not a number.
  [[nodiscard]] std::int64_t number(const char* name) const {
    return halt.number(name).value_or(0);
  }
  [[nodiscard]] std::string offset() const {
    return halt.message_offset ? std::to_string(*halt.message_offset) : of(parameter::kOffset);
  }
};

using Texts = std::string (*)(const Reading&);
using Commands = std::vector<HaltCommand> (*)(const Reading&);

/// The texts of one code. `effect` and `action` may contain {retry}, the pause between automatic
/// retries, {schema}, {remote_key}, {redis_key}, and {names}.
struct Row {
  std::string_view code;
  Texts what;
  std::string_view effect;
  std::string_view action;
  Commands commands;
};

constexpr std::string_view kFixCause = "Fix the cause";
constexpr std::string_view kOthersContinue = "Other partitions continue";
constexpr std::string_view kNothingSkipped = "No message was skipped";
constexpr std::string_view kRetries = "pawl retries automatically every {retry}";
constexpr std::string_view kFixResumeOrSkip =
    "Fix the cause, then resume the partition, or skip the message";
constexpr std::string_view kFindLost = "Find out which messages were lost, then set the offset";

// ---- what happened -----------------------------------------------------------------------------

std::string with_sqlstate(const Reading& reading) {
  const auto cause = texts::located(reading.of(parameter::kStatement), reading.halt.cause);
  return reading.has(parameter::kSqlstate)
             ? fmt::format("{} (SQLSTATE {})", cause, reading.of(parameter::kSqlstate))
             : cause;
}

std::string unknown_outcome(const Reading& reading) {
  return fmt::format("{} (unknown since {})", reading.halt.cause,
                     reading.of(parameter::kUnknownSince));
}

std::string program_error(const Reading& reading) {
  return "the SQL of the handler cannot run: " + with_sqlstate(reading);
}

std::string log_end_not_stored(const Reading& reading) {
  return fmt::format("the end of the log, offset {}, cannot be stored: {}", reading.offset(),
                     with_sqlstate(reading));
}

std::string circuit_breaker_open(const Reading& reading) {
  const auto& handler = reading.halt.handler;
  return fmt::format("{} of {} failed the same way: {}",
                     texts::counted(reading.number(parameter::kMessages), "consecutive message",
                                    "consecutive messages"),
                     handler.empty() ? "no handler" : handlers::handler_text(handler),
                     with_sqlstate(reading));
}

std::string fetch_crashed(const Reading& reading) {
  return fmt::format(
      "{} while fetching offset {}, before a handler received "
      "the message. Its decompressed batch may need more memory than the process has",
      texts::counted(reading.number(parameter::kCrashes), "consecutive process crashed",
                     "consecutive processes crashed"),
      reading.offset());
}

std::string log_start_moved(const Reading& reading) {
  const auto next = reading.number(parameter::kNextOffset);
  const auto start = reading.number(parameter::kLogStart);
  return fmt::format(
      "the next offset is {}, but Kafka's log starts at {}: Kafka's retention removed {}", next,
      start,
      texts::counted(start - next, "offset that was not processed",
                     "offsets that were not processed"));
}

std::string log_truncated(const Reading& reading) {
  return fmt::format(
      "the next offset is {}, but Kafka's log ends at {}: the log was truncated, or the topic was "
      "recreated with fewer records",
      reading.of(parameter::kNextOffset), reading.of(parameter::kLogEnd));
}

std::string record_replaced(const Reading& reading) {
  const auto epoch = reading.has(parameter::kStoredLeaderEpoch)
                         ? "leader epoch " + reading.of(parameter::kStoredLeaderEpoch)
                         : std::string("unknown leader epoch");
  return fmt::format(
      "Kafka's log no longer has the last processed record before offset {} ({}): {}. The log lost "
      "its end and has other records there now. Records from the end that Kafka reports up to "
      "offset {} were not applied",
      reading.of(parameter::kNextOffset), epoch, reading.halt.cause,
      reading.of(parameter::kNextOffset));
}

std::string completed_record_replaced(const Reading& reading) {
  return fmt::format(
      "the message at offset {} was processed, but Kafka has another record at this offset now: "
      "the log was truncated",
      reading.offset());
}

std::string leader_epoch_older(const Reading& reading) {
  return fmt::format(
      "offset {} has leader epoch {}, but the message before offset {} was processed with leader "
      "epoch {}: the log was truncated, or the topic was recreated",
      reading.offset(), reading.of(parameter::kLeaderEpoch), reading.of(parameter::kNextOffset),
      reading.of(parameter::kStoredLeaderEpoch));
}

/// What is known of messages of the deleted topic that were not processed.
std::string lost_of_deleted(const Reading& reading) {
  if (!reading.has(parameter::kLogEnd))
    return "It is not known how many offsets of the deleted topic were not processed";
  const auto end = reading.of(parameter::kLogEnd);
  if (reading.has(parameter::kUncertainFrom)) {
    return fmt::format(
        "It is not known whether offsets {} to {} of the deleted topic were processed",
        reading.of(parameter::kUncertainFrom), reading.number(parameter::kLogEnd) - 1);
  }
  const auto unprocessed = reading.number(parameter::kUnprocessed);
  if (unprocessed == 0) {
    return fmt::format("The deleted topic was processed up to {}, the end that Kafka last reported",
                       end);
  }
  return fmt::format(
      "At least {} of the deleted topic, from {} on, {} never processed: have the messages "
      "produced again, or accept the loss",
      texts::counted(unprocessed, "offset", "offsets"), reading.of(parameter::kNextOffset),
      unprocessed == 1 ? "was" : "were");
}

/// What is known of messages of the new topic that were processed.
std::string applied_of_new(const Reading& reading) {
  if (!reading.has(parameter::kAppliedFrom)) {
    return "It is not known whether messages of the new topic were already applied. They arrive "
           "again, as duplicates if their keys are stored";
  }
  const auto from = reading.number(parameter::kAppliedFrom);
  const auto next = reading.number(parameter::kNextOffset);
  if (from >= next)
    return "No message of the new topic was applied";
  return fmt::format(
      "Offsets {} to {} were applied after Kafka last reported the deleted topic. Those of the new "
      "topic were applied, and earlier ones of the new topic were not",
      from, next - 1);
}

std::string topic_recreated(const Reading& reading) {
  return fmt::format(
      "the topic was deleted and created again (its ID was {} and is {}); the next offset {} "
      "belongs to the deleted topic. {}. {}",
      reading.of(parameter::kOldTopicId), reading.of(parameter::kTopicId),
      reading.of(parameter::kNextOffset), lost_of_deleted(reading), applied_of_new(reading));
}

std::string batch_unreadable(const Reading& reading) {
  return fmt::format(
      "offset {} and the rest of its batch cannot be read: {}. The broker's log is damaged there, "
      "or has a format that this program does not support",
      reading.offset(), reading.halt.cause);
}

std::string offset_row_missing(const Reading& reading) {
  return fmt::format(
      "the stored offset was deleted, although the offsets of {} were stored when the "
      "topic was first assigned",
      texts::counted(reading.number(parameter::kPartitions), "partition", "partitions"));
}

std::string other_database(const Reading& reading) {
  return fmt::format(
      "the group has processed the topic with database {} (partition {} up to next offset {}), but "
      "this database ({}) has no offset of it: it is another database, or it lost rows",
      reading.of(parameter::kOtherDatabaseId), reading.of(parameter::kCommittedPartition),
      reading.of(parameter::kCommittedOffset), reading.of(parameter::kDatabaseId));
}

std::string consumer_lost(const Reading& reading) {
  const auto& kafka = reading.options.kafka;
  return fmt::format(
      "the database has lost the consumer {}/{}: it was restored to a state before the consumer's "
      "first start",
      kafka.cluster, kafka.group);
}

std::string start_undecided(const Reading& /*reading*/) {
  return "the topic is new to this consumer, and kafka.start = \"halt\"";
}

std::string topic_of_other_consumer(const Reading& reading) {
  const auto& kafka = reading.options.kafka;
  return fmt::format(
      "the topic is new to consumer {}/{}, but another consumer of this database processes it: {}. "
      "With this kafka.start, both would apply the same messages",
      kafka.cluster, kafka.group, reading.of(parameter::kConsumers));
}

// ---- commands ----------------------------------------------------------------------------------

HaltCommand resume() {
  return {"partitions resume", "", "after the fix"};
}

HaltCommand skip(const Reading& reading, std::string comment, std::string_view reason = "TEXT") {
  return {"partitions skip", fmt::format("--offset {} --because {}", reading.offset(), reason),
          std::move(comment)};
}

HaltCommand set_offset(std::string_view to = "OFFSET", std::string comment = {}) {
  return {"offsets set", fmt::format("--to {}", to), std::move(comment)};
}

HaltCommand set_offsets_of_topic(const Reading& reading, std::string_view to) {
  return {"offsets set",
          fmt::format("--topic {} --all --to {}", shell_word(reading.partition.topic), to), "",
          false};
}

std::vector<HaltCommand> none(const Reading& /*reading*/) {
  return {};
}

std::vector<HaltCommand> resume_or_skip(const Reading& reading) {
  std::vector<HaltCommand> commands;
  if (reading.has(parameter::kHasDetail)) {
    commands.push_back(
        {"try", fmt::format("--offset {}", reading.offset()), "to see the whole error"});
  }
  commands.push_back(resume());
  commands.push_back(skip(reading, "if it cannot be fixed"));
  return commands;
}

std::vector<HaltCommand> resolve_call(const Reading& reading) {
  const auto key = shell_word(reading.of(parameter::kIdempotencyKey));
  return {{"calls resolve", "--done -- " + key,
           "if the call succeeded; with a response: --response TEXT instead of --done", false},
          {"calls resolve", "--not-done -- " + key, "if it did not", false},
          {"partitions resume", "", ""}};
}

std::vector<HaltCommand> show_call(const Reading& reading) {
  return {{"calls show", "-- " + shell_word(reading.of(parameter::kIdempotencyKey)), "", false},
          resume()};
}

std::vector<HaltCommand> only_resume(const Reading& /*reading*/) {
  return {resume()};
}

std::vector<HaltCommand> check_privileges(const Reading& reading) {
  if (reading.of(parameter::kSqlstate) != "42501")
    return {};
  return {{"check", "", "to list missing privileges", false}};
}

std::vector<HaltCommand> after_crash_of_fetch(const Reading& reading) {
  return {{"partitions resume", "", "with more memory"},
          skip(reading, "without reading it", "\"too large\""),
          set_offset("OFFSET", "after the batch")};
}

std::vector<HaltCommand> resume_or_set(const Reading& /*reading*/) {
  return {{"partitions resume", "", "once the batch is readable"},
          set_offset("OFFSET", "after the batch")};
}

std::vector<HaltCommand> set_any(const Reading& /*reading*/) {
  return {set_offset()};
}

std::vector<HaltCommand> set_earliest(const Reading& /*reading*/) {
  return {set_offset("earliest")};
}

std::vector<HaltCommand> set_topic_committed(const Reading& reading) {
  return {set_offsets_of_topic(reading, "committed")};
}

std::vector<HaltCommand> set_topic_earliest(const Reading& reading) {
  return {set_offsets_of_topic(reading, "earliest")};
}

// ---- the table ---------------------------------------------------------------------------------

constexpr auto kRows = std::to_array<Row>({
    {code::kMessageFailed, with_sqlstate, kOthersContinue, kFixResumeOrSkip, resume_or_skip},
    {code::kTransactionEnded, with_sqlstate, kOthersContinue,
     "Check what the handler may have stored and fix the handler. Then resume the partition, or "
     "skip the message",
     resume_or_skip},
    {code::kUnknownOutcome, unknown_outcome, kOthersContinue,
     "Check the call {remote_key} with the remote service, record its outcome, then resume the "
     "partition",
     resolve_call},
    {code::kLeaseStoreChanged, with_sqlstate, kOthersContinue,
     "Set calls.lease_store to \"postgres\" until that attempt is finished. Change the lease store "
     "only while no process runs. Then resume the partition",
     show_call},
    {code::kLeaseUnreadable, with_sqlstate, kOthersContinue,
     "Check with `redis-cli TYPE {redis_key}` which program uses that key. Remove the key, then "
     "resume the partition",
     only_resume},
    {code::kProgramError, program_error, kRetries,
     "Fix the database or the handler. No other action needed", check_privileges},
    {code::kLogEndNotStored, log_end_not_stored,
     "No message is affected. pawl retries automatically every {retry}",
     "Fix triggers, privileges, and constraints of {schema}.processed_kafka_offsets. No other "
     "action needed",
     check_privileges},
    {code::kCircuitBreakerOpen, circuit_breaker_open, kRetries,
     "Fix the cause. No other action needed", none},
    {code::kProcessCrashed, with_sqlstate, kOthersContinue, kFixResumeOrSkip, resume_or_skip},
    {code::kFetchCrashed, fetch_crashed, kOthersContinue,
     "Give the process more memory and resume the partition, or skip the message. If the batch "
     "contains more messages, find its end with `kafka-dump-log.sh` on the broker, then set the "
     "offset",
     after_crash_of_fetch},
    {code::kLogStartMoved, log_start_moved, kNothingSkipped,
     "Restore the records and resume the partition, or accept the loss and set the offset",
     set_earliest},
    {code::kLogTruncated, log_truncated, kNothingSkipped, kFindLost, set_any},
    {code::kRecordReplaced, record_replaced, kNothingSkipped, kFindLost, set_any},
    {code::kCompletedRecordReplaced, completed_record_replaced, kNothingSkipped, kFindLost,
     set_any},
    {code::kLeaderEpochOlder, leader_epoch_older, kNothingSkipped, kFindLost, set_any},
    {code::kTopicRecreated, topic_recreated, "",
     "To process the new topic from its start, set the offset", set_earliest},
    {code::kBatchUnreadable, batch_unreadable, kNothingSkipped,
     "Let a replica with an intact batch become leader, or upgrade pawl, then resume the "
     "partition. "
     "To continue without these records, find the end of the batch with `kafka-dump-log.sh` on the "
     "broker, then set the offset",
     resume_or_set},
    {code::kOffsetRowMissing, offset_row_missing, kNothingSkipped,
     "Restore the row, or set the offset", set_any},
    {code::kOtherDatabase, other_database, kNothingSkipped,
     "Fix postgres.url, or restore the database. To continue from the offsets that the group "
     "committed, set them",
     set_topic_committed},
    {code::kConsumerLost, consumer_lost, kNothingSkipped,
     "Restart this process to start as kafka.start specifies, or restore a later state of the "
     "database",
     none},
    {code::kStartUndecided, start_undecided, kNothingSkipped,
     "Set where to start, for example at the first offset", set_topic_earliest},
    {code::kTopicOfOtherConsumer, topic_of_other_consumer, kNothingSkipped,
     "If a name is wrong, fix kafka.group or kafka.cluster. If each consumer has effects of "
     "its "
     "own, set kafka.known_consumers = [{names}]. If this consumer takes over, stop the other one, "
     "then set each offset",
     set_any},
});

std::string filled(std::string_view text, const Reading& reading) {
  std::string result(text);
  const auto fill = [&](std::string_view name, const std::string& value) {
    if (const auto at = result.find(name); at != std::string::npos)
      result.replace(at, name.size(), value);
  };
  const auto& handlers = reading.options.handlers;
  const auto handler = std::ranges::find(handlers, reading.halt.handler, &HandlerOptions::name);
  const auto failures = handler == handlers.end() ? std::nullopt : handler->failures;
  fill("{retry}",
       config::format_duration(failures.value_or(reading.options.failures).program_error_retry));
  fill("{schema}", reading.options.postgres.schema);
  fill("{remote_key}", reading.of(parameter::kRemoteKey));
  fill("{redis_key}", reading.of(parameter::kRedisKey));
  fill("{names}", reading.of(parameter::kConsumerNames));
  return result;
}

/// The action for a message that pawl itself rejected.
std::string action_for(std::string_view reason) {
  return fmt::format("{}. Then resume the partition, or skip the message", fix_of(reason));
}

/// A halt of a newer program has a code that this one does not know.
RenderedHalt rendered_unknown(const Reading& reading) {
  return {fmt::format("{}: {}", reading.halt.code, with_sqlstate(reading)),
          std::string(kOthersContinue), std::string(kFixResumeOrSkip),
          reading.halt.message_offset ? resume_or_skip(reading) : only_resume(reading), true};
}

}  // namespace

std::string_view fix_of(std::string_view reason) {
  if (reason == ledger::dead_reason::kUndecodable)
    return "Fix the producer or the handler";
  if (reason == ledger::dead_reason::kMissingKey)
    return "Fix the producer or idempotency.key, or set idempotency.missing_key";
  if (reason == ledger::dead_reason::kConflict) {
    return "Use a key that is unique per event. If the producer only re-serializes messages, set "
           "idempotency.conflict = \"ignore\"";
  }
  if (reason == ledger::dead_reason::kUnmatched)
    return "Add a handler that matches, or set failures.unmatched = \"skip\"";
  return kFixCause;
}

RenderedHalt rendered(const ledger::Halt& halt, const Options& options,
                      const TopicPartition& partition) {
  const Reading reading{halt, options, partition};
  const auto* const row = std::ranges::find(kRows, halt.code, &Row::code);
  if (row == kRows.end())
    return rendered_unknown(reading);
  RenderedHalt result{row->what(reading), filled(row->effect, reading),
                      filled(row->action, reading), row->commands(reading),
                      row->action == kFixResumeOrSkip};
  const auto reason = reading.of(parameter::kReason);
  if (halt.code == code::kMessageFailed && fix_of(reason) != kFixCause) {
    result.action = action_for(reason);
    result.generic = false;
  }
  if (reading.has(parameter::kHasDetail) && result.action.starts_with("Fix the cause"))
    result.action.replace(0, 1, "See the whole error, f");
  if (reading.has(parameter::kEarlierHalt)) {
    const auto cause = reading.of(parameter::kEarlierCause);
    result.what +=
        fmt::format(". Before that, the partition was halted with {}{}",
                    reading.of(parameter::kEarlierHalt), cause.empty() ? "" : ": " + cause);
  }
  return result;
}

std::string command_text(const InvocationOptions& invocation, const HaltCommand& command,
                         const TopicPartition& partition) {
  auto text = pawl::command_text(invocation, command.command);
  if (command.of_partition)
    text += " " + partition_words(partition);
  if (!command.arguments.empty())
    text += " " + command.arguments;
  return text;
}

std::string halt_text(const ledger::Halt& halt, const Options& options,
                      const TopicPartition& partition) {
  const auto parts = rendered(halt, options, partition);
  auto text = parts.what;
  for (const auto* part : {&parts.effect, &parts.action}) {
    if (!part->empty())
      text += ". " + *part;
  }
  if (parts.commands.empty())
    return text;
  text += ":";
  for (const auto& command : parts.commands)
    text += "\n  " + command_text(options.invocation, command, partition);
  return text;
}

std::vector<HaltField> halt_fields(const ledger::Halt& halt) {
  std::vector<HaltField> fields{{"halt_kind", halt.kind}, {"halt_code", halt.code}};
  for (const auto* const name :
       {parameter::kIdempotencyKey, parameter::kRemoteKey, parameter::kUnknownSince,
        parameter::kStatement, parameter::kSqlstate, parameter::kAttempts}) {
    if (const auto number = halt.number(name))
      fields.emplace_back(name, *number);
    else if (auto value = halt.parameter(name); !value.empty())
      fields.emplace_back(name, std::move(value));
  }
  return fields;
}

}  // namespace pawl::engine
