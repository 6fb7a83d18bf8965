#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// KIP-320; nullopt where the broker does not tell.
  [[nodiscard]] std::optional<std::int32_t> leader_epoch() const;
  [[nodiscard]] std::size_t bytes() const { return message_->len + message_->key_len; }

  /// A view into this record; valid as long as the record lives and is not moved.
  [[nodiscard]] Message view(std::string_view topic, std::string_view topic_id) const;

 private:
  MessageHandle message_;
  std::vector<Header> headers_;
};

}  // namespace pawl::kafka
