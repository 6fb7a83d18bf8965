#include "engine/worker.hpp"

#include <fmt/format.h>

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
    partitions_[name] = std::move(partition);
  });
}

void Worker::revoke(std::vector<TopicPartition> partitions, bool lost, std::function<void()> done) {
  const bool posted = mailbox_.post([this, partitions = std::move(partitions), lost, done] {
    for (const auto& name : partitions)
      drop(name, !lost);
    done();
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
    // A revocation must not wait for the other partitions' turns.
    if (mailbox_.has_mail())
      break;
  }
  return worked;
}

bool Worker::turn(Partition& partition) {
  if (!partition.is_due(Clock::now()))
    return false;
  return partition.running() ? runner_.turn(partition, [this] { return mailbox_.has_mail(); })
                             : acquisition_.advance(partition);
}

void Worker::end() {
  while (!partitions_.empty())
    drop(TopicPartition(partitions_.begin()->first), true);
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

void Worker::drop(const TopicPartition& name, bool release_it) {
  const auto found = partitions_.find(name);
  if (found == partitions_.end())
    return;
  auto& partition = *found->second;
  partition.let_go();
  if (release_it)
    release(partition);
  partitions_.erase(found);
}

}  // namespace pawl::engine
