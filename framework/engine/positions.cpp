#include "engine/positions.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "config/shell_word.hpp"
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

std::optional<std::string> Positions::refuse_beside(postgres::Session& session,
                                                    const std::string& topic,
                                                    const std::string& topic_id) const {
  const auto& options = context_.options;
  return engine::refuse_beside(
      start_of(topic), options.invocation, topic,
      ledger::other_consumers(session, options.postgres.schema,
                              {options.kafka.cluster, options.kafka.group,
                               context_.registration.kafka_cluster_id, topic, topic_id}));
}

std::optional<std::string> Positions::lost_registration(postgres::Session& session) const {
  const auto& options = context_.options;
  if (ledger::find_consumer(session, options.postgres.schema, options.kafka.cluster,
                            options.kafka.group))
    return std::nullopt;
  return fmt::format(
      "the database has lost consumer {}/{} itself: it was restored from before this consumer's "
      "first start. Restart this program, and it begins as kafka.start says; or restore a later "
      "state",
      options.kafka.cluster, options.kafka.group);
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
  auto reason = resolve_topic(session, partition);
  if (!reason)
    return std::nullopt;
  Refused refused{std::nullopt, ledger::halt_kind::kPosition, *std::move(reason)};
  refused.asked_at = Clock::now();
  refused_topics_.insert_or_assign(partition.topic, refused);
  return refused;
}

/// Stores where the topic's partitions begin; or says why not.
std::optional<std::string> Positions::resolve_topic(postgres::Session& session,
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
    return fmt::format(
        "group {} has processed topic {} into database {} (partition {} up to offset {}), but this "
        "database ({}) knows nothing of it: it is another one, or lost its rows. Correct "
        "postgres.url, restore the database, or go on behind what the group has committed: {} "
        "--topic {} --all --to committed",
        context_.options.kafka.group, where.topic, committed->database_id, where.partition,
        ledger::Position::before(committed->next).last(), context_.registration.database_id,
        command_text(context_.options.invocation, "offsets set"), shell_word(where.topic));
  }
  if (auto lost = lost_registration(session))
    return lost;
  if (context_.options.kafka.start == Start::kHalt) {
    return fmt::format(
        "topic {} is new to this consumer and kafka.start = \"halt\": state where to begin, for "
        "example: {} --topic {} --all --to earliest",
        partition.topic, command_text(context_.options.invocation, "offsets set"),
        shell_word(partition.topic));
  }
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
    if (source && partition.partition < source->partitions) {
      return Refused{
          std::nullopt, ledger::halt_kind::kPosition,
          fmt::format("{} {} [{}]: its register row is gone, though the topic's start was "
                      "resolved with {} partitions: somebody deleted it. Restore it, or "
                      "state the position: {}",
                      context_.options.kafka.group, partition.topic, partition.partition,
                      source->partitions, set_command(context_.options.invocation, partition))};
    }
    context_.offsets.add_partition(session, partition);
    acquired = context_.offsets.acquire(session, partition, context_.owner);
  }
  if (!acquired || !source) {
    throw postgres::Error(std::string(postgres::kRowMissingState),
                          "the register row vanished while it was acquired");
  }
  if (acquired->state == ledger::PartitionState::kHalted &&
      acquired->halt_kind == ledger::halt_kind::kPosition) {
    return Refused{acquired->epoch, acquired->halt_kind, acquired->reason, acquired->stored};
  }

  const PositionPlace place{context_.options.kafka.group, partition, context_.options.invocation,
                            earlier_halt(*acquired)};
  const auto refuse = [&](const std::string& reason) {
    return Refused{acquired->epoch, ledger::halt_kind::kPosition, reason, acquired->stored};
  };
  const auto topic = topic_in_kafka(partition.topic, std::chrono::milliseconds(500));
  const auto& current_id = topic.id;
  // What is known of another topic than the position's does not bear upon it.
  const auto& look = last_look.topic_id == acquired->topic_id ? last_look : LastLook{};
  if (const auto reason = other_topic(place, *acquired, current_id, look))
    return refuse(*reason);
  if (acquired->topic_id.empty() && !current_id.empty())
    context_.offsets.store_topic_id(session, partition, acquired->epoch, current_id);
  const auto next = acquired->stored.next();
  if (!hint || next < hint->start || next > hint->end) {
    if (const auto reason = unservable(place, acquired->stored))
      return refuse(*reason);
  }
  if (const auto reason = other_log(place, *acquired, refusal))
    return refuse(*reason);
  return Positioned{*acquired, source->id, current_id};
}

std::optional<std::string> Positions::unservable(const PositionPlace& place,
                                                 ledger::Position stored) const {
  const auto ranges = context_.kafka.log_ranges({place.partition}, kafka::kAnswerTimeout);
  auto range = kafka::answered(ranges, place.partition);
  // Beyond the stable end is not beyond the log: transactions may be open there.
  if (stored.next() > range.end)
    range.end = context_.kafka.high_watermark(place.partition, kafka::kAnswerTimeout);
  return outside_log(place, stored, range);
}

}  // namespace pawl::engine
