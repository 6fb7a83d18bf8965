// What retention removes, and what holds it back.
#include <csignal>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>

#include "aging_site.hpp"
#include "prelude.hpp"

TEST_CASE("prune removes the keys beyond their retention, and says which may be gone") {
  Aging site;
  site.pay_many(0, "old", 10);
  site.pay_many(0, "young", 10);
  site.drain();
  site.age_keys("10 hours", "key LIKE 'old%'");

  const auto dry = site.prune({"--dry-run"});
  INFO(dry.out << dry.err);
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out, ContainsSubstring("would remove 10 keys"));
  CHECK(site.keys() == "20");
  CHECK(site.sql("SELECT pruned_to FROM pawl.idempotency_scopes").empty());
  CHECK(site.sql("SELECT count(*) FROM pawl.retention_state") == "0");

  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
  CHECK_THAT(pruned.out, ContainsSubstring("removed 10 keys"));
  CHECK(site.keys() == "10");
  CHECK(site.keys("key LIKE 'old%'") == "0");
  CHECK(site.sql(
            "SELECT pruned_to BETWEEN now() - interval '70 minutes' AND now() - interval '1 hour'"
            " FROM pawl.idempotency_scopes") == "t");
  CHECK(site.sql("SELECT holder FROM pawl.retention_state").empty());

  const auto json = nlohmann::json::parse(site.prune({"--json"}).out);
  CHECK(json.at("keys") == 0);
  CHECK(json.at("scopes").size() == 1);
  CHECK(json.at("scopes")[0].at("blocked_by").is_null());
}

TEST_CASE(
    "keys stay while a consumer that was down longer than the retention has duplicates waiting") {
  Aging site;
  site.pay_many_before(600min, 0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  // Half an hour after the first ones, and long before now: the consumer has not seen them yet.
  site.pay_many_before(570min, 0, "e", 10);

  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
  CHECK_THAT(pruned.out, ContainsSubstring("removed 0 keys") &&
                             ContainsSubstring(site.topic + "[0] of default/" + site.group));
  REQUIRE(site.keys() == "10");
  site.drain();
  CHECK(site.payments() == "10");
  CHECK(site.sql("SELECT duplicate_count FROM pawl.processed_kafka_offsets") == "10");

  // They vouch for the duplicates now, for as long again.
  CHECK_THAT(site.prune().out, ContainsSubstring("removed 0 keys"));
  site.age_keys("10 hours");
  CHECK_THAT(site.prune().out, ContainsSubstring("removed 10 keys"));
}

TEST_CASE("keys beyond what waits are removed while a partition is behind") {
  Aging site;
  site.pay_many_before(600min, 0, "e", 10);
  site.drain();
  site.age_keys("10 hours", "key < 'e5'");
  site.age_keys("20 hours", "key >= 'e5'");
  site.pay_before(570min, 0, "later");
  CHECK_THAT(site.prune().out, ContainsSubstring("removed 5 keys"));
  CHECK(site.keys("key < 'e5'") == "5");
}

TEST_CASE("a partition that has messages and processed none keeps all keys") {
  Aging site(2);
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  site.pay_many(1, "e", 5);
  const auto pruned = site.prune();
  CHECK_THAT(pruned.out,
             ContainsSubstring("removed 0 keys") && ContainsSubstring("processed none yet"));
  site.drain();
  CHECK(site.payments() == "10");
}

TEST_CASE("a partition that was added and has no row yet keeps all keys") {
  Aging site;
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  KafkaBroker::shared().add_partitions(site.topic, 2);
  site.pay_many(1, "e", 5);
  CHECK_THAT(site.prune().out, ContainsSubstring(site.topic + "[1]"));
  CHECK(site.keys() == "10");
}

TEST_CASE("a partition that was set back keeps all keys until it has processed something") {
  Aging site;
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  REQUIRE(site.run(set_to(site, "0")).code == 0);
  CHECK_THAT(site.prune().out, ContainsSubstring("removed 0 keys"));
  site.drain();
  CHECK(site.payments() == "10");
}

TEST_CASE("what waits for another consumer of a named scope keeps its keys") {
  Aging one;
  Aging other;
  other.url = one.url;
  one.more = other.more = "scope = \"shared\"\nretention = \"1h\"\n";
  one.pay_many_before(600min, 0, "e", 10);
  one.drain();
  other.pay_before(600min, 0, "x");
  other.drain();
  one.age_keys("10 hours");
  other.pay_many_before(570min, 0, "e", 10);

  const auto pruned = one.prune();
  CHECK_THAT(pruned.out, ContainsSubstring("removed 0 keys") && ContainsSubstring(other.group));
  other.drain();
  CHECK(one.payments() == "11");
  // The ten vouch for the duplicates now, for as long again.
  CHECK_THAT(one.prune().out, ContainsSubstring("removed 1 key,"));
  one.age_keys("10 hours");
  CHECK_THAT(one.prune().out, ContainsSubstring("removed 10 keys"));
}

TEST_CASE("a handler keeps its keys for as long as it says, not as retention.keys does") {
  Aging site;
  site.pay_many(0, "e", 5);
  site.more = "retention = \"2h\"\n";
  site.drain();
  site.age_keys("90 minutes");
  const auto prune = [&](const std::string& keys) {
    const auto pruned = site.run({"prune", "--set", "retention.keys=" + keys});
    INFO(pruned.out << pruned.err);
    CHECK(pruned.code == 0);
    return pruned.out;
  };
  CHECK_THAT(prune("1h"), ContainsSubstring("removed 0 keys") && ContainsSubstring(" 2h "));
  site.more = "retention = \"0s\"\n";
  CHECK_THAT(prune("1h"), ContainsSubstring("removed 0 keys") && ContainsSubstring(" forever "));
  site.more = "retention = \"1h\"\n";
  CHECK_THAT(prune("0s"), ContainsSubstring("removed 5 keys"));
}

TEST_CASE("of handlers that share a scope the longest retention counts, also of other consumers") {
  Aging one;
  Aging other;
  other.url = one.url;
  one.more = "scope = \"shared\"\nretention = \"1h\"\n";
  other.more = "scope = \"shared\"\nretention = \"5h\"\n";
  one.pay_many(0, "e", 5);
  one.drain();
  other.pay_many(0, "x", 5);
  other.drain();
  one.age_keys("3 hours");
  // What the other one has stored counts, whoever removes, and whatever an operator says here.
  CHECK_THAT(one.run({"prune"}).out, ContainsSubstring("removed 0 keys"));
  CHECK_THAT(one.prune().out, ContainsSubstring("removed 0 keys"));
  // Until it wants less: a run that starts only ever prolongs, a removal stores what is configured.
  other.more = "scope = \"shared\"\nretention = \"2h\"\n";
  other.pay(0, "y", "a", "1");
  other.drain();
  CHECK_THAT(one.run({"prune"}).out, ContainsSubstring("removed 0 keys"));
  CHECK_THAT(other.run({"prune"}).out, ContainsSubstring("removed 10 keys"));
  one.age_keys("90 minutes");
  CHECK_THAT(one.run({"prune"}).out, ContainsSubstring("removed 0 keys"));
  one.age_keys("31 minutes");
  CHECK_THAT(one.run({"prune"}).out, ContainsSubstring("removed 1 key,"));
}

TEST_CASE("a letter is replayed as long as its own handler keeps keys") {
  Aging site;
  const std::string failing = "on_failure = \"dead-letter\"\nsql = \"SELECT 1 / {/amount}::int\"\n";
  site.handler = "when = '{/account} == \"a\"'\nscope = \"short\"\nretention = \"1h\"\n" + failing +
                 "[[handler]]\ntopics = [\"" + site.topic +
                 "\"]\nscope = \"long\"\nretention = \"5h\"\n" + failing;
  site.pay_before(180min, 0, "short", "0");
  site.pay(0, "long", "b", "0");
  site.pay_many(0, "e", 3);
  site.drain();
  REQUIRE(site.sql("SELECT count(*) FROM pawl.dead_letters") == "2");
  site.sql(
      "UPDATE pawl.dead_letters SET timestamp_ms = timestamp_ms - 3 * 3600 * 1000"
      " WHERE idempotency_key = 'long'");
  site.age_keys("2 hours");
  REQUIRE_THAT(site.run({"prune"}).out, ContainsSubstring("removed 3 keys"));
  const auto dry = site.run({"dlq", "replay", "--all", "--dry-run"});
  INFO(dry.out << dry.err);
  CHECK_THAT(dry.out, ContainsSubstring("would replay 1 dead letter"));
  CHECK_THAT(dry.err,
             ContainsSubstring("[0]@0") && ContainsSubstring("retention has removed older keys"));
}

TEST_CASE("a configured topic of a named scope that was never met keeps its keys") {
  Aging site;
  site.more = "scope = \"shared\"\n";
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  const auto next = KafkaBroker::shared().new_topic("next", 1);
  site.more += "[[handler]]\ntopics = [\"" + next + "\"]\nscope = \"shared\"\nsql = \"SELECT 1\"\n";
  CHECK_THAT(site.prune().out,
             ContainsSubstring("removed 0 keys") && ContainsSubstring("has not processed yet"));
}

TEST_CASE("while Kafka is away every partition counts as one with messages left") {
  Aging site;
  site.pay_many_before(600min, 0, "e", 10);
  site.drain();
  site.age_keys("10 hours", "key < 'e5'");
  site.age_keys("20 hours", "key >= 'e5'");
  site.bootstrap = "127.0.0.1:9";
  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
  CHECK_THAT(pruned.err, ContainsSubstring("Kafka is unreachable"));
  CHECK(site.keys() == "5");
}

TEST_CASE(
    "the keys of dead letters stay until these are resolved, and so do all while a key is "
    "unknown") {
  Aging site;
  site.more = "[failures]\non_failure = \"dead-letter\"\n";
  site.pay_many_before(600min, 0, "e", 10);
  site.pay_before(600min, 0, "e3", "2");
  site.drain();
  REQUIRE(site.sql("SELECT reason FROM pawl.dead_letters") == "conflict");
  site.age_keys("10 hours");
  CHECK_THAT(site.prune().out, ContainsSubstring("removed 9 keys"));
  CHECK(site.sql("SELECT string_agg(key, ' ') FROM pawl.idempotency_keys") == "e3");

  site.pay_many_before(600min, 0, "f", 10);
  site.pay_before(600min, 0, "", "1", false);
  site.drain();
  site.age_keys("10 hours", "key LIKE 'f%'");
  CHECK_THAT(site.prune().out,
             ContainsSubstring("removed 0 keys") && ContainsSubstring("dead letter 2"));
  REQUIRE(site.run({"dlq", "discard", "--all", "--because", "a test"}).code == 0);
  CHECK_THAT(site.prune().out, ContainsSubstring("removed 11 keys"));
}

TEST_CASE("a record with a time that no calendar has is left out by retention, and named") {
  Aging site(2);
  KafkaBroker::shared().set_topic_config(
      site.topic, {{"message.timestamp.after.max.ms", "9223372036854775807"}});
  site.pay_many(0, "e", 10);
  KafkaProducer producer(site.bootstrap);
  // Nanoseconds, as a producer writes them that takes the unit for another one.
  for (int i = 0; i < 2; ++i) {
    producer.send(site.topic, {.key = "a",
                               .value = R"({"account": "a", "amount": 1})",
                               .headers = {{"event-id", "nano" + std::to_string(i)}},
                               .partition = 1,
                               .timestamp_ms = 1'769'817'600'000'000'000});
  }
  producer.flush();
  site.drain();
  site.age_keys("10 hours");
  // Not at its log's end: its next message's time counts.
  site.pay_many(1, "waits", 1);

  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
  CHECK_THAT(pruned.out, ContainsSubstring(site.topic + "[1]"));
  // The time of its processing counts instead.
  CHECK(site.keys() == "0");
  CHECK_THAT(pruned.out, ContainsSubstring("milliseconds"));
  CHECK(
      nlohmann::json::parse(site.prune({"--json"}).out).at("scopes")[0].at("unusable_timestamp") ==
      site.topic + "[1] of default/" + site.group);
}

TEST_CASE("a record from before all calendars keeps keys, as any old one does") {
  Aging site;
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  site.pay_many(0, "waits", 1);
  site.sql("UPDATE pawl.processed_kafka_offsets SET last_timestamp_ms = -9223372036854775808");
  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
  CHECK(site.keys() == "10");
}

TEST_CASE("one process of a consumer removes at a time, and a dead one blocks for a while only") {
  Aging site;
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  site.sql(
      "INSERT INTO pawl.retention_state (consumer_id, holder, lease_until)"
      " SELECT consumer_id, 'somebody', now() + interval '55 seconds' FROM pawl.consumers");
  const auto busy = site.prune();
  CHECK(busy.code == 1);
  CHECK_THAT(busy.err, ContainsSubstring("another process"));
  CHECK(site.keys() == "10");
  site.sql("UPDATE pawl.retention_state SET lease_until = now() - interval '1 second'");
  CHECK(site.prune().code == 0);
  CHECK(site.keys() == "0");
}

TEST_CASE("a removal that was killed midway is repeated") {
  Aging site;
  site.pay_many(0, "e", 1);
  site.drain();
  site.sql(
      "INSERT INTO pawl.idempotency_keys"
      " SELECT k.scope_id, 'more' || g, 0, k.source_id, 0, g, now() - interval '10 hours'"
      "   FROM pawl.idempotency_keys k CROSS JOIN generate_series(1, 50000) g");
  ChildProcess child(PAWL_PROGRAM, {"prune", "--older-than", "1h", "--set", "retention.load=1",
                                    "--config", site.config().string()});
  wait_until([&] { return std::stol(site.keys()) < 50001; }, kDeadline, "the first keys to go");
  child.kill(SIGKILL);
  child.wait(kDeadline);
  REQUIRE(std::stol(site.keys()) > 1);
  CHECK(
      site.sql("SELECT pruned_to IS NOT NULL AND swept_to IS NULL FROM pawl.idempotency_scopes") ==
      "t");
  site.sql("UPDATE pawl.retention_state SET lease_until = now()");
  CHECK(site.prune().code == 0);
  CHECK(site.keys() == "1");
  CHECK(site.sql(
            "SELECT pruned_to = swept_to OR swept_to IS NOT NULL FROM pawl.idempotency_scopes") ==
        "t");
}

TEST_CASE("table and index stop growing when keys come and go") {
  Aging site;
  site.pay_many(0, "e", 1);
  site.drain();
  const auto size = [&](const std::string& relation) {
    return std::stol(site.sql("SELECT pg_relation_size('pawl." + relation + "')"));
  };
  std::vector<long> table;
  std::vector<long> index;
  for (int cycle = 0; cycle < 6; ++cycle) {
    site.sql(
        "INSERT INTO pawl.idempotency_keys"
        " SELECT s.scope_id, md5(random()::text), 0, s.source_id, 0, g,"
        "        now() - interval '10 hours'"
        "   FROM pawl.scope_sources s CROSS JOIN generate_series(1, 20000) g");
    REQUIRE(site.prune().code == 0);
    REQUIRE(site.keys() == "1");
    pqxx::connection connection(site.url);
    pqxx::nontransaction(connection).exec("VACUUM pawl.idempotency_keys");
    table.push_back(size("idempotency_keys"));
    index.push_back(size("idempotency_keys_pkey"));
  }
  CHECK(table.back() <= table[1]);
  // Pages split where the random keys fall.
  CHECK(index.back() <= index[1] * 12 / 10);
}

TEST_CASE("resolved dead letters and skip records go by their age, others never do") {
  Aging site;
  site.more = "[failures]\non_failure = \"dead-letter\"\n";
  site.pay_before(1min, 0, "", "1", false);
  site.pay_before(1min, 0, "", "1", false);
  site.pay_before(1min, 0, "", "1", false);
  site.drain();
  REQUIRE(site.run({"dlq", "discard", "1", "2", "--because", "a test"}).code == 0);
  site.sql(
      "UPDATE pawl.dead_letters SET died_at = now() - interval '1 year',"
      " resolved_at = CASE dead_letter_id WHEN 1 THEN now() - interval '31 days' ELSE resolved_at "
      "END");
  for (const auto* age : {"91 days", "89 days"}) {
    site.sql(
        "INSERT INTO pawl.skipped_messages (consumer_id, topic, partition, kafka_offset, reason,"
        " skipped_at) SELECT consumer_id, 't', 0, 0, 'r', now() - interval '" +
        std::string(age) + "' FROM pawl.consumers");
  }
  const auto dry = nlohmann::json::parse(site.prune({"--dry-run", "--json"}).out);
  CHECK(dry.at("dead_letters") == 1);
  CHECK(dry.at("skipped_messages") == 1);
  const auto json = nlohmann::json::parse(site.prune({"--json"}).out);
  CHECK(json.at("dead_letters") == 1);
  CHECK(json.at("skipped_messages") == 1);
  CHECK(site.sql("SELECT string_agg(dead_letter_id::text, ' ' ORDER BY dead_letter_id) FROM "
                 "pawl.dead_letters") == "2 3");
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "1");
  CHECK(site.sql("SELECT records_pruned_to IS NOT NULL FROM pawl.retention_state") == "t");
}

TEST_CASE("prune refuses what is no age, and needs a consumer that has run") {
  Aging site;
  CHECK(site.run({"prune"}).code == 1);
  const auto bad = site.run({"prune", "--older-than", "long"});
  CHECK(bad.code == 2);
  CHECK_THAT(bad.err, ContainsSubstring("--older-than: \"long\""));
}

TEST_CASE("prune works with the rights that scripts/migrate grants") {
  Aging site;
  site.pay_many(0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  const auto role = "pruner_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql(run_script(scripts_folder() / "migrate", {"grants", "--role", role}));
  site.url.replace(site.url.find("postgres@"), 9, role + "@");
  const auto pruned = site.prune();
  INFO(pruned.err);
  CHECK(pruned.code == 0);
  CHECK(site.keys() == "0");
}
