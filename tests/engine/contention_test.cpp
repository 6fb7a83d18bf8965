// When messages of a partition that wait for locks begin again: decisions over times, no servers.
#include "engine/contention.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "engine/errand.hpp"
#include "engine/retries.hpp"

using namespace std::chrono_literals;
using pawl::engine::Contention;
using pawl::engine::Landing;

namespace {

const Contention::Clock::time_point kNow{100s};

}  // namespace

TEST_CASE("without contention all messages begin, and are due as they say") {
  Contention contention;
  CHECK(contention.lets_begin(kNow, 7));
  CHECK_FALSE(contention.pauses());
  CHECK(contention.due(kNow + 1s, 7) == kNow + 1s);
  CHECK_FALSE(contention.due(std::nullopt, 0));
}

TEST_CASE("messages that wait for locks in vain are counted in rounds") {
  Contention contention;
  struct Case {
    Contention::Clock::duration begun, landed;
    std::uint32_t rounds;
    const char* why;
  };
  const std::vector<Case> cases{
      {0s, 5s, 1, "the first"},
      {0s, 5s, 1, "one beside it"},
      {4s, 9s, 1, "one that began before the first came back"},
      {5s, 10s, 2, "one that began after that"},
      {9s, 14s, 2, "one beside that one"},
      {15s, 20s, 3, "the next"},
  };
  for (const auto& c : cases) {
    INFO(c.why);
    CHECK(contention.waited(kNow + c.begun, kNow + c.landed) == c.rounds);
  }
  contention.passed();
  CHECK(contention.waited(kNow, kNow + 30s) == 1);
}

TEST_CASE("in contention one message begins at a time, after a pause") {
  Contention contention;
  contention.waited(kNow, kNow);
  contention.pause(kNow + 10s);
  CHECK(contention.pauses());
  CHECK_FALSE(contention.lets_begin(kNow + 9s, 0));
  CHECK(contention.due(kNow + 1s, 0) == kNow + 10s);
  // Those that began before come back by themselves.
  CHECK_FALSE(contention.lets_begin(kNow + 9s, 3));
  CHECK_FALSE(contention.due(kNow + 1s, 3));

  CHECK_FALSE(contention.lets_begin(kNow + 10s, 3));
  CHECK(contention.lets_begin(kNow + 10s, 0));
  CHECK_FALSE(contention.pauses());
  CHECK_FALSE(contention.lets_begin(kNow + 10s, 1));
  CHECK_FALSE(contention.due(kNow + 11s, 1));
  // There was none to begin: the next one's own time counts.
  CHECK(contention.due(kNow + 11s, 0) == kNow + 11s);

  contention.waited(kNow + 10s, kNow + 15s);
  contention.pause(kNow + 35s);
  CHECK_FALSE(contention.lets_begin(kNow + 34s, 0));
  contention.passed();
  CHECK(contention.lets_begin(kNow + 34s, 7));
  CHECK_FALSE(contention.pauses());
}

TEST_CASE(
    "waits for a lock in vain grow with a message's attempts and with its partition's rounds") {
  auto now = kNow;
  const pawl::FailureOptions usual;
  Contention contention;
  const auto vain_wait = [&](std::uint32_t& count) {
    now += 5s;
    return pawl::engine::wait_in_contention(now, now, usual, contention, count);
  };
  std::uint32_t waits = 0;
  for (std::uint32_t n = 1; n <= 12; ++n) {
    const auto wait = vain_wait(waits);
    CHECK(waits == n);
    CHECK(4 * wait >= pawl::engine::longest_wait(usual, n));
    CHECK(wait <= pawl::engine::longest_wait(usual, n));
    CHECK(contention.pauses());
    // Others begin before it does.
    CHECK(contention.lets_begin(now + wait / 2, 0));
  }
  // Another message of the partition, whose first attempt it is.
  std::uint32_t others = 0;
  CHECK(vain_wait(others) >= pawl::engine::longest_wait(usual, 12) / 4);
  CHECK(others == 1);
  // Once a message has come back otherwise, only its own attempts count.
  contention.passed();
  CHECK(vain_wait(others) <= pawl::engine::longest_wait(usual, 2));
}

TEST_CASE("a message that comes back in contention") {
  using How = Landing::How;
  struct Case {
    Landing landing;
    std::uint32_t waits, rounds;  // afterwards; before, both are 3
    const char* why;
  };
  const std::vector<Case> cases{
      {{.how = How::kLater, .waited_for_lock = true}, 4, 4, "it waited for a lock in vain"},
      {{.how = How::kLater, .wait = 7s, .not_run = true}, 3, 3, "it was turned away"},
      {{.how = How::kLater, .wait = 7s, .no_answer = true}, 3, 3, "its connection broke"},
      {{.how = How::kLost}, 3, 3, "its connection broke, and it may be finished"},
      {{.how = How::kLater, .wait = 7s}, 0, 0, "it failed otherwise"},
      {{.how = How::kFinished}, 0, 0, "it is finished"},
  };
  pawl::FailureOptions options;
  options.retry_initial = 1s;
  options.retry_max = 100s;
  for (const auto& c : cases) {
    INFO(c.why);
    Contention contention;
    std::uint32_t waits = 3;
    auto now = kNow;
    for (int i = 0; i < 3; ++i, now += 10s)
      contention.waited(now, now + 5s);
    const auto wait = wait_after(c.landing, now, now + 5s, options, contention, waits);
    CHECK(waits == c.waits);
    if (c.landing.waited_for_lock) {
      CHECK(wait >= 2s);
      CHECK(wait <= 8s);
      CHECK(contention.pauses());
    } else {
      CHECK(wait == c.landing.wait);
    }
    // As counted by the next one that waits in vain.
    CHECK(contention.waited(now + 10s, now + 15s) == c.rounds + 1);
  }
}
