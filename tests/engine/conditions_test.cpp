#include "engine/conditions.hpp"

#include <fmt/format.h>

#include "prelude.hpp"

using pawl::Condition;
using pawl::engine::ConditionWatch;

namespace {

const ConditionWatch::Clock::time_point kStart = ConditionWatch::Clock::time_point() + 1000h;

Condition unreachable(const std::string& what, std::int64_t messages = 1) {
  Condition condition;
  condition.kind = Condition::Kind::kRemoteServiceUnreachable;
  condition.subject = what;
  condition.since = pawl::Timestamp(std::chrono::milliseconds(1'800'000'000'000));
  condition.messages = messages;
  condition.cause = "Connection refused";
  return condition;
}

/// "began a 1, ended b 2"
std::string told(const std::vector<ConditionWatch::News>& news) {
  std::string text;
  for (const auto& [condition, ended, blocked] : news) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", ended ? "ended" : "began",
                        condition.subject, condition.messages);
    if (!ended && !blocked.empty())
      text += fmt::format(" of {}", blocked.size());
  }
  return text;
}

}  // namespace

TEST_CASE("a condition is news when it begins and when it ends") {
  ConditionWatch watch;
  CHECK(told(watch.look({}, kStart)).empty());
  CHECK(told(watch.look({unreachable("a")}, kStart)) == "began a 1");
  CHECK(told(watch.look({unreachable("a", 2)}, kStart + 1h)).empty());
  CHECK(told(watch.look({unreachable("a", 3), unreachable("b")}, kStart + 2h)) == "began b 1");
  CHECK(told(watch.look({unreachable("b", 7)}, kStart + 3h)) == "ended a 3");
  CHECK(told(watch.look({unreachable("a"), unreachable("b", 8)}, kStart + 4h)) == "began a 1");
  // Of the same name, and another kind.
  auto blocked = unreachable("b");
  blocked.kind = Condition::Kind::kPartitionBlocked;
  blocked.blocking_pid = 42;
  CHECK(told(watch.look({blocked}, kStart + 5h)) == "began b 1 of 1, ended a 1, ended b 8");
}

TEST_CASE("partitions that wait for one session are reported once, until none waits for it") {
  const auto waits = [](const std::string& what, std::int32_t pid) {
    auto condition = unreachable(what);
    condition.kind = Condition::Kind::kPartitionBlocked;
    condition.blocking_pid = pid;
    return condition;
  };
  ConditionWatch watch;
  CHECK(told(watch.look({waits("a", 42), waits("b", 42), waits("c", 43)}, kStart)) ==
        "began a 2 of 2, began c 1 of 1");
  // A later partition of the same lock, and no reminder.
  CHECK(told(watch.look({waits("a", 42), waits("b", 42), waits("c", 43), waits("d", 42)},
                        kStart + 1h))
            .empty());
  // Between two attempts, the session is not known.
  CHECK(told(watch.look({waits("a", 42), waits("b", 0), waits("c", 0)}, kStart + 2h)).empty());
  // The reported partition continues before the others.
  CHECK(told(watch.look({waits("b", 42), waits("c", 43)}, kStart + 3h)).empty());
  CHECK(told(watch.look({waits("c", 43)}, kStart + 4h)) == "ended a 1");
  // The next session that holds the lock is another one.
  CHECK(told(watch.look({waits("c", 44)}, kStart + 5h)) == "began c 1 of 1");
  CHECK(told(watch.look({}, kStart + 6h)) == "ended c 1");
  // A session that is not known yet may be one that is reported.
  CHECK(told(watch.look({waits("a", 0), waits("b", 45)}, kStart + 7h)) == "began b 1 of 1");
  CHECK(told(watch.look({waits("a", 45), waits("b", 45)}, kStart + 7h + 9s)).empty());
  CHECK(told(watch.look({waits("b", 45), waits("c", 0)}, kStart + 8h)).empty());
  CHECK(told(watch.look({waits("b", 45), waits("c", 46)}, kStart + 8h + 1s)) == "began c 1 of 1");
  CHECK(told(watch.look({}, kStart + 9h)) == "ended b 1, ended c 1");
  // Sessions that stay unknown may be different ones.
  CHECK(told(watch.look({waits("a", 0), waits("b", 0)}, kStart + 10h)).empty());
  CHECK(told(watch.look({waits("a", 0), waits("b", 0)}, kStart + 10h + 9s)).empty());
  CHECK(told(watch.look({waits("a", 0), waits("b", 0)}, kStart + 10h + 10s)) ==
        "began a 1, began b 1");
}

TEST_CASE("a lock that many sessions hold in turn is reported once a minute") {
  const auto waits = [](const std::string& what, std::int32_t pid) {
    auto condition = unreachable(what);
    condition.kind = Condition::Kind::kPartitionBlocked;
    condition.blocking_pid = pid;
    return condition;
  };
  ConditionWatch watch;
  CHECK(told(watch.look({waits("a", 1), waits("b", 1)}, kStart)) == "began a 2 of 2");
  for (std::int32_t pid = 2; pid < 60; ++pid) {
    CAPTURE(pid);
    CHECK(told(watch.look({waits("a", pid), waits("b", pid)}, kStart + pid * 1s)).empty());
  }
  // Of the session that holds it then.
  CHECK(told(watch.look({waits("a", 60), waits("b", 60)}, kStart + 60s)) == "began a 2 of 2");
  CHECK(told(watch.look({waits("a", 61), waits("b", 61)}, kStart + 61s)).empty());
  CHECK(told(watch.look({waits("b", 61)}, kStart + 62s)).empty());
  CHECK(told(watch.look({}, kStart + 63s)) == "ended a 1");
}

TEST_CASE("the text of a condition has its cause, since when, and how many messages wait") {
  CHECK(pawl::engine::text_of(unreachable("https://api.example", 37)) ==
        "has been unreachable since 2027-01-15T08:00:00Z: Connection refused. 37 messages wait; "
        "pawl probes the endpoint, counts no attempt, and continues automatically when it "
        "responds");
  auto kafka = unreachable("broker:9092");
  kafka.kind = Condition::Kind::kKafkaUnreachable;
  CHECK(pawl::engine::text_of(kafka) ==
        "has been unreachable since 2027-01-15T08:00:00Z: Connection refused. The process retries "
        "and continues automatically when Kafka responds");
  auto blocked = unreachable("payments[7]");
  blocked.kind = Condition::Kind::kPartitionBlocked;
  blocked.cause = "session 42 holds it";
  CHECK(pawl::engine::text_of(blocked) ==
        "has waited for a lock since 2027-01-15T08:00:00Z: session 42 holds it. 1 message waits; "
        "pawl counts no attempt and continues automatically when the lock is released");
}

TEST_CASE("a process whose Kafka is unreachable has a condition, which is lasting after 10 s") {
  const pawl::Timestamp since(std::chrono::milliseconds(1'800'000'000'000));
  CHECK_FALSE(pawl::engine::kafka_condition(std::nullopt, "broker:9092", since));
  const auto [passed, lasting] = GENERATE(table<std::chrono::milliseconds, bool>(
      {{0ms, false}, {9999ms, false}, {10s, true}, {1h, true}}));
  CAPTURE(passed);
  Condition expected;
  expected.kind = Condition::Kind::kKafkaUnreachable;
  expected.subject = "broker:9092";
  expected.since = since;
  expected.cause = "timed out";
  expected.lasting = lasting;
  CHECK(pawl::engine::kafka_condition({{since, "timed out"}}, "broker:9092", since + passed) ==
        expected);
}
