// What a worker does with one of its partitions: acquire, position, take, process.
#include <fmt/format.h>

#include "engine/worker.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// Messages of one partition before the worker looks at the next.
constexpr int kTurn = 32;
/// And messages before it looks into its mailbox.
constexpr int kBetweenLooks = 8;
/// A seek on a partition whose fetcher is starting answers "erroneous state" for a moment.
constexpr std::uint32_t kMaxFailedSeeks = 40;
constexpr milliseconds kSeekRetry{50};
/// Lag without anything to take for this long, while Kafka answers other questions: the fetcher is
/// stuck, seek again.
constexpr milliseconds kStuckAfter{15000};
constexpr std::uint64_t kStuckAnswers = 3;
/// A message that is tried again after less time stays in hand, with what is behind it.
constexpr milliseconds kKeepsFetched{1000};

}  // namespace

void Worker::emit(Step step, const Partition& partition, std::int64_t offset,
                  std::string_view detail, std::optional<std::int64_t> message_offset) const {
  Event event{step};
  event.topic = partition.name().topic;
  event.partition = partition.name().partition;
  event.offset = offset;
  event.detail = detail;
  event.message_offset = message_offset;
  const auto end = partition.status->log_end.load();
  const auto next = partition.status->position.load();
  if (end >= 0 && next >= 0)
    event.lag = std::max<std::int64_t>(0, end - next);
  context_.observers.emit(event);
}

bool Worker::step(Partition& partition) {
  if (Clock::now() < partition.not_before)
    return false;
  switch (partition.phase) {
    case Partition::Phase::kAcquiring:
      // What became due after prepare_acquires() waits for the next round.
      if (partition.log_hint && !partition.must_prove)
        acquire(partition);
      return true;
    case Partition::Phase::kPositioning:
      position(partition);
      return true;
    case Partition::Phase::kRunning:
      return run_some(partition);
    case Partition::Phase::kStopped:
      return false;
  }
  return false;
}

void Worker::acquire(Partition& partition) {
  try {
    begin_call(partition, milliseconds(0));
    const auto answer = positions_.acquire(*session_, partition.name(), partition.log_hint,
                                           partition.refusal, partition.status->looked_at());
    end_call();
    if (const auto* refused = std::get_if<Refused>(&answer)) {
      refuse(partition, *refused);
    } else {
      accept(partition, std::get<Positioned>(answer));
    }
  } catch (const kafka::KafkaError& error) {
    end_call();
    postpone(partition, fmt::format("cannot position the partition yet: {}", error.what()));
  } catch (const std::exception&) {
    end_call();
    failed(partition, {Undertaking::kAcquire, why_failed()});
  }
}

/// It is tried again by itself.
void Worker::postpone(Partition& partition, const std::string& why) {
  partition.not_before = Clock::now() + partition.acquire_backoff.next();
  emit(Step::kWarning, partition, partition.stored, why);
}

void Worker::prepare_acquires() {
  // One question to Kafka for all partitions instead of one each: a thousand come back at once
  // after a reconnect.
  std::vector<Partition*> due;
  std::vector<kafka::Membership::Progress> to_prove;
  std::vector<TopicPartition> names;
  for (auto& [name, partition] : partitions_) {
    partition->log_hint.reset();
    if (partition->phase != Partition::Phase::kAcquiring || Clock::now() < partition->not_before)
      continue;
    due.push_back(partition.get());
    names.push_back(name);
    if (partition->must_prove) {
      const auto next = partition->status->next_for_kafka(context_.options.consumer.durability);
      to_prove.push_back({name, next >= 0 ? next : partition->stored + 1});
    }
  }
  if (due.empty())
    return;
  try {
    if (!to_prove.empty()) {
      const auto proof =
          context_.membership->prove(to_prove, context_.commit_metadata(), kafka::kAnswerTimeout);
      for (auto* partition : due) {
        if (!partition->must_prove)
          continue;
        const auto unproven = proof.unproven.find(partition->name().topic);
        partition->must_prove = !proof.member || unproven != proof.unproven.end();
        if (!partition->must_prove)
          continue;
        // Kafka will say whether it is still ours: by a revocation, or a new assignment.
        postpone(*partition,
                 !proof.member
                     ? "Kafka does not take this process for the member that has the partition: "
                       "waiting for a revocation or a new assignment"
                     : fmt::format("cannot position the partition yet: {}", unproven->second));
      }
    }
    const auto ranges = context_.kafka.log_ranges(names, kafka::kAnswerTimeout);
    for (auto* partition : due) {
      const auto found = ranges.find(partition->name());
      if (found == ranges.end()) {
        postpone(*partition,
                 "cannot position the partition yet: Kafka tells no ends of its log now; it has no "
                 "leader, or its topic is gone or not permitted; asking again");
        continue;
      }
      partition->log_hint = found->second;
      partition->status->log_end = found->second.end;
    }
  } catch (const kafka::KafkaError& error) {
    for (auto* partition : due)
      postpone(*partition, fmt::format("cannot position the partition yet: {}", error.what()));
  }
}

void Worker::accept(Partition& partition, const Positioned& positioned) {
  const auto& acquired = positioned.acquired;
  consider_probation(partition, acquired);
  partition.epoch = acquired.epoch;
  partition.source = positioned.source;
  partition.topic_id = positioned.topic_id;
  partition.leader_epoch = acquired.leader_epoch;
  if (partition.stored != acquired.stored_offset) {
    partition.attempts = 0;
    partition.broken_connections = 0;
    partition.batch_pace.forget_failures();
  }
  partition.stored = acquired.stored_offset;
  if (acquired.previous_owner != context_.owner) {
    context_.previous_owners.took_over(
        partition.name(), acquired.released ? std::nullopt : acquired.previous_backend);
  }
  partition.previous_owner = context_.previous_owners.session_of(partition.name());
  partition.status->position = acquired.stored_offset + 1;
  // The register may have gone back: an end that was reached before is not behind it any more.
  partition.status->end_seen = -1;
  partition.status->acquired_in(positioned.topic_id, acquired.stored_offset + 1);
  // The acquire was a synchronous commit, and so everything before it is on disk.
  partition.status->durable = acquired.stored_offset + 1;
  partition.status->acquired = true;

  const bool paused = acquired.state == ledger::PartitionState::kPaused;
  const bool halted = acquired.state == ledger::PartitionState::kHalted;
  // What is not the message's fault is tried until it can be done. A halt at a message is a stored
  // state; each process tries that message once more by itself. Not where trying ends the process.
  const bool of_program = halted && acquired.halt_kind == ledger::halt_kind::kProgram;
  const bool once_more = halted && !of_program && acquired.halt_kind != ledger::halt_kind::kCrash &&
                         tried_halts_.insert({partition.name(), acquired.stored_offset}).second;
  const bool try_halted = of_program || once_more;
  partition.one_try_only = once_more;
  partition.row_halted = halted;
  partition.status->paused = paused;
  if (paused || (halted && !try_halted)) {
    partition.status->halted = halted;
    partition.phase = Partition::Phase::kStopped;
    emit(paused ? Step::kPaused : Step::kHalted, partition, acquired.stored_offset, acquired.reason,
         acquired.halt_offset);
    return;
  }
  partition.status->halted = false;
  emit(Step::kAcquired, partition, acquired.stored_offset);
  partition.phase = Partition::Phase::kPositioning;
  partition.failed_seeks = 0;
  position(partition);
}

void Worker::refuse(Partition& partition, const Refused& refused) {
  partition.epoch = refused.epoch;
  partition.stored = refused.stored_offset;
  // Who resumes wants Kafka to be asked once more.
  partition.refusal.reset();
  partition.status->acquired = true;
  if (refused.epoch) {
    const auto next = refused.stored_offset + 1;
    if (partition.status->position > next) {
      // The register went back; Kafka must not be told what it does not have any more.
      partition.status->position = next;
      partition.status->durable = next;
    }
    halt(partition, {refused.kind, refused.reason, std::nullopt});
    return;
  }
  // There is no row to store the halt in; ask again, an operator may have made one. All partitions
  // of the topic at one time, so that one question serves them.
  partition.not_before =
      refused.asked_at.value_or(Clock::now()) + context_.options.failures.program_error_retry;
  if (!partition.status->halted.exchange(true))
    emit(Step::kHalted, partition, -1, refused.reason);
}

void Worker::position(Partition& partition) {
  try {
    partition.clear_buffer();
    partition.taken = partition.stored;
    partition.first_pending = true;
    const kafka::LogPosition next{partition.stored + 1, partition.leader_epoch};
    context_.membership->intake().open(*partition.stream, next.offset, [&] {
      context_.membership->seek_and_resume(partition.name(), next, kafka::kAnswerTimeout);
    });
    partition.acquire_backoff.reset();
    partition.phase = Partition::Phase::kRunning;
    taken_now(partition);
    emit(Step::kPositioned, partition, partition.stored + 1);
  } catch (const kafka::KafkaError& error) {
    partition.not_before = Clock::now() + kSeekRetry;
    if (++partition.failed_seeks % kMaxFailedSeeks == 0) {
      emit(Step::kWarning, partition, partition.stored,
           fmt::format("Kafka does not take the position yet: {}", error.what()));
      if (error.kind() == kafka::ErrorKind::kFetcherStarting)
        context_.restart_fetch(partition.name());
    }
  }
}

bool Worker::run_some(Partition& partition) {
  for (int i = 0; i < kTurn; ++i) {
    if (partition.buffer.empty() && !take_more(partition))
      return i > 0;
    if (const auto turn = run_batch(partition); turn != BatchTurn::kNone)
      return i > 0 || turn == BatchTurn::kRan;
    // One flight is a turn.
    if (fly(partition))
      return true;
    const bool look_up = i % kBetweenLooks == kBetweenLooks - 1;
    process(partition, !look_up && !pipelines(partition));
    if (!session_ || partition.phase != Partition::Phase::kRunning)
      return true;
    if (Clock::now() < partition.not_before)
      return true;
    if (look_up) {
      const std::scoped_lock lock(mailbox_mutex_);
      if (!mailbox_.empty())
        return true;
    }
  }
  return true;
}

void Worker::taken_now(Partition& partition) {
  partition.last_taken_at = Clock::now();
  partition.answers_when_taken = partition.status->log_end_answers;
}

bool Worker::take_more(Partition& partition, std::size_t most) {
  if (partition.unreadable)
    return false;
  auto records = partition.stream->take(most);
  if (records.empty()) {
    const bool behind = partition.status->log_end.load() > partition.status->end_seen.load() &&
                        partition.status->log_end.load() > partition.taken + 1;
    const auto answers = partition.status->log_end_answers.load() - partition.answers_when_taken;
    if (behind && answers >= kStuckAnswers &&
        Clock::now() - partition.last_taken_at > kStuckAfter) {
      emit(Step::kWarning, partition, partition.taken,
           "Kafka has records but delivers none; seeking again. When this comes again and again "
           "the batch there may be in a format that Kafka's client does not know");
      partition.phase = Partition::Phase::kPositioning;
      taken_now(partition);
    }
    return false;
  }
  taken_now(partition);
  for (auto& record : records) {
    if (partition.phase != Partition::Phase::kRunning || partition.unreadable)
      break;
    switch (record.kind()) {
      case kafka::Record::Kind::kError:
        stream_error(partition, std::move(record));
        break;
      case kafka::Record::Kind::kEndOfLog: {
        const auto end = record.offset();
        const auto previous = partition.taken;
        partition.first_pending = false;
        partition.sought_twice = false;
        partition.refusal.reset();
        partition.taken = std::max(partition.taken, end - 1);
        const auto epoch = record.leader_epoch();
        partition.buffer.push_back({std::move(record), previous, epoch});
        break;
      }
      case kafka::Record::Kind::kMessage: {
        if (!check_first(partition, record))
          break;
        const auto previous = partition.taken;
        const auto epoch = record.leader_epoch();
        partition.taken = record.offset();
        partition.buffer.push_back({std::move(record), previous, epoch});
        break;
      }
    }
  }
  return !partition.buffer.empty() && partition.phase == Partition::Phase::kRunning;
}

bool Worker::check_first(Partition& partition, const kafka::Record& record) {
  const auto expected = partition.taken + 1;
  if (record.offset() < expected) {
    // Left over from an older position, or delivered twice: never ours to process.
    partition.phase = Partition::Phase::kPositioning;
    return false;
  }
  if (partition.first_pending && record.offset() != expected && !partition.sought_twice) {
    // A hole (compaction, aborted transaction), or a stale fetch: ask once more, then believe it.
    partition.sought_twice = true;
    partition.phase = Partition::Phase::kPositioning;
    return false;
  }
  partition.first_pending = false;
  partition.sought_twice = false;
  partition.refusal.reset();
  return true;
}

void Worker::process(Partition& partition, bool more_follows) {
  const auto& item = partition.buffer.front();
  if (item.record.kind() == kafka::Record::Kind::kEndOfLog) {
    end_of_log(partition, item);
    return;
  }
  if (item.record.kind() == kafka::Record::Kind::kError) {
    processor_.settle();
    halt_unreadable(partition, item);
    return;
  }
  if (goes_back(partition.leader_epoch, item.leader_epoch)) {
    processor_.settle();
    halt(partition,
         {ledger::halt_kind::kPosition,
          fmt::format("{} {} [{}]: offset {} carries leader epoch {}, but offset {} was processed "
                      "under epoch {}: the log was truncated or the topic recreated. Nothing was "
                      "skipped. Find out what was lost, then state the position: {}",
                      context_.options.kafka.group, partition.name().topic,
                      partition.name().partition, item.record.offset(), *item.leader_epoch,
                      partition.stored, *partition.leader_epoch,
                      positions_.set_command(partition.name())),
          std::nullopt});
    return;
  }
  const auto pass = ask_to_run(partition);
  if (!pass)
    return;
  const bool suspect = partition.on_probation > 0;
  if (suspect && !mark_suspect(partition, item))
    return;
  if (partition.lost_in_handler && !count_lost_connection(partition, item))
    return;
  const auto offset = item.record.offset();
  const auto begun = Clock::now();
  try {
    begin_call(partition, context_.longest_handler);
    const auto view_of = [&partition](const Partition::Item& message) {
      return message.record.view(partition.name().topic, partition.topic_id);
    };
    std::optional<Upcoming> next;
    // Through a pooler nothing travels ahead, so looking at the next one would be done twice.
    if (more_follows && !suspect && !session_->pooled() && partition.buffer.size() > 1 &&
        partition.buffer[1].record.kind() == kafka::Record::Kind::kMessage) {
      next.emplace(Upcoming{view_of(partition.buffer[1]), partition.source});
    }
    const auto message = view_of(item);
    const AdvanceStep advance(context_.offsets, partition.name(),
                              advance_of(partition, item, message));
    const auto outcome = processor_.process(
        *session_, {message, partition.source, item.leader_epoch, advance}, next);
    end_call();
    if (outcome == ledger::Outcome::kApplied)
      context_.breaker.applied(processor_.last_binding()->label);
    moved_past(partition, 1, Clock::now() - begun);
  } catch (...) {
    end_call();
    processor_.settle();
    failed(partition, attempt_of(partition, Undertaking::kMessage, why_failed()));
  }
  if (suspect)
    end_probation(partition, partition.stored >= offset);
}

ledger::Advance Worker::advance_of(const Partition& partition, const Partition::Item& item,
                                   const Message& message) {
  ledger::Advance advance;
  advance.epoch = *partition.epoch;
  advance.previous = item.previous;
  advance.next = item.record.offset();
  advance.halted = partition.row_halted;
  advance.leader_epoch = item.leader_epoch;
  if (message.timestamp_ms() >= 0)
    advance.timestamp_ms = message.timestamp_ms();
  return advance;
}

/// The leader epoch (KIP-320) of a record is below that of what was processed before it.
bool Worker::goes_back(const std::optional<std::int32_t>& before,
                       const std::optional<std::int32_t>& epoch) {
  return epoch && before && *epoch < *before;
}

/// The first `items` of the buffer are behind, the last of them a message, and took so long.
void Worker::moved_past(Partition& partition, std::size_t items, Clock::duration took) {
  std::size_t messages = 0;
  for (; items > 0; --items) {
    const auto& [record, previous, epoch] = partition.buffer.front();
    if (record.kind() == kafka::Record::Kind::kEndOfLog) {
      reached_end(partition, record.offset());
    } else {
      ++messages;
      partition.leader_epoch = epoch;
      partition.stored = record.offset();
      partition.status->position = record.offset() + 1;
    }
    partition.buffer.pop_front();
  }
  partition.linger.reset();
  partition.alone -= std::min(partition.alone, messages);
  const bool one_had_failed =
      partition.attempts > 0 || partition.row_halted || partition.renewed_for.has_value();
  partition.batch_pace.passed(messages, partition.stored, one_had_failed, took);
  forget_attempts(partition);
}

/// What stood at the head is behind: whatever comes next begins anew.
void Worker::forget_attempts(Partition& partition) {
  partition.row_halted = false;
  has_room(partition);
  if (partition.status->halted.exchange(false))
    emit(Step::kAcquired, partition, partition.stored, "the cause of its halt is gone");
  partition.attempts = 0;
  partition.lost_in_handler.reset();
  partition.broken_connections = 0;
  partition.renewed_for.reset();
  partition.one_try_only = false;
  partition.retry_backoff.reset();
}

/// The log ends here for now. It is no message: what goes wrong with it is nobody's attempt and has
/// no policy.
void Worker::end_of_log(Partition& partition, const Partition::Item& item) {
  const auto end = item.record.offset();
  if (end - 1 > item.previous) {
    // Control records or removed ones stand between the last message and the end; without this
    // step they would look like lost messages once retention removes them.
    try {
      ledger::Advance advance;
      advance.epoch = *partition.epoch;
      advance.previous = item.previous;
      advance.next = end - 1;
      advance.outcome = ledger::Outcome::kEndOfLog;
      advance.halted = partition.row_halted;
      advance.leader_epoch = item.leader_epoch;
      context_.offsets.advance_alone(*session_, partition.name(), advance);
    } catch (...) {
      Attempt attempt{Undertaking::kEndOfLog, why_failed()};
      attempt.offset = end;
      failed(partition, attempt);
      return;
    }
    partition.stored = end - 1;
    partition.leader_epoch = item.leader_epoch;
    partition.status->position = end;
    // Whatever was halted or being tried again stood before the end and is not there any more.
    forget_attempts(partition);
  }
  has_room(partition);
  partition.buffer.pop_front();
  // Whatever was in a dead process' hands is behind.
  partition.on_probation = 0;
  reached_end(partition, end);
}

void Worker::reached_end(Partition& partition, std::int64_t end) {
  partition.status->end_seen = end;
  partition.status->log_end = std::max(end, partition.status->log_end.load());
  emit(Step::kCaughtUp, partition, end);
}

void Worker::acquire_again(Partition& partition, bool must_prove) {
  if (partition.phase == Partition::Phase::kRunning)
    stop_fetching(partition);
  partition.clear_buffer();
  partition.phase = Partition::Phase::kAcquiring;
  partition.must_prove = partition.must_prove || must_prove;
  partition.not_before =
      Clock::now() + (must_prove ? partition.acquire_backoff.next() : milliseconds(0));
}

/// Nothing is tried for so long. What was fetched would only keep room in kafka.buffer from others
/// meanwhile, so where it is long it is fetched again.
void Worker::rest(Partition& partition, Clock::duration time) {
  partition.not_before = Clock::now() + time;
  if (time < kKeepsFetched)
    return;
  stop_fetching(partition);
  partition.clear_buffer();
  partition.phase = Partition::Phase::kPositioning;
}

void Worker::stop_fetching(Partition& partition) {
  context_.membership->intake().shut(*partition.stream,
                                     [&] { context_.membership->pause(partition.name()); });
}

}  // namespace pawl::engine
