#include "engine/halt_texts.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "config/units.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "engine/position_checks.hpp"
#include "engine/set_aside.hpp"
#include "handlers/handler_statement.hpp"

namespace pawl::engine {
namespace {

std::string text_of(const HaltPlace& place) {
  return place_text(place.options.kafka.group, place.partition);
}

}  // namespace

std::string place_text(const std::string& group, const TopicPartition& partition) {
  return fmt::format("{} {} [{}]", group, partition.topic, partition.partition);
}

std::string rights_hint(const InvocationOptions& invocation, const postgres::Error& error) {
  return error.is_of_set_up() ? "; this names missing rights: " + command_text(invocation, "check")
                              : "";
}

Warning warning_of(const Attempt& attempt) {
  switch (attempt.what) {
    case Undertaking::kNote:
      return Warning::kFailureNotStored;
    case Undertaking::kEndOfLog:
      return attempt.failure.kind == postgres::FailureClass::kResource ? Warning::kNoRoom
                                                                       : Warning::kLogEndNotStored;
    case Undertaking::kAcquire:
      return Warning::kAcquireFailed;
    case Undertaking::kHalt:
      return Warning::kHaltNotStored;
    case Undertaking::kMessage:
    case Undertaking::kPipeline:
    case Undertaking::kBatch:
    case Undertaking::kLostConnection:
      break;
  }
  return Warning::kOutOfOrder;
}

std::string warning_text(const Attempt& attempt) {
  const auto& failure = attempt.failure;
  switch (attempt.what) {
    case Undertaking::kNote:
      return fmt::format("cannot record that a message failed: {}", failure.text);
    case Undertaking::kEndOfLog:
      return fmt::format("the end of the log, {}, cannot be stored: {}{}", attempt.offset,
                         failure.text, sqlstate_text(failure));
    case Undertaking::kAcquire:
      return fmt::format("cannot acquire the partition yet: {}", failure.text);
    case Undertaking::kHalt:
      return fmt::format(
          "the partition must halt, and that cannot be stored yet: {}; the reason: {}",
          failure.text, attempt.about);
    case Undertaking::kMessage:
    case Undertaking::kPipeline:
    case Undertaking::kBatch:
    case Undertaking::kLostConnection:
      break;
  }
  return failure.text;
}

std::string halt_at_message_text(const HaltPlace& place, const Attempt& attempt,
                                 std::uint32_t attempts) {
  const auto& failure = attempt.failure;
  const auto& key = attempt.subject.key;
  const auto& invocation = place.options.invocation;
  const auto where = partition_words(place.partition);
  const bool ended = failure.kind == postgres::FailureClass::kTransactionEnded;
  // The text leaves PostgreSQL's DETAIL out, because that may hold values of rows.
  const auto cause =
      failure.detail.empty()
          ? std::string("Correct the cause")
          : fmt::format("This shows the whole error: {} {} --offset {}; correct the cause",
                        command_text(invocation, "try"), where, attempt.offset);
  return fmt::format(
      "{} offset {} key {}: {}{} (attempts: {}; a resume begins the count anew). The partition "
      "stands before this message, others "
      "go on. {}, then: {} {}; or leave the message out: {} {} --offset {} "
      "--because TEXT",
      text_of(place), attempt.offset, key.empty() ? "(none)" : fmt::format("\"{}\"", key),
      ended ? failure.text + " Look at what it may have stored before you go on" : failure.text,
      sqlstate_text(failure), attempts, cause, command_text(invocation, "partitions resume"), where,
      command_text(invocation, "partitions skip"), where, attempt.offset);
}

std::string halt_program_text(const HaltPlace& place, const Attempt& attempt,
                              std::chrono::milliseconds pause) {
  const auto again = config::format_duration(pause);
  if (attempt.what == Undertaking::kEndOfLog) {
    return fmt::format(
        "{}: {}. No message is concerned. Correct the database (triggers, rights and constraints "
        "of {}.processed_kafka_offsets); it is tried again every {} by itself",
        text_of(place), warning_text(attempt), place.options.postgres.schema, again);
  }
  return fmt::format(
      "{} offset {}: the handler's SQL cannot run: {}{}. Correct the database or the handler; it "
      "is tried again every {} by itself",
      text_of(place), attempt.offset, attempt.failure.text, sqlstate_text(attempt.failure), again);
}

std::string flood_text(const FailureOptions& options, const Attempt& attempt) {
  return fmt::format(
      "{} messages in a row failed in one way ({}), so none is set aside any more: {}",
      options.circuit_breaker, attempt.failure.way(), attempt.failure.text);
}

std::string halt_flood_text(const HaltPlace& place, const FailureOptions& options,
                            const Attempt& attempt, const std::string& handler) {
  return fmt::format(
      "{} offset {}: {} messages of {} in a row failed in this way, so none is set aside any more: "
      "{}. Correct the cause; it is tried again every {} by itself",
      text_of(place), attempt.offset, options.circuit_breaker,
      handler.empty() ? "no handler" : handlers::handler_text(handler), attempt.failure.text,
      config::format_duration(options.program_error_retry));
}

AttemptHalt halt_of(const HaltPlace& place, const FailureOptions& options, const Attempt& attempt,
                    Action::What what, std::uint32_t attempts) {
  const auto pause = options.program_error_retry;
  const auto handler = handler_of(attempt);
  if (what == Action::What::kHaltProgram) {
    const bool of_message = attempt.what != Undertaking::kEndOfLog;
    return {{ledger::halt_kind::kProgram, halt_program_text(place, attempt, pause),
             of_message ? std::optional(attempt.offset) : std::nullopt},
            pause,
            {},
            handler};
  }
  if (what == Action::What::kHaltFlood) {
    return {{ledger::halt_kind::kProgram, halt_flood_text(place, options, attempt, handler),
             attempt.offset},
            pause,
            flood_text(options, attempt),
            handler};
  }
  const bool crashed = attempt.failure.reason == ledger::dead_reason::kCrash;
  return {{crashed ? ledger::halt_kind::kCrash : ledger::halt_kind::kMessage,
           halt_at_message_text(place, attempt, attempts), attempt.offset},
          std::nullopt,
          {},
          handler};
}

std::string halt_older_epoch_text(const HaltPlace& place, const Inbox::Item& next,
                                  ledger::Position stored, std::int32_t stored_epoch) {
  return fmt::format(
      "{}: offset {} carries leader epoch {}, but offset {} was processed under epoch {}: the log "
      "was truncated or the topic recreated. Nothing was skipped. Find out what was lost, then "
      "state the position: {}",
      text_of(place), next.record.offset(), next.leader_epoch.value_or(-1), stored.last(),
      stored_epoch, set_command(place.options.invocation, place.partition));
}

std::string halt_replaced_text(const HaltPlace& place, const Inbox::Item& next) {
  return fmt::format(
      "{}: the message at offset {} was processed, and another record stands there now: the log "
      "was truncated. Nothing was skipped. Find out what was lost, then state the position: {}",
      text_of(place), next.record.offset(), set_command(place.options.invocation, place.partition));
}

std::string halt_crash_loop_text(const HaltPlace& place, std::int64_t next, std::uint32_t crashes) {
  const auto& invocation = place.options.invocation;
  const auto where = partition_words(place.partition);
  return fmt::format(
      "{} offset {}: {} processes in a row ended while they fetched the message at this offset, "
      "before a handler got it. Its batch may need more memory, once it is decompressed, than the "
      "process has. The partition stands before this message, others go on. Give the process more "
      "memory, then: {} {}; or leave the message out, without reading it: {} {} --offset {} "
      "--because \"too large\"; or, where the batch holds more messages, look where it ends "
      "(kafka-dump-log.sh on the broker), then: {}",
      text_of(place), next, crashes, command_text(invocation, "partitions resume"), where,
      command_text(invocation, "partitions skip"), where, next,
      set_command(invocation, place.partition));
}

std::string halt_unreadable_text(const HaltPlace& place, const Inbox::Item& next,
                                 ledger::Position stored) {
  return fmt::format(
      "{}: offset {} and the rest of its batch cannot be read: {}. The broker's log is damaged "
      "there, or written in a format that this program does not know. Nothing was skipped: "
      "{}. Let a replica lead that has the batch whole, or bring a newer program, then: "
      "{} {}. To go on without these records, look where the batch ends "
      "(kafka-dump-log.sh on the broker), then: {}",
      text_of(place), next.from.next(), next.record.error_text(), stored_words(stored),
      command_text(place.options.invocation, "partitions resume"), partition_words(place.partition),
      set_command(place.options.invocation, place.partition));
}

}  // namespace pawl::engine
