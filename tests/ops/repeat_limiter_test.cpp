#include "ops/repeat_limiter.hpp"
#include "prelude.hpp"

using namespace pawl::ops;

TEST_CASE("the same text passes once an interval, and is counted meanwhile") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  CHECK(limiter.admit("a", start));
  CHECK_FALSE(limiter.admit("a", start + 1s));
  CHECK_FALSE(limiter.admit("a", start + 59s));
  CHECK(limiter.admit("b", start + 59s));
  CHECK(limiter.take_held(start + 59s).empty());

  const auto held = limiter.take_held(start + 60s);
  REQUIRE(held.size() == 1);
  CHECK(held[0].text == "a");
  CHECK(held[0].times == 2);

  // What was just summed up is held back for another interval; what stayed away is forgotten.
  CHECK_FALSE(limiter.admit("a", start + 61s));
  CHECK(limiter.take_held(start + 119s).empty());
  CHECK(limiter.admit("b", start + 121s));
}

TEST_CASE("what is held back of a partition that ends is told then, and of no other one") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  for (const auto* text : {"t [1]: a", "t [1]: b", "t [1]: c", "t [10]: a", "s [1]: a"})
    limiter.admit(text, start);
  for (const auto* text : {"t [1]: a", "t [1]: c", "t [1]: c", "t [10]: a", "s [1]: a"})
    limiter.admit(text, start + 2s);
  const auto held = limiter.take_held_of("t [1]: ", start + 3s);
  REQUIRE(held.size() == 2);
  CHECK(held[0].text == "t [1]: a");
  CHECK(held[0].times == 1);
  CHECK(held[1].text == "t [1]: c");
  CHECK(held[1].times == 2);
  CHECK(held[1].last == start + 2s);
  CHECK(limiter.take_held_of("t [1]: ", start + 3s).empty());
  CHECK(limiter.take_held(start + 60s).size() == 2);
}

TEST_CASE("what came more often is told with when it came the last time") {
  CHECK(times_text(1, 999ms) == "once more");
  CHECK(times_text(1, 48s) == "once more, 48 s ago");
  CHECK(times_text(5, 0ms) == "5 more times");
  CHECK(times_text(5, 48s) == "5 more times, the last one 48 s ago");
}

TEST_CASE("what is held back at the end is told then") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  limiter.admit("a", start);
  limiter.admit("a", start);
  CHECK(limiter.take_held(start).empty());
  const auto held = limiter.take_held(start, true);
  REQUIRE(held.size() == 1);
  CHECK(held[0].times == 1);
}

TEST_CASE("what Kafka's client counts and measures makes no new text") {
  struct Row {
    std::string text;
    std::string without;
  };
  const auto row = GENERATE(values<Row>({
      {"Kafka: kafka:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms "
       "in "
       "state CONNECT)",
       "Kafka: kafka:9092: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"},
      {"Kafka: kafka:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused "
       "(after "
       "3ms in state CONNECT, 1 identical error(s) suppressed)",
       "Kafka: kafka:9092: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"},
      {"Kafka: GroupCoordinator: kafka:9092/1: Disconnected (after 7ms in state UP)",
       "Kafka: kafka:9092: Disconnected"},
      {"Kafka: GroupCoordinator: kafka:9092: Disconnected (after 7ms in state UP); look at it",
       "Kafka: kafka:9092: Disconnected; look at it"},
      {"Kafka: sasl_ssl://kafka:9092/12: SSL handshake failed (after 2ms in state SSL_HANDSHAKE",
       "Kafka: sasl_ssl://kafka:9092: SSL handshake failed (after 2ms in state SSL_HANDSHAKE"},
      {"Kafka: Subscribed topic not available: a/b: Broker: Unknown topic or partition",
       "Kafka: Subscribed topic not available: a/b: Broker: Unknown topic or partition"},
      {"Kafka: ", "Kafka: "},
      {"one try failed: x (after 7ms in state UP)", "one try failed: x (after 7ms in state UP)"},
      {"one try failed: x (attempt 3 of 7)", "one try failed: x"},
      {"one try failed: x (attempt 7, the last one)", "one try failed: x"},
      {"one try failed: x (attempt 3 of 7); DETAIL: Key (a)=(b)",
       "one try failed: x; DETAIL: Key (a)=(b)"},
      {"one try failed: x (attempt 9) (attempt 3 of 7)", "one try failed: x (attempt 9)"},
      {"one try failed: x (attempt ", "one try failed: x (attempt "},
      {"one try failed: x (attempt to lock)", "one try failed: x (attempt to lock)"},
  }));
  CHECK(without_counts(row.text) == row.without);
}
