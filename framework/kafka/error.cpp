#include "kafka/error.hpp"

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
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return ErrorKind::kTopicRefused;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      return ErrorKind::kTopicUnknown;
    case RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS:
      return ErrorKind::kTransactionPending;
    case RD_KAFKA_RESP_ERR__STATE:
      return ErrorKind::kFetcherStarting;
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
      return ErrorKind::kAllBrokersDown;
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
      return ErrorKind::kBrokerFailed;
    default:
      return ErrorKind::kPassing;
  }
}

}  // namespace pawl::kafka
