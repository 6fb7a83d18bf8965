#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/message.hpp"

namespace pawl::ledger {

/// A row of pawl.skipped_messages, without value and headers.
struct SkippedMessage {
  TopicPartition partition;
  std::int64_t offset = -1;
  std::string reason;
  std::optional<Halt> halt;                 ///< the halt that it caused; nullopt: none
  std::optional<std::string> record_key;    ///< nullopt: the message has none, or it is not kept
  std::optional<std::int64_t> value_bytes;  ///< nullopt: null, or not kept
  bool omitted = false;                     ///< key, value and headers are not kept
  std::optional<Timestamp> timestamp;
  std::string skipped_at;  ///< RFC 3339, UTC
  std::string actor;       ///< the role that skipped it
};

struct SkippedFilter {
  std::string topic;                      ///< empty: of all
  std::optional<std::int32_t> partition;  ///< of all
};

/// The newest first, at most `limit`.
std::vector<SkippedMessage> list_skipped(postgres::Session& session, const std::string& schema,
                                         ConsumerId consumer, const SkippedFilter& filter,
                                         std::int64_t limit);

}  // namespace pawl::ledger
