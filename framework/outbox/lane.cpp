#include "outbox/lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include "config/invocation.hpp"
#include "ledger/payload.hpp"
#include "outbox/session.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kRowsAtOnce = 2000;
/// Of keys and values; read as text, and copied by librdkafka, they take a few times that.
constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20U;
/// Headers and the record's own fields, beside what outbox.max_message counts.
constexpr std::size_t kRoomBesideMessage = std::size_t{64} << 10U;

/// Less than kTransactionTimeout, so that an answer may still come.
constexpr milliseconds kCommitTimeout{12000};
/// In that time, where each record waits for the answer to the one before; or a partition is tried.
constexpr std::size_t kRowsOneByOne = 100;
constexpr milliseconds kInitTimeout{10000};
/// Of that, for the end of what an earlier producer had open, where another id may do.
constexpr milliseconds kPendingTimeout{3000};
/// For a partition that could not be written to, while the others wait.
constexpr milliseconds kTryTimeout{3000};

/// Rows of other programs ring no bell.
constexpr milliseconds kPollSoon{5};
constexpr milliseconds kPollLate{100};
/// A net under the snapshots: whatever is in the lane is found by its place.
constexpr milliseconds kSweepInterval{60000};
/// It goes over what is gone too, as long as some open transaction keeps that: then it comes
/// rarely.
constexpr int kSweepShare = 20;
/// For that, once millions are gone; nobody waits for it.
constexpr milliseconds kStatementTimeout{std::chrono::minutes(5)};
constexpr milliseconds kLockTimeout{5000};

constexpr const char* kIdHeader = "pawl-outbox-id";

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

ledger::Outbox::Ids ids_of(std::span<const ledger::OutboxRow> rows) {
  ledger::Outbox::Ids ids;
  for (const auto& row : rows)
    ids.push_back(row.id);
  return ids;
}

std::optional<std::string_view> view(const std::optional<std::string>& bytes) {
  return bytes ? std::optional<std::string_view>(*bytes) : std::nullopt;
}

/// A transaction failed for some of its partitions, and the next one goes without them.
class GoesWithout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void send(kafka::BatchProducer& producer, const ledger::OutboxRow& row,
          std::optional<std::int32_t> partition) {
  const auto stored = row.headers.empty() ? std::vector<ledger::StoredHeader>()
                                          : ledger::parse_headers_json(row.headers);
  kafka::Outgoing message{view(row.key), view(row.value), {}};
  for (const auto& header : stored)
    message.headers.push_back({header.name, view(header.value)});
  message.headers.push_back({kIdHeader, std::string_view(row.event_id)});
  producer.send(row.topic, message, row.id, partition);
}

}  // namespace

std::string why_not_written(const kafka::TopicAnswers& answers, const std::string& topic) {
  if (const auto why = answers.refused.find(topic); why != answers.refused.end())
    return why->second.what();
  const auto description = answers.described.find(topic);
  if (description != answers.described.end() && description->second.internal)
    return fmt::format("topic {} is internal to Kafka, so no program can publish to it", topic);
  if (description != answers.described.end()) {
    return fmt::format(
        "Kafka does not allow this client to write to topic {}. Allow it with "
        "`kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:NAME --operation "
        "Write --topic {}`",
        topic, topic);
  }
  return fmt::format("topic {} does not exist in Kafka", topic);
}

std::string OutboxSite::name_in_kafka(std::int32_t lane) const {
  return fmt::format("pawl-outbox-{}-{}", database_id, lane);
}

std::string OutboxSite::producer_in_kafka(std::int32_t lane, std::int64_t number) const {
  auto name = name_in_kafka(lane);
  return number == 0 ? name : fmt::format("{}-{}", name, number);
}

std::string OutboxSite::probe_in_kafka() const {
  return fmt::format("pawl-outbox-{}-probe", database_id);
}

OutboxLane::OutboxLane(const OutboxSite& site, const ledger::LaneGrant& grant,
                       UnwritablePartitions unwritable, std::function<void()> on_end)
    : site_(site),
      grant_(grant),
      lane_{grant.lane, grant.epoch},
      on_end_(std::move(on_end)),
      left_out_{unwritable.size(), unwritable.text()},
      unwritable_(std::move(unwritable)),
      thread_([this] { run(); }) {}

OutboxLane::~OutboxLane() {
  stop();
  wait();
}

void OutboxLane::wait() {
  if (thread_.joinable())
    thread_.join();
}

void OutboxLane::stop() {
  bell_.stop(Clock::now(), false);
}

void OutboxLane::emit(Step step, std::size_t rows) const {
  emit(step, static_cast<std::int64_t>(rows), "");
}

void OutboxLane::emit(Step step, std::int64_t rows, const std::string& detail) const {
  Event event{step};
  event.partition = lane_.lane;
  event.offset = number_;
  event.messages = rows;
  event.detail = detail;
  site_.observers.emit(event);
}

void OutboxLane::warn(const std::string& text, Warning warning, std::string_view sqlstate) const {
  const std::array fields{EventField{"shard", std::int64_t{lane_.lane}}};
  auto event = warning_event(warning, text, sqlstate);
  event.fields = fields;
  site_.observers.emit(event);
}

void OutboxLane::tell_refused(const ledger::OutboxRow& row, const std::string& why) const {
  const auto& invocation = site_.options.invocation;
  const auto detail = fmt::format(
      "{}. Later messages with the same topic and key wait; all others are published. Fix the "
      "cause, then retry, or discard the message:\n  {} {}\n  {} {} --because TEXT",
      why, command_text(invocation, "outbox retry"), row.id,
      command_text(invocation, "outbox discard"), row.id);
  const std::array fields{EventField{"outbox_id", row.id}};
  Event event{Step::kOutboxMessageRejected};
  event.topic = row.topic;
  event.detail = detail;
  event.fields = fields;
  site_.observers.emit(event);
}

void OutboxLane::run() {
  const auto end = end_of_relay();
  if (works_)
    emit(Step::kOutboxShardReleased, -1, end);
  producer_.reset();
  kafka_.reset();
  session_.reset();
  ended_ = true;
  on_end_();
}

/// Relays, and says how that ended.
std::string OutboxLane::end_of_relay() {
  std::string end = "this process released it";
  try {
    relay();
  } catch (const postgres::InDoubt& error) {
    fail(error.what());
    warn(fmt::format("{}. Acquiring the shard again, which determines the outcome", error.what()));
    end = "this process acquires it again";
  } catch (const GoesWithout& error) {
    end = fmt::format("{}. This process acquires it again without these partitions", error.what());
  } catch (const postgres::Error& error) {
    const bool fenced = error.failure() == postgres::FailureClass::kFenced;
    fail(fenced ? "" : error.what());
    // Another process has it, and continues.
    if (!fenced && !bell_.stopping())
      warn(fmt::format("{}. Retrying; the messages stay in pawl.outbox", error.what()),
           Warning::kOutboxDelayed, error.sqlstate());
    end = fenced ? "another process or an operator took it over" : "this process acquires it again";
  } catch (const kafka::Undelivered& error) {
    fail(error.what());
    warn(fmt::format("{}. Retrying; the messages stay in pawl.outbox", error.what()),
         Warning::kOutboxPublishTimedOut);
    end = "this process acquires it again";
  } catch (const std::exception& error) {
    fail(error.what());
    warn(fmt::format("{}. Retrying; the messages stay in pawl.outbox", error.what()));
    end = "this process acquires it again";
  }
  return end;
}

void OutboxLane::fail(std::string why) {
  why_failed_ = std::move(why);
  failed_ = true;
}

void OutboxLane::relay() {
  session_ = std::make_unique<postgres::Session>(
      outbox_session(site_.options, bell_, kLockTimeout, kStatementTimeout));
  session_->established();
  // An address may lead to another server now, on which another process has a lane of this epoch.
  const auto producer = site_.store.producer(*session_, lane_, site_.owner);
  if (!producer)
    throw postgres::Error("PW001", "fenced: this process does not own the shard in this database");
  in_kafka_ = *producer;
  recover();
  begin_at_the_top();
  auto pause = kPollSoon;
  while (!bell_.stopping()) {
    if (Clock::now() >= next_sweep_)
      begin_at_the_top();
    if (publish_next()) {
      pause = kPollSoon;
      continue;
    }
    // Rung in a row, it still looks no more often than by itself.
    if (bell_.wait(kPollSoon, pause))
      pause = kPollSoon;
    else
      pause = std::min(pause * 2, kPollLate);
  }
}

// Kafka ends a transaction in each of its partitions, and begins no other one of the same id until
// then: that of one without a leader would hold up all the others for as long as that has none.
// What is decided is decided, and no producer of that id lives that could begin a transaction, so
// another id does.
void OutboxLane::begin_producer(bool one_by_one) {
  make_producer(one_by_one);
  if (in_kafka_.alone) {
    try {
      return producer_->init(kPendingTimeout);
    } catch (const kafka::KafkaError& error) {
      if (error.kind() == kafka::ErrorKind::kTransactionPending) {
        producer_.reset();
        in_kafka_.number = site_.store.renew_producer(*session_, lane_);
        make_producer(one_by_one);
      }
    }
  }
  producer_->init(kInitTimeout);
  in_kafka_.alone = true;
}

void OutboxLane::make_producer(bool one_by_one) {
  producer_.reset();
  one_by_one_ = one_by_one;
  const auto& options = site_.options;
  const kafka::BatchProducer::Settings settings{
      options.outbox.transactions ? site_.producer_in_kafka(lane_.lane, in_kafka_.number)
                                  : std::string(),
      kTransactionTimeout, options.outbox.max_message + kRoomBesideMessage, one_by_one,
      bell_.stop_flag()};
  producer_ = std::make_unique<kafka::BatchProducer>(
      options.kafka, settings,
      [this](int level, const std::string& facility, const std::string& text) {
        if (level <= 3)
          warn(fmt::format("librdkafka {}: {}", facility, text));
      });
}

// In this order: our epoch is in the lane; no earlier producer can commit any more; so what the
// group has committed is the last word, and the next change of the lane looks at our epoch again.
void OutboxLane::recover() {
  begin_producer(false);
  auto options = site_.options.kafka;
  options.group = site_.name_in_kafka(lane_.lane);
  options.group_instance_id.clear();
  kafka_ = std::make_unique<kafka::Client>(options, kafka::LogFunction());
  if (kafka_->cluster_id(kafka::kAnswerTimeout) != site_.kafka_cluster_id)
    throw kafka::KafkaError(
        kafka::ErrorKind::kPassing,
        "kafka.bootstrap_servers leads to another Kafka cluster than at the start");
  const auto committed = committed_batch();
  number_ = std::max(grant_.batch_number, committed.next);
  works_ = true;
  emit(Step::kOutboxShardAcquired, grant_.batch_rows,
       grant_.batch_rows > 0 ? "checking the messages of an earlier owner's last batch" : "");
  if (committed.next > grant_.batch_number) {
    warn(fmt::format(
        "Kafka has batch {}, but the last batch in this database is {}: the database lost commits, "
        "or is a copy. Its messages are published with the same IDs, so consumers can detect "
        "duplicates",
        committed.next, grant_.batch_number));
  }
  if (grant_.batch_rows == 0)
    return;
  if (committed.metadata == grant_.batch_token) {
    site_.store.end_batch(*session_, lane_, grant_.batch_token);
    emit(Step::kOutboxBatchFinished, static_cast<std::size_t>(grant_.batch_rows));
    return;
  }
  // They are found from the top, with whatever has become of them and of their topics since.
  site_.store.abandon_batch(*session_, lane_, grant_.batch_token);
}

/// Number and token of the last batch that Kafka has; without transactions nobody can know.
kafka::CommittedOffset OutboxLane::committed_batch() {
  if (!site_.options.outbox.transactions)
    return {};
  const TopicPartition state{site_.options.outbox.state_topic, kStatePartition};
  return kafka_->committed({state}, kafka::kAnswerTimeout).at(state);
}

void OutboxLane::begin_at_the_top() {
  since_ = site_.store.snapshot(*session_);
  after_ = 0;
  next_sweep_ = Clock::now() + kSweepInterval;
}

/// False: there is nothing to publish now.
bool OutboxLane::publish_next() {
  if (const auto due = unwritable_.due(Clock::now()))
    try_again(*due);
  const auto begun = Clock::now();
  auto page = site_.store.next(*session_, lane_.lane, after_, since_, kRowsAtOnce, kBytesAtOnce);
  const bool paging = after_.has_value();
  if (paging)
    next_sweep_ = std::max(next_sweep_, Clock::now() + (Clock::now() - begun) * kSweepShare);
  if (!paging)
    since_ = page.seen;
  after_.reset();
  if (page.more)
    after_ = page.rows.back().id;
  if (page.rows.empty())
    return paging;
  publish(without_unknown_topics(without_held(without_left_out(std::move(page.rows)))),
          kCommitTimeout);
  return true;
}

OutboxLane::Rows OutboxLane::without_left_out(Rows rows) const {
  if (!unwritable_.empty()) {
    std::erase_if(rows, [this](const auto& row) {
      return unwritable_.place(row.topic, row.key, row.id).left_out;
    });
  }
  return rows;
}

/// The first of its rows, alone. Where Kafka has them, all that was left out is read again from the
/// top of the lane, before what came later.
void OutboxLane::try_again(const TopicPartition& partition) {
  unwritable_.tried(partition, Clock::now());
  const auto answers = kafka_->describe_each({partition.topic}, kafka::kAnswerTimeout);
  const auto topic = answers.described.find(partition.topic);
  if (topic == answers.described.end()) {
    // It is asked about again, and what is for it set apart.
    known_topics_.erase(partition.topic);
  } else if (topic->second.leaderless.contains(partition.partition)) {
    unwritable_.has_no_leader(partition, Clock::now());
    return tell_left_out();
  } else {
    const auto since = site_.store.snapshot(*session_);
    std::optional<std::int64_t> after = 0;
    Rows rows;
    while (after && rows.empty() && !bell_.stopping()) {
      auto page = site_.store.next(*session_, lane_.lane, after, since, kRowsAtOnce, kBytesAtOnce);
      after.reset();
      if (page.more)
        after = page.rows.back().id;
      std::erase_if(page.rows, [&](const auto& row) {
        return !unwritable_.leads_to(partition, row.topic, row.key);
      });
      rows = std::move(page.rows);
    }
    if (bell_.stopping())
      return;
    if (rows.size() > kRowsOneByOne)
      rows.erase(rows.begin() + kRowsOneByOne, rows.end());
    trying_ = partition;
    publish(without_unknown_topics(without_held(std::move(rows))), kTryTimeout);
    trying_.reset();
  }
  unwritable_.writable(partition);
  tell_left_out();
  begin_at_the_top();
}

void OutboxLane::tell_left_out() {
  const std::scoped_lock lock(left_out_mutex_);
  left_out_ = {unwritable_.size(), unwritable_.text()};
}

OutboxLane::LeftOut OutboxLane::left_out() const {
  const std::scoped_lock lock(left_out_mutex_);
  return left_out_;
}

OutboxLane::Rows OutboxLane::without_held(Rows rows) {
  ledger::Outbox::Ids held;
  for (const auto& row : rows) {
    if (row.held)
      held.push_back(row.id);
  }
  if (held.empty())
    return rows;
  set_apart(held, "waiting", "an earlier message with the same topic and key was rejected");
  std::erase_if(rows, [](const auto& row) { return row.held; });
  return rows;
}

// librdkafka would wait for a topic that is not there for longer than a transaction may last, and a
// topic that may not be written to fails the whole transaction without a word of which record.
OutboxLane::Rows OutboxLane::without_unknown_topics(Rows rows) {
  std::set<std::string> unknown;
  for (const auto& row : rows) {
    if (!known_topics_.contains(row.topic))
      unknown.insert(row.topic);
  }
  if (unknown.empty())
    return rows;
  const auto answers =
      kafka_->describe_each({unknown.begin(), unknown.end()}, kafka::kAnswerTimeout, true);
  for (const auto& [topic, description] : answers.described) {
    if (description.may_write)
      known_topics_[topic] = description.partitions;
  }
  std::vector<kafka::Delivery> refused;
  for (const auto& row : rows) {
    if (known_topics_.contains(row.topic))
      continue;
    refused.push_back(
        {row.id, kafka::Delivery::Outcome::kRefused, why_not_written(answers, row.topic)});
  }
  return refused.empty() ? rows : set_refused_apart(std::move(rows), refused);
}

void OutboxLane::publish(Rows rows, milliseconds timeout) {
  while (!rows.empty()) {
    const auto count = one_by_one_ ? std::min(kRowsOneByOne, rows.size()) : rows.size();
    const auto refused = transact({rows.data(), count}, timeout);
    if (refused.empty()) {
      site_.store.end_batch(*session_, lane_, token_);
      emit(Step::kOutboxBatchFinished, count);
      rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
      continue;
    }
    site_.store.abandon_batch(*session_, lane_, token_);
    // Kafka refuses a request as a whole; which record it is shows when each is one.
    if (one_by_one_)
      rows = set_refused_apart(std::move(rows), refused);
    else
      begin_producer(true);
  }
  if (one_by_one_)
    begin_producer(false);
}

std::vector<kafka::Delivery> OutboxLane::transact(std::span<const ledger::OutboxRow> rows,
                                                  milliseconds timeout) {
  token_ = new_token();
  ++number_;
  site_.store.begin_batch(*session_, lane_, number_, token_, ids_of(rows));
  emit(Step::kOutboxBatchStarted, rows.size());
  producer_->begin();
  for (const auto& row : rows) {
    send(*producer_, row,
         trying_ ? trying_->partition : unwritable_.place(row.topic, row.key, row.id).partition);
  }
  emit(Step::kOutboxBatchSent, rows.size());
  const kafka::BatchProducer::GroupOffset offset{
      site_.name_in_kafka(lane_.lane),
      {site_.options.outbox.state_topic, kStatePartition},
      {number_, token_}};
  try {
    auto refused = producer_->commit(offset, timeout);
    unwritable_.committed();
    if (refused.empty())
      emit(Step::kOutboxBatchCommitted, rows.size());
    return refused;
  } catch (const kafka::Undelivered& error) {
    note_undelivered(error);
    throw;
  }
}

void OutboxLane::note_undelivered(const kafka::Undelivered& error) {
  if (bell_.stopping())
    return;
  if (!unwritable_.note({error.partitions(), error.others_delivered(), error.what()}, known_topics_,
                        Clock::now()))
    return;
  tell_left_out();
  throw GoesWithout(fmt::format("cannot write to {}", unwritable_.text()));
}

/// The refused ones, and those of the same topic and key behind each.
OutboxLane::Rows OutboxLane::set_refused_apart(Rows rows,
                                               const std::vector<kafka::Delivery>& refused) {
  std::set<std::pair<std::string, std::string>> blocked;
  ledger::Outbox::Ids waiting;
  std::set<std::int64_t> gone;
  for (const auto& row : rows) {
    const auto found = std::find_if(refused.begin(), refused.end(),
                                    [&](const auto& one) { return one.tag == row.id; });
    if (row.key && blocked.contains({row.topic, *row.key})) {
      waiting.push_back(row.id);
    } else if (found != refused.end()) {
      tell_refused(row, found->why);
      set_apart({row.id}, "failed", found->why);
      if (row.key)
        blocked.insert({row.topic, *row.key});
    } else {
      continue;
    }
    gone.insert(row.id);
  }
  if (!waiting.empty())
    set_apart(waiting, "waiting", "an earlier message with the same topic and key was rejected");
  std::erase_if(rows, [&](const auto& row) { return gone.contains(row.id); });
  return rows;
}

void OutboxLane::set_apart(const ledger::Outbox::Ids& ids, const std::string& status,
                           const std::string& reason) {
  site_.store.fail(*session_, lane_, ids, status, reason);
}

}  // namespace pawl::engine
