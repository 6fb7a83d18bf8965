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
    throw BadCall(fmt::format("{} is at its end: it has no message at offset {} to skip",
                              name_of(row.partition), row.stored.next()));
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
  change.seen = ledger::SeenState{row.state, row.state_since, row.halt.code, row.halt.cause,
                                  row.operator_reason};
  auto result = StateChange::kDone;
  change_register(options.invocation, row.partition, [&] {
    result = commands.change(session, change) ? StateChange::kDone : StateChange::kChangedMeanwhile;
  });
  return result;
}

std::string stored_state_text(const ledger::RegisterRow& row, ledger::PartitionState state) {
  const auto name = name_of(row.partition);
  const auto* const before = ledger::to_string(row.state);
  const auto* const after = ledger::to_string(state);
  if (row.state == state) {
    return fmt::format("{} was {} before{}", name, before,
                       row.owned() ? "" : ". No process owns the partition now");
  }
  if (row.owned()) {
    return fmt::format("{} was {} and is {} now. Next offset: {}", name, before, after,
                       row.stored.next());
  }
  return fmt::format(
      "{} was {}, and its stored state is {} now. No process owns the partition, so the state "
      "takes effect when a process acquires it. Next offset: {}",
      name, before, after, row.stored.next());
}

std::string skip_message(postgres::Session& session, const Options& options,
                         const ledger::KnownConsumer& consumer, const ledger::RegisterRow& row,
                         std::int64_t offset, const std::string& reason) {
  if (offset <= row.stored.last()) {
    throw BadCall(fmt::format("{} is already processed. The next offset is {}",
                              name_of(row.partition, offset), row.stored.next()));
  }
  // Outlives the record: a client does not end while one of its messages is held.
  const auto client = make_client(options);
  require_same_cluster(options, consumer.kafka_cluster_id, client->cluster_id(kKafkaTimeout));
  const ledger::OperatorCommands commands(options.postgres.schema, consumer.id);
  ledger::OperatorSkip change{row.partition, row.stored, row.epoch, reason};
  if (row.state == ledger::PartitionState::kHalted)
    change.halt = row.halt;
  const auto skip = [&](const Message& message) {
    change_register(options.invocation, row.partition,
                    [&] { commands.skip(session, change, message); });
  };
  change.unread =
      row.halt.kind == ledger::halt_kind::kCrashLoop && row.halt.message_offset == offset;
  if (change.unread) {
    MessageFields place_alone;
    place_alone.topic = row.partition.topic;
    place_alone.partition = row.partition.partition;
    place_alone.offset = offset;
    skip(Message(place_alone));
    return "Because it was not read, only its offset is stored";
  }
  const auto record = next_record(*client, row);
  if (record.offset() != offset) {
    throw BadCall(fmt::format("{0}@{1} is not the next message. Only {0}@{2} can be skipped",
                              name_of(row.partition), offset, record.offset()));
  }
  skip(record.view(row.partition.topic, ""));
  return "It is stored";
}

}  // namespace pawl::cli
