#include "ops/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

#include "pawl/condition.hpp"

namespace pawl {
namespace ops {
namespace {

using enum spdlog::level::level_enum;

/// Of the process.
constexpr auto kOfTheProcess = std::to_array<EventRow>({
    {"consumer_started", info,
     "`pawl run` started. Its fields are the facts of its configuration."},
    {"relay_started", info, "`pawl relay` started."},
    {"guarantee_configured", debug, "The guarantee of the configuration."},
    {"pipeline_configured", debug, "Handlers whose transactions share round trips."},
    {"batch_configured", debug, "Handlers whose messages share one transaction."},
    {"topic_configured", debug, "How handlers of one topic affect each other."},
    {"progress_reported", info,
     "The messages since the start, and the rate since the last report. Not repeated without "
     "news."},
    {"log_lines_suppressed", warn,
     "Lines of the same event, topic, handler, and SQLSTATE that were not logged."},
    {"shutdown_requested", info,
     "SIGTERM or SIGINT arrived. The process finishes the messages in flight."},
    {"configuration_reloaded", info,
     "SIGHUP arrived and the configuration is valid. The process restarts with it."},
    {"configuration_rejected", err,
     "SIGHUP arrived and the configuration is not valid. The process continues unchanged."},
    {"consumer_stopped", info,
     "The consumer stopped. At level warn, some messages were not finished."},
    {"relay_stopped", info, "`pawl relay` stopped."},
    {"consumer_failed", err, "The process cannot continue, and exits."},
});

/// In the order of Step.
constexpr auto kOfSteps = std::to_array<EventRow>({
    {"assignment_received", debug, "Kafka assigned the partition to this process."},
    {"partition_assigned", info, "This process acquired the partition and processes it."},
    {"halted_partition_retried", info,
     "The partition is halted. pawl retries the message that halted it."},
    {"partition_resumed", info, "The cause of the halt is gone. The partition is processed again."},
    {"fetch_positioned", debug, "Kafka delivers the partition from its next offset."},
    {"message_fetched", debug, "A worker took the message from the queue."},
    {"lease_acquired", debug, "The lease for the call of the message is held."},
    {"call_finished", debug, "The external call has finished, or none was made."},
    {"key_claimed", debug, "The idempotency key of the message is inserted."},
    {"message_deduplicated", debug, "The idempotency key exists already. Nothing was applied."},
    {"handler_returned", debug, "The handler returned."},
    {"offset_advancing", debug, "The update of the stored offset is sent."},
    {"commit_sent", debug, "COMMIT is sent."},
    {"message_committed", debug, "The message is applied, and its offset is stored."},
    {"message_skipped", debug, "The message is skipped, and stored as skipped."},
    {"message_dead_lettered", warn,
     "The message is stored as a dead letter. The partition continues."},
    {"retry_scheduled", warn,
     "The message is stored and will be retried automatically. The partition continues."},
    {"retry_succeeded", debug, "A message whose retry was scheduled is applied."},
    {"message_parked", debug, "The message waits after a dead letter of its record key."},
    {"probation_started", warn,
     "A process crashed. The messages that it may have been processing are processed alone."},
    {"probation_ended", info, "All of these messages are processed."},
    {"probation_attempt_crashed", warn, "A process crashed while it processed only this message."},
    {"attempt_failed", warn,
     "The first attempt of a message failed. Further attempts are logged at level debug."},
    {"partition_fenced", warn,
     "Another process or an operator took over the partition. This process acquires it again."},
    {"commit_outcome_unknown", warn,
     "The connection broke during COMMIT. pawl reads the stored offset to determine the outcome."},
    {"partition_halted", err, "The partition stopped. Other partitions continue."},
    {"partition_paused", info, "An operator paused the partition."},
    {"partition_revoked", info, "Kafka revoked the partition from this process."},
    {"partition_released", debug,
     "PostgreSQL has stored that this process released the partition."},
    {"partition_caught_up", debug, "The partition has no more messages."},
    {"log_end_changed", off, "Kafka reported another end of the partition's log."},
    {"database_connected", debug, "A worker connected to PostgreSQL."},
    {"database_disconnected", off, "A worker lost its connection to PostgreSQL."},
    {"circuit_breaker_opened", debug,
     "Too many consecutive messages of a handler failed the same way. Their partitions halt."},
    {"database_unreachable", warn,
     "PostgreSQL cannot be used. pawl retries. Logged again if another action is needed."},
    {"database_reachable", info, "PostgreSQL can be used again."},
    {"kafka_unreachable", warn,
     "Kafka does not respond. pawl retries. Logged again if another action is needed."},
    {"kafka_reachable", info, "Kafka responds again."},
    {"redis_unreachable", warn,
     "No lease can be acquired from Redis. Calls wait. Logged again if another action is needed."},
    {"redis_reachable", info, "Leases can be acquired from Redis again."},
    {"remote_service_unreachable", warn,
     "An endpoint of http handlers is unreachable. Its messages wait."},
    {"remote_service_reachable", info, "The endpoint responds, or no message waits for it."},
    {"partition_blocked", warn,
     "Messages wait for a lock that another session holds. Logged once per session that holds it, "
     "at most once a minute."},
    {"partition_unblocked", info, "The message waits no longer."},
    {"assignment_pending", info, "The process has joined the group and waits for partitions."},
    {"topic_access_denied", err, "Kafka denies access to a topic. pawl retries."},
    {"topic_access_restored", info, "The topic is accessible."},
    {"retention_pruned", info, "Retention removed rows that are no longer needed."},
    {"handlers_differ", warn,
     "Another process of the group handles the topic with another configuration or program."},
    {"dead_letters_published", debug, "Dead letters were published to dead_letters.topic."},
    {"outbox_shard_acquired", info, "This process publishes the outbox shard."},
    {"outbox_batch_started", debug, "The messages of the next batch are selected."},
    {"outbox_batch_sent", debug, "The messages of the batch are sent to Kafka."},
    {"outbox_batch_committed", debug, "Kafka has committed the batch."},
    {"outbox_batch_finished", debug, "The messages of the batch are removed from the outbox."},
    {"outbox_shard_released", info, "This process no longer publishes the outbox shard."},
    {"outbox_message_rejected", warn,
     "Kafka rejected a message of the outbox. Later messages of its topic and key wait."},
    {"outbox_partitions_unwritable", warn,
     "Some topic partitions cannot be written to. Their messages wait in the outbox."},
    {"outbox_partitions_writable", info, "All topic partitions can be written to again."},
    {"outbox_late", warn,
     "The oldest message of the outbox waits for longer than outbox.alert_age."},
    {"outbox_caught_up", info, "No message of the outbox waits for longer than outbox.alert_age."},
    {"outbox_sampled", off, "The age of the oldest message of the outbox is known."},
    {"drain_finished", off, "All partitions are drained, or cannot continue."},
});
static_assert(kOfSteps.size() == static_cast<std::size_t>(Step::kWarning));

/// In the order of Warning.
constexpr auto kOfWarnings = std::to_array<EventRow>({
    {"kafka_client_warning", warn, "librdkafka logged a problem."},
    {"kafka_error_reported", warn, "Kafka reported an error of the group or of a partition."},
    {"unassigned_partition", warn,
     "Kafka assigned some partitions to no process. This process rejoins the group."},
    {"key_may_not_be_unique", warn,
     "The idempotency key looks like the ID of an entity, not of an event."},
    {"acquire_failed", warn, "The partition cannot be acquired in PostgreSQL yet. pawl retries."},
    {"position_failed", warn, "Kafka does not accept or report the partition's position yet."},
    {"fetch_stalled", warn, "Kafka has records of the partition but delivers none."},
    {"buffer_full", warn, "kafka.buffer is full of other partitions' messages."},
    {"offset_out_of_order", warn,
     "PostgreSQL rejected an offset because the stored offset is another one. pawl reads it "
     "again."},
    {"insufficient_resources", warn,
     "PostgreSQL lacks disk space, memory, or connections. pawl retries."},
    {"offsets_unreadable", warn,
     "Changes by operators cannot be read, so pause and resume have no effect for now."},
    {"session_settings_restored", warn,
     "A handler changed settings of its session, or removed prepared statements. pawl restored "
     "them."},
    {"pooler_not_configured", warn,
     "pawl connects through a pooler, and postgres.pooled is not set."},
    {"wrong_database", warn, "postgres.url leads to another database. Nothing is processed."},
    {"offsets_went_back", warn, "The database lost commits. pawl processes their messages again."},
    {"cause_undetermined", warn,
     "Whether the message or its handler is at fault cannot be determined now."},
    {"failure_not_stored", warn,
     "A failed attempt or a dead letter cannot be stored. pawl retries."},
    {"log_end_not_stored", warn, "The end of a log cannot be stored. pawl retries."},
    {"halt_not_stored", warn,
     "The partition must halt, and the halt cannot be stored. pawl retries."},
    {"release_not_stored", warn,
     "That this process released the partition cannot be stored. The next owner starts with "
     "more checks."},
    {"process_not_registered", warn,
     "The process cannot be registered, so others of the group are not compared with it."},
    {"commits_not_durable", warn,
     "With durability = \"replayable\", commits cannot be flushed to disk now."},
    {"callback_failed", warn, "Code that is called for duplicates threw an exception."},
    {"worker_stuck", warn, "A statement or a handler takes longer than its timeout."},
    {"stalled_session", warn,
     "A session of an earlier owner held locks. pawl terminated it, or cannot."},
    {"shutdown_timed_out", warn,
     "consumer.shutdown_timeout has passed. Unfinished messages are processed again."},
    {"alert_failed", warn, "An alert could not be sent."},
    {"dead_letter_publish_failed", warn,
     "Dead letters cannot be published to dead_letters.topic yet."},
    {"retention_failed", warn, "Retention removes nothing for now."},
    {"retention_limited", warn,
     "Retention keeps more rows than required, because a fact is unknown."},
    {"delayed_retry_unavailable", warn, "Scheduled retries cannot run now."},
    {"outbox_delayed", warn, "Messages wait in the outbox. pawl retries."},
    {"outbox_publish_timed_out", warn, "Kafka did not confirm messages in time. pawl retries."},
    {"lease_lost", warn,
     "The lease of a call was lost before its outcome was recorded. The call may be made twice."},
    {"leases_not_extended", warn, "Leases cannot be extended. Their calls are canceled."},
    {"retention_blocked", warn,
     "A partition keeps idempotency keys for longer than twice their retention."},
    {"crash_loop", warn, "Processes crashed while they fetched the partition's next message."},
    {"sequence_behind", warn, "A sequence would return numbers that its table contains."},
});
static_assert(kOfWarnings.size() == static_cast<std::size_t>(Warning::kSequenceBehind) + 1);

constexpr auto kAll = [] {
  std::array<EventRow, kOfTheProcess.size() + kOfSteps.size() + kOfWarnings.size()> all{};
  auto end = std::ranges::copy(kOfTheProcess, all.begin()).out;
  end = std::ranges::copy(kOfSteps, end).out;
  std::ranges::copy(kOfWarnings, end);
  return all;
}();

constexpr auto kFields = std::to_array<FieldRow>({
    {"topic", "Topic in Kafka."},
    {"partition", "Partition of the topic."},
    {"offset", "Offset of the message."},
    {"start_offset", "Next offset when the partition was assigned."},
    {"next_offset", "Next offset to process."},
    {"handler", "Handler of the message."},
    {"endpoint", "URL of a remote service, without its path."},
    {"halt_kind", "Kind of the halt."},
    {"halt_code", "Code of the halt."},
    {"remote_key", "Key by which the remote service identifies a call."},
    {"unknown_since", "When the outcome of a call became unknown (RFC 3339, UTC)."},
    {"idempotency_key", "Idempotency key of the message; at level debug, and of a halt."},
    {"attempt", "Number of the attempt."},
    {"attempts", "Attempts so far."},
    {"max_attempts", "Attempts before the failure policy applies."},
    {"retry_in_ms", "Wait before the next attempt, in milliseconds."},
    {"retry", "Number of the scheduled retry."},
    {"max_retries", "Scheduled retries before the message is a dead letter."},
    {"due_at", "When the message is retried (RFC 3339, UTC)."},
    {"dead_letter_id", "ID of the dead letter."},
    {"statement",
     "Statement of the handler that failed: sql[0], response, or function; in C++ statements[0] or "
     "pawl.publish."},
    {"sqlstate", "SQLSTATE that PostgreSQL returned."},
    {"reason", "Class of the failure: error, undecodable, contention, program, and others."},
    {"lag", "Messages to the end of the log."},
    {"trace_id", "Trace ID of the message's W3C traceparent."},
    {"span_id", "Parent span ID of the message's W3C traceparent."},
    {"first_assignment", "The group has processed nothing of the partition yet."},
    {"since", "When the condition started (RFC 3339, UTC)."},
    {"shard", "Shard of the outbox."},
    {"batch", "Number of the shard's batch."},
    {"messages", "Messages that the event is about."},
    {"outbox_id", "ID of the message in the outbox."},
    {"partitions", "Partitions that the event is about."},
    {"blocking_pid", "PostgreSQL's process ID of the session that holds the lock."},
    {"lines", "Lines that were not logged."},
    {"period_s", "Seconds in which they were not logged."},
    {"suppressed_event", "Event of the lines that were not logged."},
    {"outage_s", "Duration of the outage, in seconds."},
    {"version", "Version of pawl."},
    {"program", "Name of the program, if it is not pawl."},
    {"group", "Consumer group."},
    {"instance", "Host and process ID."},
    {"topics", "Topics of the handlers."},
    {"kafka", "kafka.bootstrap_servers."},
    {"postgres", "User, server, and database of postgres.url, without secrets."},
    {"schema", "postgres.schema."},
    {"drain", "The consumer stops at the end of its partitions."},
    {"handlers", "Names of handlers."},
    {"max_transactions", "Transactions per round trip."},
    {"max_messages", "Messages per transaction."},
    {"signal", "Signal that arrived."},
    {"processed", "Messages processed since the start."},
    {"processed_per_s", "Messages processed per second since the last report."},
    {"duplicates", "Duplicates among them."},
    {"skipped", "Skipped messages among them."},
    {"retries_scheduled", "Times that a retry was scheduled."},
    {"dead_letters", "Messages stored as dead letters."},
    {"parked", "Messages that were parked."},
    {"failed_attempts", "Attempts that failed."},
    {"halted", "Halted partitions."},
    {"paused", "Paused partitions."},
    {"eta_s", "Seconds until the lag is 0 at the current rate."},
    {"database_unreachable_s", "Seconds since PostgreSQL became unreachable."},
    {"database_unreachable_repeats", "Reports of that outage that were not logged."},
    {"kafka_unreachable_s", "Seconds since Kafka became unreachable."},
    {"kafka_unreachable_repeats", "Reports of that outage that were not logged."},
    {"redis_unreachable_s", "Seconds since no lease could be acquired from Redis."},
    {"redis_unreachable_repeats", "Reports of that outage that were not logged."},
    {"conditions", "Endpoints that are unreachable, and partitions that wait for a lock."},
    {"published", "Messages of the outbox published since the start."},
    {"published_per_s", "Messages of the outbox published per second since the last report."},
    {"rejected", "Messages of the outbox that Kafka rejected."},
    {"shards", "Shards of the outbox that this process publishes."},
    {"duration_s", "Seconds since the start."},
});

template <std::size_t Size>
const EventRow& row_at(const std::array<EventRow, Size>& rows, std::size_t index) {
  if (index >= Size)
    throw std::logic_error(fmt::format("no event has the number {}", index));
  return rows[index];
}

}  // namespace

std::span<const EventRow> event_table() {
  return kAll;
}

const EventRow& event_row(std::string_view code) {
  const auto found = std::ranges::find(kAll, code, &EventRow::code);
  if (found == kAll.end())
    throw std::logic_error(fmt::format("no event has the code {}", code));
  return *found;
}

const EventRow& event_row(const Event& event) {
  if (event.warning)
    return row_at(kOfWarnings, static_cast<std::size_t>(*event.warning));
  return row_at(kOfSteps, static_cast<std::size_t>(event.step));
}

std::string_view level_name(spdlog::level::level_enum level) {
  switch (level) {
    case trace:
      return "trace";
    case debug:
      return "debug";
    case info:
      return "info";
    case warn:
      return "warn";
    case err:
    case critical:
      return "error";
    default:
      return "-";
  }
}

std::span<const FieldRow> field_table() {
  return kFields;
}

}  // namespace ops

std::string_view to_string(Step step) {
  const auto index = static_cast<std::size_t>(step);
  if (step == Step::kWarning)
    return "warning";
  return index < ops::kOfSteps.size() ? ops::kOfSteps[index].code : "unknown";
}

std::string_view to_string(Warning warning) {
  const auto index = static_cast<std::size_t>(warning);
  return index < ops::kOfWarnings.size() ? ops::kOfWarnings[index].code : "unknown";
}

std::string_view to_string(Condition::Kind kind) {
  switch (kind) {
    case Condition::Kind::kRemoteServiceUnreachable:
      return to_string(Step::kRemoteServiceUnreachable);
    case Condition::Kind::kPartitionBlocked:
      return to_string(Step::kPartitionBlocked);
    case Condition::Kind::kKafkaUnreachable:
      return to_string(Step::kKafkaUnreachable);
  }
  return "unknown";
}

bool is_of_message(Step step) {
  switch (step) {
    case Step::kMessageDeduplicated:
    case Step::kMessageCommitted:
    case Step::kMessageSkipped:
    case Step::kMessageDeadLettered:
    case Step::kRetryScheduled:
    case Step::kRetrySucceeded:
    case Step::kMessageParked:
    case Step::kProbationAttemptCrashed:
    case Step::kAttemptFailed:
    case Step::kCommitOutcomeUnknown:
      return true;
    default:
      return false;
  }
}

std::optional<std::int64_t> message_offset(const Event& event) {
  if (is_of_message(event.step) && event.offset >= 0)
    return event.offset;
  return event.message_offset;
}

}  // namespace pawl
