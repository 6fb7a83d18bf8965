#include <csignal>
#include <pqxx/pqxx>

#include "prelude.hpp"
#include "site.hpp"

namespace {

/// Each message runs it before it enters anything, and so is in hand for as long as it takes.
void before_each_entry(const Site& site, const std::string& call) {
  site.sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM " + call +
           "; RETURN NEW; END $$");
  site.sql("CREATE TRIGGER slow BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION slow()");
}

/// A wait_event of pg_stat_activity.
void wait_until_one_waits(const Site& site, const std::string& event) {
  site.wait_for_sql(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = "
      "'" +
          event + "'",
      "1");
}

}  // namespace

TEST_CASE("SIGTERM and SIGINT finish the message in hand, release the partition and end with 0") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  Site site;
  // The handler's first run takes its time, so that the signal finds it in hand.
  before_each_entry(site, "pg_sleep(1)");
  site.pay_many(0, "e", 1);
  const auto child = site.start();
  wait_until_one_waits(site, "PgSleep");
  child->kill(signal);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(site.stored(0) == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
  CHECK(site.sql("SELECT released FROM pawl.processed_kafka_offsets") == "t");
  CHECK_THAT(child->output(), ContainsSubstring(signal == SIGINT ? "SIGINT" : "SIGTERM"));
}

TEST_CASE("a second signal ends at once with 128 + its number, and nothing is half done") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  Site site;
  before_each_entry(site, "pg_sleep(20)");
  site.pay_many(0, "e", 1);
  const auto child = site.start();
  wait_until_one_waits(site, "PgSleep");
  child->kill(SIGTERM);
  child->wait_for_output("SIGTERM", kDeadline);
  child->kill(signal);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 128 + signal, .signal = {}});
  CHECK(site.stored(0) == -1);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "0");
}

TEST_CASE("beyond shutdown_timeout the message in hand is abandoned: exit 5, nothing half done") {
  Site site;
  before_each_entry(site, "pg_sleep(20)");
  site.pay_many(0, "e", 1);
  const auto child = site.start({"--set", "consumer.shutdown_timeout=1s"});
  wait_until_one_waits(site, "PgSleep");
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 5, .signal = {}});
  CHECK(site.stored(0) == -1);
}

// Else whoever reads the group's partitions next, and is not pawl, repeats the message.
TEST_CASE("a stop tells Kafka also of the message that was in hand") {
  Site site(2);
  site.kafka_lines = "commit_interval = \"1m\"\n";
  before_each_entry(site, "pg_advisory_xact_lock(7)");
  pqxx::connection holder(site.url);
  pqxx::work holds(holder);
  holds.exec("SELECT pg_advisory_xact_lock(7)");
  site.pay(0, "e", "a", "1");
  const auto child = site.start(
      {"--set", std::string("consumer.durability=") + GENERATE("synchronous", "replayable")});
  wait_until_one_waits(site, "advisory");
  child->kill(SIGTERM);
  // The other partition is let go of at once.
  site.wait_for_sql("SELECT released FROM pawl.processed_kafka_offsets WHERE partition = 1", "t");
  holds.commit();
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(site.stored(0) == 0);
  CHECK(KafkaBroker::shared().committed_offsets(site.group, site.topic).at(0).offset == 1);
}

TEST_CASE("a stop while Kafka is away ends with 0 when nothing is in hand") {
  KafkaBroker broker;
  Site site;
  site.bootstrap = broker.bootstrap();
  broker.create_topic(site.topic, 1);
  const auto child = site.start({"--set", "consumer.shutdown_timeout=2s"});
  child->wait_for_output("partition_assigned", kDeadline);
  // A broker that is gone is not told that the group is left; one that hangs is waited for.
  const bool hangs = GENERATE(true, false);
  CAPTURE(hangs);
  if (hangs) {
    broker.freeze();
  } else {
    broker.kill();
    child->wait_for_output("librdkafka", kDeadline);
  }
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(site.sql("SELECT released FROM pawl.processed_kafka_offsets") == "t");
  if (hangs)
    CHECK_THAT(child->output(), ContainsSubstring("All in-flight messages are stored"));
}

TEST_CASE("a consumer that waits for servers that are down stops on a signal") {
  Site site;
  const bool database_is_down = GENERATE(true, false);
  if (database_is_down) {
    site.url = "postgresql://postgres@127.0.0.1:9/nothing";
  } else {
    site.bootstrap = "127.0.0.1:9";
  }
  const auto child = site.start();
  child->wait_for_output(database_is_down ? " database_unreachable: " : " kafka_unreachable: ",
                         kDeadline);
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}
