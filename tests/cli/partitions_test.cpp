#include <csignal>
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
  CHECK(site.run({"partitions", "pause", "--topic", site.topic, "--partition", "0", "--reason",
                  "maintenance"})
            .code == 0);
  child->wait_for_output("paused by an operator: maintenance", kDeadline);
  site.pay_many(0, "a-later", 2);
  site.pay_many(1, "b-later", 2);
  site.wait_for_stored(1, 2);
  CHECK(site.stored(0) == 0);

  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  child = site.start();
  child->wait_for_output("paused by an operator", kDeadline);
  site.pay_many(1, "b-last", 1);
  site.wait_for_stored(1, 3);
  CHECK(site.stored(0) == 0);

  const auto resume = site.run({"partitions", "resume", "--topic", site.topic, "--partition", "0"});
  CHECK(resume.code == 0);
  CHECK_THAT(resume.out, ContainsSubstring("was paused, is running"));
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
  CHECK_THAT(again.out, ContainsSubstring("is paused already"));
  CHECK(site.run({"partitions", "resume", "--topic", site.topic, "--all"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'running'") ==
        "3");
}

TEST_CASE("a pause does not overwrite a halt that came after the partition was read") {
  Site site;
  const TempDir folder("pause");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  pqxx::connection connection(site.url);
  pqxx::work halting(connection);
  halting.exec(
      "UPDATE pawl.processed_kafka_offsets SET state = 'halted', state_reason = 'poison',"
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
             ContainsSubstring("not running any more") && ContainsSubstring("nothing was changed"));
  CHECK(site.sql("SELECT state || ' ' || state_reason FROM pawl.processed_kafka_offsets") ==
        "halted poison");
}

TEST_CASE("resume --all goes on behind a partition that has changed meanwhile, and says so") {
  Site site(3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("UPDATE pawl.processed_kafka_offsets SET state = 'halted', state_reason = 'a table'");
  const TempDir folder("resume");
  pqxx::connection connection(site.url);
  pqxx::work recovering(connection);
  recovering.exec(
      "UPDATE pawl.processed_kafka_offsets SET state = 'running', state_reason = NULL,"
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
  CHECK_THAT(resume.output(), ContainsSubstring(" [0]: it is not halted any more") &&
                                  ContainsSubstring(" [1] was halted, is running") &&
                                  ContainsSubstring(" [2] was halted, is running"));
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
               ContainsSubstring("--topic shipmentz: no handler of the configuration has it") &&
                   ContainsSubstring("the handlers' topics are: " + site.topic));
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
  CHECK_THAT(resume.out, ContainsSubstring("was halted, is running"));
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
  CHECK_THAT(wrong.err, ContainsSubstring("is at offset 0"));
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");

  const auto silent =
      site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0", "--offset", "0"});
  CHECK(silent.code == 2);
  CHECK_THAT(silent.err, ContainsSubstring("--because TEXT"));
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");

  const auto skip = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "0", "--reason", "ticket 7"});
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
  CHECK(site.sql("SELECT action FROM pawl.offset_history ORDER BY history_id DESC") == "skip");
}

TEST_CASE("skip refuses what is past already, what is not there yet, and what has no row") {
  Site site(2);
  const auto none = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "0", "--because", "a test"});
  CHECK(none.code == 1);
  CHECK_THAT(none.err, ContainsSubstring("knows no consumer"));
  site.pay_many(0, "e", 2);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto past = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "1", "--because", "a test"});
  CHECK(past.code == 2);
  CHECK_THAT(past.err, ContainsSubstring("past it already"));
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
