#include "console/partition_changes.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/connections.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
#include "kafka/fetch_one.hpp"
#include "ledger/operator_commands.hpp"
#include "ledger/rows.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

constexpr std::chrono::milliseconds kFetchTimeout{15000};

kafka::Record next_record(const kafka::Client& client, const ledger::RegisterRow& row) {
  auto record = kafka::fetch_one(client, row.partition, row.stored.next(), kFetchTimeout);
  if (!record) {
    throw BadCall(fmt::format("{} is at its end: there is no message behind offset {} to skip",
                              name_of(row.partition), row.stored.last()));
  }
  return *std::move(record);
}

}  // namespace

StateChange set_partition_state(postgres::Session& session, const Options& options,
                                const ledger::KnownConsumer& consumer,
                                const ledger::RegisterRow& row, ledger::PartitionState state,
                                const std::string& reason) {
  if (row.state == state)
    return StateChange::kWasSo;
  const ledger::OperatorCommands commands(options.postgres.schema, consumer.id);
  ledger::OperatorChange change;
  change.partition = row.partition;
  change.state = state;
  change.action = state == ledger::PartitionState::kPaused ? "pause" : "resume";
  change.reason = reason;
  change.seen = ledger::SeenState{row.state, row.state_since, row.reason};
  auto result = StateChange::kDone;
  change_register(options.invocation, row.partition, [&] {
    result = commands.change(session, change) ? StateChange::kDone : StateChange::kChangedMeanwhile;
  });
  return result;
}

std::string skip_message(postgres::Session& session, const Options& options,
                         const ledger::KnownConsumer& consumer, const ledger::RegisterRow& row,
                         std::int64_t offset, const std::string& reason, const std::string& place) {
  if (offset <= row.stored.last()) {
    throw BadCall(fmt::format("{}{} is past it already, its stored offset is {}", place,
                              name_of(row.partition), row.stored.last()));
  }
  // Outlives the record: a client does not end while one of its messages is held.
  const auto client = make_client(options);
  require_same_cluster(options, consumer.kafka_cluster_id, client->cluster_id(kKafkaTimeout));
  const ledger::OperatorCommands commands(options.postgres.schema, consumer.id);
  ledger::OperatorSkip change{row.partition, row.stored, row.epoch, reason};
  if (row.state == ledger::PartitionState::kHalted)
    change.halt_reason = row.reason;
  const auto skip = [&](const Message& message) {
    change_register(options.invocation, row.partition,
                    [&] { commands.skip(session, change, message); });
  };
  change.unread = row.halt_kind == ledger::halt_kind::kCrashLoop && row.halt_offset == offset;
  if (change.unread) {
    MessageFields place_alone;
    place_alone.topic = row.partition.topic;
    place_alone.partition = row.partition.partition;
    place_alone.offset = offset;
    skip(Message(place_alone));
    return "The message was not read: its offset is kept, its payload is omitted";
  }
  const auto record = next_record(*client, row);
  if (record.offset() != offset) {
    throw BadCall(
        fmt::format("{}the next message of {} is at offset {}; only that one can be skipped", place,
                    name_of(row.partition), record.offset()));
  }
  skip(record.view(row.partition.topic, ""));
  return "The message is kept";
}

}  // namespace pawl::cli
