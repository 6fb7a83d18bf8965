#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kafka/handles.hpp"

namespace pawl::testing {

using kafka::AdminOptionsHandle;
using kafka::ConfHandle;
using kafka::ErrorHandle;
using kafka::EventHandle;
using kafka::ListHandle;
using kafka::MessageHandle;
using kafka::QueueHandle;
using kafka::TopicCollectionHandle;

/// Those that only fixtures need.
template <typename T, auto Destroy>
using Handle = std::unique_ptr<T, kafka::Deleter<Destroy>>;
using KafkaHandle = Handle<rd_kafka_t, rd_kafka_destroy>;
using MetadataHandle = Handle<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
using TopicHandle = Handle<rd_kafka_topic_t, rd_kafka_topic_destroy>;

/// Throws std::runtime_error with what was tried and librdkafka's words, unless it went well.
void require(rd_kafka_resp_err_t error, const std::string& what, const char* detail = nullptr);
void require(ErrorHandle error, const std::string& what);

/// Its log goes to stderr only when something is critical: tests stop brokers on purpose.
KafkaHandle make_client(rd_kafka_type_t type, const std::string& bootstrap,
                        const std::map<std::string, std::string>& properties);

/// Sends one request of the Admin API and waits for its answer, which is checked for an error of
/// the request as a whole; those of its parts are the caller's. May be called from any thread.
EventHandle admin_request(
    rd_kafka_t* client, rd_kafka_admin_op_t operation, const std::string& what,
    const std::function<void(rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>& send,
    const std::function<void(rd_kafka_AdminOptions_t*)>& configure = {});

/// The offset after the last record that consumers of this isolation level can read: the high
/// watermark, or the last stable offset (KIP-98). May be called from any thread.
std::int64_t end_offset(rd_kafka_t* client, const std::string& topic, int partition,
                        rd_kafka_IsolationLevel_t isolation);

}  // namespace pawl::testing
