// How kafka.buffer is shared: decisions over numbers, no Kafka.
#include <algorithm>

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
    std::size_t total, held, bytes;
    Admission expected;
    const char* why;
  };
  const std::vector<Case> cases{
      {0, 0, 1, Admission::kAccept, "there is nothing else"},
      {0, 0, 1000, Admission::kAccept, "larger than all, but alone"},
      {1, 0, 1000, Admission::kWait, "larger than all, and not alone"},
      {74, 74, 1, Admission::kAccept, "one alone has three quarters"},
      {75, 75, 1, Admission::kThrottle, "and no more, so that others find room"},
      {80, 5, 1, Admission::kAccept, "another one then"},
      {92, 17, 1, Admission::kAccept, "three times what is left"},
      {95, 20, 1, Admission::kThrottle, "more than that"},
      {99, 7, 1, Admission::kAccept, "its quantum, whatever is left"},
      {99, 8, 1, Admission::kThrottle, "more than its quantum where nothing is left"},
      {100, 7, 1, Admission::kWait, "within its quantum, but there is no room for anybody"},
      {100, 0, 1, Admission::kWait, "it has nothing, so it cannot be the one to stop"},
  };
  for (const auto& c : cases) {
    INFO(c.why);
    CHECK(admit(kPlan, c.total, c.held, c.bytes, kWide) == c.expected);
  }
}

TEST_CASE("a partition that was stopped goes on before it runs out") {
  CHECK(may_resume(kPlan, 50, 50, kWide));
  CHECK_FALSE(may_resume(kPlan, 51, 51, kWide));
  CHECK(may_resume(kPlan, 90, 10, kWide));
  CHECK_FALSE(may_resume(kPlan, 90, 11, kWide));
  // Where nothing is left: at half of what it may have whatever others do.
  CHECK(may_resume(kPlan, 100, 4, kWide));
  CHECK_FALSE(may_resume(kPlan, 100, 5, kWide));
  CHECK(may_resume(kPlan, 1000, 0, kWide));
}

TEST_CASE("who is slow holds no more than its window, however much is free") {
  CHECK(admit(kPlan, 0, 0, 50, 20) == Admission::kAccept);
  CHECK(admit(kPlan, 19, 19, 1, 20) == Admission::kAccept);
  CHECK(admit(kPlan, 20, 20, 1, 20) == Admission::kThrottle);
  CHECK(may_resume(kPlan, 10, 10, 20));
  CHECK_FALSE(may_resume(kPlan, 11, 11, 20));
  // Never less than what every partition may hold.
  CHECK(admit(kPlan, 7, 7, 1, 2) == Admission::kAccept);
  CHECK(may_resume(kPlan, 4, 4, 2));
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
  FetchBuffer buffer({.pool = 640, .queue = 1, .response = 1, .quantum = 1, .least = 1},
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
  CHECK(share.held() == 619);
  CHECK(buffer.total() == 619);

  // More than all of the pool: when nothing is left in it.
  CHECK(buffer.wait_for_room(1000));
  share.give_back(618);
  CHECK(called == 1);
  share.give_back(1);
  CHECK(called == 2);
}
