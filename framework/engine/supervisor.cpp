#include "engine/supervisor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <set>
#include <thread>

#include "config/invocation.hpp"
#include "engine/conditions.hpp"
#include "engine/owner.hpp"
#include "engine/shutdown_watch.hpp"
#include "handlers/atomicity.hpp"
#include "handlers/bytes_binding.hpp"
#include "handlers/sequences.hpp"
#include "ledger/register_view.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{100};
/// The longest pause before Kafka is asked again at the start, with room for the request itself:
/// the rows of a process that waits must stay younger than ledger::kLiveProcess.
constexpr milliseconds kKafkaRetry{5000};
/// A group that nobody left behind assigns its partitions sooner.
constexpr milliseconds kGroupPatience{5000};
/// For calls to end that were told to, and for what they say to be stored.
constexpr milliseconds kCallsEnd{2000};
/// For what background tasks have in hand; what they do not finish, the next process does again.
constexpr milliseconds kTasksEnd{2000};

}  // namespace

Supervisor::Supervisor(const Options& options, const Registry& registry,
                       std::vector<std::shared_ptr<Observer>> observers,
                       std::vector<MakeTask> tasks)
    : options_(options),
      registry_(registry),
      router_(options, registry),
      observers_(std::move(observers)),
      client_(new_client(1)),
      owner_(make_owner()),
      make_tasks_(std::move(tasks)) {}

/// As leave() does it, where an exception came before that.
Supervisor::~Supervisor() {
  monitor_.reset();
  if (context_)
    context_->frame.lease_keeper->stop_calls();
  tasks_.clear();
  for (const auto& worker : workers_) {
    worker->stop();
    worker->interrupt();
  }
  if (hands_) {
    hands_->stop();
    hands_->interrupt();
  }
  for (const auto& worker : workers_)
    worker->join();
  hands_.reset();
}

void Supervisor::emit(Step step, const std::string& detail) const {
  Event event{step};
  event.detail = detail;
  observers_.emit(event);
}

void Supervisor::warn(Warning warning, const std::string& detail) const {
  observers_.emit(warning_event(warning, detail));
}

std::vector<PartitionSnapshot> Supervisor::partitions() const {
  std::vector<PartitionSnapshot> result;
  for (const auto& status : board_.all())
    result.push_back(status->snapshot());
  return result;
}

std::chrono::milliseconds Supervisor::silent_for() const {
  // The monitor begins earlier and ends later: what it waits for then is bounded by others.
  if (group_pulse_.rests())
    return milliseconds(0);
  return std::max(group_pulse_.silent_for(), monitor_pulse_.silent_for());
}

std::string Supervisor::unready() const {
  if (stop_)
    return "the consumer is stopping";
  if (group_pulse_.rests()) {
    const std::scoped_lock lock(stop_mutex_);
    return awaited_.empty() ? "the consumer is starting or stopping" : awaited_;
  }
  if (!assigned_once_)
    return "Kafka has not assigned partitions yet";
  return unready_without(database_reachable_);
}

std::optional<std::size_t> Supervisor::leases_held() const {
  const auto& bindings = router_.bindings();
  if (std::none_of(bindings.begin(), bindings.end(),
                   [](const auto& binding) { return binding->leased != nullptr; }))
    return std::nullopt;
  std::shared_ptr<LeaseKeeper> keeper;
  {
    const std::scoped_lock lock(stop_mutex_);
    keeper = lease_keeper_.lock();
  }
  return keeper ? keeper->held() : 0;
}

std::vector<Condition> Supervisor::conditions() const {
  return board_.conditions();
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
          warn(Warning::kKafkaClientWarning, fmt::format("librdkafka {}: {}", facility, text));
      },
      partitions);
}

/// How kafka.buffer is divided depends on the number of partitions, and librdkafka must know it
/// from the client's start on.
void Supervisor::share_buffer() {
  std::size_t partitions = 0;
  for (const auto& [topic, found] :
       client_->describe_each(subscribed_, kafka::kAnswerTimeout).described)
    partitions += static_cast<std::size_t>(found.partitions);
  if (kafka::BufferPlan::of(options_.kafka.buffer, partitions) != client_->plan())
    client_ = new_client(partitions);
}

/// What there is to consume, and what the patterns meant when this consumer met them.
ledger::FirstTopics Supervisor::find_topics(postgres::Session& session,
                                            const ledger::Registration& registration) {
  const auto& entries = router_.entries();
  if (!entries.has_patterns()) {
    subscribed_ = entries.choose({}).topics;
    return {};
  }
  const auto existing = client_->topic_names(kafka::kAnswerTimeout);
  subscribed_ = entries.choose(existing).topics;
  // What another entry has, or none may have, was there as well, should that change.
  std::map<std::string, std::vector<std::string>> meant;
  for (const auto& pattern : entries.patterns()) {
    std::ranges::copy_if(existing, std::back_inserter(meant[pattern.text()]),
                         [&](const std::string& topic) { return pattern.matches(topic); });
  }
  return ledger::meet_patterns(session, options_.postgres.schema, registration.consumer, meant);
}

/// Where patterns mean other topics by now. Who drains goes to the end of what there was.
void Supervisor::follow_topics() {
  if (!router_.entries().has_patterns() || revocation_ || draining_)
    return;
  auto topics = context_->directory.followed();
  if (!topics || *topics == subscribed_)
    return;
  subscribed_ = *std::move(topics);
  membership_->subscribe(subscribed_);
}

/// Of patterns that meant nothing at the start: they are looked at once more, for a broker that has
/// just begun may not know its topics yet.
bool Supervisor::nothing_to_drain() {
  const auto topics = context_->directory.followed();
  if (!topics)
    return !router_.entries().has_patterns();
  if (topics->empty())
    return true;
  subscribed_ = *topics;
  membership_->subscribe(subscribed_);
  return false;
}

void Supervisor::require_topics_to_drain() {
  if (!draining_ || fatal_)
    return;
  if (const auto missing = draining_->missing_topics(); !missing.empty())
    fatal_ = missing_topics_text(missing);
}

void Supervisor::pause_before_retry(milliseconds delay) {
  std::unique_lock lock(stop_mutex_);
  stop_changed_.wait_for(lock, delay, [this] { return stop_.load(); });
}

RunResult Supervisor::run() {
  for (const auto& warning : handlers::key_warnings(router_))
    warn(Warning::kKeyMayNotBeUnique, warning);
  if (!connect())
    return RunResult::kStopped;
  start_workers();
  loop();
  const bool drained = options_.consumer.drain && !stop_ && !fatal_;
  const bool left_behind = drained && !draining_->left_behind().empty();
  if (drained)
    emit(Step::kDrainFinished, fmt::format("{}", fmt::join(draining_->left_behind(), "; ")));
  const auto result = leave(left_behind ? RunResult::kHaltedPartitions : RunResult::kStopped);
  if (fatal_)
    throw FatalError(*fatal_);
  return result;
}

bool Supervisor::connect() {
  Backoff backoff(options_.postgres.retry_initial, options_.postgres.retry_max);
  std::set<std::string> said;
  const auto await = [this](const std::string& what) {
    const std::scoped_lock lock(stop_mutex_);
    awaited_ = what;
  };
  const auto wait_for_database = [&](const std::string& why) {
    await(fmt::format("{}. Waiting for PostgreSQL", why));
    database_reachable_.failed(why);
  };
  while (!stop_) {
    auto pause = backoff.next();
    try {
      auto settings = session_settings(options_);
      settings.unwanted = &stop_;
      postgres::Session session(settings);
      if (session.connected_read_only()) {
        throw postgres::Error::connection_lost(kReadOnlyServer);
      }
      database_reachable_.answered();
      ledger::require_schema(session, options_.postgres.schema,
                             command_text(options_.invocation, "migrate up"));
      for (const auto& problem :
           handlers::check_sequences(session, options_.postgres.schema, &router_).problems) {
        if (said.insert(problem).second)
          warn(Warning::kSequenceBehind, problem);
      }
      try {
        start_with(session);
        await("");
        return true;
      } catch (const kafka::KafkaError& error) {
        await(fmt::format("{}. Waiting for Kafka", error.what()));
        kafka_reachable_.failed(error.what());
        pause = std::min(pause, kKafkaRetry);
        show_kafka_wait(session);
      }
    } catch (const postgres::Error& error) {
      if (error.is_of_set_up()) {
        // Names of prepared statements that clash, or are unknown.
        const bool shared = error.sqlstate() == "42P05" || error.sqlstate() == "26000";
        throw FatalError(fmt::format(
            "PostgreSQL rejects a statement of pawl: {} (SQLSTATE {}). {}", error.what(),
            error.sqlstate(),
            shared ? "A pooler gives each transaction another session. Set postgres.pooled = true "
                     "(docs/poolers.md)"
                   : "Compare the privileges with docs/deploy.md"));
      }
      wait_for_database(error.what());
    } catch (const postgres::InDoubt& error) {
      wait_for_database(error.what());
    }
    pause_before_retry(pause);
  }
  return false;
}

/// Throws kafka::KafkaError, postgres::Error, postgres::InDoubt, FatalError.
void Supervisor::start_with(postgres::Session& session) {
  const auto cluster = client_->cluster_id(kafka::kAnswerTimeout);
  kafka_reachable_.answered();
  auto registration = ledger::register_consumer(
      session, options_.postgres.schema, options_.kafka.cluster, options_.kafka.group, cluster);
  handlers::require_bindable(session, router_);
  handlers::require_atomicity(session, router_, options_.handlers);
  auto first_topics = find_topics(session, registration);
  share_buffer();
  make_context(std::move(registration), std::move(first_topics));
  // The workers' sessions are opened under a version then.
  context_->frame.schema->confirm(session);
}

/// Stores that this process runs and waits for Kafka, so that `pawl status` does not advise an
/// operator to start a process. The first start of a consumer without Kafka stores nothing: the row
/// in pawl.consumers requires the ID of the Kafka cluster, and no partition has an offset yet.
void Supervisor::show_kafka_wait(postgres::Session& session) {
  if (auto wait =
          kafka_condition(kafka_reachable_.outage(), options_.kafka.bootstrap_servers,
                          std::chrono::floor<milliseconds>(std::chrono::system_clock::now())))
    board_.note_conditions({*std::move(wait)});
  const auto known = ledger::find_consumer(session, options_.postgres.schema,
                                           options_.kafka.cluster, options_.kafka.group);
  if (!known)
    return;
  if (!presence_ || presence_->consumer() != known->id)
    presence_ =
        std::make_unique<Presence>(options_, registry_, known->id, owner_, observers_, board_);
  try {
    (void)presence_->tell(session);
  } catch (const postgres::Error& error) {
    if (error.failure() == postgres::FailureClass::kConnection)
      throw;
    warn(Warning::kProcessNotRegistered,
         fmt::format("cannot store that this process waits for Kafka: {}. Retrying", error.what()));
  }
}

void Supervisor::make_context(ledger::Registration registration, ledger::FirstTopics first_topics) {
  const auto consumer = registration.consumer;
  context_ = std::unique_ptr<Context>(new Context{
      options_, registry_, router_, observers_, *client_, database_reachable_, kafka_reachable_,
      std::move(registration), ledger::OffsetRegister(options_.postgres.schema, consumer),
      ledger::Suspects(options_.postgres.schema, consumer),
      frame_context(options_, router_, observers_, consumer, owner_),
      TopicDirectory(*client_, router_.entries()), board_, owner_});
  context_->first_topics = std::move(first_topics);
  context_->frame.remote_services = std::make_shared<RemoteServices>();
  const std::scoped_lock lock(stop_mutex_);
  lease_keeper_ = context_->frame.lease_keeper;
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
  const auto consumer = context_->registration.consumer;
  board_.note_conditions({});
  if (presence_ && presence_->consumer() == consumer) {
    context_->presence = std::move(presence_);
  } else {
    context_->presence =
        std::make_unique<Presence>(options_, registry_, consumer, owner_, observers_, board_);
  }
  kafka::MembershipListener& listener = *this;
  membership_ = std::make_unique<kafka::Membership>(*client_, options_.kafka, listener);
  context_->membership = membership_.get();
  hands_ = std::make_unique<Hands>(*context_);
  context_->hands = hands_.get();
  for (std::uint32_t i = 0; i < options_.consumer.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(*context_, workers_.empty()));
    load_[workers_.back().get()] = 0;
  }
  monitor_ =
      std::make_unique<Monitor>(*context_, workers_, *hands_, monitor_pulse_, assigned_once_);
  for (const auto& make : make_tasks_) {
    if (auto task = make(*context_))
      tasks_.push_back(std::move(task));
  }
}

void Supervisor::loop() {
  if (options_.consumer.drain)
    draining_.emplace(*context_, stop_);
  std::vector<TopicPartition> manual;
  for (const auto& topic : subscribed_) {
    for (const auto partition : options_.kafka.manual_partitions)
      manual.push_back({topic, partition});
  }
  const Pulse::Beating beating(group_pulse_);
  membership_->start(subscribed_, manual);
  say_awaited_at_ = Clock::now() + kGroupPatience;
  while (!stop_ && !fatal_) {
    group_pulse_.beat();
    membership_->poll(kPoll);
    finish_revocation();
    serve_requests();
    follow_topics();
    commit_progress();
    say_what_is_awaited();
    if (draining_ && subscribed_.empty() && nothing_to_drain())
      return;
    if (draining_ && assigned_once_ && !revocation_ && monitor_->covered() &&
        draining_->is_done(owners_.size()))
      return;
    require_topics_to_drain();
  }
}

std::function<void()> Supervisor::readable_callback(const TopicPartition& partition) {
  // Of several the first, which has a session anyway.
  auto* const worker = std::ranges::min_element(workers_, {}, [this](const auto& one) {
                         return load_.at(one.get());
                       })->get();
  ++load_.at(worker);
  owners_[partition] = worker;
  return [worker] { worker->wake(); };
}

void Supervisor::on_assigned(std::vector<std::shared_ptr<kafka::PartitionStream>> streams) {
  assigned_once_ = true;
  for (auto& stream : streams) {
    if (draining_)
      draining_->assigned(stream->partition());
    owners_.at(stream->partition())->assign(std::move(stream));
  }
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
    if (draining_)
      draining_->revoked(partition);
  }
  auto revocation = std::make_shared<Revocation>();
  // Beyond this the message in hand is left to the fence of the next owner's acquire.
  revocation->deadline = Clock::now() + std::min(context_->longest_handler, milliseconds(20000));
  for (const auto& [worker, mine] : by_worker)
    revocation->pending.insert(worker);
  revocation_ = revocation;
  for (auto& [worker, mine] : by_worker) {
    auto* const w = worker;
    w->revoke(std::move(mine), [revocation, w] {
      const std::scoped_lock lock(revocation->mutex);
      revocation->pending.erase(w);
    });
  }
  // Kafka does not wait for partitions that this process has lost, for example because its session
  // expired. The workers release them as after any revocation: no process may get them for as long
  // as Kafka is unreachable, and status must not show this one as their owner.
  if (lost)
    revocation->deadline = Clock::now();
  finish_revocation();
}

void Supervisor::finish_revocation() {
  if (!revocation_)
    return;
  {
    const std::scoped_lock lock(revocation_->mutex);
    std::erase_if(revocation_->pending, [](const Worker* worker) { return worker->finished(); });
    if (!revocation_->pending.empty() && Clock::now() < revocation_->deadline)
      return;
  }
  revocation_.reset();
  membership_->complete_revoke();
}

void Supervisor::serve_requests() {
  if (!revocation_ && context_->requests.take_rejoin())
    membership_->rejoin(subscribed_);
  for (const auto& partition : context_->requests.take_restarts()) {
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
    fatal_ =
        fmt::format("Kafka has permanently ended the group membership of this process: {}", text);
    return;
  }
  // In an outage, the errors of single brokers are its causes.
  if (kind == kafka::ErrorKind::kAllBrokersDown ||
      (kind == kafka::ErrorKind::kBrokerFailed && kafka_reachable_.is_away())) {
    kafka_reachable_.failed(text);
    return;
  }
  warn(Warning::kKafkaErrorReported, text);
  const bool about_topics =
      kind == kafka::ErrorKind::kTopicRefused || kind == kafka::ErrorKind::kTopicUnknown;
  if (about_topics && context_)
    context_->requests.doubt_topics();
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
  if (subscribed_.empty()) {
    emit(Step::kAssignmentPending,
         fmt::format("no topic exists yet for {}. A topic is consumed when it is created",
                     fmt::join(router_.topics(), ", ")));
    return;
  }
  const bool classic = options_.kafka.group_protocol == GroupProtocol::kClassic;
  emit(Step::kAssignmentPending,
       fmt::format(
           "waiting for partitions of group {}. Kafka keeps the partitions of a member that "
           "crashed for {}. With kafka.group_instance_id a restarted process gets its own at "
           "once",
           options_.kafka.group, place_kept_text(options_.kafka)) +
           (classic ? ""
                    : ". Brokers before Kafka 4.0 assign nothing with kafka.group_protocol = "
                      "\"consumer\". Set it to \"classic\" there"));
}

void Supervisor::stop_tasks(Clock::time_point deadline, bool finish) {
  for (const auto& task : tasks_)
    task->stop(deadline, finish);
}

/// Waits until the workers have let go of their partitions. Returns false where what they had in
/// hand had to be interrupted.
bool Supervisor::finish_workers(Clock::time_point interrupt_at) {
  const auto all_finished = [this] {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const auto& w) { return w->finished(); });
  };
  bool interrupted = false;
  const auto stop_calls_at = interrupt_at - kCallsEnd;
  bool calls_asked = false;
  bool calls_cut = false;
  // Calls whose partition is gone already, and those of retries, get their time as well.
  const auto& keeper = context_->frame.lease_keeper;
  const auto calls_run = [&] { return keeper->holds() && Clock::now() < interrupt_at + kCallsEnd; };
  while (!all_finished() || calls_run()) {
    membership_->poll(milliseconds(20));
    finish_revocation();
    if (!calls_asked && Clock::now() > stop_calls_at) {
      calls_asked = true;
      calls_cut = keeper->stop_calls();
    }
    if (!interrupted && Clock::now() > interrupt_at) {
      interrupted = true;
      for (const auto& worker : workers_)
        worker->interrupt();
      hands_->stop();
      hands_->interrupt();
    }
  }
  return !interrupted && !calls_cut;
}

void Supervisor::leave_group() {
  finish_revocation();
  membership_->close();
  while (!membership_->closed()) {
    membership_->poll(milliseconds(20));
    finish_revocation();
  }
}

/// `result`: how the process ends if nothing is cut. Returns how it does.
RunResult Supervisor::leave(RunResult result) {
  ShutdownWatch watch(options_.consumer.shutdown_timeout, observers_);
  draining_.reset();
  const auto interrupt_at = Clock::now() + options_.consumer.shutdown_timeout * 3 / 4;
  // The workers take them off the board.
  const auto partitions = context_->board.all();
  for (const auto& worker : workers_)
    worker->stop();
  // Who drains wants to find everything done; else the next process does the rest.
  const bool finish = options_.consumer.drain && !stop_ && !fatal_;
  if (!finish)
    stop_tasks(Clock::now() + kTasksEnd, false);
  if (!finish_workers(interrupt_at)) {
    result = RunResult::kShutdownTimeout;
  } else if (!fatal_) {
    watch.finished(result);
  }
  // Up to here nothing is repeated by who may read the group's partitions next, pawl or not. They
  // are given away before anything that may wait for a server, which only this process needs.
  tell_kafka(partitions, true);
  leave_group();
  if (finish)
    stop_tasks(Clock::now() + options_.consumer.shutdown_timeout / 4, true);
  monitor_.reset();
  tasks_.clear();
  for (const auto& worker : workers_)
    worker->join();
  context_->frame.lease_keeper->stop_calls();
  // Their mail goes to workers.
  hands_.reset();
  // Its intake wakes workers.
  membership_.reset();
  workers_.clear();
  context_.reset();
  // librdkafka's own threads end here; the watch bounds that too.
  client_.reset();
  return result;
}

}  // namespace pawl::engine
