#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>

#include "kafka/error.hpp"

namespace pawl::kafka {

/// RAII for every librdkafka handle: a single leaked one keeps rd_kafka_destroy from returning.
template <auto Destroy>
struct Deleter {
  template <typename T>
  void operator()(T* handle) const {
    Destroy(handle);
  }
};

using ConfHandle = std::unique_ptr<rd_kafka_conf_t, Deleter<rd_kafka_conf_destroy>>;
using ListHandle = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                   Deleter<rd_kafka_topic_partition_list_destroy>>;
using QueueHandle = std::unique_ptr<rd_kafka_queue_t, Deleter<rd_kafka_queue_destroy>>;
using EventHandle = std::unique_ptr<rd_kafka_event_t, Deleter<rd_kafka_event_destroy>>;
using MessageHandle = std::unique_ptr<rd_kafka_message_t, Deleter<rd_kafka_message_destroy>>;
using ErrorHandle = std::unique_ptr<rd_kafka_error_t, Deleter<rd_kafka_error_destroy>>;
using AdminOptionsHandle =
    std::unique_ptr<rd_kafka_AdminOptions_t, Deleter<rd_kafka_AdminOptions_destroy>>;
using TopicCollectionHandle =
    std::unique_ptr<rd_kafka_TopicCollection_t, Deleter<rd_kafka_TopicCollection_destroy>>;
using ConfigResourceHandle =
    std::unique_ptr<rd_kafka_ConfigResource_t, Deleter<rd_kafka_ConfigResource_destroy>>;
using NewTopicHandle = std::unique_ptr<rd_kafka_NewTopic_t, Deleter<rd_kafka_NewTopic_destroy>>;

using MetadataHandle =
    std::unique_ptr<const rd_kafka_metadata_t, Deleter<rd_kafka_metadata_destroy>>;

inline ListHandle new_list(int size = 1) {
  return ListHandle(rd_kafka_topic_partition_list_new(size));
}

}  // namespace pawl::kafka
