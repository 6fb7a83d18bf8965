#include "console/oldest_waiting.hpp"

#include <algorithm>

namespace pawl::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirst{1000};
/// Each age that is asked for is so many times the one before, until no message is as old.
constexpr int kStep = 4;
/// No log is older.
constexpr milliseconds kLongest = std::chrono::hours(24 * 365 * 20);

}  // namespace

std::optional<OldestWaiting> find_oldest(std::map<TopicPartition, std::int64_t> next,
                                         const EndsBefore& ends_before) {
  if (next.empty())
    return std::nullopt;
  milliseconds at_least{0};
  // Whether a message is as old; then only the partitions with such a message remain.
  const auto is_older = [&](milliseconds age) {
    std::vector<TopicPartition> asked;
    for (const auto& [partition, offset] : next)
      asked.push_back(partition);
    const auto ends = ends_before(asked, age);
    std::map<TopicPartition, std::int64_t> older;
    for (const auto& [partition, offset] : next) {
      if (const auto end = ends.find(partition); end != ends.end() && end->second > offset)
        older.emplace(partition, offset);
    }
    if (older.empty())
      return false;
    next = std::move(older);
    at_least = age;
    return true;
  };
  auto less_than = kFirst;
  while (less_than < kLongest && is_older(less_than))
    less_than *= kStep;
  while (less_than - at_least > std::max(kFirst, at_least / 10)) {
    if (const auto middle = at_least + (less_than - at_least) / 2; !is_older(middle))
      less_than = middle;
  }
  return OldestWaiting{next.begin()->first, at_least};
}

}  // namespace pawl::cli
