#include "ops/alerts_limit.hpp"

#include <nlohmann/json.hpp>

#include "ops/alerts_message.hpp"
#include "prelude.hpp"

using namespace pawl::ops;

namespace {

using Clock = AlertLimit::Clock;
using Server = AlertLimit::Server;

const Clock::time_point kStart = Clock::time_point() + 1000h;

Alert dead_letter(const std::string& handler, const std::string& detail) {
  Alert alert;
  alert.kind = alert_kind::kDeadLetter;
  alert.topic = "payments";
  alert.partition = 0;
  alert.handler = handler;
  alert.msg = detail;
  return alert;
}

Alert halt(int partition, const std::string& detail) {
  Alert alert;
  alert.kind = alert_kind::kHalt;
  alert.topic = "payments";
  alert.partition = partition;
  alert.msg = detail;
  return alert;
}

}  // namespace

TEST_CASE("an alert is sent at once, its like only when the interval is over, with their number") {
  AlertLimit limit(60s, 60s);
  CHECK(limit.next_due() == Clock::time_point::max());
  limit.add(dead_letter("pay", "first"), kStart);
  CHECK(limit.next_due() <= kStart);
  CHECK(limit.take(0, kStart)->msg == "first");

  for (int i = 0; i < 5; ++i)
    limit.add(dead_letter("pay", "later " + std::to_string(i)), kStart + 1s);
  CHECK_FALSE(limit.take(0, kStart + 59s));
  CHECK(limit.next_due() == kStart + 60s);
  const auto next = limit.take(0, kStart + 60s);
  REQUIRE(next);
  CHECK(next->msg == "later 0");
  CHECK(next->suppressed == 4);
  CHECK_FALSE(limit.take(0, kStart + 600s));
}

TEST_CASE("alerts of other handlers, partitions and kinds do not wait for each other") {
  AlertLimit limit(60s, 60s);
  limit.add(dead_letter("pay", "a"), kStart);
  limit.add(dead_letter("refund", "b"), kStart);
  limit.add_halt(halt(0, "c"), kStart);
  limit.add_halt(halt(1, "d"), kStart);
  std::string order;
  while (const auto alert = limit.take(0, kStart))
    order += alert->msg;
  CHECK(order == "abcd");
}

TEST_CASE("halts at messages of one handler are told for each partition") {
  AlertLimit limit(60s, 60s);
  for (const int partition : {0, 1}) {
    auto alert = halt(partition, "why");
    alert.handler = "pay";
    limit.add_halt(alert, kStart);
    const auto sent = limit.take(0, kStart);
    REQUIRE(sent);
    CHECK(sent->partition == partition);
    CHECK(sent->handler == "pay");
  }
}

TEST_CASE("a halt that is found again is no new halt, until the partition has run") {
  AlertLimit limit(0s, 60s);
  limit.add_halt(halt(0, "why"), kStart);
  CHECK(limit.take(0, kStart));
  limit.add_halt(halt(0, "why"), kStart + 1h);
  CHECK_FALSE(limit.take(0, kStart + 1h));
  limit.add_halt(halt(0, "another why"), kStart + 1h);
  CHECK(limit.take(0, kStart + 1h));
  limit.runs({"payments", 0});
  limit.add_halt(halt(0, "another why"), kStart + 2h);
  CHECK(limit.take(0, kStart + 2h));
}

TEST_CASE("a halt that is held back until its partition runs again is not sent") {
  AlertLimit limit(60s, 60s);
  limit.add_halt(halt(0, "first"), kStart);
  CHECK(limit.take(0, kStart));
  limit.runs({"payments", 0});
  limit.add_halt(halt(0, "second"), kStart + 10s);
  CHECK_FALSE(limit.take(0, kStart + 10s));
  limit.runs({"payments", 0});
  CHECK_FALSE(limit.take(0, kStart + 1h));
  limit.add_halt(halt(0, "third"), kStart + 1h);
  const auto third = limit.take(0, kStart + 1h);
  REQUIRE(third);
  CHECK(third->msg == "third");
  CHECK(third->suppressed == 1);
}

TEST_CASE("a thousand halts at once are one alert that counts the others") {
  AlertLimit limit(60s, 60s);
  for (int p = 0; p < 1000; ++p)
    limit.add_halt(halt(p, "why " + std::to_string(p)), kStart);
  const auto alert = limit.take(0, kStart);
  REQUIRE(alert);
  CHECK(alert->partition == 0);
  CHECK(alert->suppressed == 999);
  CHECK_FALSE(limit.take(0, kStart));
}

TEST_CASE("more places than are remembered are still counted") {
  AlertLimit limit(60s, 60s);
  for (int p = 0; p < 10100; ++p)
    limit.add_halt(halt(p, "why"), kStart);
  CHECK(limit.take(0, kStart)->suppressed == 10099);
}

TEST_CASE("an outage is an alert when it lasts, and its end another; a short one is neither") {
  AlertLimit limit(60s, 30s);
  limit.lost(Server::kDatabase, "refused", kStart);
  CHECK(limit.next_due() == kStart + 30s);
  limit.back(Server::kDatabase, 0, kStart + 29s);
  CHECK_FALSE(limit.take(0, kStart + 31s));

  limit.lost(Server::kDatabase, "refused", kStart + 40s);
  limit.lost(Server::kDatabase, "still refused", kStart + 50s);
  CHECK_FALSE(limit.take(0, kStart + 69s));
  const auto away = limit.take(0, kStart + 70s);
  REQUIRE(away);
  CHECK(away->kind == alert_kind::kDatabaseUnreachable);
  CHECK(away->msg == "still refused");
  CHECK(away->seconds == 30);
  CHECK_FALSE(limit.take(0, kStart + 500s));

  limit.back(Server::kDatabase, 0, kStart + 540s);
  const auto back = limit.take(0, kStart + 540s);
  REQUIRE(back);
  CHECK(back->kind == alert_kind::kDatabaseReachable);
  CHECK(back->seconds == 500);
  CHECK(back->msg == "PostgreSQL can be used again");
}

TEST_CASE("an outage of one server says nothing about the other") {
  AlertLimit limit(60s, 30s);
  limit.lost(Server::kKafka, "no broker", kStart);
  limit.back(Server::kDatabase, 0, kStart + 1s);
  const auto away = limit.take(0, kStart + 30s);
  REQUIRE(away);
  CHECK(away->kind == alert_kind::kKafkaUnreachable);
}

TEST_CASE("each remote service has an outage of its own, with the text that was heard last") {
  AlertLimit limit(60s, 30s);
  limit.lost(Server::kRemoteService, "1 waits", kStart, "https://a");
  limit.lost(Server::kRemoteService, "2 wait", kStart + 20s, "https://a");
  limit.lost(Server::kRemoteService, "9 wait", kStart + 25s, "https://b");
  const auto away = limit.take(0, kStart + 30s);
  REQUIRE(away);
  CHECK(away->kind == alert_kind::kRemoteServiceUnreachable);
  CHECK(away->endpoint == "https://a");
  CHECK(away->msg == "2 wait");
  limit.back(Server::kRemoteService, 0, kStart + 40s, "https://b");
  CHECK_FALSE(limit.take(0, kStart + 500s));
  limit.back(Server::kRemoteService, 0, kStart + 540s, "https://a");
  const auto back = limit.take(0, kStart + 540s);
  REQUIRE(back);
  CHECK(back->kind == alert_kind::kRemoteServiceReachable);
  CHECK(back->endpoint == "https://a");
  CHECK(back->msg == "the endpoint responds, or no message waits for it");
  CHECK(back->seconds == 540);
}

TEST_CASE("a partition that waits for a lock is told once, and when it waits no more") {
  AlertLimit limit(60s, 30s);
  const auto blocked = [](std::string_view kind) {
    auto alert = halt(3, "session 42");
    alert.kind = kind;
    return alert;
  };
  limit.add_unblocked(blocked(alert_kind::kPartitionUnblocked), kStart);
  limit.add_blocked(blocked(alert_kind::kPartitionBlocked), kStart);
  limit.add_blocked(blocked(alert_kind::kPartitionBlocked), kStart + 60s);
  CHECK(limit.take(0, kStart + 60s)->kind == alert_kind::kPartitionBlocked);
  CHECK_FALSE(limit.take(0, kStart + 600s));
  limit.add_blocked(blocked(alert_kind::kPartitionBlocked), kStart + 600s);
  limit.add_unblocked(blocked(alert_kind::kPartitionUnblocked), kStart + 601s);
  CHECK(limit.take(0, kStart + 601s)->kind == alert_kind::kPartitionUnblocked);
  CHECK_FALSE(limit.take(0, kStart + 1200s));
}

TEST_CASE("an outage soon after another that is over before the interval is only counted") {
  AlertLimit limit(300s, 10s);
  limit.lost(Server::kKafka, "a", kStart);
  CHECK(limit.take(0, kStart + 10s)->msg == "a");
  limit.back(Server::kKafka, 0, kStart + 20s);
  CHECK(limit.take(0, kStart + 20s)->kind == alert_kind::kKafkaReachable);
  limit.lost(Server::kKafka, "b", kStart + 30s);
  CHECK_FALSE(limit.take(0, kStart + 50s));
  limit.back(Server::kKafka, 0, kStart + 60s);
  CHECK_FALSE(limit.take(0, kStart + 400s));
  limit.lost(Server::kKafka, "c", kStart + 400s);
  const auto third = limit.take(0, kStart + 410s);
  REQUIRE(third);
  CHECK(third->msg == "c");
  CHECK(third->suppressed == 1);
}

TEST_CASE("an alert in JSON keeps to its bound, whatever in its text must be escaped") {
  const AlertSender sender{"default", "payments", "host:1"};
  auto alert = halt(3, "");
  alert.message_offset = 41;
  for (int i = 0; i < 5000; ++i)
    alert.msg += i % 2 == 0 ? "\"" : "ü";
  const auto text = alert_json(sender, alert, 999);
  CHECK(text.size() <= 999);
  const auto json = nlohmann::json::parse(text);
  CHECK(json.at("kind") == "halt");
  CHECK(json.at("partition") == 3);
  CHECK(json.at("offset") == 41);
  CHECK(json.at("msg").get<std::string>().size() > 300);
  CHECK_THAT(json.at("msg").get<std::string>(), EndsWith("bytes omitted)"));
  CHECK_FALSE(json.contains("handler"));
}

TEST_CASE("an alert's fields are environment variables, and no text breaks out of one") {
  auto alert = halt(3, std::string("two\nlines and a \0 byte", 22));
  alert.statement = "sql[0]";
  const auto variables = alert_environment({"default", "payments", "host:1"}, alert);
  std::map<std::string, std::string> found(variables.begin(), variables.end());
  CHECK(found.at("PAWL_ALERT_KIND") == "halt");
  CHECK(found.at("PAWL_ALERT_TOPIC") == "payments");
  CHECK(found.at("PAWL_ALERT_PARTITION") == "3");
  CHECK(found.at("PAWL_ALERT_STATEMENT") == "sql[0]");
  CHECK(found.at("PAWL_ALERT_SUPPRESSED") == "0");
  CHECK(found.at("PAWL_ALERT_MSG") == "two\nlines and a   byte");
}

TEST_CASE("the end of a matter waits for no interval, and takes back what was not sent") {
  const auto outbox = [](std::string_view kind) {
    Alert alert;
    alert.kind = kind;
    return alert;
  };
  AlertLimit limit(60s, 60s);
  const auto late = [&](Clock::time_point at) { limit.add(outbox(alert_kind::kOutboxLate), at); };
  const auto caught_up = [&](Clock::time_point at) {
    limit.add_end(outbox(alert_kind::kOutboxCaughtUp), alert_kind::kOutboxLate, at);
  };
  late(kStart);
  CHECK(limit.take(0, kStart)->kind == alert_kind::kOutboxLate);
  caught_up(kStart + 1s);
  CHECK(limit.take(0, kStart + 1s)->kind == alert_kind::kOutboxCaughtUp);
  // Held back, and over before its time.
  late(kStart + 2s);
  CHECK_FALSE(limit.take(0, kStart + 2s));
  caught_up(kStart + 3s);
  CHECK_FALSE(limit.take(0, kStart + 3s));
  CHECK_FALSE(limit.take(0, kStart + 600s));
  // A second beginning without an end, as when a database has forgotten that the first was told.
  AlertLimit twice(60s, 60s);
  twice.add(outbox(alert_kind::kOutboxLate), kStart);
  CHECK(twice.take(0, kStart));
  twice.add(outbox(alert_kind::kOutboxLate), kStart + 1s);
  twice.add_end(outbox(alert_kind::kOutboxCaughtUp), alert_kind::kOutboxLate, kStart + 2s);
  CHECK(twice.take(0, kStart + 2s)->kind == alert_kind::kOutboxCaughtUp);
  CHECK_FALSE(twice.take(0, kStart + 600s));
  // Another process has told of the beginning.
  AlertLimit other(60s, 60s);
  other.add_end(outbox(alert_kind::kOutboxCaughtUp), alert_kind::kOutboxLate, kStart);
  CHECK(other.take(0, kStart)->kind == alert_kind::kOutboxCaughtUp);
}

TEST_CASE("at the end what was held back for the interval is due, and counted where it is left") {
  AlertLimit limit(60s, 60s);
  CHECK(limit.waiting() == 0);
  limit.add(dead_letter("pay", "first"), kStart);
  limit.add(dead_letter("refund", "one"), kStart);
  CHECK(limit.take(0, kStart));
  CHECK(limit.take(0, kStart));
  for (int i = 0; i < 5; ++i)
    limit.add(dead_letter("pay", "later"), kStart + 1s);
  limit.add(dead_letter("refund", "two"), kStart + 1s);
  CHECK_FALSE(limit.take(0, kStart + 2s));
  CHECK(limit.waiting() == 6);
  limit.hurry();
  const auto last = limit.take(0, kStart + 2s);
  REQUIRE(last);
  CHECK(last->msg == "later");
  CHECK(last->suppressed == 4);
  CHECK(limit.waiting() == 1);
  CHECK(limit.take(0, kStart + 2s)->msg == "two");
  CHECK_FALSE(limit.take(0, kStart + 2s));
  CHECK(limit.waiting() == 0);
}
