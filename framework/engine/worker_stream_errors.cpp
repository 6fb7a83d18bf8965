// What a worker does when a partition's stream brings an error in place of records.
#include <fmt/format.h>

#include "engine/worker.hpp"

namespace pawl::engine {
namespace {

/// A seek is taken once the fetcher has started anew.
constexpr std::chrono::milliseconds kRestart{50};

}  // namespace

void Worker::stream_error(Partition& partition, kafka::Record record) {
  const auto kind = record.error_kind();
  switch (kind) {
    case kafka::ErrorKind::kPositionRefused:
      position_refused(partition, record);
      return;
    case kafka::ErrorKind::kUnreadable: {
      // Its turn comes behind the messages before it.
      partition.unreadable = true;
      const auto previous = partition.taken;
      partition.buffer.push_back({std::move(record), previous, std::nullopt});
      return;
    }
    case kafka::ErrorKind::kTopicRefused:
    case kafka::ErrorKind::kTopicUnknown:
    case kafka::ErrorKind::kFetcherStarting:
    case kafka::ErrorKind::kPassing:
      break;
  }
  // A topic may be described without being read: then only fetching says so.
  const bool refused = kind == kafka::ErrorKind::kTopicRefused;
  emit(refused ? Step::kTopicRefused : Step::kWarning, partition, partition.taken,
       refused ? fmt::format("Kafka refuses to let the partition be read: {}; it is tried again by "
                             "itself. Grant this user READ on the topic",
                             record.error_text())
               : fmt::format("Kafka reports: {}", record.error_text()));
  context_.topics_in_doubt();
}

/// librdkafka has stopped fetching the partition. Acquiring again holds the stored position against
/// the log's range, and seeking validates its leader epoch; when Kafka refuses that as well, the
/// next acquire halts. What was fetched and not processed is fetched again.
void Worker::position_refused(Partition& partition, const kafka::Record& record) {
  const auto next = partition.stored + 1;
  auto& refusal = partition.refusal;
  if (!refusal || refusal->next != next)
    refusal = {next, 0, {}};
  ++refusal->times;
  refusal->text = record.error_text();
  context_.restart_fetch(partition.name());
  acquire_again(partition, false);
  partition.not_before = Clock::now() + kRestart;
}

void Worker::halt_unreadable(Partition& partition, const Partition::Item& item) {
  halt(partition,
       {ledger::halt_kind::kPosition,
        fmt::format(
            "{} {} [{}]: offset {} and the rest of its batch cannot be read: {}. The broker's log "
            "is damaged there, or written in a format that this program does not know. Stored "
            "offset is {}, nothing was skipped. Let a replica lead that has the batch whole, or "
            "bring a newer program, then `pawl partitions resume`. To go on without these records, "
            "look where the batch ends (kafka-dump-log.sh on the broker), then: {}",
            context_.options.kafka.group, partition.name().topic, partition.name().partition,
            item.previous + 1, item.record.error_text(), partition.stored,
            positions_.set_command(partition.name())),
        std::nullopt});
}

}  // namespace pawl::engine
