#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/fetch_buffer.hpp"
#include "kafka/handles.hpp"
#include "pawl/message.hpp"

namespace pawl::kafka {

/// What an error in place of records means to who reads the partition.
enum class ErrorKind {
  kPositionRefused,  ///< the log does not hold the position (any more)
  /// What comes next cannot be read. librdkafka (2.14.2) asks for it again without end, or goes on
  /// elsewhere: behind a wrong checksum it loses its place in what it fetched.
  kUnreadable,
  kPassing,  ///< librdkafka tries again by itself
};
[[nodiscard]] ErrorKind kind_of_error(rd_kafka_resp_err_t error);

/// What came out of a partition's queue: a record, the mark that the log's end was reached, or an
/// error of that partition. Owns librdkafka's memory; movable. Used by one thread.
class Record {
 public:
  enum class Kind { kMessage, kEndOfLog, kError };

  explicit Record(MessageHandle message);

  [[nodiscard]] Kind kind() const;
  /// Of the message; for kEndOfLog the offset behind the last one, that is the log's end.
  [[nodiscard]] std::int64_t offset() const { return message_->offset; }
  [[nodiscard]] rd_kafka_resp_err_t error() const { return message_->err; }
  [[nodiscard]] std::string error_text() const;
  /// KIP-320: of the message; for kEndOfLog of what stands right before the end, be it a control
  /// record. Nullopt: the broker does not tell, or it is unknown.
  [[nodiscard]] std::optional<std::int32_t> leader_epoch() const;
  /// What an end of the log does not know by itself. `client`: which has just delivered it.
  void note_leader_epoch_before_end(rd_kafka_t* client);
  [[nodiscard]] std::size_t bytes() const { return message_->len + message_->key_len; }
  /// With what librdkafka and pawl need for a record beside its key and value.
  [[nodiscard]] std::size_t memory() const { return bytes() + kRecordOverhead; }
  /// Null for what belongs to no topic.
  [[nodiscard]] const char* topic() const {
    return message_->rkt != nullptr ? rd_kafka_topic_name(message_->rkt) : nullptr;
  }
  [[nodiscard]] std::int32_t partition() const { return message_->partition; }
  /// It counts in the account of kafka.buffer as long as it lives.
  void hold(BufferHold hold) { hold_ = std::move(hold); }

  /// A view into this record; valid as long as the record lives and is not moved. Throws
  /// std::logic_error unless it is a message.
  [[nodiscard]] Message view(std::string_view topic, std::string_view topic_id) const;

 private:
  MessageHandle message_;
  std::vector<Header> headers_;
  std::optional<std::int32_t> epoch_before_end_;
  BufferHold hold_;
};

}  // namespace pawl::kafka
