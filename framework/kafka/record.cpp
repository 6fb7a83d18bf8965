#include "kafka/record.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace pawl::kafka {
namespace {

std::optional<std::string_view> bytes_of(const void* bytes, std::size_t size) {
  if (bytes == nullptr)
    return std::nullopt;
  return std::string_view(static_cast<const char*>(bytes), size);
}

/// Views of librdkafka's memory. Nullopt: there are some, and librdkafka cannot read them; it reads
/// 100,000 at most.
std::optional<std::vector<Header>> headers_of(const rd_kafka_message_t& message) {
  std::vector<Header> result;
  rd_kafka_headers_t* headers = nullptr;
  const auto error = rd_kafka_message_headers(&message, &headers);
  if (error == RD_KAFKA_RESP_ERR__NOENT)
    return result;
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return std::nullopt;
  result.reserve(rd_kafka_header_cnt(headers));
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    result.push_back({name, bytes_of(value, size)});
  return result;
}

}  // namespace

Record::Record(const rd_kafka_message_t& message)
    : error_(message.err), partition_(message.partition), offset_(message.offset) {
  if (error_ == RD_KAFKA_RESP_ERR_NO_ERROR) {
    read(message);
    copy();
    return;
  }
  const char* text = rd_kafka_message_errstr(&message);
  error_text_ = text != nullptr ? text : rd_kafka_err2str(error_);
}

Record::Record(MessageHandle message)
    : error_(message->err), partition_(message->partition), offset_(message->offset) {
  if (error_ != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::logic_error("only a message can be kept");
  read(*message);
  kept_ = std::move(message);
}

/// Views of librdkafka's memory.
void Record::read(const rd_kafka_message_t& message) {
  rd_kafka_timestamp_type_t type{};
  if (const auto time = rd_kafka_message_timestamp(&message, &type); time >= 0)
    timestamp_ = Timestamp{std::chrono::milliseconds{time}};
  if (const auto epoch = rd_kafka_message_leader_epoch(&message); epoch >= 0)
    leader_epoch_ = epoch;
  key_ = bytes_of(message.key, message.key_len);
  value_ = bytes_of(message.payload, message.len);
  auto headers = headers_of(message);
  headers_unreadable_ = !headers;
  if (headers)
    headers_ = *std::move(headers);

  size_ = bytes();
  for (const auto& header : headers_)
    size_ += header.name.size() + header.value.value_or("").size();
}

void Record::copy() {
  storage_ = std::make_unique_for_overwrite<char[]>(size_);
  char* end = storage_.get();
  const auto move_to_storage = [&](std::string_view& bytes) {
    const std::string_view copied(end, bytes.size());
    end = std::ranges::copy(bytes, end).out;
    bytes = copied;
  };
  const auto move_if_any = [&](std::optional<std::string_view>& bytes) {
    if (bytes)
      move_to_storage(*bytes);
  };
  move_if_any(key_);
  move_if_any(value_);
  for (auto& header : headers_) {
    move_to_storage(header.name);
    move_if_any(header.value);
  }
}

Record::Kind Record::kind() const {
  switch (error_) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return Kind::kMessage;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      return Kind::kEndOfLog;
    default:
      return Kind::kError;
  }
}

void Record::note_leader_epoch_before_end(rd_kafka_t* client, const TopicPartition& partition) {
  // Control records are not delivered, but they move librdkafka's position, which has their epoch.
  // It is behind the end where more was delivered since.
  const auto list = new_list();
  auto* entry =
      rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.partition);
  if (rd_kafka_position(client, list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      entry->err != RD_KAFKA_RESP_ERR_NO_ERROR || entry->offset != offset())
    return;
  const auto epoch = rd_kafka_topic_partition_get_leader_epoch(entry);
  if (epoch >= 0)
    leader_epoch_ = epoch;
}

Message Record::view(std::string_view topic, std::string_view topic_id) const {
  if (kind() != Kind::kMessage)
    throw std::logic_error("only a message can be viewed as one");
  MessageFields fields;
  fields.topic = topic;
  fields.topic_id = topic_id;
  fields.partition = partition_;
  fields.offset = offset_;
  fields.key = key_;
  fields.value = value_;
  fields.headers = headers_;
  fields.headers_unreadable = headers_unreadable_;
  fields.timestamp = timestamp_;
  return Message(fields);
}

}  // namespace pawl::kafka
