#include <fmt/format.h>

#include <csignal>
#include <map>
#include <pqxx/pqxx>

#include "dead_letters/relay_record.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kDeadLetter =
    "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 1\ncircuit_breaker = 0\n";

/// Dead letters at the first failure; `topic` empty: fed to none.
ProgramOptions feeding(const std::string& topic, std::vector<std::string> arguments = {},
                       const std::string& more = "") {
  ProgramOptions options;
  options.arguments = std::move(arguments);
  options.extra_config =
      kDeadLetter + fmt::format("[dead_letters]\ntopic = \"{}\"\n", topic) + more;
  return options;
}

Record poison(const std::string& id, int partition = 0) {
  Record record;
  record.key = "key of " + id;
  record.value = R"({"account":"acc-1","amount":5})";
  record.headers = {{"event-id", "poison-" + id}};
  record.partition = partition;
  return record;
}

void produce_poison(PaymentsWorld& world, int count, int partitions = 1) {
  for (int i = 0; i < count; ++i)
    world.produce_record(poison(std::to_string(i), i % partitions));
}

/// A world whose poisoned messages die.
void prepare(PaymentsWorld& world) {
  world.use_handler("name = \"throws_on_poison\"");
}

std::vector<StoredRecord> fed(PaymentsWorld& world, const std::string& topic) {
  return read_topic(world.broker().bootstrap(), topic);
}

/// How often each letter is in the topic, by its id.
std::map<std::string, int> copies(PaymentsWorld& world, const std::string& topic) {
  std::map<std::string, int> found;
  for (const auto& record : fed(world, topic))
    ++found[record.header("pawl-dead-letter-id")];
  return found;
}

std::int64_t unmarked(const PaymentsWorld& world) {
  return world.number("SELECT count(*) FROM pawl.dead_letters WHERE published_at IS NULL");
}

void wait_until_marked(const PaymentsWorld& world, std::int64_t letters) {
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.dead_letters WHERE published_at IS NOT NULL") ==
               letters;
      },
      90s, fmt::format("{} letters to be marked", letters));
}

/// As when the process that holds it has been gone for long.
void expire_lease(const PaymentsWorld& world) {
  world.execute("UPDATE pawl.dead_letter_feed SET lease_until = now() - interval '1 second'");
}

using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

}  // namespace

TEST_CASE("a dead letter arrives byte for byte, with headers that say where from and why") {
  PaymentsWorld world(2);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  Record binary;
  binary.key = "k\0\xff"s;
  binary.value = "\0\x80 no JSON at all"s;
  binary.headers = {{"event-id", "poison-1"}, {"bytes", "\xfe\0"s}, {"none", {}}, {"bytes", ""s}};
  binary.partition = 1;
  // Not long ago: Kafka removes what is older than its retention.
  binary.timestamp_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            (std::chrono::system_clock::now() - 10min).time_since_epoch())
                            .count();
  world.produce_record(binary);
  Record bare;
  bare.headers = {{"event-id", "poison-2"}};
  bare.partition = 1;
  world.produce_record(bare);
  Record empty;
  empty.key = "";
  empty.value = "";
  empty.headers = {{"event-id", "poison-3"}};
  empty.partition = 1;
  world.produce_record(empty);
  world.produce_one("good", 5, 1);
  world.drain(feeding(topic));

  REQUIRE(world.number("SELECT count(*) FROM pawl.dead_letters") == 3);
  CHECK(unmarked(world) == 0);
  const auto records = fed(world, topic);
  REQUIRE(records.size() == 3);
  CHECK(records[0].key == binary.key);
  CHECK(records[0].value == binary.value);
  REQUIRE(records[0].headers.size() > 4);
  CHECK(Headers(records[0].headers.begin(), records[0].headers.begin() + 4) == binary.headers);
  const auto column = [&](const std::string& sql) {
    return world.value("SELECT " + sql + " FROM pawl.dead_letters ORDER BY dead_letter_id LIMIT 1");
  };
  const Headers ours{
      {"pawl-dead-letter-id", column("dead_letter_id")},
      {"pawl-topic", world.topic()},
      {"pawl-partition", "1"},
      {"pawl-offset", "0"},
      {"pawl-timestamp", std::to_string(binary.timestamp_ms)},
      {"pawl-group", world.group()},
      {"pawl-handler", "throws_on_poison"},
      {"pawl-status", "dead"},
      {"pawl-reason", "error"},
      {"pawl-sqlstate", column("sqlstate")},
      {"pawl-error", column("error")},
      {"pawl-attempts", "1"},
      {"pawl-failed-at",
       column(R"(to_char(died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))")},
      {"pawl-payload", "complete"},
  };
  CHECK(Headers(records[0].headers.begin() + 4, records[0].headers.end()) == ours);
  CHECK(!column("error_detail").empty());
  for (const auto& [name, value] : records[0].headers)
    CHECK(value.value_or("").find(column("error_detail")) == std::string::npos);

  CHECK(!records[1].key);
  CHECK(!records[1].value);
  CHECK(records[1].header("pawl-payload") == "complete");
  CHECK(records[2].key == "");
  CHECK(records[2].value == "");

  // Once is enough: what bears the mark is left alone.
  CHECK(unmarked(world) == 0);
  world.drain(feeding(topic));
  CHECK(fed(world, topic).size() == 3);
  CHECK(world.value("SELECT holder FROM pawl.dead_letter_feed").empty());
}

TEST_CASE("the record of a dead letter names the statement that failed, if it is known") {
  pawl::ledger::DeadLetter letter;
  letter.error = "no such account";
  const auto statement_of = [&] {
    const pawl::engine::DeadLetterRecord record(letter, "group", pawl::engine::LetterSize::kWhole);
    std::string found = "none";
    for (const auto& header : record.view().headers) {
      if (header.name == "pawl-statement")
        found = header.value.value();
    }
    return found;
  };
  CHECK(statement_of() == "none");
  letter.statement = "sql[0]";
  CHECK(statement_of() == "sql[0]");
}

TEST_CASE("parked letters are fed as well, in their order") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 3);
  for (const auto* id : {"poison-1", "behind-1", "behind-2"}) {
    auto record = poison(id);
    record.key = "one";
    record.headers = {{"event-id", id}};
    world.produce_record(record);
  }
  ProgramOptions options;
  options.extra_config =
      "[failures]\non_failure = \"park\"\nmax_attempts = 1\n[dead_letters]\ntopic = \"" + topic +
      "\"\n";
  world.drain(options);
  const auto records = fed(world, topic);
  REQUIRE(records.size() == 3);
  std::string seen;
  for (const auto& record : records) {
    seen += fmt::format("{} {} {}, ", record.header("event-id"), record.header("pawl-status"),
                        record.header("pawl-reason"));
  }
  CHECK(seen == "poison-1 dead error, behind-1 parked parked, behind-2 parked parked, ");
}

TEST_CASE(
    "without the option nothing is fed; switched on, what waits is, and what is done is not") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  produce_poison(world, 4);
  world.drain(feeding(""));
  CHECK(fed(world, topic).empty());
  CHECK(unmarked(world) == 4);
  world.execute(
      "SELECT pawl.resolve_dead_letter(dead_letter_id, NULL, 'discarded', 'test')"
      "  FROM pawl.dead_letters WHERE kafka_offset IN (0, 2)");
  world.drain(feeding(topic));
  const auto records = fed(world, topic);
  REQUIRE(records.size() == 2);
  CHECK(records[0].header("pawl-offset") == "1");
  CHECK(records[1].header("pawl-offset") == "3");
}

TEST_CASE("a process that dies between Kafka's word and the mark leaves no letter out") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  produce_poison(world, 5);
  world.drain(feeding(""));
  const auto dying = world.start(feeding(topic, {"--kill", "dead_letters_published:1"}));
  CHECK(dying->wait(60s).signal == SIGKILL);
  CHECK(copies(world, topic).size() == 5);
  CHECK(unmarked(world) == 5);
  // The lease of the dead one runs out by itself.
  const auto next = world.start(feeding(topic));
  const ShowOnFailure show("next", *next);
  wait_until_marked(world, 5);
  stop_cleanly(*next);
  // At least once: nothing tells the next process that Kafka has them.
  const auto found = copies(world, topic);
  CHECK(found.size() == 5);
  for (const auto& [id, times] : found)
    CHECK(times == 2);
}

TEST_CASE("processes that are killed while they feed leave no letter out") {
  PaymentsWorld world(1);
  world.set_kafka_options("session_timeout = \"2s\"");
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  constexpr int kLetters = 600;
  produce_poison(world, kLetters);
  world.drain(feeding(""));
  for (int round = 1; round <= 2; ++round) {
    const auto process = world.start(feeding(topic));
    const ShowOnFailure show("consumer", *process);
    const auto before = world.broker().watermarks(topic, 0).high;
    wait_until([&] { return world.broker().watermarks(topic, 0).high > before + 50 * round; }, 60s,
               "letters to come");
    process->kill(SIGKILL);
    process->wait(60s);
    expire_lease(world);
  }
  // A drain would end after consumer.shutdown_timeout, with or without the last letters.
  const auto last = world.start(feeding(topic));
  const ShowOnFailure show("last", *last);
  wait_until_marked(world, kLetters);
  stop_cleanly(*last);
  CHECK(copies(world, topic).size() == kLetters);
}

TEST_CASE("two processes that live feed each letter once") {
  PaymentsWorld world(4);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 2);
  const auto one = world.start(feeding(topic));
  const ShowOnFailure show_one("one", *one);
  const auto two = world.start(feeding(topic));
  const ShowOnFailure show_two("two", *two);
  wait_until(
      [&] {
        return world.number("SELECT count(DISTINCT owner) FROM pawl.processed_kafka_offsets") == 2;
      },
      60s, "both to own partitions");
  produce_poison(world, 400, 4);
  wait_until_marked(world, 400);
  stop_cleanly(*one);
  stop_cleanly(*two);
  // Both had letters of their own, and reason to send.
  CHECK(occurrences(*one, "EVENT message_dead_lettered") > 0);
  CHECK(occurrences(*two, "EVENT message_dead_lettered") > 0);
  const auto found = copies(world, topic);
  CHECK(found.size() == 400);
  for (const auto& [id, times] : found)
    CHECK(times == 1);
}

TEST_CASE("a topic that is missing holds nothing up, and gets all once it is there") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = "late-" + world.topic();
  const auto process = world.start(feeding(topic));
  const ShowOnFailure show("consumer", *process);
  produce_poison(world, 3);
  world.produce_one("good", 5, 0);
  wait_until([&] { return occurrences(*process, "the topic does not exist. Create it") > 0; }, 60s,
             "the warning");
  world.wait_until_all_processed();
  CHECK(world.value("SELECT string_agg(event_id, ',') FROM ledger") == "good");
  world.broker().create_topic(topic, 1);
  wait_until_marked(world, 3);
  stop_cleanly(*process);
  CHECK(copies(world, topic).size() == 3);
}

TEST_CASE("a letter that is too large for the topic goes without what makes it so") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1, {{"max.message.bytes", "2000"}});
  world.produce_record(poison("1"));
  auto large = poison("2");
  large.value = std::string(5000, 'x');
  world.produce_record(large);
  auto headers = poison("3");
  headers.headers.emplace_back("long", std::string(5000, 'x'));
  world.produce_record(headers);
  world.produce_record(poison("4"));
  const auto process = world.start(feeding(topic));
  const ShowOnFailure show("consumer", *process);
  wait_until_marked(world, 4);
  stop_cleanly(*process);
  std::map<std::string, StoredRecord> records;
  for (auto& record : fed(world, topic))
    records[record.header("pawl-offset")] = record;
  REQUIRE(records.size() == 4);
  for (const auto* whole : {"0", "3"}) {
    CHECK(records[whole].value.has_value());
    CHECK(records[whole].header("pawl-payload") == "complete");
  }
  CHECK(!records["1"].value);
  CHECK(records["1"].key == large.key);
  CHECK(records["1"].header("event-id") == "poison-2");
  CHECK(records["1"].header("pawl-payload") == "omitted");
  CHECK(!records["2"].value);
  CHECK(!records["2"].key);
  CHECK(records["2"].header("long").empty());
  CHECK(records["2"].header("pawl-payload") == "omitted");
  CHECK(occurrences(*process, "is too large for the topic") == 2);
}

// With the headers of ours it is beyond librdkafka's own limit, unless told.
TEST_CASE("a letter that fills a message to the brim arrives whole") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  auto large = poison("1");
  large.value = std::string(999800, 'x');
  world.produce_record(large);
  world.drain(feeding(topic));
  const auto records = fed(world, topic);
  REQUIRE(records.size() == 1);
  CHECK(records[0].value == large.value);
  CHECK(records[0].header("pawl-payload") == "complete");
}

TEST_CASE("a letter that Kafka refuses does not hold up the others") {
  PaymentsWorld world(1);
  prepare(world);
  // Without a key nothing goes into a compacted topic.
  const auto topic = world.broker().new_topic("dead", 1, {{"cleanup.policy", "compact"}});
  auto keyless = poison("1");
  keyless.key.reset();
  world.produce_record(keyless);
  produce_poison(world, 2);
  const auto process = world.start(feeding(topic));
  const ShowOnFailure show("consumer", *process);
  wait_until_marked(world, 2);
  wait_until([&] { return occurrences(*process, "Kafka rejected dead letter") > 0; }, 60s,
             "the warning");
  produce_poison(world, 2);
  wait_until_marked(world, 4);
  stop_cleanly(*process);
  CHECK(fed(world, topic).size() == 4);
  CHECK(world.value("SELECT kafka_offset FROM pawl.dead_letters WHERE published_at IS NULL") ==
        "0");
}

// librdkafka takes them from a consumer with a warning; of a producer they would make another one.
TEST_CASE("properties that contradict the promise are not the producer's") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  world.set_kafka_options(
      "[kafka.librdkafka]\n\"transactional.id\" = \"t\"\n\"acks\" = \"0\"\n\"retries\" = 0\n"
      "\"max.in.flight\" = 100\n\"linger.ms\" = 60000\n\"compression.type\" = \"gzip\"\n");
  produce_poison(world, 3);
  world.drain(feeding(topic));
  CHECK(copies(world, topic).size() == 3);
  CHECK(unmarked(world) == 0);
}

TEST_CASE("where no payload is stored the letter says so") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  world.produce_record(poison("1"));
  world.drain(feeding(topic, {}, "store_payload = false\n"));
  const auto records = fed(world, topic);
  REQUIRE(records.size() == 1);
  CHECK(!records[0].key);
  CHECK(!records[0].value);
  CHECK(records[0].headers.front().first == "pawl-dead-letter-id");
  CHECK(records[0].header("pawl-payload") == "omitted");
}

TEST_CASE("a letter that somebody replays meanwhile is marked later, and not sent again") {
  PaymentsWorld world(1);
  prepare(world);
  const auto topic = world.broker().new_topic("dead", 1);
  produce_poison(world, 2);
  world.drain(feeding(""));
  pqxx::connection connection(world.url());
  pqxx::work replay(connection);
  replay.exec("SELECT FROM pawl.dead_letters WHERE kafka_offset = 0 FOR UPDATE");
  const auto process = world.start(feeding(topic));
  const ShowOnFailure show("consumer", *process);
  wait_until_marked(world, 1);
  // New ones are not held up, and another process would not be let in.
  world.produce_record(poison("more"));
  wait_until_marked(world, 2);
  CHECK(!world.value("SELECT holder FROM pawl.dead_letter_feed").empty());
  replay.abort();
  wait_until_marked(world, 3);
  stop_cleanly(*process);
  const auto found = copies(world, topic);
  CHECK(found.size() == 3);
  for (const auto& [id, times] : found)
    CHECK(times == 1);
}

TEST_CASE("what Kafka has not confirmed when a consumer stops is fed by the next one") {
  pawl::testing::KafkaBroker broker;
  PaymentsWorld world(1, nullptr, &broker);
  prepare(world);
  const auto topic = broker.new_topic("dead", 1);
  world.produce_record(poison("1"));
  const auto process = world.start(feeding(topic, {}, "[consumer]\nshutdown_timeout = \"8s\"\n"));
  const ShowOnFailure show("consumer", *process);
  wait_until_marked(world, 1);
  broker.kill();
  // As a message in hand that dies now.
  world.execute(
      "INSERT INTO pawl.dead_letters (consumer_id, topic, partition, kafka_offset, status, reason,"
      "                               handler, error, payload)"
      " SELECT consumer_id, topic, partition, kafka_offset + 1, status, reason, handler, error,"
      "        'omitted' FROM pawl.dead_letters");
  wait_until([&] { return !world.value("SELECT holder FROM pawl.dead_letter_feed").empty(); }, 60s,
             "the letter to be in hand");
  process->kill(SIGTERM);
  // 5: leaving the group of a Kafka that is away takes all the time there is, also without letters.
  const auto status = process->wait(40s);
  CHECK((status.code == 0 || status.code == 5));
  CHECK(world.in_register(0, "released") == "t");
  CHECK(unmarked(world) == 1);
  broker.start();
  const auto next = world.start(feeding(topic));
  const ShowOnFailure show_next("next", *next);
  wait_until_marked(world, 2);
  stop_cleanly(*next);
  CHECK(copies(world, topic).size() == 2);
}

TEST_CASE("the group is left at once, whatever the session that feeds the topic waits for") {
  PaymentsWorld world(1);
  prepare(world);
  PostgresProxy proxy(world.url());
  const auto topic = world.broker().new_topic("dead", 1);
  world.produce_record(poison("1"));
  auto options = feeding(topic, {}, "[consumer]\nshutdown_timeout = \"5s\"\n");
  options.url = proxy.url();
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until_marked(world, 1);
  REQUIRE(world.broker().stable_members(world.group()) == 1);
  const auto stalled = proxy.stall(Moment::kBefore, [](const ProxyEvent& event) {
    return event.text.find("d.published_at IS NULL") != std::string::npos;
  });
  stalled.wait(60s);
  process->kill(SIGTERM);
  // Ended by its watch: no answer comes.
  CHECK(process->wait(60s).code == 0);
  // One that had not left would hold its partitions until its session in the group is over.
  CHECK(world.broker().stable_members(world.group()) == 0);
  CHECK(world.in_register(0, "released") == "t");
}
