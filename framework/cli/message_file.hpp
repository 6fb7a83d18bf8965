#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/message.hpp"

namespace pawl::cli {

/// A message that somebody wrote into a file, with its memory.
class MessageFile {
 public:
  /// JSON as `partitions peek --json` prints it: topic, topic_id, partition, offset, timestamp_ms,
  /// key, value and headers, all but topic and value optional. A key, a value or a header's value
  /// is a text, null, {"base64": ...}, or any other JSON, which is taken as it stands in the file.
  /// `path` names it in errors. Throws std::invalid_argument with what is wrong, and where.
  static MessageFile parse(const std::string& text, const std::string& path);

  /// Valid as long as this object stays where it is.
  [[nodiscard]] Message view() const;

 private:
  using Bytes = std::optional<std::string>;

  std::string topic_;
  std::string topic_id_;
  std::int32_t partition_ = 0;
  std::int64_t offset_ = 0;
  std::optional<Timestamp> timestamp_;
  Bytes key_;
  Bytes value_;
  std::vector<std::pair<std::string, Bytes>> headers_;
  mutable std::vector<Header> views_;
};

}  // namespace pawl::cli
