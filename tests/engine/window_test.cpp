#include "engine/window.hpp"

#include <librdkafka/rdkafka.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using pawl::engine::InWindow;
using pawl::engine::Window;
using pawl::handlers::Binding;
using pawl::ledger::Outcome;

namespace {

const Window::Clock::time_point kNow{100s};

Window::Entry entry(std::int64_t offset, const Binding& binding,
                    std::optional<std::string> order_key = std::nullopt) {
  // librdkafka looks for time and headers behind the public fields: there are none.
  struct {
    rd_kafka_message_t message{};
    std::array<std::byte, 1024> rest{};
  } delivered;
  delivered.message.offset = offset;
  auto made = std::make_shared<InWindow>(InWindow{
      .stream = nullptr, .item = {pawl::kafka::Record(delivered.message), {}, std::nullopt}});
  made->binding = &binding;
  made->order_key = std::move(order_key);
  return made;
}

Binding handler(std::uint32_t concurrency) {
  Binding binding;
  binding.concurrency = concurrency;
  return binding;
}

/// Offsets of what begins now.
std::vector<std::int64_t> begin(Window& window, std::vector<Window::Entry>* entries = nullptr) {
  std::vector<std::int64_t> offsets;
  while (auto next = window.next(kNow)) {
    offsets.push_back(next->offset());
    if (entries != nullptr)
      entries->push_back(next);
  }
  return offsets;
}

using Offsets = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("messages begin in the log's order, up to their handler's concurrency") {
  const auto three = handler(3);
  Window window(10);
  for (std::int64_t offset = 1; offset <= 5; ++offset)
    window.add(entry(offset, three));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 2, 3});
  CHECK(window.running() == 3);
  window.finished(running[1], Outcome::kApplied);
  CHECK(begin(window) == Offsets{4});
  CHECK(window.prefix() == 0);
  window.finished(running[0], Outcome::kDuplicate);
  CHECK(window.prefix() == 2);
  CHECK_FALSE(window.next(kNow, 5));
  CHECK(window.next(kNow, 6)->offset() == 5);
}

TEST_CASE("messages of one order key run one after the other, and hold up no others") {
  const auto four = handler(4);
  Window window(10);
  window.add(entry(1, four, "a"));
  window.add(entry(2, four, "a"));
  window.add(entry(3, four, "b"));
  window.add(entry(4, four, "a"));
  window.add(entry(5, four));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 3, 5});
  window.finished(running[1], Outcome::kApplied);
  CHECK(begin(window).empty());
  window.finished(running[0], Outcome::kDead);
  running.clear();
  CHECK(begin(window, &running) == Offsets{2});
  window.finished(running[0], Outcome::kApplied);
  CHECK(begin(window) == Offsets{4});
}

TEST_CASE("what waited for a lock in vain begins once that is released, and what failed does not") {
  const auto three = handler(3);
  Window window(10);
  for (std::int64_t offset = 1; offset <= 3; ++offset)
    window.add(entry(offset, three));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 2, 3});
  running[1]->lock_waits = 1;
  for (const auto& one : running)
    window.later(one, kNow + 1h);
  CHECK(begin(window).empty());
  window.lock_released(kNow);
  CHECK(window.due() == kNow);
  CHECK(begin(window) == Offsets{2});
  CHECK(window.due() == kNow + 1h);
}

TEST_CASE("one that is tried again later keeps its order key waiting, not its handler") {
  const auto two = handler(2);
  Window window(10);
  window.add(entry(1, two, "a"));
  window.add(entry(2, two, "a"));
  window.add(entry(3, two, "b"));
  window.add(entry(4, two, "c"));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 3});
  window.later(running[0], kNow + 1s);
  CHECK(begin(window) == Offsets{4});
  CHECK(window.due() == kNow + 1s);
  window.finished(running[1], Outcome::kApplied);
  CHECK(begin(window).empty());
  CHECK(window.next(kNow + 1s) == running[0]);
  CHECK_FALSE(window.due());
}

TEST_CASE("a handler without concurrency is overtaken by nobody of its own") {
  const auto one = handler(1);
  const auto two = handler(2);
  Window window(10);
  window.add(entry(1, one));
  window.add(entry(2, one));
  window.add(entry(3, two));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 3});
  window.later(running[0], kNow + 1s);
  CHECK(begin(window).empty());
  CHECK(window.next(kNow + 2s)->offset() == 1);
  CHECK_FALSE(window.next(kNow + 2s));
}

TEST_CASE("a window holds so many messages, and what is finished leaves it") {
  const auto two = handler(2);
  Window window(2);
  CHECK_FALSE(window.full());
  window.add(entry(1, two));
  auto known = entry(2, two);
  known->outcome = Outcome::kApplied;
  window.add(known);
  CHECK(window.full());
  CHECK(window.prefix() == 0);
  const auto first = window.next(kNow);
  CHECK_FALSE(window.next(kNow));
  window.finished(first, Outcome::kApplied);
  CHECK(window.prefix() == 2);
  window.pop(2);
  CHECK(window.empty());
  CHECK_FALSE(window.full());
}

TEST_CASE("what a window has let go of is marked") {
  const auto two = handler(2);
  Window window(2);
  window.add(entry(1, two));
  const auto running = window.next(kNow);
  window.clear();
  CHECK(running->dropped);
  CHECK(window.running() == 0);
  CHECK(window.empty());
}

TEST_CASE("a handler without concurrency keeps its order also where one waits for an order key") {
  const auto one = handler(1);
  const auto two = handler(2);
  Window window(10);
  window.add(entry(1, two, "a"));
  window.add(entry(2, one, "a"));
  window.add(entry(3, one, "b"));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1});
  window.finished(running[0], Outcome::kApplied);
  CHECK(begin(window, &running) == Offsets{2});
  window.finished(running[1], Outcome::kApplied);
  CHECK(begin(window) == Offsets{3});
}

TEST_CASE("one at which the partition halts gives its slot back, and does not begin again") {
  const auto two = handler(2);
  Window window(10);
  for (std::int64_t offset = 1; offset <= 4; ++offset)
    window.add(entry(offset, two, offset < 3 ? "a" : "b"));
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 3});
  window.halted(running[1]);
  CHECK(begin(window).empty());
  CHECK(window.running() == 1);
  window.finished(running[0], Outcome::kApplied);
  CHECK(begin(window) == Offsets{2});
}

TEST_CASE("a message names the one before it in its order key that was finished in the window") {
  const auto four = handler(4);
  Window window(10);
  for (std::int64_t offset = 1; offset <= 4; ++offset)
    window.add(entry(offset, four, offset == 2 ? "other" : "key"));
  // Finished before the partition was acquired: its epoch vouches for that.
  auto known = entry(5, four, "other");
  known->outcome = Outcome::kApplied;
  window.add(known);
  window.add(entry(6, four, "other"));
  const auto first = window.next(kNow);
  const auto other = window.next(kNow);
  REQUIRE((first->offset() == 1 && other->offset() == 2));
  CHECK_FALSE(first->predecessor.has_value());
  CHECK_FALSE(other->predecessor.has_value());
  window.finished(other, Outcome::kDead);
  const auto behind_other = window.next(kNow);
  REQUIRE(behind_other->offset() == 6);
  CHECK(behind_other->predecessor == 2);
  window.finished(first, Outcome::kApplied);
  const auto third = window.next(kNow);
  REQUIRE(third->offset() == 3);
  CHECK(third->predecessor == 1);
  // The stored offset has passed both.
  window.pop(2);
  window.later(third, kNow);
  CHECK_FALSE(window.next(kNow)->predecessor.has_value());
  window.finished(third, Outcome::kApplied);
  const auto fourth = window.next(kNow);
  CHECK(fourth->predecessor == 3);
  window.clear();
  window.add(entry(4, four, "key"));
  CHECK_FALSE(window.next(kNow)->predecessor.has_value());
}

TEST_CASE("what has not begun is dropped from the end of a window, and comes again") {
  const auto one = handler(1);
  const auto two = handler(2);
  Window window(10);
  window.add(entry(1, two, "a"));
  window.add(entry(2, two, "a"));
  window.add(entry(3, two, "b"));
  // Finished before the partition was acquired.
  auto known = entry(4, two, "b");
  known->outcome = Outcome::kApplied;
  window.add(known);
  auto last_of_key = entry(5, two, "a");
  window.add(last_of_key);
  window.add(entry(6, one, "a"));
  window.add(entry(7, two));
  CHECK(window.unbegun() == 3);
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 3});
  window.later(running[0], kNow + 1s);
  window.drop_unbegun();
  CHECK(window.size() == 4);
  CHECK(window.unbegun() == 0);
  CHECK(last_of_key->dropped);
  CHECK_FALSE(known->dropped);
  // Those of its order key that are left have their turns, and none that was dropped.
  CHECK(begin(window).empty());
  const auto again = window.next(kNow + 1s);
  REQUIRE(again == running[0]);
  window.finished(again, Outcome::kApplied);
  auto second = window.next(kNow);
  REQUIRE(second->offset() == 2);
  window.finished(second, Outcome::kApplied);
  CHECK_FALSE(window.next(kNow));
  // They come again.
  window.add(entry(5, two, "a"));
  window.add(entry(6, one, "a"));
  second = window.next(kNow);
  REQUIRE(second->offset() == 5);
  CHECK(second->predecessor == 2);
  CHECK_FALSE(window.next(kNow));
  window.finished(second, Outcome::kApplied);
  CHECK(window.next(kNow)->offset() == 6);
}

TEST_CASE("a window of which nothing has begun is dropped whole") {
  const auto one = handler(1);
  Window window(2);
  window.add(entry(1, one));
  window.add(entry(2, one));
  CHECK(window.unbegun() == 2);
  window.drop_unbegun();
  CHECK(window.empty());
  CHECK_FALSE(window.next(kNow));
  window.add(entry(1, one));
  CHECK(window.next(kNow)->offset() == 1);
}

TEST_CASE("behind a suspect that is not finished begin suspects and what runs no code only") {
  const auto many = handler(4);
  auto call = handler(4);
  call.liability = pawl::handlers::Liability::kNone;
  const auto add = [](Window& window, std::int64_t offset, const Binding& binding, bool suspect) {
    const auto added = entry(offset, binding);
    added->suspect = suspect;
    window.add(added);
  };
  Window window(10);
  add(window, 1, many, false);
  add(window, 2, many, true);
  add(window, 3, many, false);
  add(window, 4, call, false);
  add(window, 5, many, true);
  add(window, 6, many, false);
  std::vector<Window::Entry> running;
  CHECK(begin(window, &running) == Offsets{1, 2, 4, 5});
  window.later(running[1], kNow + 1s);
  CHECK(begin(window).empty());
  CHECK(window.next(kNow + 1s)->offset() == 2);
  SECTION("they finish") {
    window.finished(running[1], Outcome::kApplied);
    CHECK(begin(window) == Offsets{3});
    window.finished(running[3], Outcome::kDead);
    CHECK(begin(window) == Offsets{6});
  }
  SECTION("the window is dropped") {
    window.clear();
    add(window, 3, many, false);
    CHECK(begin(window) == Offsets{3});
  }
}
