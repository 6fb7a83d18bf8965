#include "engine/supervisor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "pawl/errors.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{100};
/// A group that nobody left behind assigns its partitions sooner.
constexpr milliseconds kGroupPatience{5000};
/// For what Kafka has not confirmed yet of the dead letters in hand; the next process sends it
/// again.
constexpr milliseconds kRelayEnd{2000};

std::string make_owner() {
  char host[256] = "unknown-host";
  ::gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}:{}:{:08x}", host, ::getpid(), random());
}

std::vector<std::shared_ptr<Observer>> with(std::vector<std::shared_ptr<Observer>> observers,
                                            const std::shared_ptr<Observer>& another) {
  if (another)
    observers.push_back(another);
  return observers;
}

/// Ends the process when stopping takes longer than promised, whatever it hangs in: everything that
/// is not committed runs again elsewhere.
class ShutdownWatch {
 public:
  ShutdownWatch(milliseconds timeout, const Observers& observers)
      : thread_([this, timeout, &observers] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, timeout, [this] { return done_; }))
            return;
          Event event{Step::kWarning};
          event.detail = finished_
                             ? "consumer.shutdown_timeout has passed; all that was in hand is "
                               "stored, but Kafka, or a task in the background, has not "
                               "answered: leaving without it"
                             : "consumer.shutdown_timeout has passed; leaving now, what was "
                               "in hand runs again elsewhere";
          observers.emit(event);
          std::_Exit(static_cast<int>(finished_.value_or(RunResult::kShutdownTimeout)));
        }) {}
  ~ShutdownWatch() {
    {
      const std::scoped_lock lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  ShutdownWatch(const ShutdownWatch&) = delete;
  ShutdownWatch& operator=(const ShutdownWatch&) = delete;

  /// All that was in hand is stored, so from now on this is how the process ends.
  void finished(RunResult result) {
    const std::scoped_lock lock(mutex_);
    finished_ = result;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;                  // guarded by mutex_
  std::optional<RunResult> finished_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace

Supervisor::Supervisor(const Options& options, const Registry& registry,
                       std::vector<std::shared_ptr<Observer>> observers)
    : options_(options),
      registry_(registry),
      router_(options, registry),
      bell_(options.dead_letters.topic.empty() ? nullptr : std::make_shared<DeadLetterBell>()),
      observers_(with(std::move(observers), bell_)),
      client_(new_client(1)) {}

Supervisor::~Supervisor() = default;

void Supervisor::emit(Step step, const std::string& detail) const {
  Event event{step};
  event.detail = detail;
  observers_.emit(event);
}

void Supervisor::stop() {
  stop_ = true;
  const std::scoped_lock lock(stop_mutex_);
  stop_changed_.notify_all();
}

std::unique_ptr<kafka::Client> Supervisor::new_client(std::size_t partitions) const {
  return std::make_unique<kafka::Client>(
      options_.kafka,
      [this](int level, const std::string& facility, const std::string& text) {
        // librdkafka repeats connection failures in its events; its log adds what is only there.
        if (level <= 4)
          emit(Step::kWarning, fmt::format("librdkafka {}: {}", facility, text));
      },
      partitions);
}

/// How kafka.buffer is divided depends on the number of partitions, and librdkafka must know it
/// from the client's start on.
void Supervisor::share_buffer() {
  std::size_t partitions = 0;
  for (const auto& [topic, found] :
       client_->describe_each(router_.topics(), kafka::kAnswerTimeout).described)
    partitions += static_cast<std::size_t>(found.partitions);
  if (kafka::BufferPlan::of(options_.kafka.buffer, partitions) != client_->plan())
    client_ = new_client(partitions);
}

bool Supervisor::pause_before_retry(milliseconds delay) {
  std::unique_lock lock(stop_mutex_);
  return !stop_changed_.wait_for(lock, delay, [this] { return stop_.load(); });
}

RunResult Supervisor::run() {
  for (const auto& warning : handlers::key_warnings(router_))
    emit(Step::kWarning, warning);
  if (!connect())
    return RunResult::kStopped;
  start_workers();
  loop();
  const bool drained = options_.consumer.drain && !stop_ && !fatal_;
  if (drained)
    say_drained();
  const bool left_behind = drained && !left_behind_.empty();
  const auto result = leave(left_behind ? RunResult::kHaltedPartitions : RunResult::kStopped);
  if (fatal_)
    throw FatalError(*fatal_);
  return result;
}

bool Supervisor::connect() {
  Backoff backoff(options_.postgres.retry_initial, options_.postgres.retry_max);
  std::string last_problem;
  const auto report = [&](std::string problem) {
    if (problem == last_problem)
      return;
    last_problem = std::move(problem);
    emit(Step::kWarning, last_problem);
  };
  while (!stop_) {
    try {
      auto settings = session_settings(options_);
      settings.unwanted = &stop_;
      postgres::Session session(settings);
      if (session.connected_read_only()) {
        throw postgres::Error::connection_lost(
            "the server lets nothing be written: it is a standby, or default_transaction_read_only "
            "is on");
      }
      database_reachable_.answered();
      ledger::require_schema(session, options_.postgres.schema);
      const auto cluster = client_->cluster_id(kafka::kAnswerTimeout);
      kafka_reachable_.answered();
      auto registration = ledger::register_consumer(
          session, options_.postgres.schema, options_.kafka.cluster, options_.kafka.group, cluster);
      const auto consumer = registration.consumer;
      share_buffer();
      context_ = std::unique_ptr<Context>(new Context{
          options_,
          registry_,
          router_,
          observers_,
          *client_,
          database_reachable_,
          kafka_reachable_,
          std::move(registration),
          ledger::OffsetRegister(options_.postgres.schema, consumer),
          ledger::Suspects(options_.postgres.schema, consumer),
          {options_, router_, observers_, ledger::IdempotencyKeys(options_.postgres.schema),
           ledger::SkippedMessages(options_.postgres.schema, consumer),
           ledger::DeadLetters(options_.postgres.schema, consumer, options_.dead_letters),
           ledger::BatchKeys(options_.postgres.schema)},
          TopicDirectory(*client_, router_.topics()),
          {},
          make_owner()});
      return true;
    } catch (const kafka::KafkaError& error) {
      kafka_reachable_.failed(error.what());
      report(fmt::format("waiting for Kafka: {}", error.what()));
    } catch (const postgres::Error& error) {
      if (error.failure() == postgres::FailureClass::kProgram) {
        throw FatalError(
            fmt::format("PostgreSQL refuses to serve: {} (SQLSTATE {}); see the grants "
                        "in docs/operations.md",
                        error.what(), error.sqlstate()));
      }
      database_reachable_.failed(error.what());
      report(fmt::format("waiting for PostgreSQL: {}", error.what()));
    } catch (const postgres::InDoubt& error) {
      report(fmt::format("waiting for PostgreSQL: {}", error.what()));
    }
    pause_before_retry(backoff.next());
  }
  return false;
}

void Supervisor::start_workers() {
  for (const auto& handler : options_.handlers) {
    context_->longest_handler = std::max(context_->longest_handler, handler.timeout);
  }
  for (const auto& binding : router_.bindings()) {
    if (binding->batch != nullptr)
      context_->longest_batch =
          std::min(context_->longest_batch, binding->frame.statement_timeout / 2);
  }
  if (router_.batches())
    context_->max_in_hand = options_.batch.max_messages;
  if (router_.pipelines())
    context_->max_in_hand = std::max(context_->max_in_hand, options_.consumer.pipeline);
  context_->restart_fetch = [this](const TopicPartition& partition) {
    const std::scoped_lock lock(restarts_mutex_);
    restarts_.insert(partition);
  };
  context_->presence = std::make_unique<Presence>(
      options_, registry_, context_->registration.consumer, context_->owner, observers_);
  kafka::MembershipListener& listener = *this;
  membership_ = std::make_unique<kafka::Membership>(*client_, options_.kafka, listener);
  context_->membership = membership_.get();
  context_->topics_in_doubt = [this] { monitor_->topics_in_doubt(); };
  for (std::uint32_t i = 0; i < options_.consumer.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(*context_));
    load_[workers_.back().get()] = 0;
  }
  monitor_ = std::make_unique<Monitor>(*context_, workers_);
  if (options_.retention.interval != milliseconds{0})
    pruner_ = std::make_unique<Pruner>(*context_);
  if (bell_)
    relay_ = std::make_unique<DeadLetterRelay>(*context_, *bell_);
}

void Supervisor::loop() {
  std::vector<TopicPartition> manual;
  for (const auto& topic : router_.topics()) {
    for (const auto partition : options_.kafka.manual_partitions)
      manual.push_back({topic, partition});
  }
  membership_->start(router_.topics(), manual);
  say_awaited_at_ = Clock::now() + kGroupPatience;
  while (!stop_ && !fatal_) {
    membership_->poll(kPoll);
    finish_revocation();
    serve_restarts();
    commit_progress();
    say_what_is_awaited();
    if (options_.consumer.drain && drained())
      return;
  }
}

std::function<void()> Supervisor::readable_callback(const TopicPartition& partition) {
  const auto idlest = std::min_element(
      load_.begin(), load_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  ++idlest->second;
  auto* worker = idlest->first;
  owners_[partition] = worker;
  return [worker] { worker->wake(); };
}

void Supervisor::on_assigned(std::vector<std::shared_ptr<kafka::PartitionStream>> streams) {
  assigned_once_ = true;
  for (auto& stream : streams)
    owners_.at(stream->partition())->assign(std::move(stream));
}

void Supervisor::on_revoked(const std::vector<TopicPartition>& partitions, bool lost) {
  std::map<Worker*, std::vector<TopicPartition>> by_worker;
  for (const auto& partition : partitions) {
    const auto owner = owners_.find(partition);
    if (owner == owners_.end())
      continue;
    by_worker[owner->second].push_back(partition);
    --load_[owner->second];
    owners_.erase(owner);
    told_kafka_.erase(partition);
  }
  auto revocation = std::make_shared<Revocation>();
  // Beyond this the message in hand is left to the fence of the next owner's acquire.
  revocation->deadline = Clock::now() + std::min(context_->longest_handler, milliseconds(20000));
  for (const auto& [worker, mine] : by_worker)
    revocation->pending.insert(worker);
  revocation_ = revocation;
  for (auto& [worker, mine] : by_worker) {
    auto* const w = worker;
    w->revoke(std::move(mine), lost, [this, revocation, w] {
      const std::scoped_lock lock(revocation_mutex_);
      revocation->pending.erase(w);
    });
  }
  if (lost) {
    // Kafka has given them away already: nobody waits for us.
    revocation->deadline = Clock::now();
  }
  finish_revocation();
}

void Supervisor::finish_revocation() {
  if (!revocation_)
    return;
  {
    const std::scoped_lock lock(revocation_mutex_);
    std::erase_if(revocation_->pending, [](const Worker* worker) { return worker->finished(); });
    if (!revocation_->pending.empty() && Clock::now() < revocation_->deadline)
      return;
  }
  revocation_.reset();
  membership_->complete_revoke();
}

void Supervisor::serve_restarts() {
  std::set<TopicPartition> restarts;
  {
    const std::scoped_lock lock(restarts_mutex_);
    restarts.swap(restarts_);
  }
  for (const auto& partition : restarts) {
    if (!owners_.contains(partition) || revocation_)
      continue;
    for (const auto& touched : membership_->restart_fetch(partition)) {
      const auto owner = owners_.find(touched);
      if (owner != owners_.end())
        owner->second->reposition(touched);
    }
  }
}

void Supervisor::on_stray_record(const TopicPartition& partition) {
  const auto owner = owners_.find(partition);
  if (owner != owners_.end())
    owner->second->reposition(partition);
}

void Supervisor::on_kafka_error(kafka::ErrorKind kind, const std::string& text, bool fatal) {
  if (fatal) {
    fatal_ = fmt::format("Kafka has ended this consumer's membership for good: {}", text);
    return;
  }
  emit(Step::kWarning, fmt::format("Kafka: {}", text));
  const bool about_topics =
      kind == kafka::ErrorKind::kTopicRefused || kind == kafka::ErrorKind::kTopicUnknown;
  if (about_topics && monitor_)
    monitor_->topics_in_doubt();
}

void Supervisor::on_commit_refused() {
  // In the middle of a rebalance, for example: told again at the next interval.
  for (auto& [partition, next] : told_kafka_)
    next = -1;
}

void Supervisor::commit_progress() {
  const auto now = Clock::now();
  if (revocation_)
    return;
  const bool due = now >= next_commit_;
  if (due)
    next_commit_ = now + options_.kafka.commit_interval;
  // A partition just acquired is told at once: a process may die before the interval is over, and a
  // wrong database is recognised by what stands in Kafka.
  tell_kafka(context_->board.all(), due);
}

/// Not `all`: only of partitions of which Kafka knows nothing from us yet.
void Supervisor::tell_kafka(const std::vector<std::shared_ptr<PartitionStatus>>& partitions,
                            bool all) {
  std::vector<kafka::Membership::Progress> progress;
  for (const auto& status : partitions) {
    const auto next = status->next_for_kafka(options_.consumer.durability);
    if (next < 0 || !owners_.contains(status->partition))
      continue;
    const auto told = told_kafka_.find(status->partition);
    if (told != told_kafka_.end() && (!all || told->second == next))
      continue;
    told_kafka_[status->partition] = next;
    progress.push_back({status->partition, next});
  }
  membership_->commit_async(progress, context_->commit_metadata());
}

/// Nothing is fetched before the first assignment, for which Kafka may wait: said once.
void Supervisor::say_what_is_awaited() {
  if (assigned_once_ || !say_awaited_at_ || Clock::now() < *say_awaited_at_)
    return;
  say_awaited_at_.reset();
  const bool classic = options_.kafka.group_protocol == GroupProtocol::kClassic;
  emit(Step::kGroupAwaited,
       fmt::format("waiting for group {}: Kafka has assigned nothing yet. A member that ended "
                   "without a word holds its place for up to {}; with kafka.group_instance_id a "
                   "process that comes back gets its own at once",
                   options_.kafka.group,
                   classic ? fmt::format("kafka.session_timeout ({} s)",
                                         options_.kafka.session_timeout.count() / 1000)
                           : std::string("the broker's group.consumer.session.timeout.ms")));
}

bool Supervisor::find_drain_goal() {
  if (drain_goal_)
    return true;
  try {
    std::vector<TopicPartition> all;
    for (const auto& topic : router_.topics()) {
      const auto found = context_->directory.find(topic, milliseconds(1000));
      if (!found)
        return false;
      for (std::int32_t p = 0; p < found->partitions; ++p)
        all.push_back({topic, p});
    }
    std::map<TopicPartition, std::int64_t> ends;
    for (const auto& [partition, range] : client_->log_ranges(all, kafka::kAnswerTimeout))
      ends[partition] = range.end;
    drain_goal_.emplace(all, ends);
    return true;
  } catch (const kafka::KafkaError& error) {
    kafka_reachable_.failed(error.what());
    return false;
  }
}

bool Supervisor::drained() {
  if (!assigned_once_ || revocation_ || !find_drain_goal())
    return false;
  const auto all = context_->board.all();
  if (all.size() != owners_.size())
    return false;
  left_behind_.clear();
  for (const auto& status : all) {
    DrainView view;
    view.acquired = status->acquired;
    view.halted = status->halted;
    view.paused = status->paused;
    // Who has drained may delete the topic: nothing must depend on a replay then.
    view.durable = status->next_for_kafka(options_.consumer.durability) >= status->position;
    view.reached = std::max(status->position.load(), status->end_seen.load());
    view.goal = drain_goal_->of(status->partition, status->log_end);
    switch (judge(view)) {
      case Drained::kNotYet:
        return false;
      case Drained::kLeftBehind:
        left_behind_.push_back(left_behind_text(status->partition, view));
        break;
      case Drained::kDone:
        break;
    }
  }
  return true;
}

void Supervisor::say_drained() const {
  emit(Step::kDrained, fmt::format("{}", fmt::join(left_behind_, "; ")));
}

/// `result`: how the process ends if nothing is cut. Returns how it does.
RunResult Supervisor::leave(RunResult result) {
  ShutdownWatch watch(options_.consumer.shutdown_timeout, observers_);
  const auto interrupt_at = Clock::now() + options_.consumer.shutdown_timeout * 3 / 4;
  // The workers take them off the board.
  const auto partitions = context_->board.all();
  for (const auto& worker : workers_)
    worker->stop();
  if (pruner_)
    pruner_->stop();
  // Who drains wants to find everything done; else the next process does the rest.
  const bool feed_rest = options_.consumer.drain && !stop_ && !fatal_;
  if (bell_ && !feed_rest)
    bell_->stop(Clock::now() + kRelayEnd, false);
  const auto all_finished = [this] {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const auto& w) { return w->finished(); });
  };
  bool interrupted = false;
  while (!all_finished()) {
    membership_->poll(milliseconds(20));
    finish_revocation();
    if (!interrupted && Clock::now() > interrupt_at) {
      interrupted = true;
      for (const auto& worker : workers_)
        worker->interrupt();
    }
  }
  if (interrupted) {
    result = RunResult::kShutdownTimeout;
  } else if (!fatal_) {
    watch.finished(result);
  }
  // Up to here nothing is repeated by who may read the group's partitions next, pawl or not.
  tell_kafka(partitions, true);
  if (bell_ && feed_rest)
    bell_->stop(Clock::now() + options_.consumer.shutdown_timeout / 4, true);
  monitor_.reset();
  pruner_.reset();
  relay_.reset();
  for (const auto& worker : workers_)
    worker->join();
  finish_revocation();
  membership_->close();
  while (!membership_->closed()) {
    membership_->poll(milliseconds(20));
    finish_revocation();
  }
  // Its intake wakes workers. They have let go of all partitions.
  membership_.reset();
  workers_.clear();
  context_.reset();
  // librdkafka's own threads end here; the watch bounds that too.
  client_.reset();
  return result;
}

}  // namespace pawl::engine
