#include "cli/message_file.hpp"

#include "prelude.hpp"

using pawl::cli::MessageFile;

namespace {

std::string refusal(const std::string& text) {
  try {
    (void)MessageFile::parse(text, "m.json");
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a message in a file is what peek prints, or less") {
  const auto file = MessageFile::parse(
      R"({"topic": "t", "partition": 2, "offset": 7, "timestamp": "1970-01-01T00:00:00.005Z",
          "key": {"base64": "AAE="}, "value": {"a": [1, "x"]}, "value_bytes": 12,
          "headers": [{"name": "h", "value": "v"}, {"name": "none", "value": null}]})",
      "m.json");
  const auto message = file.view();
  CHECK(message.topic() == "t");
  CHECK(message.partition() == 2);
  CHECK(message.offset() == 7);
  CHECK(message.timestamp()->time_since_epoch().count() == 5);
  CHECK(message.key() == std::string("\0\1", 2));
  CHECK(message.value() == R"({"a": [1, "x"]})");
  CHECK(message.header("h") == "v");
  CHECK(message.has_header("none"));
  CHECK_FALSE(message.header("none").has_value());

  const auto least = MessageFile::parse(
      R"({"topic": "t", "value": null, "headers": {"event-id": "e"}})", "m.json");
  CHECK_FALSE(least.view().has_value());
  CHECK_FALSE(least.view().key().has_value());
  CHECK_FALSE(least.view().timestamp().has_value());
  CHECK(least.view().header("event-id") == "e");
}

TEST_CASE("numbers of a message in a file keep their digits, wherever they stand") {
  const auto file = MessageFile::parse(
      R"({"topic": "t", "topic_id": "KbqG5g", "key": 1.10, "headers": {"a/b~": 7.10},
          "value": {"weight": 12345678901234567890.12345678900, "price": 7.10}})",
      "m.json");
  const auto message = file.view();
  CHECK(message.value() == R"({"weight": 12345678901234567890.12345678900, "price": 7.10})");
  CHECK(message.key() == "1.10");
  CHECK(message.header("a/b~") == "7.10");
  CHECK(message.topic_id() == "KbqG5g");
}

TEST_CASE("a file that holds no message is refused by its name and place") {
  CHECK(refusal("{").starts_with("m.json: is not JSON, at byte "));
  CHECK_THAT(refusal("[]"), ContainsSubstring("is not a JSON object"));
  CHECK_THAT(refusal(R"({"value": 1})"), ContainsSubstring("topic is missing"));
  CHECK_THAT(refusal(R"({"topic": "t"})"), ContainsSubstring("value is missing"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "ofset": 2})"),
             ContainsSubstring("ofset is not known"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "offset": "2"})"),
             ContainsSubstring("offset is not an integer"));
  // Cut off, it would be the offset or partition of another message.
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "offset": 9223372036854775808})"),
             ContainsSubstring("offset is not an integer of 64 bits"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "partition": 4294967296})"),
             ContainsSubstring("partition is not an integer of 32 bits"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "timestamp": 18446744073709551615})"),
             ContainsSubstring("timestamp is not an integer of 64 bits"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "timestamp": "yesterday"})"),
             ContainsSubstring("timestamp is neither an RFC 3339 text"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "topic_id": 2})"),
             ContainsSubstring("topic_id is not a string"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": {"base64": "%"}})"),
             ContainsSubstring("value.base64"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "headers": [1]})"),
             ContainsSubstring("headers[0]"));
  CHECK_THAT(refusal(R"({"topic": "t", "value": 1, "headers": 1})"),
             ContainsSubstring("headers are none"));
}
