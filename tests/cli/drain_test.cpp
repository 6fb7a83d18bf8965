#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <pqxx/pqxx>

#include "site.hpp"

using namespace pawl::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto begin = text.rfind('\n', end);
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

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
             ContainsSubstring(site.topic + " [0] is paused before offset 3 of 6") &&
                 !ContainsSubstring(site.topic + " [1]"));
  CHECK(site.stored(0) == 2);
  CHECK(site.stored(1) == 5);
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
  site.wait_for_sql(
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
      " AND datname = current_database()",
      "t");
  KafkaBroker::shared().add_partitions(site.topic, 2);
  site.pay_many(1, "b", 3);
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets", "2");
  holder.commit();
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(site.stored(0) == 2);
}
