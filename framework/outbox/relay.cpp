#include "outbox/relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/invocation.hpp"
#include "ledger/consumers.hpp"
#include "ledger/register_view.hpp"
#include "outbox/session.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// A lane works on for longer where its process cannot reach the database to extend it; then
/// another one may take it, and its epoch fences.
constexpr milliseconds kLease = ledger::kRelayLease;
constexpr milliseconds kTick{2000};
/// Of many commits in a row the lanes are told together.
constexpr milliseconds kTogether{1};
/// Between two looks whether something waits still, where that ends the process.
constexpr milliseconds kFinishing{20};
/// How often a process that may not have to publish looks whether anybody does.
constexpr milliseconds kLook{30000};
constexpr milliseconds kRetryInitial{200};
constexpr milliseconds kRetryMax{10000};
/// A lane that fails after so long begins with short waits again.
constexpr milliseconds kCalm{60000};

}  // namespace

OutboxRelay::OutboxRelay(const Options& options, const Observers& observers, std::string owner,
                         std::shared_ptr<Bell> bell, RelayBegins begins, RelayServers servers)
    : options_(options),
      observers_(observers),
      owner_(std::move(owner)),
      bell_(std::move(bell)),
      begins_(begins),
      servers_(servers),
      view_(options.postgres.schema),
      backoff_(kRetryInitial, kRetryMax),
      thread_([this] { run(); }) {}

OutboxRelay::~OutboxRelay() {
  if (!finishing_)
    stop();
  thread_.join();
}

void OutboxRelay::finish(Clock::time_point deadline) {
  finish_by_ = deadline;
  finishing_ = true;
  bell_->ring();
}

void OutboxRelay::stop() {
  bell_->stop(Clock::now(), false);
}

void OutboxRelay::warn_once(const std::string& text, std::string_view sqlstate) {
  if (std::exchange(last_warning_, text) != text)
    observers_.emit(warning_event(Warning::kOutboxDelayed, text, sqlstate));
}

void OutboxRelay::run() {
  if (begins_ == RelayBegins::kAtOnce || wait_until_needed())
    relay();
  leave();
}

/// False: it is to end first.
bool OutboxRelay::wait_until_needed() {
  bool rung = false;
  while (!bell_->stopping()) {
    // What ends it may have rung as well.
    const bool last = finishing_;
    if (rung && !last)
      return true;
    try {
      if (is_needed(last))
        return true;
    } catch (const postgres::Error& error) {
      // The workers tell of a database that is away.
      if (error.failure() != postgres::FailureClass::kConnection)
        warn_once(fmt::format("cannot check whether messages wait: {}", error.what()),
                  error.sqlstate());
    }
    if (last)
      return false;
    rung = bell_->wait(milliseconds(0), kLook);
  }
  return false;
}

/// Messages wait, and nobody publishes. `last`: whoever does may end before it comes to what this
/// process has written.
bool OutboxRelay::is_needed(bool last) {
  postgres::Session session(outbox_session(options_, *bell_));
  return last ? view_.any_waits(session) : view_.is_left_alone(session);
}

void OutboxRelay::relay() {
  auto next_tick = Clock::now();
  bool well = true;
  while (!bell_->stopping()) {
    const bool ended = std::ranges::any_of(lanes_, [](const auto& lane) { return lane->ended(); });
    if (Clock::now() >= next_tick || (well && ended)) {
      well = tick();
      next_tick = Clock::now() + (well ? kTick : backoff_.next());
    }
    if (finishing_ && finished())
      return;
    const auto left =
        finishing_ ? kFinishing : std::chrono::ceil<milliseconds>(next_tick - Clock::now());
    if (bell_->wait(kTogether, std::max(left, kTogether))) {
      for (const auto& lane : lanes_)
        lane->ring();
    }
  }
}

/// Nothing waits any more of what did when it began to end, or there is no more time. What others
/// publish meanwhile may never have an end; what this process has written was committed before.
bool OutboxRelay::finished() {
  try {
    if (session_ && !finish_up_to_)
      finish_up_to_ = view_.last_waiting(*session_);
    if (session_ && !view_.any_waits_up_to(*session_, *finish_up_to_))
      return true;
  } catch (const postgres::Error&) {
    // tick() tells, and tries again.
    session_.reset();
  }
  if (Clock::now() < finish_by_.load())
    return false;
  observers_.emit(warning_event(
      Warning::kOutboxDelayed,
      fmt::format("messages still wait in the outbox. The next `run` publishes them, or this "
                  "command:\n  {} --drain",
                  command_text(options_.invocation, "relay"))));
  return true;
}

/// False: not all of it was done, and another try should come later.
bool OutboxRelay::tick() {
  try {
    share_lanes();
    last_warning_.clear();
    tick_problem_.clear();
    return true;
  } catch (const postgres::InDoubt&) {
    session_.reset();
  } catch (const std::exception& error) {
    // Lanes go on meanwhile.
    if (lanes_.empty())
      tick_problem_ = error.what();
    if (!bell_->stopping())
      note_failed(error);
    session_.reset();
  }
  return false;
}

void OutboxRelay::note_failed(const std::exception& error) {
  const auto* const of_postgres = dynamic_cast<const postgres::Error*>(&error);
  if (servers_.database != nullptr && of_postgres != nullptr &&
      of_postgres->failure() == postgres::FailureClass::kConnection) {
    servers_.database->failed(error.what());
    return;
  }
  // ask_cluster() has reported it.
  if (kafka_is_away() && dynamic_cast<const kafka::KafkaError*>(&error) != nullptr)
    return;
  warn_once(fmt::format("{}. Retrying; the messages stay in pawl.outbox", error.what()));
}

void OutboxRelay::connect() {
  if (session_ && session_->alive())
    return;
  auto session = std::make_unique<postgres::Session>(outbox_session(options_, *bell_));
  // Until it has given the lanes back.
  session->established();
  // Whatever Kafka answers below.
  if (servers_.database != nullptr)
    servers_.database->answered();
  ledger::Outbox store(options_.postgres.schema);
  const auto database = ledger::database_id(*session, options_.postgres.schema);
  if (site_ && site_->database_id != database) {
    throw FatalError(
        fmt::format("postgres.url leads to another database than {}, whose outbox this process "
                    "publishes. Restart the process to publish this one",
                    site_->database_id));
  }
  if (!site_) {
    ledger::require_schema(*session, options_.postgres.schema,
                           command_text(options_.invocation, "migrate up"));
    const kafka::Client kafka(options_.kafka, kafka::LogFunction());
    auto cluster = ask_cluster(kafka);
    if (options_.outbox.transactions)
      require_state_topic(kafka);
    store.set_max_message(*session, options_.outbox.max_message);
    site_.emplace(OutboxSite{options_, store, observers_, owner_, database, std::move(cluster)});
  }
  session_ = std::move(session);
}

/// Throws kafka::KafkaError.
std::string OutboxRelay::ask_cluster(const kafka::Client& kafka) const {
  try {
    auto id = kafka.cluster_id(kafka::kAnswerTimeout);
    if (servers_.kafka != nullptr)
      servers_.kafka->answered();
    return id;
  } catch (const kafka::KafkaError& error) {
    if (servers_.kafka != nullptr)
      servers_.kafka->failed(error.what());
    throw;
  }
}

bool OutboxRelay::kafka_is_away() const {
  return servers_.kafka != nullptr && servers_.kafka->is_away();
}

void OutboxRelay::require_state_topic(const kafka::Client& kafka) const {
  const auto& topic = options_.outbox.state_topic;
  if (kafka.describe({topic}, kafka::kAnswerTimeout).contains(topic))
    return;
  try {
    kafka.create_topic(topic, 1, kafka::kAnswerTimeout);
  } catch (const kafka::KafkaError& error) {
    throw kafka::KafkaError(
        error.kind(),
        fmt::format(
            "{}. Create the topic:\n  kafka-topics.sh --bootstrap-server {} --create --topic {} "
            "--partitions 1",
            error.what(), options_.kafka.bootstrap_servers, topic));
  }
}

void OutboxRelay::reap() {
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    if (!(*lane)->ended()) {
      ++lane;
      continue;
    }
    if ((*lane)->failed()) {
      lane_problem_ = (*lane)->why_failed();
      check_kafka_ = true;
      put_off();
    }
    const auto held = (*lane)->lane();
    const bool alone = (*lane)->alone();
    unwritable_.insert_or_assign(held.lane, (*lane)->unwritable());
    lane = lanes_.erase(lane);
    site_->store.release(*session_, held, alone);
  }
}

void OutboxRelay::put_off() {
  if (Clock::now() > take_not_before_ + kCalm)
    backoff_.reset();
  take_not_before_ = Clock::now() + backoff_.next();
}

/// Whether a lane may be taken. Checks that after each failure of a lane, because Kafka may be
/// unreachable for this process alone, or outbox.state_topic may have been deleted. Until the check
/// succeeds, the process has no lane, not even an idle one, and others publish in its place.
bool OutboxRelay::kafka_serves() {
  if (!check_kafka_)
    return true;
  try {
    const kafka::Client kafka(options_.kafka, kafka::LogFunction());
    static_cast<void>(ask_cluster(kafka));
    if (options_.outbox.transactions)
      require_state_topic(kafka);
    // Without lanes it may take long: no lease has to be renewed meanwhile.
    if (lanes_.empty()) {
      commit_nothing();
      lane_problem_.clear();
    }
    check_kafka_ = false;
    return true;
  } catch (const kafka::KafkaError& error) {
    if (std::exchange(lane_problem_, error.what()) != error.what() && !kafka_is_away()) {
      observers_.emit(warning_event(
          Warning::kOutboxDelayed,
          fmt::format("{}. Retrying; the messages stay in pawl.outbox", error.what())));
    }
    put_off();
    for (const auto& lane : lanes_)
      lane->stop();
    return false;
  }
}

/// Needs the same of Kafka as a lane does, except for records.
void OutboxRelay::commit_nothing() const {
  if (!options_.outbox.transactions)
    return;
  const auto name = site_->probe_in_kafka();
  kafka::BatchProducer producer(options_.kafka, {.id = name, .stopping = bell_->stop_flag()},
                                kafka::LogFunction());
  producer.init(kafka::kAnswerTimeout);
  producer.begin();
  static_cast<void>(producer.commit({name, {options_.outbox.state_topic, kStatePartition}, {0, ""}},
                                    kafka::kAnswerTimeout));
}

ledger::RelayNews OutboxRelay::news() {
  const bool works = std::ranges::any_of(lanes_, [](const auto& lane) { return lane->works(); });
  if ((works && !check_kafka_) || Clock::now() > take_not_before_ + kCalm)
    lane_problem_.clear();
  ledger::RelayNews news{options_.outbox.transactions};
  news.left_out = left_out();
  // With a lane that works it can publish, and keeps its share.
  if (!works)
    news.problem = lane_problem_.empty() ? tick_problem_ : lane_problem_;
  return news;
}

/// The partitions that lanes leave out, as text. Reports each change.
std::string OutboxRelay::left_out() {
  std::map<std::int32_t, OutboxLane::LeftOut> lanes;
  for (const auto& lane : lanes_)
    lanes[lane->lane().lane] = lane->left_out();
  for (const auto& [lane, unwritable] : unwritable_)
    lanes[lane] = {unwritable.size(), unwritable.text()};
  std::string text;
  Event event{Step::kOutboxPartitionsUnwritable};
  event.messages = 0;
  for (const auto& [lane, here] : lanes) {
    event.messages += static_cast<std::int64_t>(here.partitions);
    if (here.partitions > 0)
      text += fmt::format("{}{} of shard {}", text.empty() ? "" : "; ", here.text, lane);
  }
  if (std::exchange(left_out_, text) != text) {
    if (text.empty())
      event.step = Step::kOutboxPartitionsWritable;
    const auto detail = text.empty()
                            ? std::string()
                            : fmt::format(
                                  "cannot write to {}. Their messages wait and are retried; all "
                                  "others are published",
                                  text);
    const std::array fields{EventField{"partitions", event.messages}};
    event.fields = fields;
    event.detail = detail;
    observers_.emit(event);
  }
  return text;
}

/// Once, until others differ.
void OutboxRelay::tell_differing(const std::string& owners) {
  if (std::exchange(differing_, owners) == owners || owners.empty())
    return;
  const bool here = options_.outbox.transactions;
  observers_.emit(warning_event(
      Warning::kOutboxDelayed,
      fmt::format("outbox.transactions is {} here, but {} in {}. Set the same value everywhere, "
                  "because otherwise messages may be published twice and out of order",
                  here, !here, owners)));
}

void OutboxRelay::share_lanes() {
  connect();
  reap();
  while (!bell_->stopping()) {
    std::vector<ledger::HeldLane> mine;
    for (const auto& lane : lanes_)
      mine.push_back(lane->lane());
    const auto kept = site_->store.keep(*session_, owner_, mine, kLease, news());
    tell_differing(kept.differing);
    for (const auto& lane : lanes_) {
      if (std::find(kept.held.begin(), kept.held.end(), lane->lane().lane) == kept.held.end())
        lane->stop();
    }
    if (kept.room < 0 && !lanes_.empty())
      lanes_.back()->stop();
    // Lanes that are not taken again belong to other processes now.
    if (kept.room <= 0)
      unwritable_.clear();
    // The end of an outage of Kafka is reported also if other processes have all lanes by then.
    if (kept.room <= 0 && !kafka_is_away())
      return;
    if (Clock::now() < take_not_before_ || !kafka_serves() || kept.room <= 0)
      return;
    const auto grant = site_->store.take(*session_, owner_, kLease, site_->kafka_cluster_id);
    if (!grant) {
      unwritable_.clear();
      return;
    }
    const auto known = unwritable_.extract(grant->lane);
    lanes_.push_back(std::make_unique<OutboxLane>(
        *site_, *grant,
        known ? known.mapped()
              : UnwritablePartitions([this](const auto& key, std::int32_t partitions) {
                  return kafka::partition_of_key(options_.kafka, key, partitions);
                }),
        [this] { bell_->ring(); }));
  }
}

void OutboxRelay::leave() {
  for (const auto& lane : lanes_)
    lane->stop();
  std::vector<std::pair<ledger::HeldLane, bool>> held;
  for (const auto& lane : lanes_) {
    lane->wait();
    held.emplace_back(lane->lane(), lane->alone());
  }
  lanes_.clear();
  try {
    for (const auto& [lane, alone] : held) {
      if (session_ && session_->alive())
        site_->store.release(*session_, lane, alone);
    }
    if (session_ && session_->alive())
      site_->store.leave(*session_, owner_);
  } catch (const postgres::Error&) {
    // Its lease ends by itself.
    session_.reset();
  } catch (const postgres::InDoubt&) {
    session_.reset();
  }
}

}  // namespace pawl::engine
