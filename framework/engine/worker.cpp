#include "engine/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/leased_call.hpp"

namespace pawl::engine {
namespace {

/// How long a process that stops waits for PostgreSQL, to remove its marks.
constexpr std::chrono::seconds kMarksAtEnd{5};

/// A database may lose commits, as by a failover, and keep our epoch: behind a pooler without the
/// connection's breaking, and where a session was replaced meanwhile. What was lost of messages
/// that finished out of order their successors find out. Empty: nothing is lost.
std::string lost_by_register(const Partition& partition, const ledger::Watched& row) {
  if (row.stored < partition.held().stored) {
    return fmt::format(
        "the next offset went back from {} to {}, so PostgreSQL has lost commits, for example in a "
        "failover. pawl processes their messages again",
        partition.held().stored.next(), row.stored.next());
  }
  if (partition.phase() == Phase::kStopped && row.state == ledger::PartitionState::kRunning) {
    return "the stored halt of the partition is gone, so PostgreSQL has lost commits, for example "
           "in a failover. pawl processes the halted message again";
  }
  return {};
}

}  // namespace

Worker::Worker(Context& context, bool announces)
    : context_(context),
      announces_(announces),
      session_(context),
      positions_(context),
      processor_(context.frame),
      consequences_(context, session_, processor_),
      marks_(context, session_),
      probation_(context, session_, marks_, consequences_, processor_),
      crash_loop_(context, session_, marks_, consequences_),
      acquisition_(context, session_, positions_, consequences_, probation_, crash_loop_),
      runner_(context, session_, consequences_, probation_, crash_loop_, processor_),
      side_by_side_(context, session_, consequences_, probation_, runner_, mailbox_,
                    [this](const TopicPartition& name) {
                      const auto found = partitions_.find(name);
                      return found == partitions_.end() ? nullptr : found->second.get();
                    }),
      checkpoint_(context, session_),
      thread_([this] { run(); }) {}

Worker::~Worker() {
  if (!finished()) {
    stop();
    interrupt();
  }
  join();
}

void Worker::join() {
  if (thread_.joinable())
    thread_.join();
}

void Worker::assign(std::shared_ptr<kafka::PartitionStream> stream) {
  mailbox_.post([this, stream = std::move(stream)] {
    // A stream that outlived the partitions would keep Kafka's client from closing.
    if (stopping_)
      return;
    auto partition = std::make_unique<Partition>(context_, stream);
    partition->tell(Step::kAssignmentReceived, -1);
    const auto name = partition->name();
    // It may come back before what was in hand has: Kafka does not wait for ever.
    drop(name, false);
    for (auto& leaving : leaving_)
      std::erase(leaving.partitions, name);
    partitions_[name] = std::move(partition);
  });
}

void Worker::revoke(std::vector<TopicPartition> partitions, std::function<void()> done) {
  const bool posted = mailbox_.post([this, partitions = std::move(partitions), done] {
    Leaving leaving{{}, done};
    for (const auto& name : partitions) {
      if (!let_go(name))
        leaving.partitions.push_back(name);
    }
    leaving_.push_back(std::move(leaving));
    finish_leaving();
  });
  if (!posted)
    done();
}

void Worker::stop() {
  session_.stop();
  mailbox_.post([this] { stopping_ = true; });
}

void Worker::recheck(const std::vector<TopicPartition>& partitions) {
  mailbox_.post([this, partitions] {
    for (const auto& name : partitions) {
      const auto found = partitions_.find(name);
      if (found != partitions_.end())
        found->second->doubt_topic();
    }
  });
}

void Worker::lock_released(const TopicPartition& partition) {
  mailbox_.post_note([this, partition] {
    const auto found = partitions_.find(partition);
    if (found != partitions_.end())
      found->second->lock_released();
  });
}

void Worker::reposition(const TopicPartition& partition) {
  mailbox_.post([this, partition] {
    const auto found = partitions_.find(partition);
    if (found != partitions_.end())
      found->second->seek_again();
  });
}

void Worker::run() {
  while (true) {
    mailbox_.serve();
    finish_leaving();
    if (stopping_)
      break;
    // A lost connection is made again even when nothing needs it any more: else nobody in this
    // process might find out that PostgreSQL is back.
    const bool needs_session =
        announces_ || !partitions_.empty() || session_.was_lost() || processor_.has_call();
    if (!needs_session || !ensure_session()) {
      mailbox_.wait(needs_session ? session_.next_try() : Clock::now() + std::chrono::hours(1));
      continue;
    }
    let_go_of_stray_call();
    const bool worked = work();
    if (follow_end_of_session()) {
      go_on_with_renewed();
    } else if (!worked) {
      mailbox_.wait(next_deadline());
    }
  }
  end();
}

/// One round. False: there was nothing to do. The session may be lost on the way.
bool Worker::work() {
  poll_register();
  if (session_)
    tell_presence();
  if (session_)
    make_checkpoint();
  if (session_)
    acquisition_.prepare(partitions_);
  bool worked = false;
  for (auto& [name, partition] : partitions_) {
    if (!session_)
      break;
    worked = turn(*partition) || worked;
    // A claim that travelled ahead in vain would keep its locks.
    if (session_)
      session_->settle();
    // What came back from the hands makes room for more.
    worked = mailbox_.serve_notes() || worked;
    // A revocation must not wait for the other partitions' turns.
    if (mailbox_.has_mail())
      break;
  }
  return worked;
}

bool Worker::turn(Partition& partition) {
  crash_loop_.watch(partition);
  if (partition.ahead().winding_up() || !partition.is_due(Clock::now()))
    return false;
  if (!partition.running()) {
    const auto before = partition.held().epoch;
    const bool worked = acquisition_.advance(partition);
    // What was read of the database may be of before it lost commits.
    if (partition.held().epoch != before)
      processor_.forget();
    return worked;
  }
  const auto called_away = [this] { return mailbox_.has_mail(); };
  if (!partition.ahead().is_used()) {
    const auto turn = runner_.turn(partition, called_away);
    if (turn != Runner::Turn::kCall)
      return turn == Runner::Turn::kWorked;
  }
  return side_by_side_.turn(partition, called_away);
}

void Worker::end() {
  while (!partitions_.empty()) {
    std::vector<TopicPartition> names;
    for (const auto& [name, partition] : partitions_)
      names.push_back(name);
    bool all = true;
    for (const auto& name : names)
      all = let_go(name) && all;
    if (!all) {
      mailbox_.wait(Clock::now() + std::chrono::hours(1));
      mailbox_.serve();
      finish_leaving();
    }
  }
  finish_leaving();
  remove_marks();
  leave_presence();
  session_.close();
  // A revocation posted meanwhile must not wait for us.
  mailbox_.close();
  finished_ = true;
}

/// A mark that stays counts as a crash once this process is gone, although it ends in order.
void Worker::remove_marks() {
  const auto until = Clock::now() + kMarksAtEnd;
  while (marks_.any_left() && !marks_.remove_left_at_end()) {
    if (Clock::now() >= until) {
      context_.observers.emit(warning_event(
          Warning::kFailureNotStored,
          "cannot remove the mark of a message on probation, because PostgreSQL does not respond. "
          "The next process counts it as one crash"));
      return;
    }
    mailbox_.wait(Clock::now() + context_.options.postgres.retry_initial);
    mailbox_.serve();
    finish_leaving();
  }
}

bool Worker::ensure_session() {
  const auto state = session_.ensure();
  follow_end_of_session();
  // Whoever answers in the end may have lost more than a comparison finds.
  if (state == WorkerSession::State::kNone && must_compare_)
    ask_all_again();
  if (state == WorkerSession::State::kNew) {
    processor_.forget();
    positions_.forget();
    if (marks_.any_left())
      marks_.remove_left();
  }
  // The session may have been lost while marks were removed.
  return state != WorkerSession::State::kNone && session_;
}

/// False: none has ended.
bool Worker::follow_end_of_session() {
  switch (session_.take_end()) {
    case WorkerSession::End::kNone:
      return false;
    case WorkerSession::End::kRenewed:
      must_compare_ = true;
      return true;
    case WorkerSession::End::kLost:
      ask_all_again();
      return true;
  }
  return false;
}

/// A session that was lost takes all partitions along.
void Worker::ask_all_again() {
  must_compare_ = false;
  for (auto& [name, partition] : partitions_) {
    // Without a session the turn of a partition that is fetched alone would not end, and all others
    // would wait.
    crash_loop_.leave(*partition, false);
    partition->acquire_again(partition->held().epoch.has_value());
  }
}

/// A call that this thread made itself, and whose outcome is not stored yet, keeps its key from
/// everybody for minutes (LeaseKeeper::ended). That is for the next try of its message here. Where
/// another process has the partition by now, or another thread runs the message, they wait for the
/// key: the partition may have left while there was no session to store anything.
void Worker::let_go_of_stray_call() {
  const auto* const call = processor_.call();
  if (call == nullptr)
    return;
  const auto found = partitions_.find(call->partition());
  if (found == partitions_.end() || !found->second->runs_alone_next(call->subject().offset))
    processor_.let_go_of_call(*session_);
}

/// Before mail is served: to give a partition back, or the process' presence, takes a session.
void Worker::go_on_with_renewed() {
  if (!must_compare_ || !ensure_session())
    return;
  poll_register();
  follow_end_of_session();
}

/// The register has another epoch.
void Worker::fenced(Partition& partition, bool by_operator) {
  partition.tell_fenced(by_operator);
  processor_.forget();
  partition.acquire_again(true);
}

void Worker::poll_register() {
  if (!must_compare_ && Clock::now() < next_poll_)
    return;
  next_poll_ = Clock::now() + context_.options.postgres.poll_interval;
  try {
    // First: whoever acquires behind the comparison is to learn of this session.
    const auto named = must_compare_ ? name_session() : std::set<TopicPartition>{};
    const auto rows = context_.offsets.owned_by(*session_, context_.owner);
    session_.lose_if_read_only();
    if (!session_)
      return;
    context_.database_reachable.answered();
    for (auto& [name, partition] : partitions_) {
      if (!partition->held_here())
        continue;
      compare(*partition, rows);
      // Its row is locked, as while somebody acquires it: whose it is Kafka and an acquire tell.
      if (must_compare_ && partition->held_here() && !named.contains(name))
        partition->acquire_again(true);
    }
    must_compare_ = false;
  } catch (const std::exception&) {
    if (must_compare_) {
      session_.lose(fmt::format("cannot compare the partitions of this process with PostgreSQL: {}",
                                session_.why_failed().text));
    } else {
      session_.notice_failure(Warning::kOffsetsUnreadable, "cannot read changes by operators");
    }
  }
}

/// Goes on with the partition if the register has what this process saw in it; else it is acquired
/// again.
void Worker::compare(Partition& partition, const std::map<TopicPartition, ledger::Watched>& rows) {
  const auto row = rows.find(partition.name());
  if (row == rows.end())
    return fenced(partition, false);
  // Only a command raises the epoch and leaves the owner's name.
  if (row->second.epoch != *partition.held().epoch)
    return fenced(partition, true);
  const auto lost = lost_by_register(partition, row->second);
  if (lost.empty())
    return;
  partition.warn(Warning::kOffsetsWentBack, lost);
  processor_.forget();
  partition.acquire_again(false);
}

/// In the rows of what is held.
std::set<TopicPartition> Worker::name_session() {
  std::map<TopicPartition, ledger::OwnerEpoch> held;
  for (const auto& [name, partition] : partitions_) {
    if (partition->held_here())
      held.emplace(name, *partition->held().epoch);
  }
  return context_.offsets.name_session(*session_, held);
}

void Worker::tell_presence() {
  try {
    if (context_.presence->tell(*session_)) {
      context_.passes.heartbeat();
      crash_loop_.note_begun();
    }
  } catch (const std::exception&) {
    session_.notice_failure(Warning::kProcessNotRegistered,
                            "cannot compare this process with others of the group");
  }
}

void Worker::leave_presence() {
  if (!session_.alive())
    return;
  try {
    context_.presence->leave(*session_);
  } catch (const std::exception&) {
    session_.notice_failure(Warning::kProcessNotRegistered,
                            "cannot store that this process stops. Others detect it within 20 s");
  }
}

void Worker::make_checkpoint() {
  if (auto* const lost = checkpoint_.make(partitions_))
    fenced(*lost, false);
}

Worker::Clock::time_point Worker::next_deadline() const {
  auto deadline = next_poll_;
  deadline = std::min(deadline, checkpoint_.due().value_or(deadline));
  for (const auto& [name, partition] : partitions_)
    deadline = std::min(deadline, partition->due().value_or(deadline));
  return deadline;
}

void Worker::release(Partition& partition) {
  if (!partition.held().epoch || !session_.alive())
    return;
  try {
    if (context_.offsets.release(*session_, partition.name(), *partition.held().epoch,
                                 partition.suspects().is_going_on())) {
      checkpoint_.released(partition);
      partition.tell(Step::kPartitionReleased, partition.held().stored.last());
    }
  } catch (const std::exception&) {
    // The next acquire fences us all the same.
    session_.notice_failure(Warning::kReleaseNotStored,
                            "cannot store that this process released the partition");
  }
}

/// False: messages of it are in the hands of others; what becomes of them comes by mail.
bool Worker::let_go(const TopicPartition& name) {
  const auto found = partitions_.find(name);
  if (found == partitions_.end())
    return true;
  if (!side_by_side_.wind_up(*found->second))
    return false;
  drop(name, true);
  return true;
}

void Worker::finish_leaving() {
  for (auto& leaving : leaving_)
    std::erase_if(leaving.partitions, [this](const auto& name) { return let_go(name); });
  const auto first =
      std::stable_partition(leaving_.begin(), leaving_.end(),
                            [](const auto& leaving) { return !leaving.partitions.empty(); });
  const std::vector<Leaving> gone(std::make_move_iterator(first),
                                  std::make_move_iterator(leaving_.end()));
  leaving_.erase(first, leaving_.end());
  for (const auto& leaving : gone)
    leaving.done();
}

void Worker::drop(const TopicPartition& name, bool release_it) {
  const auto found = partitions_.find(name);
  if (found == partitions_.end())
    return;
  const auto gone = partitions_.extract(found);
  auto& partition = *gone.mapped();
  partition.let_go();
  // Without a session its call is let go of by the next one.
  if (session_)
    let_go_of_stray_call();
  crash_loop_.leave(partition, release_it);
  if (release_it)
    release(partition);
}

}  // namespace pawl::engine
