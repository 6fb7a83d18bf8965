#include "engine/positions.hpp"

#include <fmt/format.h>

#include "engine/assignment_halts.hpp"
#include "engine/first_positions.hpp"
#include "kafka/answers.hpp"
#include "ledger/register_view.hpp"

namespace pawl::engine {
namespace {

const char* start_name(Start start) {
  switch (start) {
    case Start::kCommitted:
      return "committed";
    case Start::kEarliest:
      return "earliest";
    case Start::kLatest:
      return "latest";
    case Start::kTimestamp:
      return "timestamp";
    case Start::kHalt:
      return "halt";
  }
  return "unknown";
}

std::vector<TopicPartition> all_partitions(const std::string& topic, std::int32_t count) {
  std::vector<TopicPartition> partitions;
  for (std::int32_t p = 0; p < count; ++p)
    partitions.push_back({topic, p});
  return partitions;
}

}  // namespace

KafkaOptions Positions::start_of(const std::string& topic) const {
  return first_start(context_.options.kafka, context_.came_later(topic));
}

std::vector<ledger::Position> Positions::resolve_start(
    const KafkaOptions& options, const std::vector<TopicPartition>& partitions) const {
  std::vector<ledger::Position> starts;
  for (const auto& first :
       first_positions(context_.kafka, options, partitions, kafka::kAnswerTimeout))
    starts.push_back(ledger::Position::before(first.next));
  return starts;
}

std::optional<ledger::Halt> Positions::refuse_beside(postgres::Session& session,
                                                     const std::string& topic,
                                                     const std::string& topic_id) const {
  const auto& options = context_.options;
  return engine::refuse_beside(
      start_of(topic),
      ledger::other_consumers(session, options.postgres.schema,
                              {options.kafka.cluster, options.kafka.group,
                               context_.registration.kafka_cluster_id, topic, topic_id}));
}

bool Positions::lost_registration(postgres::Session& session) const {
  const auto& options = context_.options;
  return !ledger::find_consumer(session, options.postgres.schema, options.kafka.cluster,
                                options.kafka.group);
}

kafka::TopicDescription Positions::topic_in_kafka(const std::string& topic,
                                                  std::chrono::milliseconds max_age) const {
  auto found = context_.directory.find(topic, max_age);
  if (!found) {
    throw kafka::KafkaError(kafka::ErrorKind::kTopicUnknown,
                            fmt::format("topic {} does not exist in Kafka", topic));
  }
  return *std::move(found);
}

std::optional<Refused> Positions::first_contact(postgres::Session& session,
                                                const TopicPartition& partition) {
  using Clock = std::chrono::steady_clock;
  const auto known = refused_topics_.find(partition.topic);
  if (known != refused_topics_.end() &&
      Clock::now() < *known->second.asked_at + context_.options.failures.program_error_retry)
    return known->second;
  auto halt = resolve_topic(session, partition);
  if (!halt)
    return std::nullopt;
  Refused refused{std::nullopt, *std::move(halt)};
  refused.asked_at = Clock::now();
  refused_topics_.insert_or_assign(partition.topic, refused);
  return refused;
}

/// Stores where the topic's partitions start; or returns why not.
std::optional<ledger::Halt> Positions::resolve_topic(postgres::Session& session,
                                                     const TopicPartition& partition) const {
  // Before the offsets: should the topic be created anew in between, its id tells.
  const auto topic = topic_in_kafka(partition.topic, std::chrono::milliseconds(1000));
  const auto partitions = all_partitions(partition.topic, topic.partitions);

  // An offset that pawl committed, and no row here: the row is in another database.
  if (const auto committed = committed_by_pawl(context_.kafka, partitions, kafka::kAnswerTimeout)) {
    const auto& where = committed->partition;
    // Unless another process of ours met the topic, and committed, since we looked for its row.
    if (context_.offsets.find_topic(session, partition.topic))
      return std::nullopt;
    auto halt = ledger::make_halt(ledger::halt_code::kOtherDatabase);
    halt.parameters = {
        {ledger::halt_parameter::kOtherDatabaseId, committed->database_id},
        {ledger::halt_parameter::kCommittedPartition, std::to_string(where.partition)},
        {ledger::halt_parameter::kCommittedOffset, std::to_string(committed->next)},
        {ledger::halt_parameter::kDatabaseId, context_.registration.database_id}};
    return halt;
  }
  if (lost_registration(session))
    return ledger::make_halt(ledger::halt_code::kConsumerLost);
  if (context_.options.kafka.start == Start::kHalt)
    return ledger::make_halt(ledger::halt_code::kStartUndecided);
  if (auto refused = refuse_beside(session, partition.topic, topic.id))
    return refused;
  ledger::FirstContact contact;
  contact.topic = partition.topic;
  const auto start = start_of(partition.topic);
  contact.start_policy = start_name(start.start);
  contact.starts = resolve_start(start, partitions);
  contact.topic_id = topic.id;
  context_.offsets.first_contact(session, contact);
  return std::nullopt;
}

PositionAnswer Positions::acquire(postgres::Session& session, const TopicPartition& partition,
                                  const std::optional<kafka::LogRange>& hint,
                                  const std::optional<PositionRefusal>& refusal,
                                  const LastLook& last_look) {
  auto source = context_.offsets.find_topic(session, partition.topic);
  if (!source) {
    if (auto refused = first_contact(session, partition))
      return *refused;
    source = context_.offsets.find_topic(session, partition.topic);
  }
  auto acquired = context_.offsets.acquire(session, partition, context_.owner);
  if (!acquired) {
    if (source) {
      if (auto halt = halt_of_missing_row(partition.partition, source->partitions))
        return Refused{std::nullopt, *std::move(halt)};
    }
    context_.offsets.add_partition(session, partition);
    acquired = context_.offsets.acquire(session, partition, context_.owner);
  }
  if (!acquired || !source) {
    throw postgres::Error(std::string(postgres::kRowMissingState),
                          "the stored offset was deleted while the partition was acquired");
  }
  if (acquired->state == ledger::PartitionState::kHalted &&
      acquired->halt.kind == ledger::halt_kind::kPosition) {
    return Refused{acquired->epoch, acquired->halt, acquired->stored};
  }

  const auto refuse = [&](ledger::Halt halt) {
    return Refused{acquired->epoch, after_earlier_halt(std::move(halt), *acquired),
                   acquired->stored};
  };
  const auto topic = topic_in_kafka(partition.topic, std::chrono::milliseconds(500));
  const auto& current_id = topic.id;
  // What is known of another topic than the position's does not affect it.
  const auto& look = last_look.topic_id == acquired->topic_id ? last_look : LastLook{};
  if (auto halt = other_topic(*acquired, current_id, look))
    return refuse(*std::move(halt));
  if (acquired->topic_id.empty() && !current_id.empty())
    context_.offsets.store_topic_id(session, partition, acquired->epoch, current_id);
  const auto next = acquired->stored.next();
  if (!hint || next < hint->start || next > hint->end) {
    if (auto halt = unservable(partition, acquired->stored))
      return refuse(*std::move(halt));
  }
  if (auto halt = other_log(*acquired, refusal))
    return refuse(*std::move(halt));
  return Positioned{*acquired, source->id, current_id};
}

std::optional<ledger::Halt> Positions::unservable(const TopicPartition& partition,
                                                  ledger::Position stored) const {
  const auto logs =
      whole_logs(context_.kafka, context_.kafka.log_ranges({partition}, kafka::kAnswerTimeout),
                 {{partition, stored}}, kafka::kAnswerTimeout);
  return outside_log(stored, kafka::answered(logs, partition));
}

}  // namespace pawl::engine
