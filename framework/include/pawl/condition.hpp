#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/message.hpp"

namespace pawl {

/// Something outside of a process that its messages wait for, while it lasts: nothing of it counts
/// as an attempt of theirs. Log, `pawl status`, dashboard, metrics and alerts all have it from
/// here.
struct Condition {
  enum class Kind {
    kRemoteServiceUnreachable,  ///< an endpoint that http handlers call
    kPartitionBlocked,          ///< a message of a partition waits for a lock in PostgreSQL
  };

  Kind kind{};
  /// The endpoint ("https://api.example:8443"), or the partition ("payments[7]").
  std::string what = {};
  std::string topic = {};       ///< of kPartitionBlocked; else empty
  std::int32_t partition = -1;  ///< the same; else -1
  Timestamp since{};
  std::int64_t messages = 0;  ///< that wait, as far as that is known
  std::string cause = {};     ///< for people, bounded

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// "remote_service_unreachable", "partition_blocked": the names of the events that report it.
[[nodiscard]] std::string_view to_string(Condition::Kind kind);

}  // namespace pawl
