#include "engine/suspect_turns.hpp"

#include <vector>

#include "prelude.hpp"

namespace {

using pawl::engine::SuspectTurns;

const pawl::TopicPartition kOne{"one", 0};
const pawl::TopicPartition kOther{"other", 0};

SuspectTurns::Clock::time_point at(int ms) {
  return SuspectTurns::Clock::time_point(std::chrono::hours(1)) + std::chrono::milliseconds(ms);
}

/// A suspect asks, runs and comes back.
void run(SuspectTurns& turns, int from, int to, const pawl::TopicPartition& partition = kOne) {
  REQUIRE(turns.ask(at(from), partition));
  turns.ended(at(to), turns.began(at(from)));
}

/// All other messages run from `from` on, and suspects again from `until` on.
void check_turn_of_others(SuspectTurns& turns, int from, int until) {
  CHECK(turns.ask_among_others(at(from)));
  CHECK_FALSE(turns.ask(at(until - 1), kOne));
  CHECK(turns.ask(at(until), kOne));
}

}  // namespace

TEST_CASE("without a suspect all messages run") {
  SuspectTurns turns;
  CHECK(turns.ask_among_others(at(0)));
  CHECK_FALSE(turns.closed());
}

TEST_CASE("suspects run one after another in turns, and between the turns all other messages") {
  struct Row {
    const char* what;
    std::vector<int> suspects;  ///< how long each of them takes, one right after the other
    int waits_from;             ///< another message asks then, and again all the time
    int ends;                   ///< the turn
    int others_until;           ///< suspects are turned away before
  };
  const auto row =
      GENERATE(Row{"short ones share a turn", {30, 30, 30, 30, 30}, 0, 120, 240},
               Row{"one that takes longer ends the turn", {1, 5000, 1}, 0, 5001, 10002},
               Row{"the others get as long as they waited", {60, 60}, 50, 120, 220},
               Row{"and at least a turn", {99, 2}, 100, 101, 201});
  CAPTURE(row.what);
  SuspectTurns turns;
  int now = 0;
  for (const auto took : row.suspects) {
    if (!turns.ask(at(now), kOne))
      break;
    const auto run = turns.began(at(now));
    if (row.waits_from < now + took)
      CHECK_FALSE(turns.ask_among_others(at(std::max(now, row.waits_from))));
    now += took;
    turns.ended(at(now), run);
  }
  CHECK(now == row.ends);
  CHECK_FALSE(turns.closed());
  check_turn_of_others(turns, now, row.others_until);
  CHECK_FALSE(turns.ask_among_others(at(row.others_until)));
}

TEST_CASE("suspects go on while no other message waits") {
  SuspectTurns turns;
  for (int now = 0; now < 1000; now += 50)
    run(turns, now, now + 50);
  // The turn is over long since.
  check_turn_of_others(turns, 1010, 1110);
}

TEST_CASE("messages that could not ask while a suspect ran get as long as that took") {
  SuspectTurns turns;
  run(turns, 0, 300);
  check_turn_of_others(turns, 301, 602);
}

TEST_CASE("messages that a suspect waits for are waited for by the others as well") {
  SuspectTurns turns;
  CHECK(turns.ask(at(0), kOne));
  CHECK_FALSE(turns.ask_among_others(at(1)));
  // A slow message comes back after 10 s; the suspect has asked all the time.
  for (int now = 50; now < 10000; now += 50)
    REQUIRE(turns.ask(at(now), kOne));
  run(turns, 10000, 10100);
  check_turn_of_others(turns, 10100, 20199);
}

TEST_CASE("a suspect that does not ask again keeps no message out") {
  SuspectTurns turns;
  CHECK(turns.ask(at(0), kOne));
  CHECK_FALSE(turns.ask_among_others(at(100)));
  // Another one waits until the others had their turn.
  check_turn_of_others(turns, 101, 201);
}

TEST_CASE("a suspect that runs for long is not taken for one that has left") {
  SuspectTurns turns;
  CHECK(turns.ask(at(0), kOne));
  const auto run = turns.began(at(0));
  CHECK(turns.running());
  CHECK_FALSE(turns.ask_among_others(at(60000)));
  turns.ended(at(60001), run);
  CHECK(turns.ask_among_others(at(60001)));
}

TEST_CASE("what is alone for a limited time keeps no message out for longer") {
  SuspectTurns turns;
  CHECK(turns.ask(at(0), kOne));
  const auto first = turns.began(at(0), at(5000));
  CHECK_FALSE(turns.ask_among_others(at(10)));
  CHECK(turns.ask(at(4999), kOne));
  CHECK(turns.running());
  CHECK_FALSE(turns.ask_among_others(at(4999)));
  CHECK(turns.ask_among_others(at(5000)));
  CHECK_FALSE(turns.running());
  // The others have as long as they waited.
  CHECK_FALSE(turns.ask(at(9989), kOne));
  CHECK(turns.ask(at(9990), kOne));
  const auto second = turns.began(at(9990));
  // The first comes back at last: that ends nothing of the second.
  turns.ended(at(9991), first);
  CHECK(turns.running());
  CHECK_FALSE(turns.ask_among_others(at(9992)));
  turns.ended(at(9993), second);
  CHECK_FALSE(turns.running());
}

TEST_CASE("the partition whose suspects have run for the shortest time goes first") {
  SuspectTurns turns;
  CHECK(turns.ask(at(0), kOne));
  const auto run_of_one = turns.began(at(0));
  // It waits for a lock until 5 s; the other's suspect asks all the time.
  CHECK(turns.ask(at(4999), kOther));
  turns.ended(at(5000), run_of_one);
  CHECK_FALSE(turns.ask(at(5001), kOne));
  for (int now = 5002; now < 5900; now += 100) {
    run(turns, now, now + 10, kOther);
    // Between two of the other's as well.
    CHECK_FALSE(turns.ask(at(now + 12), kOne));
  }
  struct Row {
    const char* what;
    int asks;
    bool goes;
  };
  const auto row = GENERATE(Row{"the other one's suspect may ask again", 5900, false},
                            Row{"the other one has no suspects any more", 5913, true});
  CAPTURE(row.what);
  CHECK(turns.ask(at(row.asks), kOne) == row.goes);
}

TEST_CASE("a partition that has left keeps the suspects of others waiting for a turn at most") {
  SuspectTurns turns;
  run(turns, 0, 5000);
  CHECK(turns.ask(at(5001), kOther));
  // That one does not begin.
  CHECK_FALSE(turns.ask(at(5050), kOne));
  CHECK_FALSE(turns.ask(at(5101), kOne));
  CHECK(turns.ask(at(5102), kOne));
}

TEST_CASE("the time of suspects is forgotten once none asks") {
  SuspectTurns turns;
  run(turns, 0, 5000);
  CHECK(turns.ask(at(5101), kOther));
  CHECK(turns.ask(at(5102), kOne));
}

TEST_CASE("the time of suspects is remembered while the other messages run") {
  SuspectTurns turns;
  REQUIRE(turns.ask(at(0), kOne));
  const auto first = turns.began(at(0));
  CHECK_FALSE(turns.ask_among_others(at(10)));
  turns.ended(at(5000), first);
  // The others have 4990 ms.
  CHECK(turns.ask_among_others(at(5001)));
  for (int now = 5050; now < 9990; now += 50)
    REQUIRE_FALSE(turns.ask(at(now), kOther));
  CHECK_FALSE(turns.ask(at(9990), kOne));
  CHECK(turns.ask(at(9991), kOther));
}
