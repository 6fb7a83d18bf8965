// SQL handlers whose transactions travel to the server together: whatever happens to one of them,
// wherever it stands in its flight, the others are applied once and in order.
#include <fmt/format.h>

#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "register_moves.hpp"

namespace {

// `position` says in which order messages ran, also those that were rolled back later.
constexpr const char* kHandler = R"toml(sql = [
  "INSERT INTO ordered (event_id) VALUES ({header:event-id})",
  "SELECT spring({header:event-id})",
]
conflict = "ignore"
)toml";

// Row counts are demanded of statements with and without RETURNING, and of a query.
constexpr const char* kCountingHandler = R"toml(sql = [
  { text = "INSERT INTO ordered (event_id) VALUES ({header:event-id}) RETURNING position", expect_rows = 1 },
  { text = "UPDATE wanted SET seen = true WHERE event_id = {header:event-id} -- once", expect_rows = 1 },
  { text = "SELECT FROM wanted WHERE event_id = {header:event-id} FOR UPDATE", expect_rows = 1 },
  { text = "DELETE FROM ordered WHERE event_id = 'nobody'", expect_rows = 0 },
]
conflict = "ignore"
)toml";

void prepare(PaymentsWorld& world) {
  world.use_handler(kHandler);
  world.execute("CREATE TABLE wanted (event_id text PRIMARY KEY, seen boolean)");
  world.execute("CREATE TABLE ordered (position bigserial, event_id text PRIMARY KEY)");
  world.execute("CREATE TABLE traps (event_id text PRIMARY KEY, kind text NOT NULL)");
  world.execute(
      "CREATE FUNCTION spring(id text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
      "  IF EXISTS (SELECT FROM traps t WHERE t.event_id = id AND t.kind = 'statement') THEN"
      "    RAISE EXCEPTION 'a trap';"
      "  END IF; END $$");
  world.execute(
      "CREATE FUNCTION spring_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      "  IF EXISTS (SELECT FROM traps t WHERE t.event_id = NEW.event_id AND t.kind = 'commit') THEN"
      "    RAISE EXCEPTION 'a trap at COMMIT';"
      "  END IF; RETURN NULL; END $$");
  world.execute(
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ordered DEFERRABLE INITIALLY DEFERRED"
      " FOR EACH ROW EXECUTE FUNCTION spring_late()");
}

void set_trap(const PaymentsWorld& world, const std::string& event_id, const std::string& kind) {
  world.execute(fmt::format("INSERT INTO traps VALUES ('{}', '{}')", event_id, kind));
}

void send(PaymentsWorld& world, const std::string& event_id, const std::string& record_key = "",
          const std::string& value = "{}") {
  Record record;
  if (!record_key.empty())
    record.key = record_key;
  record.value = value;
  record.headers = {{"event-id", event_id}};
  record.partition = 0;
  world.produce_record(record);
}

/// Sends e0 to e(count - 1); returns what `ordered` holds when all are applied, without `left_out`.
std::string send_events(PaymentsWorld& world, int count, int left_out = -1) {
  std::vector<std::string> applied;
  for (int i = 0; i < count; ++i) {
    send(world, fmt::format("e{}", i));
    if (i != left_out)
      applied.push_back(fmt::format("e{}", i));
  }
  return fmt::format("{}", fmt::join(applied, ","));
}

std::string order(const PaymentsWorld& world) {
  return world.value("SELECT string_agg(event_id, ',' ORDER BY position) FROM ordered");
}

ProgramOptions dead_letters(std::vector<std::string> arguments) {
  ProgramOptions options;
  options.arguments = std::move(arguments);
  options.extra_config =
      "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 2\nretry_initial = \"5ms\"\n"
      "retry_max = \"20ms\"\n";
  return options;
}

/// A transaction of a stranger that holds what messages need, until it ends.
class Stranger {
 public:
  Stranger(const PaymentsWorld& world, const std::string& sql) : connection_(world.url()) {
    tx_.emplace(connection_);
    tx_->exec(sql);
  }
  void commit() { tx_->commit(); }

 private:
  pqxx::connection connection_;
  std::optional<pqxx::work> tx_;
};

void wait_for_blocked(const PaymentsWorld& world, const std::string& statement) {
  wait_until(
      [&] {
        return world.number(fmt::format("SELECT count(*) FROM pg_stat_activity WHERE datname ="
                                        " current_database() AND wait_event_type = 'Lock'"
                                        " AND query LIKE '%{}%'",
                                        statement)) > 0;
      },
      60s, "a message to wait for a lock");
}

}  // namespace

TEST_CASE("code that says its statements ahead fails its own message, not its neighbours") {
  struct Case {
    std::string value;
    std::string error;  // empty: it does not fail
  };
  const auto [value, error] = GENERATE(
      Case{"throws", "thrown by code"}, Case{"throws a number", "not a std::exception"},
      Case{"commits",
           "statements[1]: column 12: COMMIT would end or change the message's transaction"},
      Case{"two at once", "statements[1]: column 11: a second statement"},
      Case{"no row", "statements[1]: the statement affected 0 rows; expect_rows requires 1"},
      Case{"too many parameters", "PostgreSQL's limit is 65535"}, Case{"a NUL that is caught", ""},
      Case{"a WITH that counts", ""}, Case{"another text each time", ""});
  const int place = GENERATE(0, 5);
  CAPTURE(value, place);
  PaymentsWorld world(1);
  prepare(world);
  world.use_handler("name = \"statements_by_value\"\nconflict = \"ignore\"\n");
  std::vector<std::string> applied;
  const bool all_alike = value == "another text each time";
  for (int i = 0; i < 12; ++i) {
    send(world, fmt::format("e{}", i), "", all_alike || i == place ? value : "{}");
    if (error.empty() || i != place)
      applied.push_back(fmt::format("e{}", i));
  }
  const auto process = world.start(dead_letters({"--drain", "--events"}));
  REQUIRE(process->wait(120s).code == 0);
  INFO(process->output());
  CHECK(order(world) == fmt::format("{}", fmt::join(applied, ",")));
  CHECK(world.stored(0) == 11);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == (error.empty() ? 0 : 1));
  if (!error.empty())
    CHECK_THAT(world.value("SELECT concat_ws(': ', statement, error) FROM pawl.dead_letters"),
               ContainsSubstring(error));
}

TEST_CASE("a wrong number of parameters halts its partition and costs no connection") {
  PaymentsWorld world(1);
  prepare(world);
  world.use_handler("name = \"statements_by_value\"\nconflict = \"ignore\"\n");
  for (int i = 0; i < 8; ++i)
    send(world, fmt::format("e{}", i), "", i == 5 ? "too few parameters" : "{}");
  const auto process = world.start(dead_letters({"--drain", "--events"}));
  CHECK(process->wait(120s).code == 4);
  const auto output = process->output();
  INFO(output);
  CHECK(order(world) == "e0,e1,e2,e3,e4");
  CHECK(world.value("SELECT state FROM pawl.processed_kafka_offsets") == "halted");
  CHECK(output.find("EVENT partition_assigned") == output.rfind("EVENT partition_assigned"));
  CHECK_THAT(output, !ContainsSubstring("commit_outcome_unknown"));
}

TEST_CASE("a message that fails at any place of its flight is set aside, its neighbours are not") {
  const auto* kind = GENERATE("statement", "commit", "rows");
  const int place = GENERATE(0, 1, 2, 5, 8, 11);
  CAPTURE(kind, place);
  PaymentsWorld world(1);
  prepare(world);
  if (std::string(kind) == "rows") {
    world.use_handler(kCountingHandler);
    world.execute(
        fmt::format("INSERT INTO wanted SELECT 'e' || n FROM generate_series(0, 11) n"
                    " WHERE n <> {}",
                    place));
  }
  set_trap(world, fmt::format("e{}", place), kind);
  const auto expected = send_events(world, 12, place);
  const auto process = world.start(dead_letters({"--drain", "--events"}));
  REQUIRE(process->wait(90s).code == 0);
  INFO(process->output());
  CHECK(order(world) == expected);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || attempts, ',') FROM "
                    "pawl.dead_letters") == fmt::format("e{} 2", place));
  CHECK(world.stored(0) == 11);
  CHECK(world.in_register(0, "applied_count") == "11");
  CHECK(longest_flight(*process) > 1);
  // What stood behind the failing one in its flight did not even run: two attempts, and one in the
  // flight, are all that was rolled back.
  CHECK(world.number("SELECT last_value FROM ordered_position_seq") <= 11 + 3);
  if (std::string(kind) == "rows") {
    CHECK(world.value("SELECT error FROM pawl.dead_letters")
              .find("affected 0 rows; expect_rows requires 1") != std::string::npos);
  }
}

TEST_CASE("duplicates travel along, within a flight and of earlier ones") {
  PaymentsWorld world(1);
  prepare(world);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      send(world, fmt::format("e{}", i));
      if (i % 7 == 3)
        send(world, fmt::format("e{}", i));
      if (i % 10 == 9)
        send(world, fmt::format("e{}", i - 6));
    }
  }
  ProgramOptions options;
  options.arguments = {"--drain", "--events"};
  const auto process = world.start(options);
  REQUIRE(process->wait(90s).code == 0);
  CHECK(world.number("SELECT count(*) FROM ordered") == 100);
  CHECK(world.number("SELECT count(*) FROM (SELECT event_id, row_number() OVER (ORDER BY position)"
                     " - 1 AS n FROM ordered) o WHERE event_id <> 'e' || n") == 0);
  CHECK(world.in_register(0, "applied_count") == "100");
  CHECK(world.in_register(0, "duplicate_count") == std::to_string(world.produced() - 100));
  CHECK(longest_flight(*process) > 8);
}

TEST_CASE("a known key with another payload ends its flight and gets the failure policy") {
  PaymentsWorld world(1);
  prepare(world);
  world.use_handler(std::string(kHandler).replace(std::string(kHandler).find("ignore"), 6, "fail"));
  send_events(world, 6);
  Record record;
  record.value = "{\"another\": 1}";
  record.headers = {{"event-id", "e2"}};
  record.partition = 0;
  world.produce_record(record);
  for (int i = 6; i < 12; ++i)
    send(world, fmt::format("e{}", i));
  world.drain(dead_letters({}));
  CHECK(world.number("SELECT count(*) FROM ordered") == 12);
  CHECK(world.value("SELECT reason || ' ' || kafka_offset FROM pawl.dead_letters") == "conflict 6");
  CHECK(world.stored(0) == 12);
}

// Fails when a claim that claims nothing lets the handler run: the key came after it was asked for.
TEST_CASE("a key that another transaction claims meanwhile makes the message a duplicate") {
  PaymentsWorld world(1);
  prepare(world);
  send(world, "first");
  world.drain({});
  Stranger stranger(world,
                    "INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, "
                    "partition, kafka_offset) SELECT scope_id, 'e5', 0, source_id, 7, 7 FROM "
                    "pawl.idempotency_keys");
  send_events(world, 10);
  const auto process = world.start(dead_letters({"--events"}));
  const ShowOnFailure show("consumer", *process);
  wait_for_blocked(world, "INSERT INTO pawl.idempotency_keys");
  stranger.commit();
  world.wait_for_stored(0, 10);
  CHECK(order(world) == "first,e0,e1,e2,e3,e4,e6,e7,e8,e9");
  CHECK(world.in_register(0, "duplicate_count") == "1");
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(longest_flight(*process) > 1);
  stop_cleanly(*process);
}

TEST_CASE("an operator who moves the offset while a flight is under way fences the rest of it") {
  PaymentsWorld world(1);
  prepare(world);
  send(world, "first");
  world.drain({});
  Stranger stranger(world, "INSERT INTO ordered (event_id) VALUES ('e5')");
  send_events(world, 10);
  const auto process = world.start(dead_letters({"--events"}));
  const ShowOnFailure show("consumer", *process);
  wait_for_blocked(world, "INSERT INTO ordered");
  // Back to the beginning; the key of 'first' and those of e0 to e4 are stored.
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, -1, NULL, 'set', 'x') FROM "
      "pawl.processed_kafka_offsets");
  world.execute("DELETE FROM traps");
  stranger.commit();
  // The stranger's row makes e5 fail for good, and alone.
  world.wait_for_stored(0, 10);
  CHECK(world.value("SELECT string_agg(idempotency_key, ',') FROM pawl.dead_letters") == "e5");
  CHECK(world.number("SELECT count(*) FROM ordered") == 11);
  // The counters begin anew with the operator's change: e6 to e9.
  CHECK(world.in_register(0, "duplicate_count") == "6");
  CHECK(world.in_register(0, "applied_count") == "4");
  stop_cleanly(*process);
}

TEST_CASE("messages behind a parked one of their record key wait, the others travel on") {
  PaymentsWorld world(1);
  prepare(world);
  set_trap(world, "a3", "statement");
  for (int i = 0; i < 8; ++i) {
    send(world, fmt::format("a{}", i), "a");
    send(world, fmt::format("b{}", i), "b");
  }
  ProgramOptions options;
  options.extra_config = "[failures]\non_failure = \"park\"\nmax_attempts = 1\n";
  options.arguments = {"--drain", "--events"};
  const auto process = world.start(options);
  REQUIRE(process->wait(90s).code == 0);
  CHECK(order(world) == "a0,b0,a1,b1,a2,b2,b3,b4,b5,b6,b7");
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || status, ',' ORDER BY kafka_offset)"
                    " FROM pawl.dead_letters") ==
        "a3 dead,a4 parked,a5 parked,a6 parked,a7 parked");
  CHECK(longest_flight(*process) > 1);
}

TEST_CASE(
    "with pipeline = 1, and where rows must be counted here, each message waits for its answer") {
  PaymentsWorld world(1);
  prepare(world);
  const bool counted = GENERATE(false, true);
  if (counted) {
    world.use_handler(
        "sql = [{ text = \"WITH id AS (SELECT {header:event-id}::text) INSERT INTO ordered "
        "(event_id) "
        "SELECT * FROM id\", expect_rows = 1 }]");
  } else {
    world.set("consumer.pipeline=1");
  }
  const auto expected = send_events(world, 12);
  ProgramOptions options;
  options.arguments = {"--drain", "--events"};
  const auto process = world.start(options);
  REQUIRE(process->wait(90s).code == 0);
  CHECK(order(world) == expected);
  CHECK(longest_flight(*process) == 1);
}

TEST_CASE("flights that are cut in the middle are made up for") {
  PaymentsWorld world(1);
  prepare(world);
  const RegisterMoves moves(world);
  pawl::testing::PostgresProxy proxy(world.url());
  ProgramOptions options;
  options.url = proxy.url();
  send_events(world, 400);
  const auto cut_one = [&](pawl::testing::Moment moment, int nth) {
    return proxy.cut(moment, pawl::testing::PostgresProxy::is_commit, nth);
  };
  auto cut = cut_one(pawl::testing::Moment::kBefore, 20);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  for (int round = 1; round < 8; ++round) {
    cut.wait(60s);
    cut = cut_one(round % 2 == 0 ? pawl::testing::Moment::kBefore : pawl::testing::Moment::kAfter,
                  11 + round * 3);
    for (int i = 0; i < 40; ++i)
      send(world, fmt::format("r{}-{}", round, i));
  }
  cut.disarm();
  world.wait_until_all_processed();
  CHECK(world.number("SELECT count(*) FROM ordered") == 400 + 7 * 40);
  CHECK(moves.violations() == "");
  stop_cleanly(*process);
}
