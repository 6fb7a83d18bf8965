// What a worker does when a message cannot be applied: retry, halt, set aside.
#include <fmt/format.h>

#include <random>

#include "engine/retries.hpp"
#include "engine/worker.hpp"
#include "handlers/handler_statement.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// A message whose handler breaks its connection, attempt after attempt, may bring the server
/// process down each time and everybody's sessions with it: not as often as others are tried.
constexpr std::uint32_t kMostBrokenConnections = 5;

milliseconds jitter(milliseconds upper) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(0, upper.count())(random));
}

}  // namespace

void Worker::emit_failed(const Partition& partition, std::int64_t offset,
                         const Failure& failure) const {
  emit(Step::kFailed, partition, offset, told(failure, context_.options.log.error_details));
}

/// Told once for each partition that it stops; the halt itself follows.
void Worker::emit_breaker(const Partition& partition, const std::string& handler,
                          const Failure& failure) const {
  if (partition.status->halted)
    return;
  const auto detail =
      fmt::format("{} messages in a row failed in one way ({}), so none is set aside any more: {}",
                  failure_options().breaker, failure.way(), failure.text);
  Event event{Step::kBreakerOpen};
  event.topic = partition.name().topic;
  event.partition = partition.name().partition;
  event.offset = partition.stored;
  event.message_offset = partition.buffer.front().record.offset();
  event.handler = handler;
  event.detail = detail;
  context_.observers.emit(event);
}

void Worker::fail(Partition& partition, const Failure& failure) {
  using postgres::FailureClass;
  const auto offset = partition.buffer.front().record.offset();
  if (failure.in_doubt)
    emit(Step::kInDoubt, partition, offset, failure.text);
  if (failure.kind != FailureClass::kResource && failure.kind != FailureClass::kConnection)
    has_room(partition);

  switch (failure.kind) {
    case FailureClass::kConnection:
      // An outage is no message's fault. But SQL that crashes its server process breaks only its
      // own connection, without a word of the server's, and so again at every attempt. In doubt:
      // should the message be stored after all, it will not be in hand again.
      if (processor_.in_handler() && !postgres::is_goodbye(failure.sqlstate))
        partition.lost_in_handler = offset;
      lose_session(failure.text);
      return;
    case FailureClass::kFenced:
    case FailureClass::kRowMissing:
      give_way(partition, failure.text);
      return;
    case FailureClass::kOutOfOrder:
      emit(Step::kWarning, partition, offset,
           fmt::format("{}; asking the register and Kafka again", failure.text));
      acquire_again(partition, false);
      partition.not_before = Clock::now() + partition.acquire_backoff.next();
      return;
    case FailureClass::kContention:
      emit_failed(partition, offset, failure);
      partition.not_before = Clock::now() + jitter(context_.options.postgres.retry_initial);
      return;
    case FailureClass::kResource:
      emit_failed(partition, offset, failure);
      wait_for_room(partition, failure);
      return;
    case FailureClass::kProgram:
      emit_failed(partition, offset, failure);
      if (is_stale_statement(failure) && partition.renewed_for != offset) {
        partition.renewed_for = offset;
        renew_session();
        return;
      }
      halt(partition,
           {ledger::halt_kind::kProgram,
            fmt::format(
                "{} {} [{}] offset {}: the handler's SQL cannot run: {} (SQLSTATE {}). Correct "
                "the database or the handler; it is tried again every {} s by itself",
                context_.options.kafka.group, partition.name().topic, partition.name().partition,
                offset, failure.text, failure.sqlstate,
                context_.options.failures.program_error_retry.count() / 1000),
            offset},
           true);
      return;
    case FailureClass::kReadOnly:  // why_failed() has told it apart
    case FailureClass::kTransactionEnded:
    case FailureClass::kMessage:
      break;
  }

  if (!count_attempt(partition, offset)) {
    emit_failed(partition, offset, failure);
    return;
  }
  auto counted = failure;
  if (may_try_again(partition, failure)) {
    counted.text +=
        fmt::format(" (attempt {} of {})", partition.attempts, attempts_allowed(failure_options()));
  }
  emit_failed(partition, offset, counted);
  fail_message(partition, failure);
}

/// The server has no disk, memory or connection to spare: waited for as for a server that is away.
void Worker::wait_for_room(Partition& partition, const Failure& failure) {
  partition.refused = true;
  rest(partition, partition.acquire_backoff.next());
  context_.database_reachable.refused(partition.name(), failure.text);
}

void Worker::has_room(Partition& partition) {
  if (!std::exchange(partition.refused, false))
    return;
  partition.acquire_backoff.reset();
  context_.database_reachable.accepted(partition.name());
}

/// The register refused us: the partition is ours again only once Kafka confirms it.
void Worker::give_way(Partition& partition, std::string_view why) {
  emit(Step::kFenced, partition, partition.stored, why);
  acquire_again(partition, true);
}

const FailureOptions& Worker::failure_options() const {
  const auto* binding = processor_.last_binding();
  return binding == nullptr ? context_.options.failures : binding->failures;
}

/// False: the register could not be asked, or the partition is no longer ours; that is dealt with.
bool Worker::count_attempt(Partition& partition, std::int64_t offset) {
  try {
    const auto attempts =
        context_.offsets.record_attempt(*session_, partition.name(), *partition.epoch, offset);
    if (!attempts) {
      give_way(partition);
      return false;
    }
    partition.attempts = *attempts;
    return true;
  } catch (...) {
    retry_ledger(partition, why_failed());
    return false;
  }
}

/// The message at hand lost its connection before. False: it must not run (now).
bool Worker::count_lost_connection(Partition& partition, const Partition::Item& item) {
  const bool same = partition.lost_in_handler == item.record.offset();
  partition.lost_in_handler.reset();
  if (!same)
    return true;
  if (!count_attempt(partition, item.record.offset()))
    return false;
  processor_.identify(item.record.view(partition.name().topic, partition.topic_id));
  Failure failure;
  failure.text = "its handler's connection to PostgreSQL broke, attempt after attempt";
  failure.reason = ledger::dead_reason::kError;
  ++partition.broken_connections;
  if (partition.attempts < attempts_allowed(failure_options()) &&
      partition.broken_connections < kMostBrokenConnections)
    return true;
  fail_message(partition, failure);
  return false;
}

bool Worker::may_try_again(const Partition& partition, const Failure& failure) const {
  // What a handler committed by itself cannot be taken back: to try again would pass it as a
  // duplicate and hide that.
  return !failure.permanent && failure.kind != postgres::FailureClass::kTransactionEnded &&
         !partition.one_try_only && partition.attempts < attempts_allowed(failure_options());
}

void Worker::fail_message(Partition& partition, const Failure& failure) {
  const auto& options = failure_options();
  const bool ended = failure.kind == postgres::FailureClass::kTransactionEnded;
  if (may_try_again(partition, failure)) {
    rest(partition, wait_before_retry(options, partition.attempts));
    return;
  }
  if (ended || options.then == FailurePolicy::kHalt) {
    halt_at_message(partition, failure);
    return;
  }
  const auto* binding = processor_.last_binding();
  const auto handler = binding == nullptr ? std::string() : binding->label;
  if (!context_.breaker.allows(handler, failure.way(), options.breaker)) {
    emit_breaker(partition, handler, failure);
    const auto offset = partition.buffer.front().record.offset();
    halt(partition,
         {ledger::halt_kind::kProgram,
          fmt::format(
              "{} {} [{}] offset {}: {} messages of {} in a row failed in this way, so "
              "none is set aside any more: {}. Correct the cause; it is tried again every {} s "
              "by itself",
              context_.options.kafka.group, partition.name().topic, partition.name().partition,
              offset, options.breaker,
              handler.empty() ? "no handler" : handlers::handler_text(handler), failure.text,
              options.program_error_retry.count() / 1000),
          offset},
         true);
    return;
  }
  set_aside(partition, failure);
}

void Worker::set_aside(Partition& partition, const Failure& failure) {
  const auto& options = failure_options();
  const auto& item = partition.buffer.front();
  const auto* binding = processor_.last_binding();
  const auto message = item.record.view(partition.name().topic, partition.topic_id);
  ledger::Burial burial;
  burial.reason = failure.reason;
  burial.handler = binding == nullptr ? "" : binding->label;
  burial.idempotency_key = processor_.last_key();
  burial.sqlstate = failure.sqlstate;
  burial.error = failure.text;
  burial.error_detail = failure.detail;
  burial.attempts = partition.attempts;
  burial.leader_epoch = item.record.leader_epoch();
  burial.parks_its_key = options.then == FailurePolicy::kPark && message.key().has_value();
  try {
    const AdvanceStep advance(context_.offsets, partition.name(),
                              advance_of(partition, item, message));
    processor_.set_aside(*session_,
                         {message, partition.source, item.record.leader_epoch(), advance},
                         options.then, burial);
  } catch (...) {
    retry_ledger(partition, why_failed());
    return;
  }
  context_.breaker.count(burial.handler, failure.way());
  moved_past(partition);
}

/// A statement of ours about a message failed, not the message.
void Worker::retry_ledger(Partition& partition, const Failure& failure) {
  using postgres::FailureClass;
  switch (failure.kind) {
    case FailureClass::kConnection:
      lose_session(failure.text);
      return;
    case FailureClass::kFenced:
    case FailureClass::kRowMissing:
      give_way(partition, failure.text);
      return;
    case FailureClass::kOutOfOrder:
      acquire_again(partition, false);
      partition.not_before = Clock::now() + partition.acquire_backoff.next();
      return;
    default:
      emit(Step::kWarning, partition, partition.stored,
           fmt::format("cannot record that a message failed: {}", failure.text));
      partition.not_before = Clock::now() + partition.retry_backoff.next();
  }
}

/// The register could not be moved over the end of the log. No message is in hand, so nothing
/// counts and nothing is set aside; what would refuse any message halts the partition, and is tried
/// again.
void Worker::retry_end_of_log(Partition& partition, std::int64_t end, const Failure& failure) {
  const auto text =
      fmt::format("the end of the log, {}, cannot be stored: {}{}", end, failure.text,
                  failure.sqlstate.empty() ? "" : fmt::format(" (SQLSTATE {})", failure.sqlstate));
  switch (after_refused_step(failure, partition.renewed_for == end)) {
    case RefusedStep::kReconnect:
      if (failure.in_doubt)
        emit(Step::kInDoubt, partition, partition.stored, failure.text);
      lose_session(failure.text);
      return;
    case RefusedStep::kGiveWay:
      give_way(partition, failure.text);
      return;
    case RefusedStep::kAskAgain:
      emit(Step::kWarning, partition, partition.stored, text + "; asking the register again");
      acquire_again(partition, false);
      partition.not_before = Clock::now() + partition.acquire_backoff.next();
      return;
    case RefusedStep::kPrepareAnew:
      emit(Step::kWarning, partition, partition.stored, text);
      partition.renewed_for = end;
      renew_session();
      partition.not_before = Clock::now() + partition.acquire_backoff.next();
      return;
    case RefusedStep::kTryAgain:
      emit(Step::kWarning, partition, partition.stored, text);
      if (failure.kind == postgres::FailureClass::kResource) {
        wait_for_room(partition, failure);
      } else {
        partition.not_before = Clock::now() + partition.retry_backoff.next();
      }
      return;
    case RefusedStep::kHalt:
      halt(partition,
           {ledger::halt_kind::kProgram,
            fmt::format("{} {} [{}]: {}. No message is concerned. Correct the database (triggers, "
                        "rights and constraints of {}.processed_kafka_offsets); it is tried again "
                        "every {} s by itself",
                        context_.options.kafka.group, partition.name().topic,
                        partition.name().partition, text, context_.options.postgres.schema,
                        context_.options.failures.program_error_retry.count() / 1000),
            std::nullopt},
           true);
      return;
  }
}

void Worker::halt_at_message(Partition& partition, const Failure& failure) {
  const auto offset = partition.buffer.front().record.offset();
  const bool ended = failure.kind == postgres::FailureClass::kTransactionEnded;
  const auto& key = processor_.last_key();
  halt(partition,
       {failure.reason == ledger::dead_reason::kCrash ? ledger::halt_kind::kCrash
                                                      : ledger::halt_kind::kMessage,
        fmt::format(
            "{} {} [{}] offset {} key {}: {}{} (attempts: {}). The partition stands before this "
            "message, others go on. Correct the cause, then: pawl partitions resume --config FILE "
            "--topic {} --partition {}; or leave the message out: pawl partitions skip --config "
            "FILE --topic {} --partition {} --offset {}",
            context_.options.kafka.group, partition.name().topic, partition.name().partition,
            offset, key.empty() ? "(none)" : fmt::format("\"{}\"", key),
            ended ? failure.text + " Look at what it may have stored before you go on"
                  : failure.text,
            failure.sqlstate.empty() ? "" : fmt::format(" (SQLSTATE {})", failure.sqlstate),
            partition.attempts, partition.name().topic, partition.name().partition,
            partition.name().topic, partition.name().partition, offset),
        offset},
       false);
}

void Worker::halt(Partition& partition, const ledger::Halt& halt, bool retry_later) {
  try {
    if (!context_.offsets.halt(*session_, partition.name(), *partition.epoch, halt)) {
      give_way(partition);
      return;
    }
  } catch (const std::exception&) {
    const auto failure = why_failed();
    if (failure.kind == postgres::FailureClass::kConnection) {
      lose_session(failure.text);
    } else {
      emit(Step::kWarning, partition, partition.stored,
           fmt::format("the partition must halt, and that cannot be stored yet: {}; the reason: {}",
                       failure.text, halt.reason));
      acquire_again(partition, false);
      partition.not_before = Clock::now() + partition.acquire_backoff.next();
    }
    return;
  }
  partition.row_halted = true;
  if (!partition.status->halted.exchange(true) || !retry_later) {
    emit(Step::kHalted, partition, partition.stored, halt.reason, halt.message_offset);
  }
  if (retry_later) {
    rest(partition, context_.options.failures.program_error_retry);
    return;
  }
  tried_halts_.insert({partition.name(), partition.stored});
  stop_fetching(partition);
  partition.clear_buffer();
  partition.attempts = 0;
  partition.phase = Partition::Phase::kStopped;
}

}  // namespace pawl::engine
