#include "engine/monitor.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "pawl/consumer.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{250};
constexpr milliseconds kLogEndInterval{2000};
/// A call that waits for longer may be blocked by a stopped process.
constexpr milliseconds kStalledLook{1000};
/// Beyond the handler's timeout, for statements of ours and a slow answer.
constexpr milliseconds kCallGrace{10000};

// Ends a session only if all of it holds: it is a suspect's, it blocks us, and
// its process has left it idle in a transaction for longer than the bound; in the middle of a
// flight "idle" is an active session that waits to read from its client. A session that waits for a
// synchronous standby is committing: ending it would make an unreplicated commit visible.
const postgres::Statement kEndStalledOwner{
    "",
    "SELECT pg_terminate_backend(a.pid)"
    "  FROM pg_stat_activity a"
    " WHERE a.pid = $1::integer"
    "   AND a.backend_start = $2::timestamptz"
    "   AND a.pid = ANY (pg_blocking_pids($3::integer))"
    "   AND (a.state IN ('idle in transaction', 'idle in transaction (aborted)')"
    "        OR (a.state = 'active' AND a.wait_event = 'ClientRead'))"
    "   AND a.state_change < clock_timestamp() - make_interval(secs => $4::bigint / 1000.0)"
    "   AND a.wait_event IS DISTINCT FROM 'SyncRep'"};

}  // namespace

Monitor::Monitor(Context& context, const std::vector<std::unique_ptr<Worker>>& workers)
    : context_(context), workers_(workers), thread_([this] { run(); }) {}

Monitor::~Monitor() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Monitor::topics_in_doubt() {
  {
    const std::scoped_lock lock(mutex_);
    in_doubt_ = true;
  }
  changed_.notify_one();
}

void Monitor::run() {
  Clock::time_point next_topics{};
  Clock::time_point next_ends{};
  while (true) {
    bool in_doubt = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kTick, [this] { return stopping_ || in_doubt_; });
      if (stopping_)
        return;
      in_doubt = std::exchange(in_doubt_, false);
    }
    const auto now = Clock::now();
    try {
      if (in_doubt || now >= next_topics) {
        next_topics = now + context_.options.kafka.topic_check_interval;
        check_topics();
      }
      if (now >= next_ends) {
        next_ends = now + kLogEndInterval;
        ask_log_ends();
      }
    } catch (const kafka::KafkaError& error) {
      // The next round asks again.
      context_.kafka_reachable.failed(error.what());
    }
    check_calls();
  }
}

/// Compares with the topics under which the partitions were acquired: a first look of our own may
/// come too late.
void Monitor::check_topics() {
  const auto all = context_.board.all();
  std::vector<PartitionStatus::TopicLook> looks;
  looks.reserve(all.size());
  for (const auto& status : all)
    looks.push_back(status->before_look());
  context_.directory.refresh();
  context_.kafka_reachable.answered();
  for (const auto& topic : context_.router.topics())
    tell_refusal(topic);
  std::set<std::string> recreated;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& topic = all[i]->partition.topic;
    if (refused_.contains(topic))
      continue;
    const auto found = context_.directory.find(topic, milliseconds(60000));
    if (looks[i].topic_id.empty() || !found || found->id.empty() || all[i]->halted)
      continue;
    if (found->id == looks[i].topic_id) {
      all[i]->named(looks[i]);
    } else {
      recreated.insert(topic);
    }
  }
  for (const auto& topic : recreated) {
    for (const auto& worker : workers_)
      worker->recheck(topic);
  }
}

/// Said when Kafka begins to refuse the topic, and when that ends.
void Monitor::tell_refusal(const std::string& topic) {
  const auto refusal = context_.directory.refusal(topic);
  if (refusal.has_value() == refused_.contains(topic))
    return;
  Event event{refusal ? Step::kTopicRefused : Step::kTopicServed};
  event.topic = topic;
  const auto detail =
      refusal ? topic_refused_text(topic, *refusal) : std::string("Kafka serves the topic again");
  event.detail = detail;
  context_.observers.emit(event);
  if (refusal) {
    refused_.insert(topic);
  } else {
    refused_.erase(topic);
  }
}

void Monitor::ask_log_ends() {
  std::vector<TopicPartition> partitions;
  const auto all = context_.board.all();
  for (const auto& status : all)
    partitions.push_back(status->partition);
  const auto ranges = context_.kafka.log_ranges(partitions, kafka::kAnswerTimeout);
  // Asked about nothing, or without a leader for any of it, nobody has answered.
  if (!ranges.empty())
    context_.kafka_reachable.answered();
  for (const auto& status : all) {
    const auto found = ranges.find(status->partition);
    if (found == ranges.end())
      continue;
    const auto before = status->log_end.exchange(found->second.end);
    ++status->log_end_answers;
    if (before == found->second.end)
      continue;
    Event event{Step::kLogEnd};
    event.topic = status->partition.topic;
    event.partition = status->partition.partition;
    event.offset = found->second.end;
    context_.observers.emit(event);
  }
}

void Monitor::warn(const std::string& text, const TopicPartition& partition) const {
  Event event{Step::kWarning};
  event.topic = partition.topic;
  event.partition = partition.partition;
  event.detail = text;
  context_.observers.emit(event);
}

void Monitor::check_calls() {
  for (const auto& worker : workers_) {
    const auto call = worker->current_call();
    if (!call.active)
      continue;
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - call.since);
    const auto patience = std::min(kStalledLook, context_.options.postgres.lock_timeout / 2);
    if (waited > patience && call.own)
      end_stalled_owner(call);
    const auto limit = call.limit + context_.options.postgres.lock_timeout + kCallGrace;
    if (waited > 2 * limit) {
      warn(fmt::format(
               "a handler has not returned for {} s and cannot be interrupted; ending the process, "
               "the message runs again elsewhere",
               waited.count() / 1000),
           call.partition);
      std::_Exit(static_cast<int>(RunResult::kShutdownTimeout));
    }
    if (waited <= limit)
      continue;
    if (std::exchange(given_up_[worker.get()], call.since) != call.since) {
      warn(fmt::format("PostgreSQL has not answered for {} s, or code has not returned; the "
                       "connection is given up and another one made",
                       waited.count() / 1000),
           call.partition);
    }
    worker->interrupt();
  }
}

/// Those whose open transactions may hold what the call waits for.
std::vector<postgres::Backend> Monitor::suspects(const WorkerCall& call) {
  auto suspects = context_.previous_owners.abandoned();
  // While an acquire waits for the row, the register still names the owner that locks it; once
  // the row is ours, only we remember whom we took it from.
  auto owner = context_.offsets.other_holder(*session_, call.partition, context_.owner);
  if (!owner)
    owner = call.previous_owner;
  if (owner)
    suspects.push_back(*std::move(owner));
  return suspects;
}

void Monitor::end_stalled_owner(const WorkerCall& call) {
  try {
    if (!session_ || !session_->alive()) {
      auto settings = session_settings(context_.options);
      settings.unwanted = &stopping_;
      session_ = std::make_unique<postgres::Session>(settings);
    }
    for (const auto& suspect : suspects(call)) {
      postgres::Parameters parameters;
      parameters.add_integer(suspect.pid);
      parameters.add_text(suspect.backend_start);
      parameters.add_integer(call.own->pid);
      parameters.add_integer(context_.options.postgres.stalled_owner_after.count());
      const auto ended = session_->exec(kEndStalledOwner, parameters);
      if (PQntuples(ended.get()) > 0) {
        warn(fmt::format("ended PostgreSQL session {} of an earlier owner of the partition, or of "
                         "this process itself: it was left idle in a transaction whose locks we "
                         "wait for",
                         suspect.pid),
             call.partition);
      }
    }
  } catch (const postgres::Error& error) {
    // idle_in_transaction_session_timeout ends it later.
    if (error.failure() != postgres::FailureClass::kConnection) {
      warn(fmt::format("the session that may hold the partition's locks cannot be ended: {}",
                       error.what()),
           call.partition);
    }
    session_.reset();
  }
}

}  // namespace pawl::engine
