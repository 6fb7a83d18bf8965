// Which events of an outage are logged: no server needed.
#include "ops/outages.hpp"

#include "prelude.hpp"

using pawl::Event;
using pawl::Step;
using pawl::ops::Outages;

namespace {

constexpr Outages::Clock::time_point kStart{};

Event event(Step step, std::string_view cause = "") {
  Event event{step};
  event.detail = cause;
  return event;
}

constexpr std::string_view kRefused =
    "connection to server at \"db\", port 5432 failed: Connection refused";
constexpr std::string_view kPassword =
    "cannot use PostgreSQL: FATAL: password authentication failed for user \"app\". Check user and "
    "password in postgres.url, and pg_hba.conf of the server";

struct Reported {
  Step step;
  std::string_view cause = {};
  bool logged = false;
};

/// What is left to report one second after the events, each of which comes 100 ms after another.
std::vector<Step> check(const std::vector<Reported>& events) {
  Outages outages(1s);
  auto now = kStart;
  for (const auto& [step, cause, logged] : events) {
    now += 100ms;
    CAPTURE(to_string(step), cause, (now - kStart) / 100ms);
    CHECK(outages.note(event(step, cause), now) == logged);
  }
  std::vector<Step> ended;
  for (const auto& one : outages.take_ended(now + 1s))
    ended.push_back(one.step);
  return ended;
}

}  // namespace

TEST_CASE("an outage is logged once, and again only if an operator must act differently") {
  struct Row {
    std::string what;
    std::vector<Reported> events;
    std::vector<Step> ended = {};
  };
  const auto row = GENERATE(values<Row>({
      {"PostgreSQL at the start, before a worker has connected",
       {{Step::kDatabaseUnreachable, kRefused, true},
        {Step::kDatabaseUnreachable, "FATAL: the database system is starting up"},
        {Step::kDatabaseUnreachable, kPassword, true},
        {Step::kDatabaseUnreachable, kRefused},
        {Step::kDatabaseReachable},
        {Step::kDatabaseConnected}},
       {Step::kDatabaseReachable}},
      {"PostgreSQL in a relay, in which no worker connects",
       {{Step::kDatabaseUnreachable, kRefused, true},
        {Step::kDatabaseReachable},
        {Step::kDatabaseUnreachable, kRefused}},
       {}},
      {"PostgreSQL during a run, whose workers notice it one after another",
       {{Step::kDatabaseConnected},
        {Step::kDatabaseConnected},
        {Step::kDatabaseUnreachable, "terminating connection"},
        {Step::kDatabaseDisconnected, "terminating connection", true},
        {Step::kDatabaseDisconnected, "server closed the connection"},
        {Step::kDatabaseUnreachable, kRefused},
        {Step::kDatabaseConnected},
        {Step::kDatabaseReachable},
        {Step::kDatabaseDisconnected, "server closed the connection"},
        {Step::kDatabaseConnected}},
       {Step::kDatabaseReachable}},
      {"a password that is rotated during a run",
       {{Step::kDatabaseConnected},
        {Step::kDatabaseDisconnected, "terminating connection", true},
        {Step::kDatabaseUnreachable, kPassword, true},
        // A session of another worker, from before the password was rotated.
        {Step::kDatabaseDisconnected, "server closed the connection"},
        {Step::kDatabaseUnreachable, kPassword}},
       {}},
      {"one cause needs one correction, another cause another one",
       {{Step::kDatabaseUnreachable, kPassword, true},
        {Step::kDatabaseUnreachable, "FATAL: role \"app\" does not exist", true},
        {Step::kDatabaseUnreachable, "postgres.url: the file /pw cannot be read", true},
        {Step::kDatabaseUnreachable, kPassword}},
       {}},
      {"a server that responds and has no space for a partition is not unreachable",
       {{Step::kDatabaseConnected},
        {Step::kDatabaseUnreachable, "could not extend file: No space left on device"},
        {Step::kDatabaseReachable}},
       {}},
      {"Kafka, whose client has several texts for one outage",
       {{Step::kKafkaUnreachable, "all brokers are down", true},
        {Step::kKafkaUnreachable, "kafka:9092: Connect to ipv4#10.0.0.1:9092 failed: refused"},
        {Step::kKafkaUnreachable, "no Kafka broker responded (Local: Timed out)"},
        {Step::kKafkaUnreachable,
         "kafka:9092: SASL authentication error: Authentication failed. Check the password", true},
        {Step::kKafkaUnreachable, "all brokers are down"},
        {Step::kKafkaReachable}},
       {Step::kKafkaReachable}},
      {"Redis",
       {{Step::kRedisUnreachable, "Redis r:6379: connection lost: refused", true},
        {Step::kRedisUnreachable, "Redis did not respond, or rejected the request"},
        {Step::kRedisUnreachable,
         "Redis r:6379 rejected AUTH: WRONGPASS invalid password. Check redis.user and "
         "redis.password",
         true},
        {Step::kRedisReachable}},
       {Step::kRedisReachable}},
      {"servers do not share an outage",
       {{Step::kKafkaUnreachable, "timed out", true},
        {Step::kDatabaseUnreachable, "timed out", true},
        {Step::kRedisUnreachable, "timed out", true},
        {Step::kRedisReachable},
        {Step::kKafkaReachable}},
       {Step::kKafkaReachable, Step::kRedisReachable}},
      {"a response without an outage, and other events",
       {{Step::kDatabaseReachable},
        {Step::kKafkaReachable},
        {Step::kRedisReachable},
        {Step::kMessageCommitted}},
       {}},
  }));
  CAPTURE(row.what);
  CHECK(check(row.events) == row.ended);
}

TEST_CASE("an outage has ended if no user of the server has lost it again") {
  Outages outages(1s);
  const auto lost = event(Step::kDatabaseDisconnected, "terminating");
  const auto connected = event(Step::kDatabaseConnected);
  CHECK_FALSE(outages.note(connected, kStart));
  CHECK(outages.take_ended(kStart + 10s).empty());
  CHECK(outages.note(lost, kStart));
  CHECK(outages.take_ended(kStart + 2s).empty());
  CHECK_FALSE(outages.note(connected, kStart + 3s));
  // One worker has connected, the next one finds the connection broken.
  CHECK_FALSE(outages.note(lost, kStart + 3500ms));
  CHECK(outages.take_ended(kStart + 10s).empty());
  CHECK_FALSE(outages.note(connected, kStart + 10s));
  CHECK(outages.take_ended(kStart + 10900ms).empty());
  const auto ended = outages.take_ended(kStart + 11s);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].step == Step::kDatabaseReachable);
  CHECK(ended[0].lasted == 10s);
  CHECK(outages.take_ended(kStart + 20s).empty());
  // The next outage.
  CHECK(outages.note(lost, kStart + 30s));
  CHECK_FALSE(outages.note(connected, kStart + 31s));
  CHECK(outages.take_ended(kStart + 31s, true).size() == 1);
}

TEST_CASE("an outage has its duration, its latest cause, and the number of its other reports") {
  Outages outages(1s);
  CHECK(outages.standing(kStart).empty());
  outages.note(event(Step::kDatabaseConnected), kStart);
  outages.note(event(Step::kDatabaseDisconnected, "terminating"), kStart);
  outages.note(event(Step::kDatabaseUnreachable, kRefused), kStart + 1s);
  outages.note(event(Step::kDatabaseUnreachable, kPassword), kStart + 2s);
  // The cause of a broken connection is older than that of a failed attempt to connect.
  outages.note(event(Step::kDatabaseDisconnected, "terminating"), kStart + 3s);
  outages.note(event(Step::kRedisUnreachable, "timed out"), kStart + 80s);
  const auto standing = outages.standing(kStart + 90s);
  REQUIRE(standing.size() == 2);
  CHECK(standing[0].server == "PostgreSQL");
  CHECK(standing[0].field == "database_unreachable_s");
  CHECK(standing[0].repeats_field == "database_unreachable_repeats");
  CHECK(standing[0].lasts == 90s);
  CHECK(standing[0].repeats == 2);
  CHECK(standing[0].cause == kPassword);
  CHECK(standing[1].server == "Redis");
  CHECK(standing[1].lasts == 10s);
  CHECK(standing[1].repeats == 0);
  outages.note(event(Step::kDatabaseConnected), kStart + 91s);
  CHECK(outages.standing(kStart + 91s).size() == 1);
}
