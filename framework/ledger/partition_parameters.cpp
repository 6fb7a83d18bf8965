#include "ledger/partition_parameters.hpp"

#include "postgres/array_elements.hpp"

namespace pawl::ledger {

void add_partition(postgres::Parameters& parameters, ConsumerId consumer,
                   const TopicPartition& partition) {
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(partition.topic);
  parameters.add_integer(partition.partition);
}

postgres::Parameters partition_parameters(ConsumerId consumer, const TopicPartition& partition) {
  postgres::Parameters parameters;
  add_partition(parameters, consumer, partition);
  return parameters;
}

postgres::Parameters held_parameters(ConsumerId consumer,
                                     const std::map<TopicPartition, OwnerEpoch>& held) {
  postgres::ArrayElements topics;
  postgres::ArrayElements partitions;
  postgres::ArrayElements epochs;
  for (const auto& [partition, epoch] : held) {
    topics.add_text(partition.topic);
    partitions.add_integer(partition.partition);
    epochs.add_integer(static_cast<std::int64_t>(epoch));
  }
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  for (const auto* column : {&topics, &partitions, &epochs})
    parameters.add_text(column->array());
  return parameters;
}

void add_record_key(postgres::Parameters& parameters, const RecordKey& record_key) {
  parameters.add_integer(static_cast<std::int64_t>(record_key.consumer));
  parameters.add_text(record_key.topic);
  parameters.add_bytes(record_key.key);
}

void add_backend(postgres::Parameters& parameters, const postgres::Session& session) {
  if (session.backend()) {
    parameters.add_integer(session.backend()->pid);
    parameters.add_text(session.backend()->backend_start);
  } else {
    parameters.add_null();
    parameters.add_null();
  }
}

}  // namespace pawl::ledger
