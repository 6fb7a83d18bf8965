// The way from the outbox to Kafka, where processes, servers and messages fail.
#include <csignal>

#include "outbox_world.hpp"

namespace {

const std::vector<std::string> kSteps{"outbox_shard_acquired", "outbox_batch_started",
                                      "outbox_batch_sent", "outbox_batch_committed",
                                      "outbox_batch_finished"};

}  // namespace

TEST_CASE("a process killed at any step of the relay leaves each message once") {
  OutboxWorld outbox;
  int kills = 0;
  for (int round = 0; round < crash_rounds(); ++round) {
    for (const auto& step : kSteps) {
      outbox.publish(200);
      // Four lanes take it at once, so that others are in the middle of something.
      const int nth = step == "outbox_shard_acquired" ? 1 + round % 4 : 1 + round % 7;
      const auto process = outbox.start({"--events", "--kill", fmt::format("{}:{}", step, nth)});
      const ShowOnFailure show(fmt::format("{} {}", step, nth), *process);
      outbox.publish_until_killed(*process);
      ++kills;
      outbox.forget_the_dead();
    }
  }
  REQUIRE(kills == crash_rounds() * static_cast<int>(kSteps.size()));
  const auto process = outbox.start();
  const ShowOnFailure show("the last", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
  CHECK(outbox.wrong_with_copies() == "");
}

TEST_CASE("a frozen process that wakes after its lanes have moved publishes nothing twice") {
  const auto step = GENERATE(from_range(kSteps));
  CAPTURE(step);
  OutboxWorld outbox;
  outbox.publish(400);
  const auto frozen = outbox.start({"--events", "--freeze", step + ":2"});
  const ShowOnFailure show_frozen("frozen", *frozen);
  frozen->wait_for_output(fmt::format("EVENT {} ", step), 60s);
  wait_until_stopped(*frozen, 60s);
  outbox.forget_the_dead();
  outbox.publish(100);
  const auto second = outbox.start();
  const ShowOnFailure show_second("second", *second);
  outbox.wait_until_published();
  CHECK(outbox.wrong() == "");
  frozen->kill(SIGCONT);
  outbox.publish(400);
  outbox.wait_until_published();
  stop_cleanly(*second);
  outbox.publish(10);
  outbox.forget_the_dead();
  outbox.wait_until_published();
  stop_cleanly(*frozen);
  CHECK(outbox.wrong() == "");
}

TEST_CASE("what Kafka refuses is set apart with what is behind it of its key; the rest goes on") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto narrow = world.broker().new_topic("narrow", 1, {{"max.message.bytes", "2000"}});
  const auto small = [&](const std::string& key, const std::string& value) {
    world.execute(fmt::format("SELECT pawl.publish('{}', '{}', '{}')", narrow, key, value));
  };
  pqxx::connection connection(world.url());
  {
    pqxx::work tx(connection);
    tx.exec(fmt::format("SELECT pawl.publish('{}', 'a', '1')", narrow));
    tx.exec(fmt::format("SELECT pawl.publish('{}', 'a', repeat('x', 5000))", narrow));
    tx.exec(fmt::format("SELECT pawl.publish('{}', 'a', '3')", narrow));
    tx.exec(
        fmt::format("SELECT count(pawl.publish('{}', 'b' || n, n::text))"
                    "  FROM generate_series(1, 100) n",
                    narrow));
    tx.exec("SELECT pawl.publish('no-such-topic', 'a', '1')");
    tx.commit();
  }
  {
    const auto process = outbox.start();
    const ShowOnFailure show("relay", *process);
    outbox.wait_until_published();
    small("a", "4");
    small("b1", "5");
    outbox.wait_until_published();
    stop_cleanly(*process);
  }
  std::string of_a;
  std::size_t others = 0;
  for (const auto& record : read_topic(world.broker().bootstrap(), narrow)) {
    if (record.key == "a")
      of_a += *record.value + " ";
    else
      ++others;
  }
  CHECK(of_a == "1 ");
  CHECK(others == 101);
  CHECK(
      world.value("SELECT string_agg(status || ' ' || octet_length(record_value), ', '"
                  " ORDER BY outbox_id) FROM pawl.outbox_failed WHERE topic <> 'no-such-topic'") ==
      "failed 5000, waiting 1, waiting 1");
  CHECK_THAT(world.value("SELECT reason FROM pawl.outbox_failed WHERE topic = 'no-such-topic'"),
             ContainsSubstring("does not exist"));

  // Given up: what waited behind it goes on.
  const auto put_back = [&](const std::string& which, const std::string& reason) {
    return world.value(
        fmt::format("SELECT coalesce(pawl.retry_outbox_row(outbox_id, {})::text, 'none')"
                    "  FROM pawl.outbox_failed WHERE {}",
                    reason, which));
  };
  CHECK(put_back("topic = 'no-such-topic'", "'a mistake'") == "0");
  CHECK(put_back("topic = 'no-such-topic'", "'a mistake'") == "none");
  // Kafka takes it now: all of the key come in their order, before what is written behind them.
  world.broker().set_topic_config(narrow, {{"max.message.bytes", "1000000"}});
  CHECK(put_back("octet_length(record_value) = 5000", "NULL") == "3");
  small("a", "6");
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  of_a.clear();
  for (const auto& record : read_topic(world.broker().bootstrap(), narrow)) {
    if (record.key == "a")
      of_a += record.value->substr(0, 1) + " ";
  }
  CHECK(of_a == "1 x 3 4 6 ");
}

TEST_CASE("giving up a refused message lets those behind it go") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto topic = world.broker().new_topic("narrow", 1, {{"max.message.bytes", "2000"}});
  world.execute(
      fmt::format("SELECT pawl.publish('{0}', 'a', repeat('x', 5000)),"
                  "       pawl.publish('{0}', 'a', '2'), pawl.publish('{0}', 'a', '3')",
                  topic));
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.wait_until_published();
  CHECK(world.value("SELECT pawl.retry_outbox_row(outbox_id, 'too large')"
                    "  FROM pawl.outbox_failed WHERE status = 'failed'") == "2");
  outbox.wait_until_published();
  stop_cleanly(*process);
  const auto records = read_topic(world.broker().bootstrap(), topic);
  REQUIRE(records.size() == 2);
  CHECK(records[0].value == "2");
  CHECK(records[1].value == "3");
}

TEST_CASE("a broker that restarts, and a database that crashes, lose and repeat nothing") {
  PostgresServer server;
  KafkaBroker broker;
  OutboxWorld outbox(&server, &broker);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.publish(500);
  broker.restart();
  outbox.publish(500);
  outbox.wait_until_published();
  server.restart(StopMode::kImmediate);
  outbox.publish(500);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}

TEST_CASE(
    "a database that comes back behind Kafka says so, and publishes again under the same ids") {
  PostgresServer server;
  OutboxWorld outbox(&server);
  auto& world = outbox.world();
  outbox.publish(100);
  server.save_copy();
  {
    const auto process = outbox.start();
    const ShowOnFailure show("relay", *process);
    outbox.wait_until_published();
    stop_cleanly(*process);
  }
  server.restore_copy();
  REQUIRE(outbox.waiting() == 100);
  {
    const auto process = outbox.start();
    const ShowOnFailure show("relay", *process);
    process->wait_for_output("the database lost commits", 60s);
    outbox.wait_until_published();
    stop_cleanly(*process);
  }
  std::map<std::string, std::set<std::string>> values;
  const auto records = read_topic(world.broker().bootstrap(), outbox.topic());
  for (const auto& record : records)
    values[record.header("pawl-outbox-id")].insert(*record.value);
  CHECK(records.size() == 200);
  CHECK(values.size() == 100);
  for (const auto& [id, of_id] : values)
    CHECK(of_id.size() == 1);
}

TEST_CASE(
    "a message that is processed again publishes under the same ids, alone or in a pipeline") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  outbox.use_publishing_handler(2);
  world.produce(200);
  outbox.process_all();
  // What a database knows that is behind by all of it, once an operator has stated its position.
  world.execute("DELETE FROM ledger");
  world.execute("DELETE FROM pawl.idempotency_keys");
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, -1, 'running', 'set', 'test')"
      "  FROM pawl.processed_kafka_offsets");
  // Each claims in a way of its own.
  const auto settings =
      GENERATE(std::vector<std::string>{"consumer.pipeline=1"}, std::vector<std::string>{},
               std::vector<std::string>{"failures.on_failure=park"},
               std::vector<std::string>{"consumer.pipeline=1", "failures.on_failure=park"});
  for (const auto& setting : settings)
    world.set(setting);
  outbox.process_all();
  std::map<std::string, std::multiset<std::string>> values;
  for (const auto& record : read_topic(world.broker().bootstrap(), outbox.topic()))
    values[record.header("pawl-outbox-id")].insert(*record.value);
  const auto messages = world.number("SELECT count(*) FROM ledger");
  CHECK(messages >= 200);
  CHECK(static_cast<std::int64_t>(values.size()) == 2 * messages);
  for (const auto& [id, of_id] : values) {
    CHECK(of_id.size() == 2);
    CHECK(std::set(of_id.begin(), of_id.end()).size() == 1);
  }
}

// Kafka fails the whole transaction for it, without a word of which record.
TEST_CASE("a topic that may not be written to is set apart; the rest goes on") {
  pawl::testing::KafkaBroker broker(
      {.settings = {"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "allow.everyone.if.no.acl.found=true"}});
  OutboxWorld outbox(nullptr, &broker);
  auto& world = outbox.world();
  const auto closed = broker.new_topic("closed", 1);
  const auto publish_closed = [&](int number) {
    world.execute(fmt::format("SELECT pawl.publish('{}', 'a', '{}')", closed, number));
  };
  const bool before = GENERATE(true, false);
  CAPTURE(before);
  if (before)
    broker.allow_only_describing(closed);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  if (!before) {
    // It has been described, and written to.
    publish_closed(0);
    outbox.wait_until_published();
    broker.allow_only_describing(closed);
  }
  publish_closed(1);
  outbox.publish(100);
  publish_closed(2);
  outbox.wait_until_published();
  CHECK(outbox.wrong() == "");
  CHECK(world.value("SELECT string_agg(status, ' ' ORDER BY outbox_id) FROM pawl.outbox_failed") ==
        "failed waiting");
  CHECK_THAT(world.value("SELECT reason FROM pawl.outbox_failed WHERE status = 'failed'"),
             ContainsSubstring("--operation Write --topic " + closed));

  broker.permit_topic(closed);
  world.execute("SELECT pawl.retry_outbox_row(outbox_id, NULL) FROM pawl.outbox_failed");
  outbox.wait_until_published();
  stop_cleanly(*process);
  std::string of_a;
  for (const auto& record : read_topic(broker.bootstrap(), closed))
    of_a += *record.value + " ";
  CHECK(of_a == (before ? "1 2 " : "0 1 2 "));
}

TEST_CASE("a batch that its owner left behind is looked at again before it is published") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto topic = world.broker().new_topic("left-behind", 1);
  world.execute(fmt::format(
      "SELECT count(pawl.publish('{}', 'a', n::text)) FROM generate_series(1, 3) n", topic));
  world.execute("SELECT pawl.publish('gone-since', 'b', '1')");
  // Its owner died behind the first record that Kafka refused, and before the others of its key.
  world.execute(
      "INSERT INTO pawl.outbox_failed (outbox_id, shard, topic, record_key, record_value, headers,"
      "                                event_id, created_at, status, reason)"
      " SELECT outbox_id, shard, topic, record_key, record_value, headers, event_id, created_at,"
      "        'failed', 'refused' FROM pawl.outbox WHERE record_value = '1' AND record_key = 'a'");
  world.execute(
      "DELETE FROM pawl.outbox o USING pawl.outbox_failed f WHERE o.outbox_id = f.outbox_id");
  world.execute(
      "UPDATE pawl.outbox_shards l SET batch_number = 1, batch_token = 'left',"
      " batch_ids = ARRAY(SELECT o.outbox_id FROM pawl.outbox o WHERE o.shard = l.shard ORDER BY "
      "1)");
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(read_topic(world.broker().bootstrap(), topic).empty());
  CHECK(world.value("SELECT string_agg(status || ' ' || convert_from(record_key, 'UTF8'), ', '"
                    " ORDER BY outbox_id) FROM pawl.outbox_failed") ==
        "failed a, waiting a, waiting a, failed b");
}

TEST_CASE("a state topic that somebody deletes is made again while relays run") {
  KafkaBroker broker;
  OutboxWorld outbox(nullptr, &broker);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.publish(100);
  outbox.wait_until_published();
  broker.delete_topic("pawl-outbox-state");
  outbox.publish(100);
  outbox.wait_until_published();
  outbox.publish(100);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}

// Each of several requests of the search has refused records, more than one transaction holds.
TEST_CASE("brokers that allow short transactions let a relay find what they refuse") {
  KafkaBroker broker({.settings = {"transaction.max.timeout.ms=60000"}});
  OutboxWorld outbox(nullptr, &broker);
  auto& world = outbox.world();
  const auto compacted = broker.new_topic("compacted", 1, {{"cleanup.policy", "compact"}});
  pqxx::connection connection(world.url());
  {
    pqxx::work tx(connection);
    tx.exec(outbox.publish_sql(600));
    tx.exec(fmt::format(
        "SELECT count(pawl.publish('{}', NULL, n::text)) FROM generate_series(1, 8) n", compacted));
    tx.exec(outbox.publish_sql(600));
    tx.exec(fmt::format("SELECT pawl.publish('{}', 'k', 'with a key')", compacted));
    tx.commit();
  }
  outbox.relay_all();
  CHECK(outbox.wrong() == "");
  CHECK(read_topic(broker.bootstrap(), compacted).size() == 1);
  CHECK(world.number("SELECT count(*) FROM pawl.outbox_failed WHERE status = 'failed'") == 8);
}

// pawl.publish refuses what it knows by its name; rows of other ways and older versions come here.
TEST_CASE(
    "messages for an internal topic are set apart, and those of the same lanes are published") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  // Both exist as soon as some lane has committed a batch.
  {
    const auto process = outbox.start();
    const ShowOnFailure show("first", *process);
    outbox.publish(20);
    outbox.wait_until_published();
    stop_cleanly(*process);
  }
  world.execute(
      "INSERT INTO pawl.outbox (shard, topic, record_key, record_value, event_id)"
      " SELECT shard, topic, convert_to('k' || shard, 'UTF8'), 'v'::bytea, topic || shard"
      "   FROM pawl.outbox_shards,"
      "        unnest(ARRAY['__consumer_offsets', '__transaction_state']) AS internal (topic)");
  outbox.publish(100);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
  CHECK(world.number("SELECT count(*) FROM pawl.outbox_failed WHERE status = 'failed'"
                     " AND reason LIKE '% is internal to Kafka%'") == 8);
}

TEST_CASE("a batch whose rows somebody has deleted keeps no other one from being published") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  outbox.publish(100);
  world.execute(
      "UPDATE pawl.outbox_shards l SET batch_number = 1, batch_token = 'left',"
      " batch_ids = ARRAY(SELECT o.outbox_id FROM pawl.outbox o WHERE o.shard = l.shard ORDER BY 1)"
      "             || 1000000::bigint");
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.publish(100);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}

TEST_CASE("without Kafka's transactions each message is there at least once, copies under one id") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto settings = "transactions = false\nstate_topic = \"not-made\"\n";
  const auto narrow = world.broker().new_topic("narrow", 1, {{"max.message.bytes", "2000"}});
  for (const auto& step : kSteps) {
    outbox.publish(200);
    const auto process = outbox.start({"--events", "--kill", fmt::format("{}:2", step)}, settings);
    const ShowOnFailure show(step, *process);
    outbox.publish_until_killed(*process);
    outbox.forget_the_dead();
  }
  world.execute(fmt::format(
      "SELECT pawl.publish('{0}', 'a', '1'), pawl.publish('{0}', 'a', repeat('x', 5000)),"
      "       pawl.publish('{0}', 'a', '3'), pawl.publish('{0}', 'b', '4')",
      narrow));
  const auto process = outbox.start({}, settings);
  const ShowOnFailure show("the last", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  std::map<std::string, std::set<std::string>> ids;  // of each value
  for (const auto& record : read_topic(world.broker().bootstrap(), outbox.topic()))
    ids[record.value.value()].insert(record.header("pawl-outbox-id"));
  CHECK(static_cast<int>(ids.size()) == outbox.published());
  for (const auto& [value, of_value] : ids)
    CHECK(of_value.size() == 1);
  std::set<std::string> small;
  for (const auto& record : read_topic(world.broker().bootstrap(), narrow))
    small.insert(*record.value);
  CHECK(small.contains("1"));
  CHECK(small.contains("4"));
  CHECK(world.value("SELECT string_agg(status, ' ' ORDER BY outbox_id) FROM pawl.outbox_failed") ==
        "failed waiting");
  // Nobody needed it.
  CHECK_THROWS(read_topic(world.broker().bootstrap(), "not-made"));
}
