// Responses of SQL and of batches: stored with the key of their message, and given back to its
// duplicates.
#include <fmt/format.h>
#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kPay =
    "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1"
    " WHERE id = {/account}";

/// A [[handler]] of SQL with the test consumer's on_duplicate, which prints the response.
std::string handler(const std::string& sql, const std::string& response,
                    const std::string& more = "") {
  return fmt::format("name = \"respond\"\nsql = {}\nresponse = {}\n{}\n", sql, response, more);
}

std::string paying(const std::string& response) {
  return handler(fmt::format("[\"{}\"]", kPay), fmt::format("\"\"\"{}\"\"\"", response));
}

void send(PaymentsWorld& world, const std::string& event_id, int amount = 1,
          const std::string& account = "acc-1") {
  Record record;
  record.value = fmt::format(R"({{"account":"{}","amount":{}}})", account, amount);
  record.headers = {{"event-id", event_id}};
  record.partition = 0;
  world.produce_record(record);
}

/// "e0=1,e1=2": in the log's order, as text; a key without a response says "-".
std::string responses(const PaymentsWorld& world) {
  return world.value(
      "SELECT string_agg(key || '=' || coalesce(convert_from(response, 'UTF8'), '-'), ','"
      " ORDER BY kafka_offset) FROM pawl.idempotency_keys");
}

std::string hex_of(const PaymentsWorld& world, const std::string& key) {
  return world.value(fmt::format(
      "SELECT encode(response, 'hex') FROM pawl.idempotency_keys WHERE key = '{}'", key));
}

ProgramOptions dead_letters(std::vector<std::string> arguments = {"--drain", "--events"}) {
  ProgramOptions options;
  options.arguments = std::move(arguments);
  options.extra_config = "[failures]\non_failure = \"dead-letter\"\nretry_initial = \"5ms\"\n";
  return options;
}

}  // namespace

TEST_CASE("an SQL handler's response is stored in its message's transaction, however it travels") {
  const auto response = GENERATE(
      as<std::string>(),
      paying("SELECT balance FROM accounts WHERE id = {/account} -- the new one"),
      handler(fmt::format(
                  "[{{ text = \"{} RETURNING balance\", name = \"pay\", expect_rows = 1 }}]", kPay),
              "{ statement = \"pay\" }"),
      handler("\"SELECT 1\"", fmt::format("\"WITH b AS ({} RETURNING balance) SELECT balance::text"
                                          " FROM b\"",
                                          kPay)),
      handler(fmt::format("[{{ text = \"WITH a AS (SELECT {{/account}} AS id) UPDATE accounts t SET"
                          " balance = balance + {{/amount}}::bigint FROM a WHERE t.id = a.id"
                          " RETURNING balance\", name = \"pay\" }}, \"SELECT 1\"]"),
              "{ statement = \"pay\" }"));
  const auto setting = GENERATE(as<std::string>(), "consumer.pipeline=64", "consumer.pipeline=1",
                                "postgres.pooled=true");
  CAPTURE(response, setting);
  PaymentsWorld world(1);
  world.use_handler(response);
  world.set(setting);
  std::string expected;
  for (int i = 0; i < 12; ++i) {
    send(world, fmt::format("e{}", i));
    expected += fmt::format("{}e{}={}", i == 0 ? "" : ",", i, i + 1);
  }
  const auto process = world.start({{"--drain", "--events"}});
  REQUIRE(process->wait(90s).code == 0);
  INFO(process->output());
  CHECK(responses(world) == expected);
  CHECK(world.value("SELECT balance FROM accounts WHERE id = 'acc-1'") == "12");
  CHECK((longest_flight(*process) > 1) == (setting == "consumer.pipeline=64"));

  send(world, "e3");
  const auto again = world.start({{"--drain"}});
  REQUIRE(again->wait(90s).code == 0);
  CHECK(occurrences(*again, "RESPONSE 4 at 0") == 1);
  CHECK(world.value("SELECT balance FROM accounts WHERE id = 'acc-1'") == "12");
}

TEST_CASE("a response is bytes: of bytea as they are, of all else as PostgreSQL writes it") {
  struct Case {
    std::string query;
    std::string hex;
  };
  const auto [query, hex] =
      GENERATE(Case{R"(SELECT '\\x00ff0a5c'::bytea)", "00ff0a5c"}, Case{"SELECT ''", ""},
               Case{"SELECT {/note}", "c3bc5c2727"}, Case{"SELECT 12.50", "31322e3530"},
               Case{"SELECT jsonb_build_object('a', 1)", "7b2261223a20317d"},
               Case{"SELECT true", "74727565"}, Case{"VALUES (ARRAY[1, 2])", "7b312c327d"});
  CAPTURE(query);
  PaymentsWorld world(1);
  world.use_handler(handler("\"SELECT 1\"", fmt::format("\"\"\"{}\"\"\"", query)));
  world.set("consumer.pipeline=" + std::to_string(GENERATE(1, 64)));
  for (const auto* id : {"a", "b"}) {
    Record record;
    record.value = R"({"note":"ü\\''"})";
    record.headers = {{"event-id", id}};
    record.partition = 0;
    world.produce_record(record);
  }
  world.drain();
  CHECK(world.value("SELECT count(response) FROM pawl.idempotency_keys") == "2");
  CHECK(hex_of(world, "a") == hex);
  CHECK(hex_of(world, "b") == hex);
}

TEST_CASE("no row and NULL are no response, more than one row is the message's failure") {
  PaymentsWorld world(1);
  world.use_handler(
      paying("SELECT nullif(n, 0)::text FROM generate_series(0, {/amount}::int) n"
             " WHERE {/amount}::int > -1"));
  send(world, "none", -1);
  send(world, "null", 0);
  send(world, "two", 1);
  send(world, "none again", -1);
  const auto process = world.start(dead_letters());
  REQUIRE(process->wait(90s).code == 0);
  INFO(process->output());
  CHECK(responses(world) == "none=-,null=-,none again=-");
  CHECK(world.value("SELECT concat_ws(' ', reason, sqlstate, statement, error)"
                    " FROM pawl.dead_letters") ==
        "error PW013 response the statement returned 2 rows; a response is at most one row");
  CHECK(world.value("SELECT balance FROM accounts WHERE id = 'acc-1'") == "-2");
}

TEST_CASE("a statement whose rows are counted and give the response fails as others do") {
  PaymentsWorld world(1);
  world.use_handler(handler(
      fmt::format("[{{ text = \"{} RETURNING balance\", name = \"pay\", expect_rows = 1 }}]", kPay),
      "{ statement = \"pay\" }"));
  send(world, "e0");
  send(world, "e1", 1, "nobody");
  send(world, "e2");
  const auto process = world.start(dead_letters());
  REQUIRE(process->wait(90s).code == 0);
  CHECK(responses(world) == "e0=1,e2=2");
  CHECK(world.value("SELECT concat_ws(': ', statement, error) FROM pawl.dead_letters") ==
        "sql[0]: the statement affected 0 rows; expect_rows requires 1. Nothing was stored");
}

TEST_CASE("more than one column halts the partition, as the program's fault, and says why") {
  struct Case {
    std::string handler;
    std::string says;
  };
  const auto [handler_text, says] = GENERATE(
      Case{handler("\"SELECT 1\"", "\"SELECT 1, 2\""),
           "response: a response is one column. Combine several"},
      Case{handler("\"SELECT 1\"", "\"SELECT FROM accounts\""), "a response is one column"},
      Case{handler("\"SELECT 1\"", "\"SELECT 1, 2, 3\"", "batch = true"),
           "the responses of a batch are two columns: the number of the message"});
  CAPTURE(handler_text);
  PaymentsWorld world(1);
  world.use_handler(handler_text);
  for (int i = 0; i < 4; ++i)
    send(world, fmt::format("e{}", i));
  const auto process = world.start({{"--drain"}});
  CHECK(process->wait(90s).code == 4);
  INFO(process->output());
  CHECK(world.in_register(0, "halt_kind") == "program");
  CHECK_THAT(world.in_register(0, "concat_ws(': ', halt_parameters ->> 'statement', halt_cause)"),
             ContainsSubstring(says));
  CHECK(responses(world).empty());
}

TEST_CASE("a response that is too large is its message's failure, and is not tried again") {
  const std::string large(1100, 'x');
  const auto handler_text = GENERATE(
      as<std::string>(), handler("\"SELECT 1\"", "\"SELECT {header:event-id}\""),
      handler("{ text = \"SELECT {header:event-id}\", name = \"a\" }", "{ statement = \"a\" }"),
      handler(
          "\"SELECT 1\"",
          "\"SELECT n, id FROM unnest({header:event-id}::text[]) WITH ORDINALITY AS m (id, n)\"",
          "batch = true"),
      "name = \"respond\"", "name = \"batch_respond\"");
  CAPTURE(handler_text);
  PaymentsWorld world(1);
  world.use_handler(handler_text + "\nmax_response = \"1KiB\"\n");
  for (int i = 0; i < 9; ++i)
    send(world, i == 5 ? large : fmt::format("e{}", i));
  const auto process = world.start(dead_letters());
  REQUIRE(process->wait(90s).code == 0);
  INFO(process->output());
  CHECK(world.value("SELECT count(*) || ' ' || count(response) FROM pawl.idempotency_keys") ==
        "8 8");
  CHECK(world.value("SELECT string_agg(kafka_offset || ' ' || reason || ' ' || attempts, ',')"
                    " FROM pawl.dead_letters") == "5 permanent 1");
  CHECK_THAT(world.value("SELECT error FROM pawl.dead_letters"),
             ContainsSubstring("response has 11") &&
                 ContainsSubstring("bytes; idempotency.max_response allows 1024"));
}

TEST_CASE("an SQL batch stores a response for each of its messages") {
  PaymentsWorld world(1);
  const auto* sql = GENERATE(
      R"toml(sql = "SELECT 1"
response = "SELECT n, balance::text || id FROM unnest({/account}::text[]) WITH ORDINALITY AS m (id, n) JOIN accounts USING (id)")toml",
      R"toml(sql = [{ text = "WITH m AS (SELECT * FROM unnest({/account}::text[]) WITH ORDINALITY AS m (id, n)) SELECT n, convert_to(balance::text || id, 'UTF8') FROM m JOIN accounts USING (id) ORDER BY n DESC", name = "a" }]
response = { statement = "a" })toml");
  world.use_handler(fmt::format("name = \"batch\"\nbatch = true\n{}\n", sql));
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    const bool unknown = i % 7 == 3;
    send(world, fmt::format("e{}", i), 1, unknown ? "nobody" : fmt::format("acc-{}", i % 5 + 1));
    if (i % 10 == 9)
      send(world, fmt::format("e{}", i - 8), 1,
           (i - 8) % 7 == 3 ? "nobody" : fmt::format("acc-{}", (i - 8) % 5 + 1));
    expected += fmt::format("{}e{}={}", i == 0 ? "" : ",", i,
                            unknown ? "-" : fmt::format("0acc-{}", i % 5 + 1));
  }
  world.drain();
  CHECK(responses(world) == expected);
  CHECK(world.in_register(0, "duplicate_count") == "4");

  send(world, "e11", 1, "acc-2");
  send(world, "e12", 1, "acc-3");
  const auto again = world.start({{"--drain"}});
  REQUIRE(again->wait(90s).code == 0);
  CHECK(occurrences(*again, "RESPONSE 0acc-2 at") == 1);
  CHECK(occurrences(*again, "RESPONSE 0acc-3 at") == 1);
}

TEST_CASE("a batch's response belongs to one of its messages") {
  struct Case {
    std::string query;
    std::string error;
  };
  const auto [query, error] = GENERATE(
      Case{"SELECT n + 1, id FROM unnest({header:event-id}::text[]) WITH ORDINALITY AS m (id, n)",
           "returned a row for message 2 of 1; the first column numbers messages from 1"},
      Case{"SELECT NULL, id FROM unnest({header:event-id}::text[]) AS m (id)",
           "returned a row for message NULL of 1"},
      Case{
          "SELECT 1, id FROM unnest({header:event-id}::text[] || {header:event-id}::text[]) m (id)",
          "returned 2 rows for message 1 of 1; a response is at most one row"});
  CAPTURE(query);
  PaymentsWorld world(1);
  world.use_handler(handler("\"SELECT 1\"", "\"" + query + "\"", "batch = true"));
  for (int i = 0; i < 3; ++i)
    send(world, fmt::format("e{}", i));
  const auto process = world.start(dead_letters());
  REQUIRE(process->wait(90s).code == 0);
  CHECK(world.value("SELECT count(*) FROM pawl.dead_letters") == "3");
  CHECK_THAT(world.value("SELECT min(error) FROM pawl.dead_letters"), ContainsSubstring(error));
  CHECK(world.value("SELECT DISTINCT statement FROM pawl.dead_letters") == "response");
}

TEST_CASE("code for batches answers each of its messages, or none") {
  PaymentsWorld world(1);
  world.use_handler("name = \"batch_respond\"");
  for (const auto* id : {"a", "none", "b", "a", "c"})
    send(world, id);
  world.drain();
  CHECK(responses(world) == "a=response to a,none=-,b=response to b,c=response to c");

  for (const auto* id : {"d", "one too many", "f"})
    send(world, id);
  const auto process = world.start(dead_letters());
  REQUIRE(process->wait(90s).code == 0);
  CHECK(world.value("SELECT idempotency_key || ': ' || error FROM pawl.dead_letters") ==
        "one too many: handler batch_respond returned 2 responses for 1 message. Return one for "
        "each, in their order, or none");
  CHECK_THAT(responses(world), ContainsSubstring("d=response to d,f=response to f"));
}

TEST_CASE("a message that is applied without a key has nowhere to store its response") {
  const bool batch = GENERATE(false, true);
  PaymentsWorld world(1);
  world.use_handler(
      batch ? handler("\"SELECT 1\"",
                      "\"SELECT n, repeat('x', 2000 * (v IS NULL)::int) FROM "
                      "unnest({header:event-id?}::text[]) WITH ORDINALITY AS m (v, n)\"",
                      "batch = true\nmissing_key = \"process\"\nmax_response = \"1KiB\"")
            : handler("\"SELECT 1\"",
                      "\"SELECT repeat('x', 2000 * ({header:event-id?}::text IS NULL)::int)\"",
                      "missing_key = \"process\"\nmax_response = \"1KiB\""));
  for (int i = 0; i < 6; ++i) {
    Record record;
    record.value = "{}";
    if (i % 2 == 0)
      record.headers = {{"event-id", fmt::format("e{}", i)}};
    record.partition = 0;
    world.produce_record(record);
  }
  world.drain();
  CHECK(responses(world) == "e0=,e2=,e4=");
  CHECK(world.in_register(0, "unchecked_count") == "3");
}
