// The way from the outbox to Kafka, where nothing goes wrong.
#include "outbox_world.hpp"

TEST_CASE("what is committed reaches Kafka once and byte for byte; what is not does not") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto topic = world.broker().new_topic("bytes", 1);
  world.execute(fmt::format(
      R"(SELECT pawl.publish('{}', '\x6b00ff'::bytea, '\x0080'::bytea,
                '[{{"name": "x", "base64": "AP8="}}, {{"name": "n"}}, {{"name": "x", "value": ""}}]', 'one'))",
      topic));
  world.execute(fmt::format("SELECT pawl.publish('{}', NULL, NULL, event_id => 'two')", topic));
  world.execute(
      fmt::format("BEGIN; SELECT pawl.publish('{}', 'k', 'rolled back'); ROLLBACK", topic));
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  auto records = read_topic(world.broker().bootstrap(), topic);
  REQUIRE(records.size() == 2);
  // The two are in different lanes.
  if (!records[0].key)
    std::swap(records[0], records[1]);
  CHECK(records[0].key == "k\0\xff"s);
  CHECK(records[0].value == "\0\x80"s);
  using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;
  CHECK(records[0].headers ==
        Headers{{"x", "\0\xff"s}, {"n", {}}, {"x", ""s}, {"pawl-outbox-id", "one"}});
  CHECK(!records[1].key);
  CHECK(!records[1].value);
  CHECK(records[1].header("pawl-outbox-id") == "two");
}

TEST_CASE("a handler's message is published with its effects, where its SQL says so") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  world.use_handler(fmt::format(R"toml(sql = [
  "INSERT INTO ledger VALUES ({{header:event-id}}, {{/account}}, {{/amount}}::bigint)",
  "UPDATE accounts SET balance = balance + {{/amount}}::bigint, entries = entries + 1 WHERE id = {{/account}}",
  "SELECT pawl.publish('{}', {{/account}}, {{value}}, jsonb_build_object('event-id', {{header:event-id}}::text))",
])toml",
                                outbox.topic()));
  world.produce(300);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  outbox.wait_until_published();
  stop_cleanly(*process);
  std::set<std::string> ids;
  const auto records = read_topic(world.broker().bootstrap(), outbox.topic());
  for (const auto& record : records)
    ids.insert(record.header("event-id"));
  CHECK(world.imbalance() == "");
  CHECK(ids.size() == records.size());
  CHECK(std::to_string(ids.size()) == world.value("SELECT count(*) FROM ledger"));
}

TEST_CASE("C++ publishes from a handler, from a subtransaction, and by its statements") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto topic = world.broker().new_topic("by-code", 1);
  const auto run = [&](const std::string& handler, const std::string& id) {
    world.use_handler(fmt::format("name = \"{}\"", handler));
    Record record;
    record.key = "k\0"s;
    record.value = "to " + topic;
    record.headers = {{"event-id", id}};
    record.partition = 0;
    world.produce_record(record);
    world.drain();
  };
  run("publishes", "one");
  run("publishes_by_statements", "two");
  // A drain ends behind what its messages have published.
  CHECK(outbox.waiting() == 0);
  std::map<std::string, StoredRecord> by_id;
  for (const auto& record : read_topic(world.broker().bootstrap(), topic))
    by_id[record.header("pawl-outbox-id")] = record;
  REQUIRE(by_id.size() == 3);
  CHECK(by_id["one"].key == "k\0"s);
  CHECK(by_id["one"].value == "one");
  CHECK(by_id["one"].headers.at(0).second == std::nullopt);
  CHECK(by_id["one"].headers.at(1) == std::pair{"bytes"s, std::optional("\xff"s)});
  CHECK(!by_id["of a subtransaction"].key);
  CHECK(by_id["two"].value == "two");
}

TEST_CASE("a lower number that is committed later is not left out") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  pqxx::connection connection(world.url());
  pqxx::work late(connection);
  late.exec(
      fmt::format("SELECT pawl.publish('{}', 'late', 'v')", world.broker().new_topic("other", 1)));
  const auto other = world.broker().new_topic("late", 1);
  late.exec(fmt::format(
      "SELECT count(pawl.publish('{}', 'k', n::text)) FROM generate_series(1, 20000) n", other));
  for (int i = 0; i < 20; ++i) {
    outbox.publish(50);
    outbox.wait_until_published();
  }
  CHECK(outbox.wrong() == "");
  CHECK(read_topic(world.broker().bootstrap(), other).empty());
  late.commit();
  outbox.wait_until_published();
  const auto records = read_topic(world.broker().bootstrap(), other);
  REQUIRE(records.size() == 20000);
  for (std::size_t i = 0; i < records.size(); ++i)
    REQUIRE(records[i].value == std::to_string(i + 1));
  stop_cleanly(*process);
}

TEST_CASE("a backlog that grows while it is read keeps the order of each key") {
  OutboxWorld outbox;
  outbox.publish(30000);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  for (int i = 0; i < 200; ++i)
    outbox.publish(30);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}

TEST_CASE("processes share the lanes, and give them back") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto owners = [&] {
    return world.value(
        "SELECT coalesce(string_agg(n::text, ' ' ORDER BY n), '') FROM"
        " (SELECT count(*) AS n FROM pawl.outbox_shards WHERE owner IS NOT NULL GROUP BY owner) o");
  };
  const auto first = outbox.start();
  const ShowOnFailure show_first("first", *first);
  wait_until([&] { return owners() == "4"; }, 60s, "one process to have all lanes");
  outbox.publish(100);
  const auto second = outbox.start();
  const ShowOnFailure show_second("second", *second);
  wait_until([&] { return owners() == "2 2"; }, 60s, "two processes to have two lanes each");
  outbox.publish(100);
  outbox.wait_until_published();
  stop_cleanly(*first);
  // What it gave back the other one may have taken by now.
  CHECK(world.number("SELECT count(DISTINCT owner) FROM pawl.outbox_shards") == 1);
  outbox.publish(100);
  outbox.wait_until_published();
  stop_cleanly(*second);
  CHECK(owners().empty());
  CHECK(outbox.wrong() == "");
}
