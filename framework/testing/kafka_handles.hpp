#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace pawl::testing {

/// Calls one of librdkafka's functions when a pointer goes.
template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* pointer) const {
    Destroy(pointer);
  }
};

template <typename T, auto Destroy>
using Handle = std::unique_ptr<T, Destroyer<Destroy>>;

using KafkaHandle = Handle<rd_kafka_t, rd_kafka_destroy>;
using QueueHandle = Handle<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using EventHandle = Handle<rd_kafka_event_t, rd_kafka_event_destroy>;
using ErrorHandle = Handle<rd_kafka_error_t, rd_kafka_error_destroy>;
using AdminOptionsHandle = Handle<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;
using PartitionListHandle =
    Handle<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;

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

}  // namespace pawl::testing
