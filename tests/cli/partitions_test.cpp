#include <csignal>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>

#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("a paused partition stops while others go on, stays paused over a restart, and resumes") {
  Site site(2);
  site.pay_many(0, "a", 1);
  site.pay_many(1, "b", 1);
  auto child = site.start();
  site.wait_for_stored(0, 0);
  site.wait_for_stored(1, 0);
  CHECK(site.run({"partitions", "pause", "--topic", site.topic, "--partition", "0", "--because",
                  "maintenance"})
            .code == 0);
  child->wait_for_output(": maintenance\n", kDeadline);
  CHECK_THAT(child->output(), ContainsSubstring(" partition_paused topic=" + site.topic +
                                                " partition=0 next_offset=1 "));
  site.pay_many(0, "a-later", 2);
  site.pay_many(1, "b-later", 2);
  site.wait_for_stored(1, 2);
  CHECK(site.stored(0) == 0);

  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  child = site.start();
  child->wait_for_output("partition_paused", kDeadline);
  site.pay_many(1, "b-last", 1);
  site.wait_for_stored(1, 3);
  CHECK(site.stored(0) == 0);

  const auto resume = site.run({"partitions", "resume", "--topic", site.topic, "--partition", "0"});
  CHECK(resume.code == 0);
  CHECK_THAT(resume.out, ContainsSubstring("was paused and is running now"));
  site.wait_for_stored(0, 2);
  CHECK(site.sql("SELECT string_agg(action, ',' ORDER BY history_id) FROM pawl.offset_history"
                 " WHERE action IN ('pause', 'resume')") == "pause,resume");
}

TEST_CASE("pause --all and resume --all are about every partition of the topic") {
  Site site(3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"partitions", "pause", "--topic", site.topic, "--all"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'paused'") ==
        "3");
  const auto again = site.run({"partitions", "pause", "--topic", site.topic, "--all"});
  CHECK(again.code == 0);
  CHECK_THAT(again.out, ContainsSubstring("was paused before"));
  CHECK(site.run({"partitions", "resume", "--topic", site.topic, "--all"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'running'") ==
        "3");
}

TEST_CASE(
    "a state that is stored for a partition without an owner takes effect with the next one") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto change = [&](const char* which, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"partitions", which,         "--topic",
                                       site.topic,   "--partition", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return site.run(arguments);
  };
  const auto pause = change("pause");
  CHECK(pause.code == 0);
  CHECK_THAT(pause.out, ContainsSubstring("its stored state is paused now. No process owns") &&
                            !ContainsSubstring(" run "));
  const auto resume = change("resume");
  CHECK(resume.code == 0);
  CHECK_THAT(resume.out,
             ContainsSubstring("was paused, and its stored state is running now. No process owns "
                               "the partition, so the state takes effect when a process acquires "
                               "it. Next offset: 0\n") &&
                 ContainsSubstring("  pawl status --config ") &&
                 ContainsSubstring("  pawl run --config "));
  const auto again = change("resume");
  CHECK(again.code == 0);
  CHECK_THAT(again.out,
             ContainsSubstring("was running before. No process owns the partition now\n") &&
                 ContainsSubstring("  pawl run --config "));
  const auto owner = [&](const char* which) {
    return nlohmann::json::parse(change(which, {"--json"}).out).at("partitions").at(0).at("owner");
  };
  CHECK(owner("pause").is_null());
  CHECK(owner("resume").is_null());

  site.pay(0, "e0", "a", "1");
  const auto child = site.start();
  site.wait_for_stored(0, 0);
  CHECK(owner("pause") == site.sql("SELECT owner FROM pawl.processed_kafka_offsets"));
  const auto owned = change("resume");
  CHECK(owned.code == 0);
  CHECK_THAT(owned.out, ContainsSubstring("was paused and is running now. Next offset: 1\n") &&
                            !ContainsSubstring("No process"));
}

TEST_CASE("a pause does not overwrite a halt that came after the partition was read") {
  Site site;
  const TempDir folder("pause");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  pqxx::connection connection(site.url);
  pqxx::work halting(connection);
  halting.exec(
      "UPDATE pawl.processed_kafka_offsets SET state = 'halted', halt_cause = 'poison',"
      " state_since = clock_timestamp()");
  ChildProcess pause(PAWL_PROGRAM,
                     {"partitions", "pause", "--topic", site.topic, "--partition", "0", "--config",
                      site.config().string()},
                     {.output = folder.path() / "pause"});
  site.wait_for_sql(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
      " AND wait_event_type = 'Lock'",
      "1");
  halting.commit();
  CHECK(pause.wait(kDeadline).code == 1);
  CHECK_THAT(pause.output(),
             ContainsSubstring("no longer running") && ContainsSubstring("nothing was changed"));
  CHECK(site.sql("SELECT state || ' ' || halt_cause FROM pawl.processed_kafka_offsets") ==
        "halted poison");
}

TEST_CASE("resume --all goes on behind a partition that has changed meanwhile, and says so") {
  Site site(3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("UPDATE pawl.processed_kafka_offsets SET state = 'halted', halt_cause = 'a table'");
  const TempDir folder("resume");
  pqxx::connection connection(site.url);
  pqxx::work recovering(connection);
  recovering.exec(
      "UPDATE pawl.processed_kafka_offsets SET state = 'running', halt_cause = NULL,"
      " state_since = clock_timestamp() WHERE partition = 0");
  ChildProcess resume(
      PAWL_PROGRAM,
      {"partitions", "resume", "--topic", site.topic, "--all", "--config", site.config().string()},
      {.output = folder.path() / "resume"});
  site.wait_for_sql(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
      " AND wait_event_type = 'Lock'",
      "1");
  recovering.commit();
  CHECK(resume.wait(kDeadline).code == 1);
  CHECK_THAT(resume.output(), ContainsSubstring("[0] is no longer halted") &&
                                  ContainsSubstring("[1] was halted, and its stored state is "
                                                    "running now") &&
                                  ContainsSubstring("[2] was halted, and its stored state is "
                                                    "running now"));
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'running'") ==
        "3");
}

TEST_CASE("a topic without a name is no topic, and not all of them") {
  Site site(2);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  for (const auto* which : {"pause", "resume"}) {
    const auto outcome = site.run({"partitions", which, "--topic", "", "--all"});
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("--topic"));
  }
  CHECK(site.run({"partitions", "skip", "--topic", "", "--partition", "0", "--offset", "0",
                  "--because", "a test"})
            .code == 2);
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'paused'") ==
        "0");
}

TEST_CASE("a topic that no handler has is told with those that they have") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  for (const auto* which : {"pause", "resume"}) {
    const auto outcome = site.run({"partitions", which, "--topic", "shipmentz", "--all"});
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err,
               ContainsSubstring("topic shipmentz has no handler and no stored offset") &&
                   ContainsSubstring("Topics with a handler: " + site.topic));
  }
}

TEST_CASE("resume lets the running process try a halted message again, once its cause is gone") {
  Site site;
  site.pay(0, "e0", "stranger", "1");
  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger')");
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets", "halted");
  site.sql("ALTER TABLE ledger DROP CONSTRAINT known");
  const auto resume = site.run({"partitions", "resume", "--topic", site.topic, "--partition", "0"});
  CHECK(resume.code == 0);
  CHECK_THAT(resume.out, ContainsSubstring("was halted and is running now"));
  site.wait_for_stored(0, 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");
}

TEST_CASE("skip leaves out the message that halts, keeps it whole, and the consumer goes on") {
  Site site;
  const std::string payload("not json \0 at all", 17);
  {
    KafkaProducer producer(site.bootstrap);
    producer.send(site.topic, {.key = std::string("k\0y", 3),
                               .value = payload,
                               .headers = {{"event-id", "bad"}, {"empty", std::nullopt}},
                               .partition = 0});
    producer.flush();
  }
  site.pay_many(0, "good", 2);
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets", "halted");

  const auto wrong = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                               "--offset", "1", "--because", "a test"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("is not the next message. Only "));
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");

  const auto silent =
      site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0", "--offset", "0"});
  CHECK(silent.code == 2);
  CHECK_THAT(silent.err, ContainsSubstring("--because TEXT"));
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");

  const auto skip = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "0", "--because", "ticket 7"});
  INFO(skip.out << skip.err);
  CHECK(skip.code == 0);
  site.wait_for_stored(0, 2);
  CHECK(site.sql("SELECT state FROM pawl.processed_kafka_offsets") == "running");
  CHECK(site.sql("SELECT skipped_count FROM pawl.processed_kafka_offsets") == "1");
  CHECK(site.sql("SELECT count(*) FROM ledger") == "2");
  CHECK(site.sql("SELECT encode(record_value, 'hex') FROM pawl.skipped_messages") ==
        "6e6f74206a736f6e2000206174"
        "20616c6c");
  CHECK(site.sql("SELECT encode(record_key, 'hex') FROM pawl.skipped_messages") == "6b0079");
  CHECK(site.sql("SELECT headers->0->>'name' FROM pawl.skipped_messages") == "event-id");
  CHECK(site.sql("SELECT headers->1->>'value' FROM pawl.skipped_messages").empty());
  CHECK(site.sql("SELECT reason || ' ' || kafka_offset FROM pawl.skipped_messages") ==
        "ticket 7 0");
  CHECK(site.sql("SELECT concat_ws(' ', action, from_offset, to_offset) FROM pawl.offset_history"
                 " ORDER BY history_id DESC") == "skip 1 1");
}

TEST_CASE("skip refuses what is past already, what is not there yet, and what has no row") {
  Site site(2);
  const auto none = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "0", "--because", "a test"});
  CHECK(none.code == 1);
  CHECK_THAT(none.err, ContainsSubstring("has no consumer"));
  site.pay_many(0, "e", 2);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto past = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "1", "--because", "a test"});
  CHECK(past.code == 2);
  CHECK_THAT(past.err, ContainsSubstring("@1 is already processed. The next offset is 2"));
  const auto end = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                             "--offset", "2", "--because", "a test"});
  CHECK(end.code == 2);
  CHECK_THAT(end.err, ContainsSubstring("at its end"));
  const auto row = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "7",
                             "--offset", "0", "--because", "a test"});
  CHECK(row.code == 1);
  CHECK_THAT(row.err, ContainsSubstring("offsets show"));
  CHECK(site.stored(0) == 1);
}

TEST_CASE("a paused partition stays paused when its next message is skipped") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.pay_many(0, "e", 2);
  CHECK(site.run({"partitions", "pause", "--topic", site.topic, "--all"}).code == 0);
  CHECK(site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0", "--offset", "0",
                  "--because", "a test"})
            .code == 0);
  CHECK(site.stored(0) == 0);
  CHECK(site.sql("SELECT state FROM pawl.processed_kafka_offsets") == "paused");
}

// Sanitizers need more memory than the limit leaves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kLarge = std::size_t{200} << 20U;

/// `pawl ARGUMENTS...` with memory for a record of kLarge once, and not twice.
std::unique_ptr<ChildProcess> start_limited(const std::vector<std::string>& arguments,
                                            const std::filesystem::path& output) {
  std::vector<std::string> all{"--data=402653184", "--stack=2097152", PAWL_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::make_unique<ChildProcess>("prlimit", all, ChildOptions{.output = output});
}

/// In a batch of its own. Kafka's limit is for what is compressed.
void produce_large(const Site& site, int partition) {
  KafkaProducer producer(site.bootstrap, "",
                         {{"message.max.bytes", "1000000000"}, {"compression.codec", "gzip"}});
  producer.send(site.topic, {.value = std::string(kLarge, 'a'),
                             .headers = {{"event-id", "large"}},
                             .partition = partition});
  producer.flush();
}

}  // namespace

TEST_CASE("a record that no process has the memory for halts its partition, and can be skipped") {
  Site site(3);
  const TempDir folder("large");
  site.kafka_lines = "session_timeout = \"2s\"";
  const auto config = site.config().string();
  site.pay(1, "other", "a", "1");
  produce_large(site, 0);
  site.pay(0, "after", "a", "1");
  int runs = 0;
  const auto run = [&] {
    const auto child = start_limited({"run", "--drain", "--config", config},
                                     folder.path() / std::to_string(runs++));
    const auto end = child->wait(kDeadline);
    return std::pair(end, child->output());
  };

  int crashes = 0;
  for (auto end = run(); end.first.signal; end = run()) {
    INFO(end.second);
    REQUIRE(end.first.signal == SIGABRT);
    REQUIRE(++crashes <= 10);
  }
  CHECK(crashes == 3);
  CHECK(
      site.sql("SELECT string_agg(state || coalesce(' ' || halt_kind, ''), ', ' ORDER BY partition)"
               " FROM pawl.processed_kafka_offsets") == "halted crash-loop, running, running");
  CHECK(site.sql("SELECT halt_code || ' ' || halt_offset || ' ' || (halt_parameters ->> 'crashes')"
                 " FROM pawl.processed_kafka_offsets WHERE partition = 0") == "fetch_crashed 0 3");
  CHECK(site.stored(1) == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.first_fetches WHERE fetched_by IS NOT NULL") == "0");

  // A restart meets the stored halt and does not fetch.
  const auto again = run();
  INFO(again.second);
  CHECK(again.first.code == 4);
  CHECK_THAT(again.second, ContainsSubstring("3 consecutive processes crashed") &&
                               ContainsSubstring("partitions skip") &&
                               ContainsSubstring("--offset 0 --because"));

  // Resumed, it is fetched alone from the beginning, so that one more crash halts it.
  CHECK(site.run({"partitions", "resume", "--topic", site.topic, "--partition", "0", "--because",
                  "more memory"})
            .code == 0);
  CHECK(run().first.signal == SIGABRT);
  const auto halted = run();
  INFO(halted.second);
  CHECK(halted.first.code == 4);
  CHECK(site.sql("SELECT halt_parameters ->> 'crashes' FROM pawl.processed_kafka_offsets"
                 " WHERE partition = 0") == "4");

  const auto command = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"partitions", name,       "--config",    config,
                                       "--topic",    site.topic, "--partition", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto child = start_limited(arguments, folder.path() / name);
    const auto end = child->wait(kDeadline);
    INFO(child->output());
    CHECK(end.code == 0);
    return child->output();
  };
  CHECK_THAT(command("peek", {"--max-bytes", "10"}),
             ContainsSubstring("value: text, 209715200 bytes: aaaaaaaaaa..."));
  CHECK_THAT(command("skip", {"--offset", "0", "--because", "too large"}),
             ContainsSubstring("only its offset is stored"));
  const auto skipped =
      nlohmann::json::parse(site.run({"skipped", "list", "--json"}).out).at("skipped_messages");
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0].at("offset") == 0);
  CHECK(skipped[0].at("payload") == "omitted");
  CHECK_THAT(site.run({"skipped", "list"}).out, ContainsSubstring("omitted"));

  const auto rest = run();
  INFO(rest.second);
  CHECK(rest.first.code == 0);
  CHECK(site.stored(0) == 1);
  CHECK(site.sql("SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM ledger") ==
        "after other");
}

#endif
