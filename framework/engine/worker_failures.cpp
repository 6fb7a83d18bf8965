// What a worker does when a message cannot be applied: retry, halt, set aside.
#include <fmt/format.h>

#include <random>

#include "config/units.hpp"
#include "engine/retries.hpp"
#include "engine/worker.hpp"
#include "handlers/handler_statement.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

milliseconds jitter(milliseconds upper) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(0, upper.count())(random));
}

std::string handler_of(const Attempt& attempt) {
  return attempt.binding == nullptr ? std::string() : attempt.binding->label;
}

/// What a warning says of it.
std::string warning(const Attempt& attempt) {
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

}  // namespace

void Worker::failed(Partition& partition, const Attempt& attempt) {
  apply(partition, attempt, verdict_on(partition, attempt));
}

Action Worker::verdict_on(const Partition& partition, const Attempt& attempt) const {
  const auto& options = failure_options(attempt);
  Policy policy;
  policy.then = options.then;
  policy.most_attempts = attempts_allowed(options);
  policy.breaker_open =
      !context_.breaker.allows(handler_of(attempt), attempt.failure.way(), options.breaker);
  return decide(attempt,
                {partition.attempts, partition.broken_connections, partition.one_try_only,
                 partition.renewed_for == attempt.offset},
                policy);
}

const FailureOptions& Worker::failure_options(const Attempt& attempt) const {
  return attempt.binding == nullptr ? context_.options.failures : attempt.binding->failures;
}

/// Of the message at the head, which the processor had in hand last.
Attempt Worker::attempt_of(const Partition& partition, Undertaking what, Failure failure) const {
  Attempt attempt{what, std::move(failure)};
  attempt.offset = partition.buffer.front().record.offset();
  attempt.handler_begun = processor_.in_handler();
  attempt.binding = processor_.last_binding();
  attempt.key = processor_.last_key();
  return attempt;
}

void Worker::apply(Partition& partition, const Attempt& attempt, const Action& action) {
  using What = Action::What;
  const auto& failure = attempt.failure;
  if (leaves_doubt(attempt)) {
    // Behind the end of the log there is no message (yet).
    const bool at_end = attempt.what == Undertaking::kEndOfLog;
    emit(Step::kInDoubt, partition, at_end ? partition.stored : attempt.offset, failure.text);
  }
  if (shows_room(attempt))
    has_room(partition);
  keep_company(partition, attempt, action.company);
  tell(partition, attempt, action);
  switch (action.what) {
    case What::kReconnect:
      lose_session(failure.text);
      break;
    case What::kGiveWay:
      give_way(partition, failure.text);
      break;
    case What::kAskAgain:
      acquire_again(partition, false);
      break;
    case What::kPrepareAnew:
      if (attempt.what != Undertaking::kAcquire && attempt.what != Undertaking::kHalt)
        partition.renewed_for = attempt.offset;
      renew_session();
      break;
    case What::kWaitForRoom:
      wait_for_room(partition, failure);
      break;
    case What::kCount:
      count_and_decide(partition, attempt);
      break;
    case What::kRetry:
      rest(partition, wait_before_retry(failure_options(attempt), partition.attempts));
      break;
    case What::kSetAside:
      set_aside(partition, attempt);
      break;
    case What::kHaltAtMessage:
      halt_at_message(partition, attempt);
      break;
    case What::kHaltProgram:
      halt_program(partition, attempt);
      break;
    case What::kHaltFlood:
      halt_flood(partition, attempt);
      break;
    case What::kTryAgain:
    case What::kGoOn:
      break;
  }
  wait(partition, action.wait);
}

void Worker::tell(const Partition& partition, const Attempt& attempt, const Action& action) const {
  switch (action.say) {
    case Action::Say::kNothing:
      break;
    case Action::Say::kFailed:
      emit_failed(partition, attempt.offset, attempt.failure);
      break;
    case Action::Say::kWarning:
      emit(Step::kWarning, partition, partition.stored,
           warning(attempt) + (action.what == Action::What::kAskAgain
                                   ? "; asking the register and Kafka again"
                                   : ""));
      break;
  }
}

void Worker::wait(Partition& partition, Action::Wait wait) {
  switch (wait) {
    case Action::Wait::kNone:
      return;
    case Action::Wait::kJitter:
      partition.not_before = Clock::now() + jitter(context_.options.postgres.retry_initial);
      return;
    case Action::Wait::kAcquireBackoff:
      partition.not_before = Clock::now() + partition.acquire_backoff.next();
      return;
    case Action::Wait::kRetryBackoff:
      partition.not_before = Clock::now() + partition.retry_backoff.next();
      return;
  }
}

void Worker::keep_company(Partition& partition, const Attempt& attempt, Action::Company company) {
  switch (company) {
    case Action::Company::kAsBefore:
      return;
    case Action::Company::kFewer:
      partition.batch_pace.contended(attempt.messages);
      return;
    case Action::Company::kHalved:
      if (attempt.what == Undertaking::kBatch) {
        partition.batch_pace.failed(attempt.messages);
      } else {
        partition.alone = 1;
      }
      return;
    case Action::Company::kAlone:
      if (attempt.what == Undertaking::kBatch) {
        partition.batch_pace.run_alone(attempt.messages);
      } else if (attempt.what == Undertaking::kPipeline) {
        partition.alone = attempt.messages;
      } else {
        partition.lost_in_handler = attempt.offset;
      }
      return;
  }
}

void Worker::count_and_decide(Partition& partition, const Attempt& attempt) {
  if (!count_attempt(partition, attempt.offset)) {
    emit_failed(partition, attempt.offset, attempt.failure);
    return;
  }
  auto counted = attempt;
  counted.counted = true;
  const auto action = verdict_on(partition, counted);
  auto said = attempt.failure;
  if (action.what == Action::What::kRetry) {
    said.text += fmt::format(" (attempt {} of {})", partition.attempts,
                             attempts_allowed(failure_options(attempt)));
  }
  emit_failed(partition, attempt.offset, said);
  apply(partition, counted, action);
}

void Worker::emit_failed(const Partition& partition, std::int64_t offset,
                         const Failure& failure) const {
  emit(Step::kFailed, partition, offset, told(failure, context_.options.log.error_details));
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
    failed(partition, attempt_of(partition, Undertaking::kNote, why_failed()));
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
  ++partition.broken_connections;
  processor_.identify(item.record.view(partition.name().topic, partition.topic_id));
  Failure failure;
  failure.text = "its handler's connection to PostgreSQL broke, attempt after attempt";
  failure.reason = ledger::dead_reason::kError;
  const auto attempt = attempt_of(partition, Undertaking::kLostConnection, std::move(failure));
  const auto action = verdict_on(partition, attempt);
  apply(partition, attempt, action);
  return action.what == Action::What::kGoOn;
}

void Worker::set_aside(Partition& partition, const Attempt& attempt) {
  const auto& options = failure_options(attempt);
  const auto& failure = attempt.failure;
  const auto& item = partition.buffer.front();
  const auto message = item.record.view(partition.name().topic, partition.topic_id);
  ledger::Burial burial;
  burial.reason = failure.reason;
  burial.handler = handler_of(attempt);
  burial.idempotency_key = attempt.key;
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
    failed(partition, attempt_of(partition, Undertaking::kNote, why_failed()));
    return;
  }
  context_.breaker.count(burial.handler, failure.way());
  moved_past(partition);
}

/// Any message would fail as well: tried again by itself, without losing its place.
void Worker::halt_program(Partition& partition, const Attempt& attempt) {
  const auto& failure = attempt.failure;
  const auto pause = failure_options(attempt).program_error_retry;
  const auto again = config::format_duration(pause);
  const auto where = fmt::format("{} {} [{}]", context_.options.kafka.group, partition.name().topic,
                                 partition.name().partition);
  if (attempt.what == Undertaking::kEndOfLog) {
    halt(partition,
         {ledger::halt_kind::kProgram,
          fmt::format(
              "{}: {}. No message is concerned. Correct the database (triggers, rights and "
              "constraints of {}.processed_kafka_offsets); it is tried again every {} by itself",
              where, warning(attempt), context_.options.postgres.schema, again),
          std::nullopt},
         pause);
    return;
  }
  halt(partition,
       {ledger::halt_kind::kProgram,
        fmt::format("{} offset {}: the handler's SQL cannot run: {}{}. Correct the database or the "
                    "handler; it is tried again every {} by itself",
                    where, attempt.offset, failure.text, sqlstate_text(failure), again),
        attempt.offset},
       pause);
}

/// The breaker is open. Told once for each partition that it stops.
void Worker::halt_flood(Partition& partition, const Attempt& attempt) {
  const auto& options = failure_options(attempt);
  const auto& failure = attempt.failure;
  const auto handler = handler_of(attempt);
  if (!partition.status->halted) {
    const auto detail = fmt::format(
        "{} messages in a row failed in one way ({}), so none is set aside any more: {}",
        options.breaker, failure.way(), failure.text);
    Event event{Step::kBreakerOpen};
    event.topic = partition.name().topic;
    event.partition = partition.name().partition;
    event.offset = partition.stored;
    event.message_offset = attempt.offset;
    event.handler = handler;
    event.detail = detail;
    context_.observers.emit(event);
  }
  halt(partition,
       {ledger::halt_kind::kProgram,
        fmt::format(
            "{} {} [{}] offset {}: {} messages of {} in a row failed in this way, so none "
            "is set aside any more: {}. Correct the cause; it is tried again every {} by itself",
            context_.options.kafka.group, partition.name().topic, partition.name().partition,
            attempt.offset, options.breaker,
            handler.empty() ? "no handler" : handlers::handler_text(handler), failure.text,
            config::format_duration(options.program_error_retry)),
        attempt.offset},
       options.program_error_retry);
}

void Worker::halt_at_message(Partition& partition, const Attempt& attempt) {
  const auto& failure = attempt.failure;
  const auto offset = attempt.offset;
  const bool ended = failure.kind == postgres::FailureClass::kTransactionEnded;
  const auto& key = attempt.key;
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
            sqlstate_text(failure), partition.attempts, partition.name().topic,
            partition.name().partition, partition.name().topic, partition.name().partition, offset),
        offset});
}

void Worker::halt(Partition& partition, const ledger::Halt& halt,
                  std::optional<milliseconds> retry_after) {
  try {
    if (!context_.offsets.halt(*session_, partition.name(), *partition.epoch, halt)) {
      give_way(partition);
      return;
    }
  } catch (const std::exception&) {
    Attempt attempt{Undertaking::kHalt, why_failed()};
    attempt.about = halt.reason;
    attempt.offset = partition.stored;
    failed(partition, attempt);
    return;
  }
  partition.row_halted = true;
  if (!partition.status->halted.exchange(true) || !retry_after) {
    emit(Step::kHalted, partition, partition.stored, halt.reason, halt.message_offset);
  }
  if (retry_after) {
    rest(partition, *retry_after);
    return;
  }
  tried_halts_.insert({partition.name(), partition.stored});
  stop_fetching(partition);
  partition.clear_buffer();
  partition.attempts = 0;
  partition.broken_connections = 0;
  partition.phase = Partition::Phase::kStopped;
}

}  // namespace pawl::engine
