#include "cli/init_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "config/load.hpp"
#include "handlers/sql_text.hpp"
#include "message/json.hpp"
#include "prelude.hpp"

using pawl::Header;
using pawl::Message;
using pawl::MessageFields;
using pawl::cli::init_text;
using pawl::cli::InitFacts;
using pawl::cli::key_candidates;
using pawl::cli::settings_of;

namespace {

Message sample_of(std::string_view value, std::span<const Header> headers = {}) {
  MessageFields fields;
  fields.topic = "order events";
  fields.offset = 7;
  fields.value = value;
  fields.headers = headers;
  return Message(fields);
}

/// A column of the table that a configuration proposes, and what its INSERT puts there.
struct Column {
  std::string definition;  // "id bigint"
  std::string value;
  friend bool operator==(const Column&, const Column&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Column& column) {
    return out << column.definition << " = " << column.value;
  }
};

std::string text_for(const Message& sample) {
  return init_text({"b:9092", "books", "postgresql://db/books", "orders", 3, {}}, sample);
}

std::vector<Column> columns_of(const std::string& configuration, const Message& sample) {
  pawl::config::LoadRequest request;
  request.path = "a.toml";
  request.text = configuration;
  const auto options = pawl::config::load(request);
  const auto sql = pawl::handlers::SqlText::parse(options.handlers.at(0).sql.at(0).text);
  const auto begin = configuration.find('(', configuration.find("CREATE TABLE")) + 1;
  auto definitions = configuration.substr(begin, configuration.find(");\n", begin) - begin);
  std::vector<Column> columns;
  pawl::message::JsonReader reader;
  pawl::message::JsonView json(reader, sample);
  for (const auto& parameter : sql.parameters()) {
    const auto end = std::min(definitions.find(", "), definitions.size());
    std::string scratch;
    const auto value = parameter.render_bytes(sample, json, scratch);
    columns.push_back({definitions.substr(0, end), std::string(value.value_or("NULL"))});
    definitions.erase(0, end + 2);
  }
  CHECK(definitions.empty());
  return columns;
}

}  // namespace

TEST_CASE("an event's id is looked for in headers and in the value, the surest first") {
  const std::vector<Header> headers{{"traceparent", "x"}, {"ce_id", "1"}, {"event-id", "2"}};
  CHECK(
      key_candidates(
          sample_of(R"({"id": 1, "eventId": "e", "orderId": 7, "uuid": {"a": 1}})", headers)) ==
      std::vector<std::string>{"{header:event-id}", "{/eventId}", "{header:ce_id}", "{/orderId}"});
  CHECK(key_candidates(sample_of("no JSON")).empty());
  CHECK(key_candidates(sample_of(R"({"id": 1})")).empty());
}

TEST_CASE("a configuration is guessed from a message") {
  const InitFacts facts{"b:9092", "books", "postgresql://db/books", "order events", 3, {}};
  const auto text = init_text(
      facts, sample_of(R"({"eventId": "e", "totalAmount": 1.5, "paid": true, "lines": [], "n": 3,
                        "a/b": "x", "odd{": 1})"));
  CHECK_THAT(text, ContainsSubstring("key = \"{/eventId}\"\n"));
  CHECK_THAT(text,
             ContainsSubstring("INSERT INTO order_events (event_id, total_amount, paid, lines, n, "
                               "a_b, odd_) VALUES ({/eventId}, {/totalAmount}::numeric, "
                               "{/paid}::boolean, {/lines}::jsonb, {/n}::bigint, {/a~1b}, "
                               "{/odd\\\\{}::bigint)"));
  CHECK_THAT(text, ContainsSubstring(
                       "CREATE TABLE order_events (event_id text, total_amount "
                       "numeric, paid boolean, lines jsonb, n bigint, a_b text, odd_ bigint);"));
  const auto empty = init_text(facts, std::nullopt);
  CHECK_THAT(empty, ContainsSubstring("The topic has no message yet"));
  CHECK_THAT(empty, ContainsSubstring("The message has no field that looks like a key"));
}

TEST_CASE("each member of the message has a column, which gets its value") {
  struct Row {
    const char* what;
    std::string value;
    std::vector<Column> columns;
    std::string omitted = {};
  };
  const auto deep = std::string(500, '[') + std::string(500, ']');
  const auto row = GENERATE_COPY(Catch::Generators::values<Row>({
      {"a mark at the end",
       R"({"id":7,"active?":true})",
       {{"id bigint", "7"}, {"active_ boolean", "true"}}},
      {"characters of templates",
       R"({"a|b":"x","c{d}":"y","back\\slash":"z"," e ":1})",
       {{"a_b text", "x"}, {"c_d_ text", "y"}, {"back_slash text", "z"}, {"_e_ bigint", "1"}}},
      {"characters of pointers, SQL, TOML and the configuration",
       R"({"a/b":1,"a~b":2,"quo\"te":3,"ap'os":4,"li\nne":5,"${HOME}":6,"$ref":7,"@id":8,"'''":9})",
       {{"a_b bigint", "1"},
        {"a_b_2 bigint", "2"},
        {"quo_te bigint", "3"},
        {"ap_os bigint", "4"},
        {"li_ne bigint", "5"},
        {"__h_o_m_e_ bigint", "6"},
        {"_ref bigint", "7"},
        {"_id bigint", "8"},
        {"___ bigint", "9"}}},
      {"names that fold to one",
       R"({"a-b":"one","a_b":"two","a b":"three","a_b_2":"four"})",
       {{"a_b text", "one"},
        {"a_b_2 text", "two"},
        {"a_b_3 text", "three"},
        {"a_b_2_2 text", "four"}}},
      {"names that PostgreSQL reserves",
       R"({"order":1,"Order":2,"ctid":3,"xmin":4,"1st":5,"":6})",
       {{"\"order\" bigint", "1"},
        {"order_2 bigint", "2"},
        {"ctid_2 bigint", "3"},
        {"xmin_2 bigint", "4"},
        {"_1st bigint", "5"},
        {"_ bigint", "6"}}},
      {"long names",
       "{\"" + std::string(70, 'n') + "\":1,\"" + std::string(80, 'n') + "\":2}",
       {{std::string(63, 'n') + " bigint", "1"}, {std::string(61, 'n') + "_2 bigint", "2"}}},
      {"names that are not ASCII",
       "{\"\xC3\xBC\":1,\"\xC3\xA4\":2}",
       {{"__ bigint", "1"}, {"___2 bigint", "2"}}},
      {"numbers of any size",
       R"({"a":9223372036854775807,"b":9223372036854775808,"c":-9223372036854775808,"d":1e400,"e":1.0})",
       {{"a bigint", "9223372036854775807"},
        {"b numeric", "9223372036854775808"},
        {"c bigint", "-9223372036854775808"},
        {"d numeric", "1e400"},
        {"e numeric", "1.0"}}},
      {"null and what is empty",
       R"({"a":null,"b":[],"c":{},"d":""})",
       {{"a text", "NULL"}, {"b jsonb", "[]"}, {"c jsonb", "{}"}, {"d text", ""}}},
      {"nested values",
       R"({"a":{"b":{"c":[1,{"d":null}]}},"e":[true,"x"]})",
       {{"a jsonb", R"({"b":{"c":[1,{"d":null}]}})"}, {"e jsonb", R"([true,"x"])"}}},
      {"deep nesting", "{\"a\":" + deep + "}", {{"a jsonb", deep}}},
      {"a name twice", R"({"a":1,"b":2,"a":"x"})", {{"a text", "x"}, {"b bigint", "2"}}},
      {"nested text that jsonb refuses",
       R"({"a":["\u0000"],"b":{"c":"\ud800"},"d":["\ud83d\ude00"]})",
       {{"a json", R"(["\u0000"])"},
        {"b json", R"({"c":"\ud800"})"},
        {"d jsonb", R"(["\ud83d\ude00"])"}}},
      {"text that PostgreSQL refuses",
       R"({"a\u0000":1,"b":"\u0000","c\ud800":2,"d":"\ud800","e":3})",
       {{"e bigint", "3"}},
       R"("a\u0000", "b", "c\\ud800", "d")"},
      {"a byte order mark", "\xEF\xBB\xBF{\"a\":1}", {{"a bigint", "1"}}},
      {"an array", R"([{"a":1}])", {{"value bytea", R"([{"a":1}])"}}},
      {"an object without members", "{}", {{"value bytea", "{}"}}},
  }));
  CAPTURE(row.what);
  const auto sample = sample_of(row.value);
  const auto text = text_for(sample);
  INFO(text);
  CHECK(columns_of(text, sample) == row.columns);
  if (row.omitted.empty()) {
    CHECK_THAT(text, !ContainsSubstring("Omitted"));
  } else {
    CHECK_THAT(text,
               ContainsSubstring("# Omitted, because PostgreSQL's text cannot contain NUL or half "
                                 "of a surrogate pair: " +
                                 row.omitted + "\n"));
  }
}

TEST_CASE("a value with more members than a row holds is stored as a whole") {
  const auto with = [](int members) {
    std::string value;
    for (int i = 0; i < members; ++i)
      value += fmt::format("{}\"m{}\":{}", i == 0 ? "{" : ",", i, i);
    return value + "}";
  };
  const auto most = with(400);
  CHECK(columns_of(text_for(sample_of(most)), sample_of(most)).size() == 400);
  const auto more = with(401);
  const auto text = text_for(sample_of(more));
  CHECK(columns_of(text, sample_of(more)) == std::vector<Column>{{"value bytea", more}});
  CHECK_THAT(text, ContainsSubstring("# Its members have no columns of their own"));
}

TEST_CASE("a value in Confluent's wire format is stored as a whole, and its schema is named") {
  const auto value = "\0\0\0\0\7\2a"s;
  const auto text = text_for(sample_of(value));
  CHECK(columns_of(text, sample_of(value)) == std::vector<Column>{{"value bytea", value}});
  CHECK_THAT(text,
             ContainsSubstring(
                 "# Confluent schema id 7; pawl reads JSON only. The value is stored as a whole"));
}

TEST_CASE("a key is proposed as a template has to write it") {
  const std::vector<Header> headers{{"event-id?", "1"}, {"{tx_id} ", "2"}, {"\xFF uuid", "3"}};
  CHECK(key_candidates(
            sample_of(R"({"uuid|":"x","msgId":12345678901234567890,"txid\u0000":"y"})", headers)) ==
        std::vector<std::string>{R"({header:event-id\?})", R"({/msgId})", R"({header:\{tx_id\}\ })",
                                 R"({/uuid\|})"});
}

TEST_CASE("init asks the operator to check a key that looks like the ID of an entity") {
  CHECK_THAT(
      text_for(sample_of(R"({"orderId": 7})")),
      ContainsSubstring("\nkey = \"{/orderId}\"\n# The key looks like the ID of an entity") &&
          ContainsSubstring("\n# key_checked = true\n"));
  CHECK_THAT(text_for(sample_of(R"({"eventId": 7})")), !ContainsSubstring("key_checked"));
}

TEST_CASE("no name of a member ends the comment that proposes it as a key") {
  const auto text = text_for(sample_of("{\"eventId\": 7, \"uu\\nid\": \"x\", \"tx\\u001bid\": 1}"));
  CHECK_THAT(text, ContainsSubstring("# Alternatives: ") && ContainsSubstring("uu\\nid") &&
                       !ContainsSubstring("\x1b"));
  pawl::config::LoadRequest request;
  request.path = "a.toml";
  request.text = text;
  CHECK(pawl::config::load(request).idempotency.key == "{/eventId}");
}

TEST_CASE("overrides are written to the file, and values that may be secret as variables") {
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
                                     "group = \"other\"\n#"));
  CHECK_THAT(text, ContainsSubstring("\n# group_instance_id = \"books-1\"\n\n[kafka.librdkafka]\n"
                                     "\"sasl.password\" = \"${KAFKA_SASL_PASSWORD}\"\n"
                                     "\"sasl.username\" = \"${KAFKA_SASL_USERNAME}\"\n"
                                     "\"security.protocol\" = \"SASL_SSL\"\n"
                                     "\"socket.timeout.ms\" = 7000\n"
                                     "\"ssl.key.password\" = \"${KEY_PASSWORD}\"\n\n"
                                     "[postgres]\nurl = \"${POSTGRES_URL}\"\n\n"
                                     "[consumer]\nworkers = 2\n\n"));
  CHECK_THAT(text, ContainsSubstring("[idempotency]\nkey = \"{/id}\"\n"));
  CHECK_THAT(text,
             ContainsSubstring("# Read from the environment, because the value may be secret: "
                               "KAFKA_SASL_PASSWORD, KAFKA_SASL_USERNAME, POSTGRES_URL."));
  CHECK_THAT(text, !ContainsSubstring("hunter"));
}

TEST_CASE("texts are TOML's") {
  const InitFacts facts{"b:9092", "a\"b\\c\n", "postgresql://db/books", "t", 3, {}};
  CHECK_THAT(init_text(facts, std::nullopt), ContainsSubstring(R"(group = "a\"b\\c\n")"
                                                               "\n"));
}
