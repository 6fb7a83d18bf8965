#pragma once

#include <librdkafka/rdkafka.h>

#include <stdexcept>
#include <string>

namespace pawl::kafka {

/// What an error of Kafka's means to who has to act on it. Other rooms know errors by this alone.
enum class ErrorKind {
  kPositionRefused,  ///< the log does not hold the position (any more)
  /// What comes next cannot be read. librdkafka (2.14.2) asks for it again without end, or goes on
  /// elsewhere: behind a wrong checksum it loses its place in what it fetched.
  kUnreadable,
  kTopicRefused,        ///< not authorised for the topic
  kTopicUnknown,        ///< it does not exist, or not under its id
  kTransactionPending,  ///< Kafka has decided a transaction, and cannot finish it yet
  kFetcherStarting,     ///< librdkafka takes no seek yet
  kAllBrokersDown,      ///< no broker is connected
  kBrokerFailed,        ///< one broker cannot be used: not connected, or it rejected the login
  kPassing,             ///< librdkafka tries again by itself, or the next request may do better
};
[[nodiscard]] ErrorKind kind_of_error(rd_kafka_resp_err_t error);

/// A request to Kafka failed. what() names the request and the reason.
class KafkaError : public std::runtime_error {
 public:
  KafkaError(rd_kafka_resp_err_t code, const std::string& message)
      : KafkaError(kind_of_error(code), message) {}
  KafkaError(ErrorKind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace pawl::kafka
