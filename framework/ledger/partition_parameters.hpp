#pragma once

#include <map>

#include "ledger/types.hpp"
#include "postgres/parameters.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// Consumer, topic and partition: the first three parameters of every statement about one.
void add_partition(postgres::Parameters& parameters, ConsumerId consumer,
                   const TopicPartition& partition);
[[nodiscard]] postgres::Parameters partition_parameters(ConsumerId consumer,
                                                        const TopicPartition& partition);

/// The consumer, then topics, partitions and epochs as arrays: of statements about all that is
/// held.
[[nodiscard]] postgres::Parameters held_parameters(
    ConsumerId consumer, const std::map<TopicPartition, OwnerEpoch>& held);

void add_record_key(postgres::Parameters& parameters, const RecordKey& record_key);

/// The session's backend, process id and start; nulls where a pooler hides it.
void add_backend(postgres::Parameters& parameters, const postgres::Session& session);

}  // namespace pawl::ledger
