#include "cli/init_text.hpp"

#include "prelude.hpp"

using pawl::Header;
using pawl::Message;
using pawl::MessageFields;
using pawl::cli::init_text;
using pawl::cli::InitFacts;
using pawl::cli::key_candidates;
using pawl::cli::settings_of;

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
  const InitFacts facts{"b:9092", "books", "postgresql://db/books", "order events", 3, {}};
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
  const auto empty = init_text(facts, std::nullopt);
  CHECK_THAT(empty, ContainsSubstring("The topic has no message to look at"));
  CHECK_THAT(empty, ContainsSubstring("Nothing in the message looks like one"));
}

TEST_CASE("what --set said stands in the file, and what may be secret as a variable") {
  InitFacts facts{"b:9092", "books", "postgresql://db/books", "orders", 3, {}};
  facts.settings = settings_of(
      {R"(kafka.librdkafka={ "security.protocol" = "SASL_SSL", "sasl.password" = "hunter2" })",
       "kafka.librdkafka.sasl.username=hunter3", "kafka.librdkafka.socket.timeout.ms=7000",
       "kafka.group=other", "kafka.librdkafka.ssl.key.password=${KEY_PASSWORD}",
       "postgres.url=postgresql://u:hunter4@db/books", "idempotency.key={/id}",
       "consumer.workers=2"});
  const auto text = init_text(facts, std::nullopt);
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("[kafka]\nbootstrap_servers = \"b:9092\"\n"
                                     "group = \"other\"\n\n[kafka.librdkafka]\n"
                                     "\"sasl.password\" = \"${KAFKA_SASL_PASSWORD}\"\n"
                                     "\"sasl.username\" = \"${KAFKA_SASL_USERNAME}\"\n"
                                     "\"security.protocol\" = \"SASL_SSL\"\n"
                                     "\"socket.timeout.ms\" = 7000\n"
                                     "\"ssl.key.password\" = \"${KEY_PASSWORD}\"\n\n"
                                     "[postgres]\nurl = \"${POSTGRES_URL}\"\n\n"
                                     "[consumer]\nworkers = 2\n\n"));
  CHECK_THAT(text, ContainsSubstring("[idempotency]\nkey = \"{/id}\"\n"));
  CHECK_THAT(text, ContainsSubstring("# Of the environment, as it may be secret: "
                                     "KAFKA_SASL_PASSWORD, KAFKA_SASL_USERNAME, POSTGRES_URL."));
  CHECK_THAT(text, !ContainsSubstring("hunter"));
}

TEST_CASE("texts are TOML's") {
  const InitFacts facts{"b:9092", "a\"b\\c\n", "postgresql://db/books", "t", 3, {}};
  CHECK_THAT(init_text(facts, std::nullopt), ContainsSubstring(R"(group = "a\"b\\c\n")"
                                                               "\n"));
}
