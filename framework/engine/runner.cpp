#include "engine/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/halt_texts.hpp"
#include "engine/last_step.hpp"
#include "engine/stopwatch.hpp"
#include "message/traceparent.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// Messages of one partition before the worker looks at the next.
constexpr int kTurn = 32;
/// And messages before it looks whether somebody waits for it.
constexpr int kBetweenLooks = 8;
/// A seek is taken once the fetcher has started anew.
constexpr milliseconds kRestart{50};

}  // namespace

Runner::Runner(Context& context, WorkerSession& session, Consequences& consequences,
               Probation& probation, CrashLoop& crash_loop, MessageProcessor& processor)
    : context_(context),
      session_(session),
      consequences_(consequences),
      probation_(probation),
      crash_loop_(crash_loop),
      processor_(processor),
      pipeline_(context.frame, context.offsets, processor.scopes()),
      batches_(context.frame, processor.scopes()) {}

Runner::Turn Runner::turn(Partition& partition, const std::function<bool()>& called_away) {
  for (int i = 0; i < kTurn; ++i) {
    if (partition.inbox().empty() && !take(partition, AheadOfOffset::kMostTaken))
      return i > 0 ? Turn::kWorked : Turn::kIdle;
    if (partition.inbox().front().record.kind() == kafka::Record::Kind::kEndOfLog) {
      pass_end(partition);
    } else if (!halts_at(partition)) {
      probation_.consider_next(partition);
      // A suspect runs where nothing else does meanwhile.
      if (!partition.first_is_suspect() && is_call_next(partition))
        return Turn::kCall;
      const auto filled = fill(partition);
      if (!filled)
        return Turn::kWorked;
      // Each look at what waits runs the keys' code anew.
      const auto look_again = partition.pace().look_again();
      if (*filled == Filled::kPartly && look_again && Clock::now() < *look_again &&
          may_batch(partition))
        return i > 0 ? Turn::kWorked : Turn::kIdle;
      auto pass = probation_.ask_to_run(partition, true);
      if (!pass)
        return Turn::kWorked;
      const auto work = choose(partition, *filled);
      if (work.kind == Work::Kind::kWait)
        return i > 0 ? Turn::kWorked : Turn::kIdle;
      // As late as can be: to choose runs the keys' code.
      if (!session_.may_begin())
        return Turn::kWorked;
      if (work.kind != Work::Kind::kOne) {
        const auto failed = work.kind == Work::Kind::kBatch ? run_batch(partition, work)
                                                            : run_pipeline(partition, work);
        pass = {};
        if (failed)
          consequences_.follow(partition, *failed);
        return Turn::kWorked;
      }
      const bool suspect = partition.first_is_suspect();
      run_alone(partition, work, i + 1 < kTurn && !pipelines(partition), std::move(pass));
      // The worker's other partitions can only take their turn if they ask for it.
      if (suspect)
        return Turn::kWorked;
    }
    if (!session_ || !partition.running() || !partition.is_due(Clock::now()))
      return Turn::kWorked;
    // A claim that travelled ahead is in vain then.
    if (i % kBetweenLooks == kBetweenLooks - 1 && called_away())
      return Turn::kWorked;
  }
  return Turn::kWorked;
}

bool Runner::is_call_next(const Partition& partition) {
  if (!partition.ahead().calls() || partition.inbox().empty() ||
      !partition.inbox().front().is_message())
    return false;
  const auto* const binding = next_handler(partition);
  return binding != nullptr && binding->leased != nullptr;
}

/// Of the first of the inbox, a message. Null: none, or it cannot be found.
const handlers::Binding* Runner::next_handler(const Partition& partition) {
  const auto message = partition.view(partition.inbox().front());
  try {
    message::JsonView json(reader_, message);
    return context_.router.route(message, json);
  } catch (const std::exception&) {  // it is said when it is processed
    return nullptr;
  }
}

void Runner::turn_alone(Partition& partition) {
  if (partition.inbox().front().record.kind() == kafka::Record::Kind::kEndOfLog)
    return pass_end(partition);
  if (halts_at(partition))
    return;
  const auto* const handler = next_handler(partition);
  auto pass = probation_.ask_to_run(partition, handler == nullptr || handler->runs_code());
  if (pass && session_.may_begin())
    run_alone(partition, {Work::Kind::kOne, Clock::now(), 1}, false, std::move(pass));
}

bool Runner::take(Partition& partition, std::size_t most) {
  const auto taken = partition.take(most);
  if (taken.came)
    crash_loop_.arrived(partition);
  for (const auto& error : taken.errors)
    tell_stream_error(partition, error);
  return taken.came && partition.running();
}

void Runner::tell_stream_error(Partition& partition, const kafka::Record& error) {
  if (error.error_kind() == kafka::ErrorKind::kPositionRefused) {
    // librdkafka has stopped fetching the partition; seeking validates the leader epoch.
    context_.requests.restart_fetch(partition.name());
    partition.position_refused(error.error_text(), kRestart);
    return;
  }
  // A topic may be described without being read: then only fetching says so.
  if (error.error_kind() == kafka::ErrorKind::kTopicRefused) {
    partition.tell(Step::kTopicAccessDenied, partition.inbox().taken().last(),
                   fmt::format("{}. Retrying. Grant the user of this process READ on the topic",
                               error.error_text()));
  } else {
    partition.warn(Warning::kKafkaErrorReported, error.error_text());
  }
  context_.requests.doubt_topics();
}

/// What comes next cannot be processed, whatever is configured.
bool Runner::halts_at(Partition& partition) {
  const auto& item = partition.inbox().front();
  const auto& held = partition.held();
  if (!item.is_message()) {
    consequences_.halt(partition, batch_unreadable_halt(item));
  } else if (goes_back(held.leader_epoch, item.leader_epoch)) {
    consequences_.halt(partition, leader_epoch_older_halt(item, held.stored, *held.leader_epoch));
  } else {
    return false;
  }
  return true;
}

/// The log ends here for now. It is no message: what goes wrong with it is nobody's attempt and has
/// no policy.
void Runner::pass_end(Partition& partition) {
  const auto& item = partition.inbox().front();
  const auto end = item.record.offset();
  // Control records or removed ones stand between the last message and the end; without this step
  // they would look like lost messages once retention removes them.
  const bool hole = end > item.from.next();
  if (hole) {
    try {
      context_.offsets.advance_alone(*session_, partition.name(), partition.step_over(item));
    } catch (...) {
      Attempt attempt{Undertaking::kEndOfLog, session_.why_failed()};
      attempt.offset = end;
      consequences_.follow(partition, attempt);
      return;
    }
  }
  partition.passed_end(hole);
  probation_.consider_next(partition);
}

/// Whatever is known of the head message alone keeps it out of a batch.
bool Runner::may_batch(const Partition& partition) const {
  return context_.router.plan_of(partition.name().topic).batches() &&
         partition.pace().batch().size() > 1 && partition.first_is_plain();
}

bool Runner::pipelines(const Partition& partition) const {
  return !session_->pooled() && context_.router.plan_of(partition.name().topic).pipelines();
}

bool Runner::may_pipeline(const Partition& partition) const {
  return partition.pace().pipeline().size() > 1 && partition.first_is_plain() &&
         partition.inbox().size() > 1 && pipelines(partition);
}

/// Takes from the stream what a batch may hold, if it is there. Ends of the log do not count: where
/// little comes there is one behind each message. Nullopt: it is not running any more.
std::optional<Runner::Filled> Runner::fill(Partition& partition) {
  if (!may_batch(partition))
    return Filled::kPartly;
  const auto most = partition.pace().batch().size();
  const auto& inbox = partition.inbox();
  std::size_t messages = 0;
  std::size_t bytes = 0;
  for (std::size_t counted = 0;;) {
    for (; counted < inbox.size(); ++counted) {
      messages += inbox[counted].is_message() ? 1 : 0;
      bytes += inbox[counted].record.bytes();
    }
    if (messages >= most || bytes >= context_.options.batch.max_bytes)
      return Filled::kFull;
    if (!take(partition, std::min(AheadOfOffset::kMostTaken, most - messages)))
      return partition.running() ? std::optional(Filled::kPartly) : std::nullopt;
  }
}

Runner::Work Runner::choose(Partition& partition, Filled filled) {
  Work work{Work::Kind::kOne, Clock::now(), 1};
  if (may_batch(partition)) {
    {
      const auto watched = session_.watch(partition.name(), partition.held().previous_owner,
                                          context_.longest_handler);
      work.items = collect_batch(partition, work.begun + context_.longest_batch);
    }
    // A deadline, not a sleep: the worker goes on with other partitions, and looks again when there
    // is more.
    if (!is_complete(partition, filled, work.items) &&
        partition.pace().lingers(Clock::now(), context_.options.batch.linger)) {
      work.kind = Work::Kind::kWait;
    } else if (batches_.size() > 1) {
      work.kind = Work::Kind::kBatch;
    }
  }
  if (work.kind == Work::Kind::kOne && may_pipeline(partition)) {
    // Two messages may take that long, and more than two travel only where they are fast.
    const auto watched = session_.watch(partition.name(), partition.held().previous_owner,
                                        context_.longest_handler * 2);
    collect_pipeline(partition, work.begun + PipelinePace::kLongest);
    if (pipeline_.size() > 1)
      work.kind = Work::Kind::kPipeline;
  }
  return work;
}

/// Whether no more messages can come into the batch that was collected.
bool Runner::is_complete(const Partition& partition, Filled filled, std::size_t items) const {
  // What stands behind the batch in the inbox does not go into it, nor what comes behind that.
  return filled == Filled::kFull || batches_.size() == 0 ||
         items < partition.inbox().up_to_last_message();
}

/// Returns the items of the inbox that the batch covers: its messages, and ends of the log between
/// them that are no ends any more. Two messages at least where two can go together, and no more
/// once it has taken too long.
std::size_t Runner::collect_batch(const Partition& partition, Clock::time_point until) {
  batches_.clear();
  const auto& inbox = partition.inbox();
  const auto& pace = partition.pace().batch();
  auto previous = inbox.front().from;
  auto epoch = partition.held().leader_epoch;
  std::size_t bytes = 0;
  std::size_t items = 0;
  for (std::size_t i = 0; i < inbox.size() && batches_.size() < pace.size(); ++i) {
    const auto& item = inbox[i];
    if (batches_.size() >= 2 && Clock::now() > until)
      break;
    // The register compares with the first one's predecessor only.
    if (item.from != previous)
      break;
    if (!item.is_message()) {
      if (batches_.size() == 0 || item.record.kind() == kafka::Record::Kind::kError)
        break;
      previous = std::max(previous, ledger::Position::before(item.record.offset()));
      continue;
    }
    bytes += item.record.bytes();
    const bool fits = batches_.size() == 0 || bytes <= context_.options.batch.max_bytes;
    if (!fits || goes_back(epoch, item.leader_epoch) || pace.runs_alone(item.record.offset()) ||
        !batches_.add(partition.view(item), item.taken_at))
      break;
    epoch = item.leader_epoch;
    previous = ledger::Position::behind(item.record.offset());
    items = i + 1;
  }
  return items;
}

/// Two messages at least where two can go together, and no more once it has taken too long.
void Runner::collect_pipeline(const Partition& partition, Clock::time_point until) {
  pipeline_.clear();
  auto leader_epoch = partition.held().leader_epoch;
  for (const auto& item : partition.inbox()) {
    if (pipeline_.size() >= partition.pace().pipeline().size() || !item.is_message())
      return;
    if (pipeline_.size() >= PipelinePace::kShortest && Clock::now() > until)
      return;
    if (goes_back(leader_epoch, item.leader_epoch))
      return;
    leader_epoch = item.leader_epoch;
    const auto message = partition.view(item);
    if (!pipeline_.add(*session_, message, partition.name(), partition.held().source,
                       partition.step_over(item)))
      return;
    if (context_.observers.every_step())
      partition.tell(Step::kMessageFetched, message.offset());
  }
}

/// One message, of which something may be known from its attempts before. With `pass`, which a
/// suspect needs for as long as its mark stands.
void Runner::run_alone(Partition& partition, const Work& work, bool more_follows,
                       RunGate::Pass pass) {
  const bool suspect = partition.first_is_suspect();
  if (suspect && !probation_.mark(partition))
    return;
  const auto offset = partition.inbox().front().record.offset();
  if (!partition.head().broke_connection || consequences_.count_broken_connection(partition)) {
    const auto failed = run_one(partition, work, more_follows && !suspect);
    if (!suspect)
      pass = {};
    if (failed)
      consequences_.follow(partition, *failed);
  }
  if (suspect)
    probation_.end(partition, partition.held().stored.last() >= offset);
}

std::optional<Attempt> Runner::run_one(Partition& partition, const Work& work, bool more_follows) {
  const auto& item = partition.inbox().front();
  Subject subject;
  try {
    const auto message = partition.view(item);
    const AdvanceStep advance(context_.offsets, partition.name(), partition.step_over(item),
                              partition.ahead().held()->fence());
    auto outcome = ledger::Outcome::kApplied;
    {
      const auto watched = session_.watch(partition.name(), partition.held().previous_owner,
                                          context_.longest_handler);
      MessageStep step{message, partition.held().source, item.leader_epoch, advance};
      step.taken_at = item.taken_at;
      outcome = processor_.process(*session_, step, subject,
                                   more_follows ? upcoming(partition) : std::nullopt);
    }
    if (outcome == ledger::Outcome::kApplied || outcome == ledger::Outcome::kUnchecked)
      context_.applied(subject.binding->label);
    partition.moved_past(1, Clock::now() - work.begun);
    tell_outbox();
    return std::nullopt;
  } catch (...) {
    Attempt attempt{Undertaking::kMessage, session_.why_failed()};
    attempt.offset = item.record.offset();
    attempt.subject = std::move(subject);
    return attempt;
  }
}

/// The message behind the head, if its claim may travel ahead.
std::optional<Upcoming> Runner::upcoming(const Partition& partition) const {
  const auto& inbox = partition.inbox();
  // Through a pooler nothing travels ahead, so looking at the next one would be done twice.
  if (session_->pooled() || inbox.size() < 2 || !inbox[1].is_message())
    return std::nullopt;
  return Upcoming{partition.view(inbox[1]), partition.held().source};
}

std::optional<Attempt> Runner::run_pipeline(Partition& partition, const Work& work) {
  const auto head = partition.inbox().front().record.offset();
  try {
    std::function<void()> sent;
    if (context_.observers.every_step())
      sent = [&] {
        for (std::size_t i = 0; i < pipeline_.size(); ++i)
          partition.tell(Step::kCommitSent, pipeline_.message(i).offset());
      };
    MessagePipeline::Landed landed;
    Stopwatch watch(context_.observers.times());
    {
      const auto watched = session_.watch(partition.name(), partition.held().previous_owner,
                                          context_.longest_handler * 2);
      landed = pipeline_.run(*session_, sent);
    }
    watch.stop();
    const auto took = Clock::now() - work.begun;
    Timing timing;
    timing.grouping = Grouping::kPipeline;
    const auto flight = watch.read();
    for (std::size_t i = 0; i < landed.stored; ++i) {
      if (flight) {
        timing.since_fetched = watch.since(partition.inbox().front().taken_at);
        const bool last = i + 1 == landed.stored;
        timing.commit = last ? flight : std::nullopt;
        timing.messages = last ? landed.stored : 0;
      }
      tell_landed(i, flight ? &timing : nullptr);
      partition.moved_past();
    }
    tell_outbox();
    // The next one says itself what is the matter with it.
    partition.pace().pipeline().landed(landed.stored, landed.complete, took);
    return std::nullopt;
  } catch (...) {
    Attempt attempt{Undertaking::kPipeline, session_.why_failed()};
    attempt.offset = head;
    attempt.messages = pipeline_.size();
    // The statements of all of them were on their way.
    attempt.subject.handler_begun = true;
    return attempt;
  }
}

/// What was committed may be in the outbox; what failed is not, and then it is looked at in vain.
void Runner::tell_outbox() {
  if (session_ && session_->take_published())
    context_.frame.outbox_written->ring();
}

void Runner::tell_landed(std::size_t index, const Timing* timing) const {
  const bool applied = pipeline_.outcome(index) == ledger::Outcome::kApplied;
  if (applied)
    context_.applied(pipeline_.handler(index));
  auto event = event_of(applied ? Step::kMessageCommitted : Step::kMessageDeduplicated,
                        pipeline_.message(index));
  event.key = pipeline_.key(index);
  event.handler = pipeline_.handler(index);
  event.traceparent = message::traceparent_of(pipeline_.message(index));
  event.timing = timing;
  context_.observers.emit(event);
}

ledger::Advance Runner::step_over_batch(const Partition& partition, std::size_t items) const {
  auto advance = partition.step_over(partition.inbox()[items - 1]);
  advance.from = partition.inbox().front().from;
  for (const auto& message : batches_.messages()) {
    if (const auto time = message.timestamp())
      advance.timestamp = time;
  }
  return advance;
}

std::optional<Attempt> Runner::run_batch(Partition& partition, const Work& work) {
  Subject subject;
  try {
    std::vector<std::int64_t> conflicts;
    {
      const auto watched = session_.watch(partition.name(), partition.held().previous_owner,
                                          context_.longest_handler);
      conflicts = batches_.process(*session_,
                                   {context_.offsets, partition.name(), partition.held().source,
                                    step_over_batch(partition, work.items)},
                                   subject);
    }
    if (!conflicts.empty()) {
      partition.pace().batch().run_alone_at(conflicts);
      return std::nullopt;
    }
    if (subject.handler_begun)
      context_.applied(subject.binding->label);
    partition.moved_past(work.items, Clock::now() - work.begun);
    tell_outbox();
    return std::nullopt;
  } catch (...) {
    // It is told of the head, of which the handler may not have seen anything.
    const auto& head = partition.inbox().front();
    Attempt attempt{Undertaking::kBatch, session_.why_failed()};
    attempt.failure.text =
        fmt::format("in a batch of {}: {}", batches_.size(), attempt.failure.text);
    attempt.offset = head.record.offset();
    attempt.messages = batches_.size();
    attempt.subject = identify(context_.router, partition.view(head));
    attempt.subject.handler_begun = subject.handler_begun;
    return attempt;
  }
}

}  // namespace pawl::engine
