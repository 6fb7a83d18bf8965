#include "engine/call_watch.hpp"

#include "prelude.hpp"

using pawl::engine::CallWatch;
using Verdict = CallWatch::Verdict;

namespace {

const CallWatch::Clock::time_point kStart{1h};
constexpr auto kTick = 250ms;
constexpr auto kLimit = 10s;

}  // namespace

TEST_CASE("a call is given up after its limit, and the process ends where that is of no help") {
  CallWatch watch;
  const int worker = 0;
  const auto look = [&](std::chrono::milliseconds at) {
    return watch.look(&worker, kStart, kLimit, kStart + at);
  };
  CHECK(look(10s) == Verdict::kWait);
  CHECK(look(11s) == Verdict::kGiveUp);
  CHECK(look(12s) == Verdict::kGivenUp);
  CHECK(look(21s) == Verdict::kGivenUp);
  CHECK(look(22s) == Verdict::kEndProcess);
  // Its next call begins anew.
  CHECK(watch.look(&worker, kStart + 20s, kLimit, kStart + 22s) == Verdict::kWait);
  CHECK(watch.look(&worker, kStart + 20s, kLimit, kStart + 31s) == Verdict::kGiveUp);
}

TEST_CASE("no process ends for a call that was not given up before") {
  CallWatch watch;
  const int worker = 0;
  // It was frozen while the monitor waited for something else.
  CHECK(watch.look(&worker, kStart, kLimit, kStart + 1h) == Verdict::kGiveUp);
  CHECK(watch.look(&worker, kStart, kLimit, kStart + 1h + kTick) == Verdict::kGivenUp);
}

TEST_CASE("time in which the process was frozen counts against no call") {
  CallWatch watch;
  const int worker = 0;
  const int other = 0;
  CHECK(watch.look(&other, kStart - kLimit, kLimit, kStart + 1s) == Verdict::kGiveUp);
  watch.rested(kTick, kStart + 1s, kStart + 100s);
  const auto look = [&](const int& whose, CallWatch::Clock::time_point since,
                        std::chrono::milliseconds at) {
    return watch.look(&whose, since, kLimit, kStart + at);
  };
  CHECK(look(worker, kStart, 100s) == Verdict::kWait);
  CHECK(look(other, kStart - kLimit, 100s) == Verdict::kGivenUp);
  CHECK(look(worker, kStart, 110s) == Verdict::kWait);
  CHECK(look(worker, kStart, 111s) == Verdict::kGiveUp);
  CHECK(look(other, kStart - kLimit, 111s) == Verdict::kEndProcess);
}

TEST_CASE("a rest that is late on a busy machine is no freeze") {
  CallWatch watch;
  const int worker = 0;
  watch.rested(kTick, kStart, kStart + 2s);
  CHECK(watch.look(&worker, kStart, kLimit, kStart + 11s) == Verdict::kGiveUp);
}
