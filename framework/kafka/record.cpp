#include "kafka/record.hpp"

#include <stdexcept>

namespace pawl::kafka {

ErrorKind kind_of_error(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR__LOG_TRUNCATION:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return ErrorKind::kPositionRefused;
    case RD_KAFKA_RESP_ERR__BAD_MSG:          // checksum, or a batch that ends too early
    case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:  // magic byte, codec
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:  // the broker says so
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:  // beyond receive.message.max.bytes
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE:
      return ErrorKind::kUnreadable;
    default:
      return ErrorKind::kPassing;
  }
}

Record::Record(MessageHandle message) : message_(std::move(message)) {
  if (message_->err != RD_KAFKA_RESP_ERR_NO_ERROR)
    return;
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message_.get(), &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return;
  headers_.reserve(rd_kafka_header_cnt(headers));
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    Header header{name, std::nullopt};
    if (value != nullptr)
      header.value = std::string_view(static_cast<const char*>(value), size);
    headers_.push_back(header);
  }
}

Record::Kind Record::kind() const {
  switch (message_->err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return Kind::kMessage;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      return Kind::kEndOfLog;
    default:
      return Kind::kError;
  }
}

std::string Record::error_text() const {
  const char* text = rd_kafka_message_errstr(message_.get());
  return text != nullptr ? text : rd_kafka_err2str(message_->err);
}

std::optional<std::int32_t> Record::leader_epoch() const {
  if (kind() == Kind::kEndOfLog)
    return epoch_before_end_;
  const auto epoch = rd_kafka_message_leader_epoch(message_.get());
  if (epoch < 0)
    return std::nullopt;
  return epoch;
}

void Record::note_leader_epoch_before_end(rd_kafka_t* client) {
  // Control records are not delivered, but they move librdkafka's position, which has their epoch.
  // It is behind the end where more was delivered since.
  const auto list = new_list();
  auto* entry = rd_kafka_topic_partition_list_add(list.get(), topic(), partition());
  if (rd_kafka_position(client, list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      entry->err != RD_KAFKA_RESP_ERR_NO_ERROR || entry->offset != offset())
    return;
  const auto epoch = rd_kafka_topic_partition_get_leader_epoch(entry);
  if (epoch >= 0)
    epoch_before_end_ = epoch;
}

Message Record::view(std::string_view topic, std::string_view topic_id) const {
  // The mark of the log's end carries librdkafka's words where a message has its value.
  if (kind() != Kind::kMessage)
    throw std::logic_error("only a message can be looked at as one");
  MessageFields fields;
  fields.topic = topic;
  fields.topic_id = topic_id;
  fields.partition = message_->partition;
  fields.offset = message_->offset;
  if (message_->key != nullptr) {
    fields.key = std::string_view(static_cast<const char*>(message_->key), message_->key_len);
  }
  if (message_->payload != nullptr) {
    fields.value = std::string_view(static_cast<const char*>(message_->payload), message_->len);
  }
  fields.headers = headers_;
  rd_kafka_timestamp_type_t type{};
  fields.timestamp_ms = rd_kafka_message_timestamp(message_.get(), &type);
  return Message(fields);
}

}  // namespace pawl::kafka
