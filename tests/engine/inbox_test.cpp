#include "engine/inbox.hpp"

#include <librdkafka/rdkafka.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>

using namespace std::chrono_literals;
using pawl::engine::goes_back;
using pawl::engine::Inbox;
using pawl::kafka::Record;
using pawl::ledger::Position;
using Taken = Inbox::Taken;

namespace {

/// As Kafka's client delivers it.
Record record(rd_kafka_resp_err_t error, std::int64_t offset) {
  // librdkafka looks for time and headers behind the public fields: there are none.
  struct {
    rd_kafka_message_t message{};
    std::array<std::byte, 1024> rest{};
  } delivered;
  delivered.message.err = error;
  delivered.message.offset = offset;
  return Record(delivered.message);
}

Record message(std::int64_t offset) {
  return record(RD_KAFKA_RESP_ERR_NO_ERROR, offset);
}

Record end_of_log(std::int64_t offset) {
  return record(RD_KAFKA_RESP_ERR__PARTITION_EOF, offset);
}

Taken take(Inbox& inbox, Record record) {
  return inbox.take(record);
}

}  // namespace

TEST_CASE("records are taken in the log's order, each with its predecessor") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  REQUIRE(take(inbox, message(7)) == Taken::kYes);
  REQUIRE(take(inbox, message(8)) == Taken::kYes);
  REQUIRE(take(inbox, message(12)) == Taken::kYes);  // a hole: compaction, an aborted transaction
  REQUIRE(inbox.size() == 3);
  CHECK(inbox[0].from.last() == 6);
  CHECK(inbox[1].from.last() == 7);
  CHECK(inbox[2].from.last() == 8);
  CHECK(inbox.taken().last() == 12);
}

TEST_CASE("what is behind or comes twice is not taken") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  CHECK(take(inbox, message(6)) == Taken::kNotNext);
  CHECK(inbox.empty());
  inbox.open(Position::behind(6));
  REQUIRE(take(inbox, message(7)) == Taken::kYes);
  CHECK(take(inbox, message(7)) == Taken::kNotNext);
  CHECK(inbox.size() == 1);
}

TEST_CASE("a hole behind the position is believed when it is there the second time") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  REQUIRE(take(inbox, message(9)) == Taken::kNotNext);
  inbox.open(Position::behind(6));
  REQUIRE(take(inbox, message(9)) == Taken::kYes);
  CHECK(inbox.front().from.last() == 6);
  // And asked for again behind the next position.
  inbox.open(Position::behind(9));
  CHECK(take(inbox, message(11)) == Taken::kNotNext);
}

TEST_CASE("the end of the log stands for all that is before it") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  REQUIRE(take(inbox, end_of_log(10)) == Taken::kYes);
  CHECK(inbox.taken().last() == 9);
  CHECK(inbox.front().from.last() == 6);
  CHECK_FALSE(inbox.front().is_message());
  REQUIRE(take(inbox, message(10)) == Taken::kYes);
  CHECK(inbox[1].from.last() == 9);
  CHECK(inbox.up_to_last_message() == 2);
  REQUIRE(take(inbox, end_of_log(11)) == Taken::kYes);
  CHECK(inbox.up_to_last_message() == 2);
  // One that was there already moves nothing back.
  REQUIRE(take(inbox, end_of_log(5)) == Taken::kYes);
  CHECK(inbox.taken().last() == 10);
}

TEST_CASE(
    "the turn of an unreadable place comes behind the messages before it, and nothing follows") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  REQUIRE(take(inbox, message(7)) == Taken::kYes);
  REQUIRE(take(inbox, record(RD_KAFKA_RESP_ERR__BAD_MSG, 8)) == Taken::kYes);
  CHECK(inbox.ends_unreadable());
  CHECK(inbox.size() == 2);
  CHECK(inbox[1].from.last() == 7);
  CHECK(inbox.taken().last() == 7);
  inbox.clear();
  CHECK_FALSE(inbox.ends_unreadable());
}

TEST_CASE("other errors stay with who took them from Kafka") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  auto error = record(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, -1);
  CHECK(inbox.take(error) == Taken::kError);
  CHECK(error.error_kind() == pawl::kafka::ErrorKind::kTopicRefused);
  CHECK(inbox.empty());
}

TEST_CASE("refusals of a position count in a row, until something is taken or it is another one") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  inbox.note_refusal(7, "once");
  inbox.note_refusal(7, "twice");
  REQUIRE(inbox.refusal());
  CHECK(inbox.refusal()->times == 2);
  CHECK(inbox.refusal()->text == "twice");
  inbox.note_refusal(9, "elsewhere");
  CHECK(inbox.refusal()->times == 1);
  inbox.open(Position::behind(8));
  CHECK(inbox.refusal());  // a new try of the same place
  REQUIRE(take(inbox, message(9)) == Taken::kYes);
  CHECK_FALSE(inbox.refusal());
}

TEST_CASE("a stream is stuck when the log goes on, Kafka answers, and nothing comes for long") {
  Inbox inbox;
  inbox.open(Position::behind(6));
  const Inbox::Clock::time_point start{};
  inbox.saw_life(start, 10);
  const auto late = start + 20s;
  CHECK(inbox.is_stuck(late, {8, -1, 13}));
  CHECK_FALSE(inbox.is_stuck(start + 10s, {8, -1, 13}));  // not for long
  CHECK_FALSE(inbox.is_stuck(late, {8, -1, 12}));         // Kafka does not answer either
  CHECK_FALSE(inbox.is_stuck(late, {7, -1, 13}));         // nothing is there
  CHECK_FALSE(inbox.is_stuck(late, {8, 8, 13}));          // only what is no record
  inbox.saw_life(late, 13);
  CHECK_FALSE(inbox.is_stuck(late + 1s, {8, -1, 20}));
}

TEST_CASE("a leader epoch goes back only where both are known") {
  CHECK(goes_back(3, 2));
  CHECK_FALSE(goes_back(2, 2));
  CHECK_FALSE(goes_back(2, 3));
  CHECK_FALSE(goes_back(std::nullopt, 2));
  CHECK_FALSE(goes_back(2, std::nullopt));
}
