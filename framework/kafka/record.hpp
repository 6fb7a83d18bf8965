#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/fetch_buffer.hpp"
#include "kafka/handles.hpp"
#include "pawl/message.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// What came out of a partition's queue: a record, the mark that the log's end was reached, or an
/// error of that partition. A copy, unless it is told otherwise: librdkafka keeps a broker's whole
/// answer, which may be of many partitions, for as long as one message of it lives. Movable. Used
/// by one thread.
class Record {
 public:
  enum class Kind { kMessage, kEndOfLog, kError };

  explicit Record(const rd_kafka_message_t& message);
  /// Of a message: keeps it instead of copying it. The record must go before its client.
  explicit Record(MessageHandle message);

  [[nodiscard]] Kind kind() const;
  /// Of the message; for kEndOfLog the offset behind the last one, that is the log's end.
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  [[nodiscard]] rd_kafka_resp_err_t error() const { return error_; }
  [[nodiscard]] ErrorKind error_kind() const { return kind_of_error(error_); }
  /// librdkafka's words for what is no message.
  [[nodiscard]] const std::string& error_text() const { return error_text_; }
  /// KIP-320: of the message; for kEndOfLog of what stands right before the end, be it a control
  /// record. Nullopt: the broker does not tell, or it is unknown.
  [[nodiscard]] std::optional<std::int32_t> leader_epoch() const { return leader_epoch_; }
  /// What an end of the log does not know by itself. `client`: which has just delivered it, from
  /// `partition`.
  void note_leader_epoch_before_end(rd_kafka_t* client, const TopicPartition& partition);
  [[nodiscard]] const std::optional<Timestamp>& timestamp() const { return timestamp_; }
  [[nodiscard]] std::size_t bytes() const {
    return key_.value_or("").size() + value_.value_or("").size();
  }
  /// With what librdkafka and pawl need for a record beside its own bytes.
  [[nodiscard]] std::size_t memory() const { return size_ + kRecordOverhead; }
  /// It counts in the account of kafka.buffer as long as it lives.
  void hold(BufferHold hold) { hold_ = std::move(hold); }

  /// A view into this record; valid as long as the record lives and is not moved. Throws
  /// std::logic_error unless it is a message.
  [[nodiscard]] Message view(std::string_view topic, std::string_view topic_id) const;

 private:
  void read(const rd_kafka_message_t& message);
  void copy();

  rd_kafka_resp_err_t error_;
  std::int32_t partition_;
  std::int64_t offset_;
  std::optional<Timestamp> timestamp_;
  std::optional<std::int32_t> leader_epoch_;
  std::string error_text_;
  std::size_t size_ = 0;
  std::unique_ptr<char[]> storage_;  ///< `size_` bytes: key, value and headers
  MessageHandle kept_;               ///< or the message that has them
  std::optional<std::string_view> key_;
  std::optional<std::string_view> value_;
  std::vector<Header> headers_;
  bool headers_unreadable_ = false;
  BufferHold hold_;
};

}  // namespace pawl::kafka
