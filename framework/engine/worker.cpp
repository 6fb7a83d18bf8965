#include "engine/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace pawl::engine {

Worker::Worker(Context& context)
    : context_(context),
      session_(context),
      positions_(context),
      processor_(context.frame),
      consequences_(context, session_, processor_),
      probation_(context, session_, consequences_),
      acquisition_(context, session_, positions_, consequences_, probation_),
      runner_(context, session_, consequences_, probation_, processor_),
      side_by_side_(context, session_, consequences_, runner_, mailbox_,
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
    partition->tell(Step::kAssigned, -1);
    const auto name = partition->name();
    // It may come back before what was in hand has: Kafka does not wait for ever.
    drop(name, false);
    for (auto& leaving : leaving_)
      std::erase(leaving.partitions, name);
    partitions_[name] = std::move(partition);
  });
}

void Worker::revoke(std::vector<TopicPartition> partitions, bool lost, std::function<void()> done) {
  const bool posted = mailbox_.post([this, partitions = std::move(partitions), lost, done] {
    Leaving leaving{{}, done};
    for (const auto& name : partitions) {
      // Who lost them to another already waits for nothing.
      if (lost) {
        drop(name, false);
      } else if (!let_go(name)) {
        leaving.partitions.push_back(name);
      }
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
    const bool needs_session = !partitions_.empty() || session_.was_lost();
    if (!needs_session || !ensure_session()) {
      mailbox_.wait(needs_session ? session_.next_try() : Clock::now() + std::chrono::hours(1));
      continue;
    }
    const bool worked = work();
    if (ask_all_again())
      continue;
    if (!worked)
      mailbox_.wait(next_deadline());
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
  leave_presence();
  session_.close();
  // A revocation posted meanwhile must not wait for us.
  mailbox_.close();
  finished_ = true;
}

bool Worker::ensure_session() {
  const auto state = session_.ensure();
  ask_all_again();
  if (state == WorkerSession::State::kNew) {
    processor_.forget();
    positions_.forget();
  }
  return state != WorkerSession::State::kNone;
}

/// A session that ended takes all partitions along. False: none did.
bool Worker::ask_all_again() {
  const auto ended = session_.take_end();
  if (ended == WorkerSession::End::kNone)
    return false;
  for (auto& [name, partition] : partitions_) {
    // Who is about to ask keeps its pause.
    if (ended == WorkerSession::End::kRenewed && partition->phase() == Phase::kAcquiring)
      continue;
    const bool must_prove =
        ended == WorkerSession::End::kLost && partition->held().epoch.has_value();
    partition->acquire_again(must_prove);
  }
  return true;
}

/// The register has another epoch.
void Worker::fenced(Partition& partition) {
  partition.tell(Step::kFenced, partition.held().stored.last(), "the register has another epoch");
  processor_.forget();
  partition.acquire_again(true);
}

void Worker::poll_register() {
  if (Clock::now() < next_poll_)
    return;
  next_poll_ = Clock::now() + context_.options.postgres.poll_interval;
  try {
    const auto rows = context_.offsets.owned_by(*session_, context_.owner);
    session_.lose_if_read_only();
    if (!session_)
      return;
    context_.database_reachable.answered();
    for (auto& [name, partition] : partitions_) {
      if (!partition->held_here())
        continue;
      const auto& held = partition->held();
      const auto row = rows.find(name);
      if (row == rows.end() || row->second.epoch != *held.epoch) {
        fenced(*partition);
      } else if (row->second.stored < held.stored) {
        // Behind a pooler a database that lost commits may come back without the connection's
        // breaking.
        partition->warn(
            Warning::kRegisterWentBack,
            fmt::format("the register went back to offset {}: commits were lost, as by a failover; "
                        "their messages are processed again",
                        row->second.stored.last()));
        processor_.forget();
        partition->acquire_again(false);
      }
    }
  } catch (const std::exception&) {
    session_.notice_failure(Warning::kRegisterUnread,
                            "the register cannot be looked at, so operators' changes wait");
  }
}

void Worker::tell_presence() {
  try {
    context_.presence->tell(*session_);
  } catch (const std::exception&) {
    session_.notice_failure(
        Warning::kPresenceNotStored,
        "processes of this group that handle a topic in other ways are not noticed");
  }
}

void Worker::leave_presence() {
  if (!session_.alive())
    return;
  try {
    context_.presence->leave(*session_);
  } catch (const std::exception&) {
    session_.notice_failure(
        Warning::kPresenceNotStored,
        "the end of this process cannot be told; others find it out within 20 s");
  }
}

void Worker::make_checkpoint() {
  if (auto* const lost = checkpoint_.make(partitions_))
    fenced(*lost);
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
  // Not a clean hand-over while messages are on probation: the next owner goes on with that.
  if (partition.head().on_probation > 0)
    return;
  try {
    if (context_.offsets.release(*session_, partition.name(), *partition.held().epoch)) {
      checkpoint_.released(partition);
      partition.tell(Step::kReleased, partition.held().stored.last());
    }
  } catch (const std::exception&) {
    // The next acquire fences us all the same.
    session_.notice_failure(Warning::kHandOverNotStored, "the hand-over cannot be marked clean");
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
  auto& partition = *found->second;
  partition.let_go();
  if (session_)
    processor_.let_go_of_call(*session_, &name);
  if (release_it)
    release(partition);
  partitions_.erase(found);
}

}  // namespace pawl::engine
