#include "console/oldest_waiting.hpp"

#include <algorithm>

#include "prelude.hpp"

using namespace pawl::cli;
using std::chrono::milliseconds;

namespace {

/// Ages of the messages that wait, the oldest first; the next offset is 100.
using Waiting = std::map<TopicPartition, std::vector<milliseconds>>;

std::optional<OldestWaiting> oldest_of(const Waiting& waiting, int* questions = nullptr) {
  std::map<TopicPartition, std::int64_t> next;
  for (const auto& [partition, ages] : waiting)
    next[partition] = 100;
  return find_oldest(next, [&](const std::vector<TopicPartition>& asked, milliseconds age) {
    if (questions != nullptr)
      ++*questions;
    std::map<TopicPartition, std::int64_t> ends;
    for (const auto& partition : asked) {
      const auto& ages = waiting.at(partition);
      ends[partition] = 100 + std::ranges::count_if(ages, [&](auto own) { return own > age; });
    }
    return ends;
  });
}

}  // namespace

TEST_CASE("the age of the oldest message that waits is found to within a tenth or a second") {
  const std::vector<milliseconds> ages{0ms, 500ms, 1500ms, 10s, 59s, 2min, 90min, 24h, 240h, 8760h};
  for (const auto age : ages) {
    CAPTURE(age.count());
    int questions = 0;
    const auto oldest = oldest_of({{{"a", 0}, {age / 2, 0ms}}, {{"b", 7}, {age, 0ms}}}, &questions);
    REQUIRE(oldest);
    CHECK(oldest->age <= age);
    CHECK(age - oldest->age <= std::max<milliseconds>(1s, oldest->age / 10));
    CHECK(questions <= 25);
    if (age > 10s)
      CHECK(oldest->partition == TopicPartition{"b", 7});
  }
}

TEST_CASE("without a message that waits none is the oldest, and an unknown end is not old") {
  CHECK_FALSE(oldest_of({}));
  const auto unknown = find_oldest({{{"a", 0}, 100}}, [](const auto&, auto) {
    return std::map<TopicPartition, std::int64_t>();
  });
  CHECK(unknown == OldestWaiting{{"a", 0}, 0ms});
}
