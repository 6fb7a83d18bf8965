#include <csignal>
#include <pqxx/pqxx>

#include "prelude.hpp"
#include "site.hpp"

namespace {

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto begin = text.rfind('\n', end);
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

/// A session waits for a lock: a message is in hand.
void wait_until_blocked(const Site& site) {
  site.wait_for_sql(
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
      " AND datname = current_database()",
      "t");
}

/// A process that drains two partitions of three messages each, and one that does not, which joins
/// it while the first messages are in hand. The assignor takes everything away before.
struct Joined {
  explicit Joined(const std::vector<std::string>& arguments = {},
                  const std::string& constraint = {})
      : site(2) {
    site.kafka_lines = "assignor = \"range\"\n";
    if (!constraint.empty())
      site.sql("ALTER TABLE ledger ADD CONSTRAINT wrong CHECK (" + constraint + ")");
    site.pay_many(0, "a", 3);
    site.pay_many(1, "b", 3);
    pqxx::connection connection(site.url);
    pqxx::work holder(connection);
    holder.exec("LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE");
    auto draining = arguments;
    draining.insert(draining.begin(), "--drain");
    drains = site.start(draining);
    wait_until_blocked(site);
    other = site.start(arguments);
    wait_until([&] { return KafkaBroker::shared().stable_members(site.group) == 2; }, kDeadline,
               "the second process to get its partition\n" + drains->output());
    CHECK(drains->running());
    holder.commit();
  }
  void stop_other() const {
    other->kill(SIGTERM);
    CHECK(other->wait(kDeadline).code == 0);
  }

  Site site;
  std::unique_ptr<ChildProcess> drains;
  std::unique_ptr<ChildProcess> other;
};

}  // namespace

TEST_CASE("run --drain ends with 4 when a partition with a backlog is paused, and names it") {
  Site site(2);
  site.pay_many(0, "a", 3);
  site.pay_many(1, "b", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  REQUIRE(site.run({"partitions", "pause", "--topic", site.topic, "--partition", "0"}).code == 0);
  // Nothing is left in it: pausing it changes nothing.
  CHECK(site.run({"run", "--drain"}).code == 0);

  site.pay_many(0, "a-later", 3);
  site.pay_many(1, "b-later", 3);
  const auto outcome = site.run({"run", "--drain"});
  INFO(outcome.err);
  CHECK(outcome.code == 4);
  CHECK_THAT(last_line(outcome.err),
             ContainsSubstring(site.topic + "[0] is paused before offset 3 of 6") &&
                 !ContainsSubstring(site.topic + "[1]"));
  CHECK(site.stored(0) == 2);
  CHECK(site.stored(1) == 5);
}

TEST_CASE("run --drain ends with 1 when topics do not exist, and names them") {
  Site site(1);
  const auto first = site.topic + "-missing-1";
  const auto second = site.topic + "-missing-2";
  // Whether Kafka assigns the others to it, or nothing at all.
  if (GENERATE(true, false)) {
    site.pay_many(0, "a", 3);
    site.more =
        "[[handler]]\ntopics = [\"" + first + "\", \"" + second + "\"]\nsql = \"SELECT 1\"\n";
  } else {
    site.topic = first;
    site.more = "[[handler]]\ntopics = [\"" + second + "\"]\nsql = \"SELECT 1\"\n";
  }
  const auto outcome = site.run({"run", "--drain"});
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(last_line(outcome.err),
             ContainsSubstring("topics " + first + ", " + second + " do not exist in Kafka"));
}

TEST_CASE("run --drain ends although a partition is added and filled meanwhile") {
  Site site(1);
  site.pay_many(0, "a", 3);
  site.kafka_lines = "topic_check_interval = \"200ms\"\n";
  pqxx::connection connection(site.url);
  pqxx::work holder(connection);
  holder.exec("LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE");
  const auto child = site.start({"--drain"});
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets", "1");
  // Its first message waits for the lock, so it has begun to drain.
  wait_until_blocked(site);
  KafkaBroker::shared().add_partitions(site.topic, 2);
  site.pay_many(1, "b", 3);
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets", "2");
  holder.commit();
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(site.stored(0) == 2);
}

// What was behind before it was set back is not behind any more.
TEST_CASE("run --drain does not end before a partition that was set back meanwhile is done again") {
  Site site(2);
  site.sql(R"sql(
    CREATE TABLE broken (yes boolean);
    CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF NEW.event_id LIKE 'b%' THEN PERFORM pg_advisory_xact_lock(1); END IF;
        IF NEW.event_id LIKE 'a%' AND EXISTS (SELECT FROM broken) THEN RAISE 'broken'; END IF;
        RETURN NEW;
      END $$;
    CREATE TRIGGER judge BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION judge())sql");
  site.pay_many(0, "a", 3);
  site.pay_many(1, "b", 3);
  pqxx::connection connection(site.url);
  pqxx::work holder(connection);
  holder.exec("SELECT pg_advisory_xact_lock(1)");
  const auto child = site.start({"--drain"});
  site.wait_for_stored(0, 2);

  site.sql("INSERT INTO broken VALUES (true)");
  site.sql("DELETE FROM ledger WHERE event_id LIKE 'a%'");
  site.sql("DELETE FROM pawl.idempotency_keys WHERE key LIKE 'a%'");
  REQUIRE(
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "earliest"})
          .code == 0);
  site.wait_for_sql("SELECT attempts > 0 FROM pawl.processed_kafka_offsets WHERE partition = 0",
                    "t");
  holder.commit();
  site.wait_for_stored(1, 2);
  site.sql("DELETE FROM broken");
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(site.stored(0) == 2);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "6");
}

// With such an assignor a process has no partition at all while Kafka shares them out anew.
TEST_CASE("run --drain outlasts a rebalance that takes everything from it") {
  const Joined joined;
  CHECK(joined.drains->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  // Also what the other process has done.
  CHECK(joined.site.stored(0) == 2);
  CHECK(joined.site.stored(1) == 2);
  joined.stop_other();
}

TEST_CASE("run --drain names a partition that another process took and that halts there") {
  const Joined joined({"--set", "failures.max_attempts=1"}, "event_id <> 'b1'");
  CHECK(joined.drains->wait(kDeadline) == ExitStatus{.code = 4, .signal = {}});
  CHECK_THAT(last_line(joined.drains->output()),
             ContainsSubstring(joined.site.topic + "[1] is halted before offset 1 of 3"));
  CHECK(joined.site.stored(0) == 2);
  joined.stop_other();
}
