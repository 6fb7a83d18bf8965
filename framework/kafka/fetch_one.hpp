#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "kafka/client.hpp"
#include "kafka/record.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// A client for fetch_one, which fetches the batch with the message, and not the batches after it.
/// Nobody else may use it, and it never joins the group; its own log lines are dropped, its errors
/// come with the results. Throws KafkaError.
std::unique_ptr<Client> client_of_one_message(KafkaOptions options);

/// Reads the first record at or behind an offset, as a consumer of committed data sees it, without
/// joining the group. Nullopt: the log ends before there is one. Throws KafkaError, also when the
/// offset lies outside of the log or nothing comes within `timeout`. For a client that nobody else
/// uses: it assigns the partition, and unassigns it in the end. The record must go before the
/// client, which waits for it in its destructor.
std::optional<Record> fetch_one(const Client& client, const TopicPartition& partition,
                                std::int64_t offset, std::chrono::milliseconds timeout);
/// The same, without a copy of what may be larger than half of the memory.
std::optional<Record> fetch_one_kept(const Client& client, const TopicPartition& partition,
                                     std::int64_t offset, std::chrono::milliseconds timeout);

}  // namespace pawl::kafka
