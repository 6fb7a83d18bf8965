#include "engine/positions.hpp"

#include <fmt/format.h>

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

/// librdkafka ends by naming what its own policy does, which is to report it.
std::string without_policy(const std::string& text) {
  const auto policy = text.find(". Reset ");
  return policy == std::string::npos ? text : text.substr(0, policy);
}

std::vector<TopicPartition> all_partitions(const std::string& topic, std::int32_t count) {
  std::vector<TopicPartition> partitions;
  for (std::int32_t p = 0; p < count; ++p)
    partitions.push_back({topic, p});
  return partitions;
}

}  // namespace

std::string Positions::set_command(const TopicPartition& partition, std::string_view to) const {
  return fmt::format("pawl offsets set --config FILE --topic {} --partition {} --to {}",
                     partition.topic, partition.partition, to);
}

std::vector<std::int64_t> Positions::resolve_start(
    const std::vector<TopicPartition>& partitions) const {
  std::vector<std::int64_t> last_processed;
  for (const auto& first :
       first_positions(context_.kafka, context_.options.kafka, partitions, kafka::kAnswerTimeout))
    last_processed.push_back(first.next - 1);
  return last_processed;
}

std::optional<std::string> Positions::refuse_beside(postgres::Session& session,
                                                    const std::string& topic,
                                                    const std::string& topic_id) const {
  const auto& options = context_.options;
  return engine::refuse_beside(
      options.kafka, topic,
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
        "group {} has processed {} [{}] up to offset {} into database {}, but this "
        "database ({}) knows nothing of it: it is another one, or lost its rows. Correct "
        "postgres.url, restore the database, or state the position yourself: {}",
        context_.options.kafka.group, where.topic, where.partition, committed->next - 1,
        committed->database_id, context_.registration.database_id, set_command(where));
  }
  if (auto lost = lost_registration(session))
    return lost;
  if (context_.options.kafka.start == Start::kHalt) {
    return fmt::format(
        "topic {} is new to this consumer and kafka.start = \"halt\": state where to begin, for "
        "example: pawl offsets set --config FILE --topic {} --all --to earliest",
        partition.topic, partition.topic);
  }
  if (auto refused = refuse_beside(session, partition.topic, topic.id))
    return refused;
  ledger::FirstContact contact;
  contact.topic = partition.topic;
  contact.start_policy = start_name(context_.options.kafka.start);
  contact.last_processed = resolve_start(partitions);
  contact.topic_id = topic.id;
  context_.offsets.first_contact(session, contact);
  return std::nullopt;
}

PositionAnswer Positions::acquire(postgres::Session& session, const TopicPartition& partition,
                                  const std::optional<kafka::LogRange>& hint,
                                  const std::optional<PositionRefusal>& refusal,
                                  std::optional<std::int64_t> looked_at) {
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
                      source->partitions, set_command(partition))};
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
    return Refused{acquired->epoch, acquired->halt_kind, acquired->reason, acquired->stored_offset};
  }

  const auto topic = topic_in_kafka(partition.topic, std::chrono::milliseconds(500));
  const auto& current_id = topic.id;
  if (const auto reason = other_topic(partition, *acquired, current_id, looked_at)) {
    return Refused{acquired->epoch, ledger::halt_kind::kPosition, *reason, acquired->stored_offset};
  }
  if (acquired->topic_id.empty() && !current_id.empty()) {
    context_.offsets.store_topic_id(session, partition, acquired->epoch, current_id);
  }
  const auto next = acquired->stored_offset + 1;
  if (!hint || next < hint->start || next > hint->end) {
    if (const auto reason = unservable(partition, next)) {
      return Refused{acquired->epoch, ledger::halt_kind::kPosition, *reason,
                     acquired->stored_offset};
    }
  }
  if (refusal && refusal->next == next && refusal->times > 1) {
    return Refused{acquired->epoch, ledger::halt_kind::kPosition,
                   other_log(partition, *acquired, *refusal), acquired->stored_offset};
  }
  return Positioned{*acquired, source->id, current_id};
}

std::optional<std::string> Positions::unservable(const TopicPartition& partition,
                                                 std::int64_t next_offset) const {
  const auto ranges = context_.kafka.log_ranges({partition}, kafka::kAnswerTimeout);
  const auto& range = kafka::answered(ranges, partition);
  const auto& group = context_.options.kafka.group;
  if (next_offset < range.start) {
    return fmt::format(
        "{} {} [{}]: stored offset is {}, but Kafka's log begins at {}: retention removed {} "
        "offsets before they were processed. Nothing was skipped. Restore the records, or accept "
        "the loss: {}",
        group, partition.topic, partition.partition, next_offset - 1, range.start,
        range.start - next_offset, set_command(partition));
  }
  // Beyond the stable end is not beyond the log: transactions may be open there.
  if (next_offset > range.end &&
      next_offset > context_.kafka.high_watermark(partition, kafka::kAnswerTimeout)) {
    return fmt::format(
        "{} {} [{}]: stored offset is {}, but Kafka's log ends at {}: the log was truncated or the "
        "topic was recreated with fewer records. Nothing was skipped. Find out what was lost, then "
        "state the position: {}",
        group, partition.topic, partition.partition, next_offset - 1, range.end,
        set_command(partition));
  }
  return std::nullopt;
}

std::string Positions::other_log(const TopicPartition& partition, const ledger::Acquired& acquired,
                                 const PositionRefusal& refusal) const {
  const auto epoch = acquired.leader_epoch ? fmt::format("leader epoch {}", *acquired.leader_epoch)
                                           : std::string("of an unknown leader epoch");
  return fmt::format(
      "{} {} [{}]: stored offset is {} ({}), but Kafka's log does not hold that record any more: "
      "{}. The log lost its end, and other records stand there now: those from the end that Kafka "
      "names up to the stored offset are applied nowhere. Nothing was skipped. Find out what was "
      "lost, then state the position: {}",
      context_.options.kafka.group, partition.topic, partition.partition, acquired.stored_offset,
      epoch, without_policy(refusal.text), set_command(partition));
}

std::optional<std::string> Positions::other_topic(const TopicPartition& partition,
                                                  const ledger::Acquired& acquired,
                                                  const std::string& current_id,
                                                  std::optional<std::int64_t> looked_at) const {
  if (acquired.topic_id.empty() || current_id.empty() || acquired.topic_id == current_id)
    return std::nullopt;
  const auto stored = acquired.stored_offset;
  std::string applied =
      "What was applied of the new one before this was seen, if anything, is not "
      "known: `pawl audit` looks";
  if (looked_at && *looked_at > stored) {
    applied = "Nothing of the new one was applied";
  } else if (looked_at) {
    applied = fmt::format(
        "Offsets {} to {} were applied after Kafka last named the old one: what was produced after "
        "the change is of the new topic, and what stands before it there was applied nowhere",
        *looked_at, stored);
  }
  return fmt::format(
      "{} {} [{}]: the topic was deleted and created again (topic id was {}, is {}); stored offset "
      "{} belongs to the old one. {}. To process the new topic from its start: {}",
      context_.options.kafka.group, partition.topic, partition.partition, acquired.topic_id,
      current_id, stored, applied, set_command(partition, "earliest"));
}

}  // namespace pawl::engine
