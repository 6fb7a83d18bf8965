#include "engine/lock_waits.hpp"

#include <fmt/format.h>

#include "prelude.hpp"

using pawl::TopicPartition;
using pawl::engine::Failure;
using pawl::engine::LockWaits;

namespace {

const LockWaits::Clock::time_point kStart = LockWaits::Clock::time_point() + 1000h;
const TopicPartition kFirst{"t", 0};
const TopicPartition kSecond{"t", 1};

bool anywhere(const TopicPartition& /*partition*/) {
  return true;
}

/// "0: 2 why"
std::string blocked(LockWaits& waits, LockWaits::Clock::time_point now,
                    const std::function<bool(const TopicPartition&)>& here = anywhere) {
  std::string text;
  for (const auto& one : waits.blocked(50s, here, now)) {
    if (!one.lasting)
      continue;
    text += fmt::format("{}{}: {} {}", text.empty() ? "" : ", ", one.partition.partition,
                        one.messages, one.cause);
  }
  return text;
}

}  // namespace

TEST_CASE(
    "a partition is blocked once a message of it has waited for long, attempt after attempt") {
  LockWaits waits;
  CHECK_FALSE(waits.waits(kFirst));
  waits.waited(kFirst, 7, "timeout", kStart);
  waits.waited(kSecond, 7, "timeout", kStart + 10s);
  CHECK(waits.waits(kFirst));
  waits.waited(kFirst, 7, "once more", kStart + 40s);
  CHECK(blocked(waits, kStart + 49s).empty());
  CHECK(waits.blocked(50s, anywhere, kStart + 49s).size() == 2);
  CHECK(blocked(waits, kStart + 50s) == "0: 1 once more");
  waits.blocked_by(kFirst, {{42, "", "", "", ""}});
  CHECK(blocked(waits, kStart + 60s) == "0: 1 session 42 holds the lock: once more, 1: 1 timeout");
  waits.ended(kFirst, 7);
  CHECK(blocked(waits, kStart + 60s) == "1: 1 timeout");
  // What was known of the session is of another wait.
  waits.waited(kFirst, 7, "again", kStart + 60s);
  CHECK(blocked(waits, kStart + 110s) == "0: 1 again, 1: 1 timeout");
  waits.forget(kSecond);
  CHECK(blocked(waits, kStart + 110s) == "0: 1 again");
}

TEST_CASE("messages side by side wait each by itself, until the stored offset has passed them") {
  LockWaits waits;
  waits.waited(kFirst, -1, "acquiring", kStart);
  waits.waited(kFirst, 5, "a", kStart + 1s);
  waits.waited(kFirst, 8, "b", kStart + 2s);
  CHECK(blocked(waits, kStart + 60s) == "0: 3 acquiring");
  waits.passed(kFirst, 4);
  CHECK(blocked(waits, kStart + 60s) == "0: 2 a");
  waits.passed(kFirst, 5);
  CHECK(blocked(waits, kStart + 60s) == "0: 1 b");
  waits.passed(kFirst, 8);
  CHECK_FALSE(waits.waits(kFirst));
  CHECK(blocked(waits, kStart + 60s).empty());
}

// A thread still had a message of it.
TEST_CASE("an attempt that ends after its partition has left is forgotten") {
  LockWaits waits;
  waits.waited(kFirst, 7, "timeout", kStart);
  waits.waited(kSecond, 7, "timeout", kStart);
  waits.forget(kFirst);
  waits.waited(kFirst, 8, "timeout", kStart);
  const auto here = [](const TopicPartition& partition) { return partition == kSecond; };
  CHECK(blocked(waits, kStart + 60s, here) == "1: 1 timeout");
  CHECK_FALSE(waits.waits(kFirst));
  // It may come back.
  waits.waited(kFirst, 8, "timeout", kStart + 60s);
  CHECK(blocked(waits, kStart + 61s) == "1: 1 timeout");
}

TEST_CASE("a wait ends with an answer of the server, and not with the connection") {
  using Kind = pawl::postgres::FailureClass;
  struct Row {
    Kind kind;
    const char* sqlstate;
    bool waits;
  };
  const auto row = GENERATE(values<Row>({
      {Kind::kContention, "55P03", true},
      {Kind::kContention, "57014", true},
      {Kind::kConnection, "57P01", true},
      {Kind::kConnection, "", true},
      {Kind::kContention, "40P01", false},
      {Kind::kMessage, "23505", false},
      {Kind::kMessage, "", false},
      {Kind::kProgram, "42P01", false},
      {Kind::kResource, "53200", false},
  }));
  CAPTURE(row.kind, row.sqlstate);
  LockWaits waits;
  waits.waited(kFirst, 7, "timeout");
  Failure failure;
  failure.kind = row.kind;
  failure.sqlstate = row.sqlstate;
  waits.failed(kFirst, 7, failure);
  CHECK(waits.waits(kFirst) == row.waits);
  // A lost connection begins none either.
  waits.failed(kSecond, 7, failure);
  CHECK(waits.waits(kSecond) == failure.waited_for_lock());
}

TEST_CASE(
    "a session that blocks is named until the lock is released, also if the first attempt waits") {
  LockWaits waits;
  waits.blocked_by(kFirst, {{42, "", "", "", ""}});
  CHECK_FALSE(waits.waits(kFirst));
  CHECK(blocked(waits, kStart + 60s).empty());
  REQUIRE(waits.blockers().size() == 1);
  CHECK(waits.blockers().front().partition == kFirst);
  CHECK(waits.blockers().front().sessions.front().pid == 42);
  waits.waited(kFirst, 7, "timeout", kStart);
  CHECK(blocked(waits, kStart + 60s) == "0: 1 session 42 holds the lock: timeout");
  waits.released(kFirst);
  CHECK(waits.blockers().empty());
  CHECK(waits.waits(kFirst));
  CHECK(blocked(waits, kStart + 60s) == "0: 1 timeout");
  // An attempt that came through says nothing of the next wait.
  waits.blocked_by(kFirst, {{43, "", "", "", ""}});
  waits.passed(kFirst, 7);
  CHECK(waits.blockers().empty());
  waits.blocked_by(kSecond, {{43, "", "", "", ""}});
  waits.ended(kSecond, 7);
  CHECK(waits.blockers().empty());
}
