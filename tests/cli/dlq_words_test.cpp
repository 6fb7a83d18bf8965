// What the commands about dead letters say, refuse and wait for.
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>

#include "failing_site.hpp"
#include "prelude.hpp"

// A number that was read and printed again may be another one.
TEST_CASE("dlq show prints the numbers of a value as they came") {
  Failing site("dead-letter");
  const std::string value =
      R"({"account": "stranger", "amount": 1.10, "n": 123456789012345678901234567890, "account": "b"})";
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic,
                {.key = "k", .value = value, .headers = {{"event-id", "exact"}}, .partition = 0});
  producer.send(site.topic, {.key = "k",
                             .value = std::string("\xff\x00", 2),
                             .headers = {{"event-id", "binary"}},
                             .partition = 0});
  producer.flush();
  site.drain();
  const auto ids = site.ids();
  const auto first = ids.substr(0, ids.find(' '));
  CHECK_THAT(site.run({"dlq", "show", first}).out,
             ContainsSubstring("\"amount\": 1.10,\n") &&
                 ContainsSubstring("\"n\": 123456789012345678901234567890,\n"));
  const auto json = nlohmann::json::parse(site.run({"dlq", "show", first, "--json"}).out);
  CHECK(json["value"] == value);
  const auto binary =
      nlohmann::json::parse(site.run({"dlq", "show", ids.substr(ids.find(' ') + 1), "--json"}).out);
  CHECK(binary["value"]["base64"] == "/wA=");
}

TEST_CASE("what a message carries cannot steer the terminal that shows its dead letter") {
  Failing site("dead-letter");
  const std::string key = "k\033[2J\x7f";
  const std::string value = "no JSON \033]0;title\a,\nanother line";
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic, {.key = key,
                             .value = value,
                             .headers = {{"event-id", "e"}, {"h\033c", "\u009b2J"}},
                             .partition = 0});
  producer.flush();
  site.drain();
  const auto list = site.run({"dlq", "list"});
  INFO(list.out);
  CHECK_THAT(list.out, !ContainsSubstring("\033") && !ContainsSubstring("\x7f") &&
                           ContainsSubstring("k\\x1b[2J\\x7f"));
  const auto show = site.run({"dlq", "show", site.ids()});
  INFO(show.out);
  CHECK_THAT(show.out, !ContainsSubstring("\033") && !ContainsSubstring("\u009b") &&
                           ContainsSubstring("no JSON \\x1b]0;title\\x07,\n" +
                                             std::string(20, ' ') + "another line\n"));
  // Machines get what it is.
  const auto json = nlohmann::json::parse(site.run({"dlq", "show", site.ids(), "--json"}).out);
  CHECK(json["key"] == key);
  CHECK(json["value"] == value);
  CHECK(json["headers"][1]["name"] == "h\033c");
}

TEST_CASE("what is parked is listed by its record key, and counted while it waits") {
  Failing site("park");
  site.pay_strangers(3);
  KafkaProducer producer(site.bootstrap);
  for (const std::string id : {"n0", "n1"}) {
    producer.send(site.topic, {.key = "other\n",
                               .value = R"({"account": "stranger", "amount": 1})",
                               .headers = {{"event-id", id}},
                               .partition = 0});
  }
  producer.flush();
  site.drain();
  const auto parked_keys = [&] {
    return nlohmann::json::parse(site.run({"status", "--json"}).out)["parked_keys"].get<int>();
  };
  CHECK(parked_keys() == 2);
  const auto list = nlohmann::json::parse(site.run({"dlq", "list", "--json"}).out)["dead_letters"];
  CHECK(list[0]["key"] == "stranger");
  CHECK(list[3]["key"] == "other\n");
  CHECK_THAT(site.run({"dlq", "list"}).out, ContainsSubstring("stranger"));

  const auto parked = site.run({"dlq", "parked"});
  INFO(parked.out << parked.err);
  CHECK(parked.code == 0);
  CHECK_THAT(parked.out, ContainsSubstring("other\\x0a"));
  const auto keys = nlohmann::json::parse(site.run({"dlq", "parked", "--json"}).out)["parked_keys"];
  REQUIRE(keys.size() == 2);
  CHECK(keys[0]["key"] == "stranger");
  CHECK(keys[0]["messages"] == 3);
  CHECK(keys[0]["first"]["offset"] == 0);
  CHECK(keys[0]["first"]["status"] == "dead");
  CHECK_THAT(keys[0]["first"]["error"].get<std::string>(), ContainsSubstring("check constraint"));
  CHECK(keys[1]["messages"] == 2);
  CHECK(nlohmann::json::parse(
            site.run({"dlq", "parked", "--json", "--topic", "no"}).out)["parked_keys"]
            .empty());

  // The row of a key whose letters are resolved stays until the next message comes.
  const auto id = keys[1]["first"]["id"].dump();
  REQUIRE(site.run({"dlq", "discard", id, std::to_string(keys[1]["first"]["id"].get<int>() + 1),
                    "--because", "test"})
              .code == 0);
  REQUIRE(site.sql("SELECT count(*) FROM pawl.parked_keys") == "2");
  CHECK(parked_keys() == 1);
  CHECK(nlohmann::json::parse(site.run({"dlq", "parked", "--json"}).out)["parked_keys"].size() ==
        1);
}

TEST_CASE("a retry that is scheduled is not a dead letter, and nothing waits behind it yet") {
  Failing site("retry-later");
  site.more += "retry_later = [\"1h\"]\n";
  site.pay_strangers(1);
  site.drain();
  const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
  CHECK(status["totals"]["dead_letters"] == 0);
  CHECK(status["totals"]["scheduled_retries"] == 1);
  CHECK(status["parked_keys"] == 0);
  CHECK(status["dead_letters"][0]["status"] == "scheduled");
  CHECK_THAT(site.run({"dlq", "parked"}).out, ContainsSubstring("No record key is parked."));
  CHECK_THAT(site.run({"dlq", "list"}).out, ContainsSubstring("scheduled"));
  CHECK_THAT(site.run({"dlq", "list", "--status", "dead"}).out,
             ContainsSubstring("No dead letters."));
  const auto scheduled = nlohmann::json::parse(
      site.run({"dlq", "list", "--status", "scheduled", "--json"}).out)["dead_letters"];
  REQUIRE(scheduled.size() == 1);
  CHECK(scheduled[0]["status"] == "scheduled");
  CHECK(nlohmann::json::parse(
            site.run({"consumers", "list", "--json"}).out)["consumers"][0]["dead_letters"] == 0);

  // A later message of its key is parked behind it.
  site.pay_strangers(1, "later");
  site.drain();
  CHECK(nlohmann::json::parse(site.run({"status", "--json"}).out)["parked_keys"] == 1);
  const auto parked =
      nlohmann::json::parse(site.run({"dlq", "parked", "--json"}).out)["parked_keys"];
  REQUIRE(parked.size() == 1);
  CHECK(parked[0]["messages"] == 2);
  CHECK(parked[0]["first"]["status"] == "scheduled");

  // After its last retry it is one.
  site.sql("UPDATE pawl.dead_letters SET due_at = NULL WHERE status = 'dead'");
  CHECK(nlohmann::json::parse(
            site.run({"dlq", "list", "--status", "dead", "--json"}).out)["dead_letters"]
            .size() == 1);
}

TEST_CASE("messages parked behind a dead letter that was discarded are said to wait for a replay") {
  Failing site("park");
  site.pay_strangers(3);
  site.drain();
  const auto left_parked_keys = [&] {
    return nlohmann::json::parse(
               site.run({"status", "--json"}).out)["parked_keys_without_dead_letter"]
        .get<int>();
  };
  CHECK(left_parked_keys() == 0);
  CHECK_THAT(site.run({"dlq", "list"}).out, !ContainsSubstring("waits for a replay"));
  const auto ids = site.ids();
  const auto first = ids.substr(0, ids.find(' '));
  const auto discarded = site.run({"dlq", "discard", first, "--because", "test data"});
  INFO(discarded.out << discarded.err);
  REQUIRE(discarded.code == 0);
  CHECK_THAT(discarded.out,
             ContainsSubstring("2 later messages of the same record keys of " + site.topic +
                               " are still parked") &&
                 ContainsSubstring("dlq replay --config") &&
                 ContainsSubstring(" --all --topic " + site.topic + " --reason parked\n"));
  CHECK(left_parked_keys() == 1);
  const auto status = site.run({"status"}).out;
  INFO(status);
  CHECK_THAT(status, ContainsSubstring("Parked messages of 1 record key have no dead letter any "
                                       "more and wait for a replay.") &&
                         ContainsSubstring(" --all --reason parked\n") &&
                         !ContainsSubstring("wait for a dead letter"));
  const auto list = site.run({"dlq", "list"}).out;
  INFO(list);
  CHECK_THAT(list, ContainsSubstring("waits for a replay") &&
                       !ContainsSubstring("waits for an earlier message"));
  CHECK_THAT(site.run({"dlq", "parked"}).out, ContainsSubstring("waits for a replay"));
  CHECK_THAT(site.run({"dlq", "show", ids.substr(ids.rfind(' ') + 1)}).out,
             ContainsSubstring("waits for a replay"));
  site.mend();
  CHECK(site.run({"dlq", "replay", "--all", "--topic", site.topic, "--reason", "parked"}).code ==
        0);
  CHECK(site.count("status = 'replayed'") == "2");
  CHECK(left_parked_keys() == 0);
}

TEST_CASE("messages that follow a discarded retry by themselves are said to wait for nobody") {
  Failing site("retry-later");
  site.more += "retry_later = [\"1h\"]\n";
  site.pay_strangers(2);
  site.drain();
  const auto ids = site.ids();
  const auto discarded =
      site.run({"dlq", "discard", ids.substr(0, ids.find(' ')), "--because", "test data"});
  INFO(discarded.out << discarded.err);
  REQUIRE(discarded.code == 0);
  CHECK_THAT(discarded.out,
             ContainsSubstring("discarded 1 dead letter\n") && !ContainsSubstring("still parked"));
  CHECK(nlohmann::json::parse(
            site.run({"status", "--json"}).out)["parked_keys_without_dead_letter"] == 0);
}

TEST_CASE("a letter whose turn has not come is not run, and keeps its error") {
  Failing site("park");
  site.pay_strangers(3);
  site.drain();
  const auto replay = site.run({"dlq", "replay", "--all"});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 1);
  CHECK_THAT(replay.out,
             ContainsSubstring("1 failed again, 2 waiting for an earlier one of their record key"));
  CHECK(site.count("status = 'parked' AND replays = 0 AND error LIKE 'waits for%'") == "2");
  const auto ids = site.ids();
  const auto last = ids.substr(ids.rfind(' ') + 1);
  const auto early = site.run({"dlq", "replay", last});
  CHECK(early.code == 1);
  CHECK_THAT(early.err, ContainsSubstring("waits for dead letter"));
  site.mend();
  CHECK(site.run({"dlq", "replay", "--all"}).code == 0);
  CHECK(site.count("status = 'replayed'") == "3");
}

TEST_CASE("ids that match nothing and reasons that there are not are refused") {
  Failing site("dead-letter");
  site.pay_strangers(2);
  site.drain();
  const auto ids = site.ids();
  const auto first = ids.substr(0, ids.find(' '));
  const auto second = ids.substr(ids.find(' ') + 1);

  for (const auto& command : {std::vector<std::string>{"dlq", "replay"},
                              std::vector<std::string>{"dlq", "discard", "--because", "test"}}) {
    auto unknown = command;
    unknown.emplace_back("999999");
    const auto none = site.run(unknown);
    CHECK(none.code == 2);
    CHECK_THAT(none.err, ContainsSubstring("dead letter 999999 does not exist. List dead "
                                           "letters:\n  pawl dlq list --config ") &&
                             ContainsSubstring(" --status all\n"));
    unknown.emplace_back("--dry-run");
    CHECK(site.run(unknown).code == 2);
    auto filtered = command;
    filtered.insert(filtered.end(), {first, "--topic", "other"});
    const auto left_out = site.run(filtered);
    CHECK(left_out.code == 2);
    CHECK_THAT(left_out.err, ContainsSubstring("does not match the filters"));
  }
  CHECK(site.count("status = 'dead' AND replays = 0") == "2");

  // What can be done is, and what cannot is said.
  const auto some = site.run({"dlq", "discard", first, "999999", "--because", "test"});
  CHECK(some.code == 1);
  CHECK(site.count("status = 'discarded'") == "1");
  // Said again it is no mistake; another wish is one.
  CHECK(site.run({"dlq", "discard", first, "--because", "test"}).code == 0);
  const auto discarded = site.run({"dlq", "replay", first});
  CHECK(discarded.code == 2);
  CHECK_THAT(discarded.err, ContainsSubstring("is already discarded"));
  site.mend();
  CHECK(site.run({"dlq", "replay", second}).code == 0);
  CHECK(site.run({"dlq", "replay", second}).code == 0);

  const auto reason = site.run({"dlq", "list", "--reason", "eror"});
  CHECK(reason.code == 2);
  CHECK_THAT(reason.err, ContainsSubstring("undecodable"));
  CHECK(site.run({"dlq", "list", "--reason", "undecodable"}).code == 0);
}

// As a consumer does that parks a message: the key's row is locked, and a letter comes with the
// COMMIT.
TEST_CASE("erase waits for a message of its record key that is being parked") {
  Failing site("park");
  site.pay_strangers(1);
  site.drain();
  pqxx::connection connection(site.url);
  pqxx::work consumer(connection);
  REQUIRE(
      consumer
          .exec(
              "SELECT pawl.is_parked(consumer_id, topic, record_key) FROM pawl.dead_letters")[0][0]
          .as<bool>());
  consumer.exec(
      "INSERT INTO pawl.dead_letters (consumer_id, topic, topic_id, partition, kafka_offset, "
      "timestamp_ms, status, reason, handler, error, record_key, record_key_hash, record_value, "
      "value_bytes, headers, payload) SELECT consumer_id, topic, topic_id, partition, 1, "
      "timestamp_ms, 'parked', 'parked', handler, 'waits', record_key, record_key_hash, "
      "record_value, value_bytes, headers, payload FROM pawl.dead_letters");
  ChildProcess erase(
      PAWL_PROGRAM,
      {"dlq", "erase", "--record-key", "stranger", "--config", site.config().string()}, {});
  bool waits = false;
  wait_until(
      [&] {
        waits = site.sql(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND wait_event_type = 'Lock'") == "1";
        return waits || site.count("payload = 'erased'") == "1";
      },
      kDeadline, "erase to wait, or to have passed by");
  CHECK(waits);
  consumer.commit();
  CHECK(erase.wait(kDeadline).code == 0);
  CHECK(site.count("payload = 'erased' AND status = 'discarded' AND record_key_hash IS NULL AND "
                   "message_digest IS NULL") == "2");
  // Nor does the hash of the key stay.
  CHECK(site.sql("SELECT count(*) FROM pawl.parked_keys") == "0");
}

// Asked for every key that retention removes.
TEST_CASE("a dead letter is found by an idempotency key through its index") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  pqxx::connection connection(site.url);
  pqxx::work work(connection);
  // No table is large enough here to be worth an index.
  for (const std::string how : {"seqscan", "hashjoin", "mergejoin", "material", "bitmapscan"})
    work.exec("SET LOCAL enable_" + how + " = off");
  std::string plan;
  for (const auto& row :
       work.exec("EXPLAIN SELECT FROM pawl.idempotency_keys k WHERE NOT EXISTS (SELECT FROM "
                 "pawl.dead_letters d WHERE d.idempotency_key = k.key AND d.status IN ('dead', "
                 "'parked'))"))
    plan += row[0].as<std::string>() + "\n";
  INFO(plan);
  CHECK_THAT(plan, ContainsSubstring("dead_letters_by_idempotency_key"));
  CHECK_THAT(plan, ContainsSubstring("Index Cond"));
}
