#include "cli/init_text.hpp"

#include "prelude.hpp"

using pawl::Header;
using pawl::Message;
using pawl::MessageFields;
using pawl::cli::init_text;
using pawl::cli::InitFacts;
using pawl::cli::key_candidates;

namespace {

Message message(std::string_view value, std::span<const Header> headers = {}) {
  MessageFields fields;
  fields.topic = "order events";
  fields.offset = 7;
  fields.value = value;
  fields.headers = headers;
  return Message(fields);
}

}  // namespace

TEST_CASE("an event's id is looked for in headers and in the value, the surest first") {
  const std::vector<Header> headers{{"traceparent", "x"}, {"ce_id", "1"}, {"event-id", "2"}};
  CHECK(
      key_candidates(
          message(R"({"id": 1, "eventId": "e", "orderId": 7, "uuid": {"a": 1}})", headers)) ==
      std::vector<std::string>{"{header:event-id}", "{/eventId}", "{header:ce_id}", "{/orderId}"});
  CHECK(key_candidates(message("no JSON")).empty());
  CHECK(key_candidates(message(R"({"id": 1})")).empty());
}

TEST_CASE("a configuration is guessed from a message") {
  const InitFacts facts{"b:9092",       "books", "postgresql://db/books",
                        "order events", 3,       {"kafka.librdkafka"}};
  const auto text = init_text(
      facts, message(R"({"eventId": "e", "totalAmount": 1.5, "paid": true, "lines": [], "n": 3,
                        "a/b": "x", "odd{": 1})"));
  CHECK_THAT(text, ContainsSubstring("key = \"{/eventId}\"\n"));
  CHECK_THAT(text,
             ContainsSubstring("INSERT INTO order_events (event_id, total_amount, paid, lines, n, "
                               "a_b) VALUES ({/eventId}, {/totalAmount}::numeric, "
                               "{/paid}::boolean, {/lines}::jsonb, {/n}::bigint, {/a~1b})"));
  CHECK_THAT(text, ContainsSubstring("CREATE TABLE order_events (event_id text, total_amount "
                                     "numeric, paid boolean, lines jsonb, n bigint, a_b text);"));
  CHECK_THAT(text, ContainsSubstring("to be written here: kafka.librdkafka\n"));

  const auto empty = init_text(facts, std::nullopt);
  CHECK_THAT(empty, ContainsSubstring("The topic has no message to look at"));
  CHECK_THAT(empty, ContainsSubstring("Nothing in the message looks like one"));
}

TEST_CASE("texts are TOML's") {
  const InitFacts facts{"b:9092", "a\"b\\c\n", "postgresql://db/books", "t", 3, {}};
  CHECK_THAT(init_text(facts, std::nullopt), ContainsSubstring(R"(group = "a\"b\\c\n")"
                                                               "\n"));
}
