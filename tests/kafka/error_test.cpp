#include "kafka/error.hpp"
#include "prelude.hpp"

using namespace pawl::kafka;

TEST_CASE("an error is of one kind") {
  struct Row {
    rd_kafka_resp_err_t error;
    ErrorKind kind;
  };
  const auto row = GENERATE_COPY(Catch::Generators::values<Row>({
      {RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, ErrorKind::kPositionRefused},
      {RD_KAFKA_RESP_ERR__LOG_TRUNCATION, ErrorKind::kPositionRefused},
      {RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, ErrorKind::kPositionRefused},
      {RD_KAFKA_RESP_ERR__BAD_MSG, ErrorKind::kUnreadable},
      {RD_KAFKA_RESP_ERR__BAD_COMPRESSION, ErrorKind::kUnreadable},
      {RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED, ErrorKind::kUnreadable},
      {RD_KAFKA_RESP_ERR_INVALID_MSG, ErrorKind::kUnreadable},
      {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, ErrorKind::kUnreadable},
      {RD_KAFKA_RESP_ERR_UNKNOWN, ErrorKind::kPassing},
      {RD_KAFKA_RESP_ERR__TRANSPORT, ErrorKind::kBrokerFailed},
      {RD_KAFKA_RESP_ERR__RESOLVE, ErrorKind::kBrokerFailed},
      {RD_KAFKA_RESP_ERR__SSL, ErrorKind::kBrokerFailed},
      {RD_KAFKA_RESP_ERR__AUTHENTICATION, ErrorKind::kBrokerFailed},
      {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, ErrorKind::kAllBrokersDown},
      {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, ErrorKind::kTopicRefused},
      {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ErrorKind::kTopicUnknown},
      {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID, ErrorKind::kTopicUnknown},
      {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, ErrorKind::kTopicUnknown},
      {RD_KAFKA_RESP_ERR__STATE, ErrorKind::kFetcherStarting},
  }));
  INFO(rd_kafka_err2name(row.error));
  CHECK(kind_of_error(row.error) == row.kind);
}
