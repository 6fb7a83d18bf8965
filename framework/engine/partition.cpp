#include "engine/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "engine/halt_rendering.hpp"
#include "message/traceparent.hpp"
#include "text/located.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// A message that is tried again after less time stays in hand, with what is behind it.
constexpr milliseconds kKeepsFetched{1000};

milliseconds jitter(milliseconds upper) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(0, upper.count())(random));
}

}  // namespace

Partition::Partition(Context& context, std::shared_ptr<kafka::PartitionStream> stream)
    : context_(context),
      stream_(std::move(stream)),
      status_(context.board.add(stream_->partition())),
      ahead_(context.router.plan_of(name().topic)),
      pace_(PipelinePace(context.options.consumer.pipeline),
            BatchPace(context.options.batch.max_messages, context.longest_batch)),
      acquire_backoff_(context.options.postgres.retry_initial, context.options.postgres.retry_max),
      retry_backoff_(context.options.failures.retry_initial, context.options.failures.retry_max) {
  if (ahead_.together() || ahead_.calls())
    stream_->run_ahead();
}

Partition::~Partition() {
  context_.board.remove(status_);
}

ledger::Advance Partition::step_over(const Inbox::Item& item) const {
  ledger::Advance advance;
  advance.epoch = *held_.epoch;
  advance.from = item.from;
  advance.to = ledger::Position::behind(item.record.offset());
  advance.halted = head_.row_halted;
  advance.leader_epoch = item.leader_epoch;
  if (!item.is_message()) {
    // The end of the log: what it stands for is before it.
    advance.to = ledger::Position::before(item.record.offset());
    advance.outcome = ledger::Outcome::kEndOfLog;
  } else {
    advance.timestamp = view(item).timestamp();
  }
  return advance;
}

bool Partition::runs_alone_next(std::int64_t offset) const {
  if (!running())
    return phase_ != Phase::kStopped && !must_prove_;
  const bool is_first = inbox_.empty() || inbox_.front().record.offset() == offset;
  return is_first && (!head_.is_plain() || suspects_.has(offset));
}

std::optional<Partition::Clock::time_point> Partition::due() const {
  if (running() && ahead_.is_used()) {
    // What runs alone waits by the partition's clock, whatever is ahead.
    if (ahead_.window().empty() && !inbox_.empty() && !ahead_.winding_up())
      return not_before_;
    return is_due(Clock::now()) ? ahead_.due() : std::optional(not_before_);
  }
  if (phase_ == Phase::kStopped || (running() && inbox_.empty()))
    return std::nullopt;
  const auto look_again = running() ? pace_.look_again() : std::nullopt;
  return look_again ? std::max(not_before_, *look_again) : not_before_;
}

void Partition::back_off(Action::Wait how) {
  switch (how) {
    case Action::Wait::kNone:
      return;
    case Action::Wait::kJitter:
      wait(jitter(context_.options.postgres.retry_initial));
      return;
    case Action::Wait::kAcquireBackoff:
      wait(acquire_backoff_.next());
      return;
    case Action::Wait::kRetryBackoff: {
      const auto time = retry_backoff_.next();
      // What is in the window may be running.
      return ahead_.window().empty() ? rest(time) : wait(time);
    }
  }
}

void Partition::lock_released() {
  // It may have failed otherwise since.
  if (!context_.lock_waits.waits(name()))
    return;
  const auto now = Clock::now();
  not_before_ = std::min(not_before_, now);
  ahead_.lock_released(now);
}

void Partition::rest(Clock::duration time) {
  wait(time);
  if (time >= kKeepsFetched)
    happens(Happening::kRest);
}

void Partition::make_room(Clock::time_point until) {
  if (until - Clock::now() < kKeepsFetched)
    return;
  not_before_ = until;
  happens(Happening::kMakeRoom);
}

void Partition::wait_for_room(const std::string& why) {
  without_room_ = true;
  rest(acquire_backoff_.next());
  context_.database_reachable.refused(name(), why);
}

void Partition::has_room() {
  if (!std::exchange(without_room_, false))
    return;
  context_.database_reachable.accepted(name());
}

void Partition::note_range(const std::optional<kafka::LogRange>& range) {
  range_ = range;
  if (range) {
    status_->log_end = range->end;
    status_->log_end_told();
  }
}

void Partition::granted(const Positioned& positioned) {
  const auto& acquired = positioned.acquired;
  const bool elsewhere = held_.stored != acquired.stored;
  if (elsewhere) {
    status_->waits_since = -1;
    head_.forget_attempts();
    pace_.forget_failures();
    context_.lock_waits.forget(name());
  }
  context_.lock_waits.passed(name(), acquired.stored.last());
  if (acquired.previous_owner != context_.owner) {
    std::optional<PreviousOwner> from;
    if (!acquired.released)
      from = {acquired.previous_owner, acquired.previous_backend};
    context_.previous_owners.took_over(name(), std::move(from));
  }
  held_ = {acquired.epoch,  positioned.source,     positioned.topic_id,
           acquired.stored, acquired.leader_epoch, context_.previous_owners.of(name())};
  ahead_.acquired(std::make_shared<HeldPartition>(name(), held_.topic_id, held_.source,
                                                  acquired.fence, held_.previous_owner),
                  acquired.ahead);
  status_->position = acquired.stored.next();
  // An operator may have skipped some of them.
  suspects_.passed(acquired.stored.last());
  // The register may have gone back: an end that was reached before is not behind it any more.
  status_->end_seen = -1;
  status_->acquired_in(positioned.topic_id, acquired.stored.next());
  // The acquire was a synchronous commit, and so everything before it is on disk.
  status_->durable = acquired.stored.next();
  status_->acquired = true;
}

void Partition::go(bool once_more, bool row_halted) {
  head_.one_try_only = once_more;
  head_.row_halted = row_halted;
  status_->paused = false;
  status_->halted = false;
  failed_seeks_ = 0;
  happens(Happening::kGranted);
}

void Partition::stop(bool halted, bool paused, std::string_view reason) {
  head_.one_try_only = false;
  head_.row_halted = halted;
  status_->paused = paused;
  if (halted) {
    status_->halt(reason);
  } else {
    status_->halted = false;
  }
  context_.lock_waits.forget(name());
  happens(Happening::kStop);
}

void Partition::refused(const Refused& refused, milliseconds again) {
  held_.epoch = refused.epoch;
  held_.stored = refused.stored;
  // Who resumes wants Kafka to be asked once more.
  inbox_.forget_refusal();
  status_->acquired = true;
  if (!refused.epoch) {
    // All partitions of the topic at one time, so that one question serves them.
    not_before_ = refused.asked_at.value_or(Clock::now()) + again;
    return;
  }
  const auto next = refused.stored.next();
  if (status_->position > next) {
    // The register went back; Kafka must not be told what it does not have any more.
    status_->position = next;
    status_->durable = next;
  }
}

void Partition::seek() {
  inbox_.open(taken());
  const kafka::LogPosition next{taken().next(), ahead_.leader_epoch(held_.leader_epoch)};
  fetching_ = true;
  context_.membership->intake().open(*stream_, next.offset, [&] {
    context_.membership->seek_and_resume(name(), next, kafka::kAnswerTimeout);
  });
  inbox_.saw_life(Clock::now(), status_->log_end_answers);
  happens(Happening::kSeekTaken);
}

std::uint32_t Partition::seek_failed(Clock::duration pause) {
  wait(pause);
  return ++failed_seeks_;
}

/// Nothing has arrived, perhaps because there is no room. False: Kafka must be asked again, because
/// its client is stuck.
bool Partition::watch_stream(Clock::time_point now) {
  if (!inbox_.is_stuck(now, {status_->log_end, status_->end_seen, status_->log_end_answers}))
    return true;
  inbox_.saw_life(now, status_->log_end_answers);
  if (stream_->waits_for_room()) {
    warn(Warning::kBufferFull,
         "kafka.buffer is full of messages of other partitions, so this partition is not fetched. "
         "pawl fetches it when kafka.buffer has space. If this lasts, search the log for retries, "
         "or "
         "raise kafka.buffer");
    return true;
  }
  warn(Warning::kFetchStalled,
       "Kafka has records but delivers none. Seeking again. If this recurs, the batch may use a "
       "format that librdkafka cannot read");
  return false;
}

Partition::Fetched Partition::take(std::size_t most) {
  Fetched fetched;
  if (inbox_.ends_unreadable())
    return fetched;
  auto records = stream_->take(most);
  const auto now = Clock::now();
  if (records.empty()) {
    // While messages are in the window nothing may come for long: what they hold of kafka.buffer
    // keeps others out.
    if (!ahead_.window().empty()) {
      inbox_.saw_life(now, status_->log_end_answers);
    } else if (!watch_stream(now)) {
      seek_again();
    }
    return fetched;
  }
  inbox_.saw_life(now, status_->log_end_answers);
  for (auto& record : records) {
    if (inbox_.ends_unreadable())
      break;
    switch (inbox_.take(record, now)) {
      case Inbox::Taken::kYes:
        fetched.came = true;
        break;
      case Inbox::Taken::kNotNext:
        seek_again();
        return fetched;
      case Inbox::Taken::kError:
        fetched.errors.push_back(std::move(record));
        if (fetched.errors.back().error_kind() == kafka::ErrorKind::kPositionRefused)
          return fetched;
        break;
    }
  }
  note_next();
  return fetched;
}

/// The next message is known, and when it was produced, until it is behind: also while the
/// partition stands at it.
void Partition::note_next() {
  if (!context_.observers.times())
    return;
  const auto& window = ahead_.window();
  if (window.empty() && inbox_.empty())
    return;
  const auto& next = window.empty() ? inbox_.front() : window[0].item;
  if (next.is_message() && next.record.timestamp())
    status_->waits_since = next.record.timestamp()->time_since_epoch().count();
}

void Partition::stored(ledger::Position position, std::optional<std::int32_t> leader_epoch) {
  held_.leader_epoch = leader_epoch;
  held_.stored = position;
  status_->waits_since = -1;
  status_->position = position.next();
  ahead_.stored(position);
  suspects_.passed(position.last());
}

Inbox::Item Partition::take_front() {
  return inbox_.take_front();
}

void Partition::passed_ahead(std::size_t count, Clock::time_point again) {
  const auto& last = ahead_.window()[count - 1].item;
  stored(ledger::Position::behind(last.record.offset()), last.leader_epoch);
  ahead_.window().pop(count);
  ahead_.pass_again(again);
  note_next();
  head_is_behind();
}

void Partition::skip_end() {
  ahead_.skipped_end(inbox_.front().record.offset());
  inbox_.pop_front();
}

void Partition::moved_past(std::size_t items, Clock::duration took) {
  std::size_t messages = 0;
  for (; items > 0; --items) {
    const auto& item = inbox_.front();
    if (item.is_message()) {
      ++messages;
      stored(ledger::Position::behind(item.record.offset()), item.leader_epoch);
    } else {
      reached_end(item.record.offset());
    }
    inbox_.pop_front();
  }
  note_next();
  pace_.passed(messages, held_.stored.last(), head_.had_failed(), took);
  head_is_behind();
}

void Partition::head_is_behind() {
  has_room();
  context_.lock_waits.passed(name(), held_.stored.last());
  if (status_->halted.exchange(false))
    tell(Step::kPartitionResumed, held_.stored.last());
  head_.pass();
  retry_backoff_.reset();
  acquire_backoff_.reset();
}

void Partition::passed_end(bool stored) {
  const auto end = inbox_.front().record.offset();
  context_.lock_waits.ended(name(), end);
  if (stored) {
    this->stored(ledger::Position::before(end), inbox_.front().leader_epoch);
    // Whatever was halted or being tried again stood before the end and is not there any more.
    head_is_behind();
  }
  has_room();
  inbox_.pop_front();
  // All messages that a process that ended may have been running are passed.
  suspects_.stop_asking();
  acquire_backoff_.reset();
  reached_end(end);
}

void Partition::reached_end(std::int64_t end) {
  status_->end_seen = end;
  // The monitor may have heard of more meanwhile.
  auto known = status_->log_end.load();
  while (known < end && !status_->log_end.compare_exchange_weak(known, end)) {
  }
  status_->log_end_told();
  tell(Step::kPartitionCaughtUp, end);
}

void Partition::acquire_again(bool must_prove) {
  happens(Happening::kAskAgain);
  must_prove_ = must_prove_ || must_prove;
  wait(must_prove ? acquire_backoff_.next() : milliseconds(0));
}

void Partition::doubt_topic() {
  if (happens(Happening::kTopicInDoubt))
    wait(milliseconds(0));
}

void Partition::position_refused(const std::string& why, Clock::duration pause) {
  inbox_.note_refusal(held_.stored.next(), why);
  acquire_again(false);
  wait(pause);
}

bool Partition::halted(std::string_view reason, std::optional<milliseconds> retry_after) {
  head_.row_halted = true;
  const bool was = status_->halt(reason);
  if (retry_after) {
    rest(*retry_after);
    return !was;
  }
  head_.forget_attempts();
  happens(Happening::kStop);
  return true;
}

void Partition::let_go() {
  clear();
  context_.lock_waits.forget(name());
  has_room();
  tell(Step::kPartitionRevoked, held_.stored.last());
}

bool Partition::happens(Happening what) {
  if (running() && !ahead_.window().empty()) {
    // Messages that run continue meanwhile.
    if (what == Happening::kSeekAgain)
      what = Happening::kMakeRoom;
    // The register knows which messages are finished.
    if (what == Happening::kRest)
      what = Happening::kAskAgain;
  }
  const auto next = after(phase_, what);
  if (!next)
    return false;
  phase_ = *next;
  // A seek of Kafka's client stops what it fetches by itself.
  if (phase_ != Phase::kRunning && what != Happening::kSeekAgain)
    stop_fetching();
  if (what == Happening::kMakeRoom) {
    inbox_.clear();
    ahead_.drop_unbegun();
  } else if (phase_ != Phase::kRunning) {
    clear();
  }
  return true;
}

void Partition::stop_fetching() {
  if (!std::exchange(fetching_, false))
    return;
  context_.membership->intake().shut(*stream_, [&] { context_.membership->pause(name()); });
}

void Partition::clear() {
  inbox_.clear();
  ahead_.clear();
  pace_.stop_lingering();
}

std::string Partition::traceparent_of(std::optional<std::int64_t> offset) const {
  const auto is_it = [&](const Inbox::Item& item) {
    return item.is_message() && item.record.offset() == offset;
  };
  const auto& window = ahead_.window();
  if (!inbox_.empty() && is_it(inbox_.front()))
    return std::string(message::traceparent_of(view(inbox_.front())));
  if (window.prefix() < window.size() && is_it(window[window.prefix()].item))
    return std::string(message::traceparent_of(view(window[window.prefix()].item)));
  return {};
}

void Partition::tell(Step step, std::int64_t offset, std::string_view detail) const {
  Event event{step};
  event.detail = detail;
  emit(event, offset);
}

void Partition::tell_halted(const ledger::Halt& halt, std::string_view traceparent) const {
  const auto sqlstate = halt.parameter(ledger::halt_parameter::kSqlstate);
  const auto key = halt.parameter(ledger::halt_parameter::kIdempotencyKey);
  const auto reason = halt.parameter(ledger::halt_parameter::kReason);
  const auto statement = halt.parameter(ledger::halt_parameter::kStatement);
  auto text = halt_text(halt, context_.options, name());
  // They are fields of the line.
  for (const auto& field :
       {fmt::format(" (SQLSTATE {})", sqlstate), texts::located(statement, "")}) {
    if (const auto at = text.find(field); at != std::string::npos)
      text.erase(at, field.size());
  }
  std::vector<EventField> fields;
  const auto named = halt_fields(halt);
  for (const auto& [field, value] : named) {
    const bool of_event = field == ledger::halt_parameter::kSqlstate ||
                          field == ledger::halt_parameter::kIdempotencyKey;
    if (of_event)
      continue;
    if (const auto* number = std::get_if<std::int64_t>(&value))
      fields.push_back({field, *number});
    else
      fields.push_back({field, std::string_view(std::get<std::string>(value))});
  }
  Event event{Step::kPartitionHalted};
  event.detail = text;
  event.key = key;
  event.sqlstate = sqlstate;
  event.reason = reason;
  event.message_offset = halt.message_offset;
  event.handler = halt.handler;
  event.traceparent = traceparent;
  event.fields = fields;
  emit(event, held_.stored.last());
}

void Partition::tell_retried(const ledger::Acquired& acquired) const {
  const std::array fields{EventField{"halt_kind", std::string_view(acquired.halt.kind)},
                          EventField{"halt_code", std::string_view(acquired.halt.code)}};
  Event event{Step::kHaltedPartitionRetried};
  event.message_offset = acquired.halt.message_offset;
  event.handler = acquired.halt.handler;
  event.fields = fields;
  emit(event, held_.stored.last());
}

void Partition::tell_fenced(bool by_operator) const {
  Event event{Step::kPartitionFenced};
  event.detail = "the stored owner epoch changed";
  event.by_operator = by_operator;
  emit(event, held_.stored.last());
}

void Partition::warn(Warning warning, std::string_view detail) const {
  emit(warning_event(warning, detail), held_.stored.last());
}

void Partition::emit(Event event, std::int64_t offset) const {
  event.topic = name().topic;
  event.partition = name().partition;
  event.offset = offset;
  event.lag =
      lag_to_tell(status_->position, status_->log_end, status_->halted, message_offset(event));
  std::string traceparent;
  if (is_of_message(event.step)) {
    traceparent = traceparent_of(offset);
    event.traceparent = traceparent;
  }
  context_.observers.emit(event);
}

}  // namespace pawl::engine
