#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/message.hpp"

namespace pawl {

/// A reason outside of the process for which some of its messages wait now. The wait counts as no
/// attempt. Consumer::conditions() returns the current ones; log, `pawl status`,
/// dashboard, metrics, and alerts report the same.
///
///   for (const pawl::Condition& condition : consumer.conditions())
///     std::cerr << condition.what << ": " << condition.cause << '\n';
struct Condition {
  enum class Kind {
    kRemoteServiceUnreachable,  ///< an endpoint that http handlers call
    kPartitionBlocked,          ///< a message has waited for ten times postgres.lock_timeout
  };

  Kind kind{};
  /// The endpoint ("https://api.example:8443"), or the partition ("payments[7]").
  std::string what = {};
  std::string topic = {};       ///< of kPartitionBlocked; otherwise empty
  std::int32_t partition = -1;  ///< of kPartitionBlocked; otherwise -1
  Timestamp since{};            ///< UTC, in milliseconds
  std::int64_t messages = 0;    ///< messages that wait, as far as that is known
  std::string cause = {};       ///< for people; at most 2,000 characters
  /// False: it began a short time ago, and may pass. Log, alerts, and metrics do not report it yet.
  bool lasting = true;

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// "remote_service_unreachable", "partition_blocked": the names of the events that report it.
[[nodiscard]] std::string_view to_string(Condition::Kind kind);

}  // namespace pawl
