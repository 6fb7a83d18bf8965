#pragma once

// Prints why messages of this process wait.
//
//   #include <iostream>
//   #include <pawl/condition.hpp>
//   #include <pawl/consumer.hpp>
//
//   void print_conditions(const pawl::Consumer& consumer) {
//     for (const pawl::Condition& condition : consumer.conditions()) {
//       std::cerr << pawl::to_string(condition.kind) << ": " << condition.messages
//                 << " messages wait: " << condition.cause << '\n';
//     }
//   }

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/message.hpp"

namespace pawl {

/// A reason outside of the process for which some of its messages wait now. The wait is not counted
/// as an attempt. Consumer::conditions() returns the current ones. Log, `pawl status`, dashboard,
/// metrics, and alerts report the same.
struct Condition {
  enum class Kind {
    kRemoteServiceUnreachable,  ///< an endpoint that http handlers call
    kPartitionBlocked,          ///< a message has waited for ten times postgres.lock_timeout
    kKafkaUnreachable,          ///< the process waits for Kafka, perhaps since its start
  };

  Kind kind{};
  /// The endpoint ("https://api.example:8443"), the partition ("payments[7]"), or
  /// kafka.bootstrap_servers.
  std::string subject = {};
  std::string topic = {};       ///< of kPartitionBlocked; otherwise empty
  std::int32_t partition = -1;  ///< of kPartitionBlocked; otherwise -1
  Timestamp since{};            ///< UTC, in milliseconds
  std::int64_t messages = 0;    ///< messages that wait, as far as that is known
  std::string cause = {};       ///< for people; at most 2,000 characters
  /// False: the condition started a short time ago, and may pass. Log, alerts, and metrics do not
  /// report it yet.
  bool lasting = true;
  /// Of kPartitionBlocked: PostgreSQL's process ID of the session that holds the lock, of several
  /// sessions the one with the oldest transaction. 0: unknown, or a prepared transaction.
  std::int32_t blocking_pid = 0;

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// "remote_service_unreachable", "partition_blocked", or "kafka_unreachable": the code of the event
/// that reports it.
[[nodiscard]] std::string_view to_string(Condition::Kind kind);

}  // namespace pawl
