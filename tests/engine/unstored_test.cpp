// When what calls brought may be stored: decisions over times, no servers.
#include "engine/unstored.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "engine/errand.hpp"

using namespace std::chrono_literals;
using pawl::engine::Landing;
using pawl::engine::Unstored;
using How = Landing::How;
using Turn = Unstored::Turn;

namespace {

const Unstored::Clock::time_point kNow{1000s};
const Landing kStored{};
const Landing kLocked{.how = How::kLater, .waited_for_lock = true, .unstored = true};

pawl::FailureOptions slow() {
  pawl::FailureOptions options;
  options.retry_initial = 100s;
  options.retry_max = 100s;
  return options;
}

/// Calls of one partition, one of which has waited for a lock in vain from kNow - 5 s to kNow.
struct Contended {
  pawl::FailureOptions options = slow();
  Unstored unstored{options, 1s};
  Unstored::Call waited;
  Unstored::Call other;
  std::uint32_t waits = 0;

  Contended() {
    unstored.begun();
    unstored.ended(waited, kLocked, kNow - 5s, kNow, waits);
  }
};

}  // namespace

TEST_CASE("without contention each call is stored at once, and beside others") {
  const auto options = slow();
  Unstored unstored(options, 1s);
  Unstored::Call call;
  unstored.begun();
  CHECK(unstored.turn_of(call, {.time = kNow}) == Turn::kStore);
  CHECK(unstored.turn_of(call, {.time = kNow, .given_up = true}) == Turn::kStore);
  CHECK(unstored.turn_of(call, {.time = kNow, .winding_up = true}) == Turn::kStore);
}

TEST_CASE("whether a call may be stored behind a lock") {
  struct Case {
    Unstored::Clock::duration after;
    bool attempt, given_up, winding_up;
    Turn waited, other;
    const char* why;
  };
  // The pause takes from 12.5 s to 50 s, the wait of the one that met the lock from 25 s to 100 s.
  const std::vector<Case> cases{
      {0s, false, false, false, Turn::kWait, Turn::kWait, "a pause"},
      {50s, false, false, false, Turn::kWait, Turn::kStore, "others have their turn before"},
      {100s, false, false, false, Turn::kStore, Turn::kStore, "each after its wait"},
      {100s, true, false, false, Turn::kWait, Turn::kWait, "one at a time"},
      {0s, false, true, false, Turn::kLetGo, Turn::kLetGo, "none of them waits for a turn then"},
      {100s, true, true, false, Turn::kLetGo, Turn::kLetGo, "nor for another one's attempt"},
      {100s, false, true, false, Turn::kStore, Turn::kStore, "whose turn it is may try once more"},
      {0s, false, false, true, Turn::kWait, Turn::kStore, "its partition is waited for: no pause"},
      {0s, true, false, true, Turn::kWait, Turn::kWait, "and still one at a time"},
  };
  for (const auto& c : cases) {
    INFO(c.why);
    Contended calls;
    // What its wait is, is random; that of the other one is not.
    if (c.after == 50s)
      calls.waited.not_before = kNow + 100s;
    if (c.attempt)
      calls.unstored.begun();
    const Unstored::Now now{kNow + c.after, c.given_up, c.winding_up};
    CHECK(calls.unstored.turn_of(calls.waited, now) == c.waited);
    CHECK(calls.unstored.turn_of(calls.other, now) == c.other);
  }
}

TEST_CASE("each look at a call that waits comes soon, since not everything is told") {
  Contended calls;
  CHECK(calls.unstored.look_again(calls.waited, {.time = kNow}) == kNow + 1s);
  calls.unstored.begun();
  CHECK(calls.unstored.look_again(calls.other, {.time = kNow + 200s}) == kNow + 201s);
  calls.unstored.ended(calls.other, kStored, kNow, kNow, calls.waits);
  calls.waited.not_before = kNow + 300ms;
  CHECK(calls.unstored.look_again(calls.waited, {.time = kNow}) == kNow + 300ms);
}

TEST_CASE("of a partition that is waited for a call is stored soon, whatever it waited for") {
  Contended calls;
  CHECK(calls.unstored.turn_of(calls.waited, {.time = kNow, .winding_up = true}) == Turn::kWait);
  CHECK(calls.unstored.turn_of(calls.waited, {.time = kNow + 1s, .winding_up = true}) ==
        Turn::kStore);
}

TEST_CASE("a lock that is released ends the pause, and the wait of those that met it") {
  Contended calls;
  Unstored::Call failed{kNow + 7s, std::nullopt};
  calls.unstored.lock_released(kNow + 2s);
  CHECK(calls.unstored.turn_of(calls.waited, {.time = kNow + 2s}) == Turn::kStore);
  CHECK(calls.unstored.turn_of(calls.other, {.time = kNow + 2s}) == Turn::kStore);
  CHECK(calls.unstored.turn_of(failed, {.time = kNow + 2s}) == Turn::kWait);
  // One at a time, until one of them passes.
  calls.unstored.begun();
  CHECK(calls.unstored.turn_of(calls.other, {.time = kNow + 2s}) == Turn::kWait);
  // Another lock, of an attempt that began later.
  calls.unstored.ended(calls.waited, kLocked, kNow + 3s, kNow + 8s, calls.waits);
  CHECK(calls.unstored.turn_of(calls.waited, {.time = kNow + 8s}) == Turn::kWait);
  CHECK(calls.unstored.turn_of(calls.other, {.time = kNow + 8s}) == Turn::kWait);
  // Released while an attempt waited for it, which has not come back.
  calls.unstored.begun();
  calls.unstored.lock_released(kNow + 205s);
  calls.unstored.ended(calls.other, kLocked, kNow + 200s, kNow + 206s, calls.waits);
  CHECK(calls.unstored.turn_of(calls.other, {.time = kNow + 206s}) == Turn::kStore);
}

TEST_CASE("only an answer of PostgreSQL ends the contention of calls") {
  struct Case {
    Landing landing;
    bool ends;
    const char* why;
  };
  const std::vector<Case> cases{
      {kStored, true, "it is stored"},
      {{.how = How::kLater, .wait = 7s}, true, "it failed otherwise"},
      {{.how = How::kLater, .no_answer = true}, false, "its connection broke"},
      {{.how = How::kLost}, false, "its connection broke, and it may be stored"},
      {{.how = How::kLater, .not_run = true}, false, "it was turned away"},
      {{.how = How::kLater, .waited_for_lock = true}, false, "it was let go of behind the lock"},
      {{.how = How::kLater, .wait = 7s, .unstored = true}, false, "there was no session"},
  };
  for (const auto& c : cases) {
    INFO(c.why);
    Contended calls;
    Unstored::Call call;
    calls.unstored.begun();
    calls.unstored.ended(call, c.landing, kNow, kNow + 1s, calls.waits);
    CHECK((calls.unstored.turn_of(calls.other, {.time = kNow + 1s}) == Turn::kStore) == c.ends);
    CHECK(call.not_before == (c.landing.unstored ? kNow + 8s : Unstored::Clock::time_point{}));
  }
}
