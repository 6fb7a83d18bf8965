#include <fmt/format.h>

#include <algorithm>
#include <pawl/testing/kafka_reader.hpp>
#include <pawl/testing/wait.hpp>
#include <set>

#include "testing/kafka_handles.hpp"

namespace pawl::testing {

namespace {

/// For the broker's answer about a topic, whatever the caller waits for.
constexpr int kDescribeTimeoutMs = 60'000;

std::optional<std::string> bytes(const void* data, std::size_t size) {
  if (data == nullptr)
    return std::nullopt;
  return std::string(static_cast<const char*>(data), size);
}

StoredRecord to_record(const rd_kafka_message_t& message) {
  StoredRecord record{message.partition, message.offset, bytes(message.key, message.key_len),
                      bytes(message.payload, message.len)};
  rd_kafka_headers_t* headers = nullptr;
  const auto error = rd_kafka_message_headers(&message, &headers);
  if (error == RD_KAFKA_RESP_ERR__NOENT)
    return record;
  // Unreadable is not empty.
  require(error, fmt::format("reading the headers of [{}]@{}", message.partition, message.offset));
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    record.headers.emplace_back(name, bytes(value, size));
  return record;
}

int partition_count(rd_kafka_t* client, const std::string& topic) {
  const TopicHandle handle{rd_kafka_topic_new(client, topic.c_str(), nullptr)};
  const rd_kafka_metadata_t* found = nullptr;
  require(rd_kafka_metadata(client, 0, handle.get(), &found, kDescribeTimeoutMs),
          "describing topic " + topic);
  const MetadataHandle metadata{found};
  require(metadata->topics[0].err, "describing topic " + topic);
  return metadata->topics[0].partition_cnt;
}

/// Until consumers of committed records can read the partition as far as it is written by now.
void wait_for_open_transactions(rd_kafka_t* client, const std::string& topic, int partition,
                                std::chrono::milliseconds timeout) {
  const auto end = end_offset(client, topic, partition, RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED);
  wait_until(
      [&] {
        return end_offset(client, topic, partition, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED) >= end;
      },
      timeout, fmt::format("the open transactions in {}[{}] to finish", topic, partition));
}

}  // namespace

std::string StoredRecord::header(const std::string& name) const {
  const auto found = std::find_if(headers.rbegin(), headers.rend(),
                                  [&](const auto& one) { return one.first == name; });
  return found == headers.rend() ? "" : found->second.value_or("");
}

std::vector<StoredRecord> read_topic(const std::string& bootstrap, const std::string& topic,
                                     ReadIsolation isolation, std::chrono::milliseconds timeout) {
  const auto timeout_ms = static_cast<int>(timeout.count());
  const bool committed = isolation == ReadIsolation::kReadCommitted;
  const auto client =
      make_client(RD_KAFKA_CONSUMER, bootstrap,
                  {{"group.id", "reader"},
                   {"enable.auto.commit", "false"},
                   {"enable.partition.eof", "true"},
                   {"isolation.level", committed ? "read_committed" : "read_uncommitted"},
                   {"auto.offset.reset", "error"}});
  rd_kafka_poll_set_consumer(client.get());
  std::set<int> open;
  const auto list = kafka::new_list();
  const int partitions = partition_count(client.get(), topic);
  for (int p = 0; p < partitions; ++p) {
    if (committed)
      wait_for_open_transactions(client.get(), topic, p, timeout);
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), p)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    open.insert(p);
  }
  require(rd_kafka_assign(client.get(), list.get()), "assigning " + topic);
  std::vector<StoredRecord> records;
  while (!open.empty()) {
    const MessageHandle message{rd_kafka_consumer_poll(client.get(), timeout_ms)};
    if (!message)
      throw Timeout{fmt::format("reading {}: no message arrived within {} ms", topic, timeout_ms)};
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      open.erase(message->partition);
      continue;
    }
    require(message->err, "reading " + topic, rd_kafka_message_errstr(message.get()));
    records.push_back(to_record(*message));
  }
  rd_kafka_assign(client.get(), nullptr);
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::pair(a.partition, a.offset) < std::pair(b.partition, b.offset);
  });
  return records;
}

}  // namespace pawl::testing
