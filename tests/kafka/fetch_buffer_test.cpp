// How kafka.buffer is shared: decisions over numbers, no Kafka.
#include <algorithm>
#include <deque>

#include "kafka/fetch_buffer.hpp"
#include "prelude.hpp"

using namespace pawl::kafka;

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr BufferPlan kPlan{.pool = 100, .queue = 10, .response = 10, .quantum = 8, .least = 8};
/// Of a worker that is quick enough for everything.
constexpr std::size_t kWide = 1000;

}  // namespace

TEST_CASE("the parts of kafka.buffer add up to it") {
  for (const auto partitions :
       {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{1000}}) {
    for (const auto buffer : {kMiB, 32 * kMiB, 1024 * kMiB}) {
      const auto plan = BufferPlan::of(buffer, partitions);
      CAPTURE(partitions, buffer);
      CHECK(plan.pool + plan.queue + plan.response == buffer);
      CHECK(plan.quantum <= plan.response);
      // However many are slow, half of the pool is there for those who need more.
      CHECK(plan.least * std::max<std::size_t>(partitions, 1) <= plan.pool / 2);
      CHECK(plan.least <= plan.quantum);
      CHECK(plan.response < plan.queue);
    }
  }
  CHECK(BufferPlan::of(32 * kMiB, 8).quantum == kMiB);
  CHECK(BufferPlan::of(32 * kMiB, 200).quantum == 32 * kMiB / 200);
  CHECK(BufferPlan::of(32 * kMiB, 1000).quantum == 64 * kKiB);
}

TEST_CASE("a record is let into the buffer, waits for room, or stops its partition") {
  struct Case {
    BufferUse use;
    BufferPart part;
    std::size_t bytes;
    Admission expected;
    const char* why;
  };
  // 20 of 100 are reserved, so 80 are shared by need, and 40 of them by those that run ahead.
  const std::vector<Case> cases{
      {{20, 0, 0}, {8, 0}, 8, Admission::kAccept, "there is nothing else"},
      {{20, 57, 0}, {8, 65}, 1, Admission::kAccept, "one alone has three times what it leaves"},
      {{20, 58, 0}, {8, 66}, 1, Admission::kThrottle, "and no more, so that others find room"},
      {{20, 58, 0}, {8, 8}, 1, Admission::kAccept, "another one then"},
      {{20, 80, 0}, {8, 7}, 1, Admission::kAccept, "its reserved share, whatever is left"},
      {{20, 80, 0}, {8, 0}, 8, Admission::kAccept, "all of it at once"},
      {{20, 80, 0}, {8, 8}, 1, Admission::kThrottle, "more than that where nothing is left"},
      {{50, 0, 0}, {0, 0}, 1, Admission::kAccept, "nothing is reserved for it"},

      {{20, 0, 27},
       {8, 35, true},
       1,
       Admission::kAccept,
       "ahead, three times what it leaves of 40"},
      {{20, 0, 28}, {8, 36, true}, 1, Admission::kThrottle, "and no more"},
      {{20, 0, 40}, {8, 8, true}, 1, Admission::kThrottle, "all that run ahead have theirs"},
      {{20, 0, 40}, {8, 7, true}, 1, Admission::kAccept, "but for its reserved share"},
      {{20, 0, 40}, {8, 8}, 1, Admission::kAccept, "and the others have half"},
      {{20, 60, 0}, {8, 8, true}, 5, Admission::kAccept, "what the others leave"},
      {{20, 78, 0}, {8, 8, true}, 5, Admission::kThrottle, "they leave nothing"},

      {{20, 0, 0}, {8, 0}, 1000, Admission::kAccept, "larger than all, but alone"},
      {{20, 1, 0}, {8, 0}, 1000, Admission::kWait, "larger than all, and not alone"},
      {{20, 1, 40}, {8, 0}, 47, Admission::kAccept, "as large as what is left"},
      {{20, 1, 40},
       {8, 0},
       48,
       Admission::kWait,
       "it has nothing, so it cannot be the one to stop"},
      {{20, 0, 40}, {8, 0}, 1000, Admission::kAccept, "those that run ahead are not waited for"},
      {{20, 0, 0}, {8, 0, true}, 1000, Admission::kAccept, "ahead, larger than all, but alone"},
      {{20, 0, 40}, {8, 0, true}, 48, Admission::kAccept, "one message, though all have theirs"},
      {{20, 0, 41}, {8, 0, true}, 48, Admission::kThrottle, "it is the one to stop"},
      {{20, 1, 0}, {8, 0, true}, 1000, Admission::kWait, "the others return theirs soon"},
  };
  for (const auto& c : cases) {
    INFO(c.why);
    CHECK(admit(kPlan, c.use, c.part, c.bytes, kWide) == c.expected);
  }
}

TEST_CASE("a partition that was stopped goes on before it runs out") {
  struct Case {
    BufferUse use;
    BufferPart part;
    bool expected;
  };
  const std::vector<Case> cases{
      {{20, 36, 0}, {8, 44}, true},
      {{20, 37, 0}, {8, 45}, false},
      {{20, 70, 0}, {8, 10}, true},
      {{20, 71, 0}, {8, 10}, false},
      {{20, 0, 16}, {8, 24, true}, true},
      {{20, 0, 17}, {8, 25, true}, false},
      // Where nothing is left: at half of its reserved share.
      {{20, 80, 0}, {8, 4}, true},
      {{20, 80, 0}, {8, 5}, false},
      {{20, 1000, 0}, {8, 0}, true},
  };
  for (const auto& c : cases) {
    CAPTURE(c.use.in_turn, c.use.ahead, c.part.held);
    CHECK(may_resume(kPlan, c.use, c.part, kWide) == c.expected);
  }
}

TEST_CASE("who is slow holds no more than its window, however much is free") {
  CHECK(admit(kPlan, {20, 0, 0}, {8, 0}, 50, 20) == Admission::kAccept);
  CHECK(admit(kPlan, {20, 11, 0}, {8, 19}, 1, 20) == Admission::kAccept);
  CHECK(admit(kPlan, {20, 12, 0}, {8, 20}, 1, 20) == Admission::kThrottle);
  CHECK(may_resume(kPlan, {20, 2, 0}, {8, 10}, 20));
  CHECK_FALSE(may_resume(kPlan, {20, 3, 0}, {8, 11}, 20));
  // Never less than its reserved share.
  CHECK(admit(kPlan, {20, 0, 0}, {8, 7}, 1, 2) == Admission::kAccept);
  CHECK(may_resume(kPlan, {20, 0, 0}, {8, 4}, 2));
}

TEST_CASE("half of the pool at most is reserved, and beyond it each partition is counted once") {
  FetchBuffer buffer({.pool = 100, .queue = 1, .response = 1, .quantum = 20, .least = 20}, [] {});
  BufferShare first(buffer);
  BufferShare ahead(buffer);
  ahead.run_ahead();
  const BufferShare none(buffer);
  CHECK(first.part().reserved == 20);
  CHECK(none.part().reserved == 0);
  CHECK(buffer.use().reserved == 40);

  first.take(15);
  CHECK(buffer.use().in_turn == 0);
  first.take(15);
  ahead.take(25);
  CHECK(buffer.use().in_turn == 10);
  CHECK(buffer.use().ahead == 5);
  first.give_back(15);
  ahead.give_back(1);
  CHECK(first.part().held == 15);
  CHECK(buffer.use().in_turn == 0);
  CHECK(buffer.use().ahead == 4);
  first.give_back(15);

  first.cancel();
  first.cancel();
  CHECK(buffer.use().reserved == 20);
  const BufferShare next(buffer);
  CHECK(next.part().reserved == 20);
}

// Two threads change one share: each counts what lies beyond the reserved part after its change.
TEST_CASE("bytes that are returned before those taken are counted leave no huge total") {
  FetchBuffer buffer(kPlan, [] {});
  for (const bool ahead : {false, true}) {
    CAPTURE(ahead);
    buffer.give_back(8, ahead);
    CHECK(buffer.use().in_turn == 0);
    CHECK(buffer.use().ahead == 0);
    CHECK(admit(kPlan, buffer.use(), {8, 8, ahead}, 1, kWide) == Admission::kAccept);
    CHECK_FALSE(buffer.wait_for_room(10));
    buffer.take(10, ahead);
    CHECK(buffer.use().in_turn + buffer.use().ahead == 2);
    buffer.give_back(2, ahead);
  }
}

// Twelve partitions whose first messages are retried, and one that is well.
TEST_CASE("partitions that run ahead and do not go on leave room to all others") {
  for (const auto bytes : {kKiB, 10 * kKiB, 100 * kKiB, 2 * kMiB}) {
    CAPTURE(bytes);
    FetchBuffer buffer(BufferPlan::of(32 * kMiB, 13), [] {});
    const auto pool = buffer.plan().pool;
    std::deque<BufferShare> stuck;
    for (int i = 0; i < 12; ++i)
      stuck.emplace_back(buffer).run_ahead();
    BufferShare well(buffer);
    const auto fill = [&](BufferShare& share) {
      while (admit(buffer.plan(), buffer.use(), share.part(), bytes, pool) == Admission::kAccept)
        share.take(bytes);
    };
    for (auto& share : stuck) {
      fill(share);
      CHECK(share.part().held + bytes > share.part().reserved);
    }
    CHECK(buffer.use().ahead <= (pool - buffer.use().reserved) / 2 + 12 * bytes);
    fill(well);
    CHECK(well.part().held > well.part().reserved);
  }
}

TEST_CASE("a window follows the pace of its worker") {
  const auto plan = BufferPlan::of(32 * kMiB, 100);
  FetchWindow window(plan);
  CHECK(window.bytes() == plan.quantum);
  window.ran_dry();
  CHECK(window.bytes() == 4 * plan.quantum);
  window.lasted(1s);
  CHECK(window.bytes() == 4 * plan.quantum);
  window.lasted(3s);
  CHECK(window.bytes() == 2 * plan.quantum);
  for (int i = 0; i < 30; ++i)
    window.ran_dry();
  CHECK(window.bytes() == plan.pool);
  for (int i = 0; i < 30; ++i)
    window.lasted(3s);
  CHECK(window.bytes() == plan.least);
}

TEST_CASE("who waits for room is called once there is enough") {
  int called = 0;
  FetchBuffer buffer({.pool = 640, .queue = 1, .response = 1, .quantum = 10, .least = 10},
                     [&] { ++called; });
  BufferShare share(buffer);
  CHECK_FALSE(buffer.wait_for_room(10));
  share.take(640);
  CHECK(buffer.wait_for_room(20));
  share.give_back(19);
  CHECK(called == 0);
  share.give_back(1);
  CHECK(called == 1);
  share.give_back(1);
  CHECK(called == 1);
  CHECK(share.part().held == 619);
  CHECK(buffer.use().in_turn == 609);

  // More than all of the pool: when nobody holds more than is reserved for it.
  CHECK(buffer.wait_for_room(1000));
  share.give_back(608);
  CHECK(called == 1);
  share.give_back(1);
  CHECK(called == 2);
}
