#include "combinations.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "modes.hpp"

namespace pawl::test {
namespace {

const std::vector<HandlerKind>& kinds() {
  static const std::vector<HandlerKind> kKinds{
      {.name = "sql", .toml = kFlightSql},
      {.name = "statements", .toml = "name = \"statements\""},
      {.name = "code", .toml = "name = \"payment\""},
      {.name = "sql batch", .toml = kBatchSql, .batches = true},
      {.name = "code batch", .toml = kBatchCode, .batches = true},
      {.name = "http",
       .toml =
           R"toml(http = { url = "API/charges", headers = { Event-Id = "{header:event-id}" } })toml",
       .calls = true,
       .writes = false},
      {.name = "leased", .toml = "name = \"charge_and_record\"", .calls = true},
  };
  return kKinds;
}

const std::vector<TopicMode>& topic_modes() {
  static const std::vector<TopicMode> kModes{
      {.name = "log order"},
      {.name = "replayable", .settings = {"consumer.durability=replayable"}},
      {.name = "pooled", .settings = {"postgres.pooled=true"}},
      {.name = "concurrency",
       .first = "concurrency = 4\nconcurrency_window = 20\n",
       .by_key = true},
  };
  return kModes;
}

constexpr std::array<const char*, 5> kPolicies{"halt", "dead-letter", "park", "retry-later",
                                               "skip"};

template <typename Things>
const auto& named(const Things& things, const std::string& name) {
  const auto found = std::ranges::find_if(things, [&](const auto& it) { return it.name == name; });
  if (found == things.end())
    throw std::logic_error("nothing is called " + name);
  return *found;
}

bool is_refused(const HandlerKind& first, const HandlerKind& second, const TopicMode& mode) {
  return mode.by_key && (first.batches || second.batches);
}

/// Two columns and their values.
using Pair = std::tuple<int, std::string, int, std::string>;

std::set<Pair> pairs_of(const Combination& combination) {
  const std::array<const std::string*, 4> values{&combination.first, &combination.second,
                                                 &combination.policy, &combination.mode};
  std::set<Pair> pairs;
  for (int i = 0; i < 4; ++i) {
    for (int j = i + 1; j < 4; ++j)
      pairs.emplace(i, *values[static_cast<std::size_t>(i)], j,
                    *values[static_cast<std::size_t>(j)]);
  }
  return pairs;
}

}  // namespace

const HandlerKind& handler_kind(const std::string& name) {
  return named(kinds(), name);
}

const TopicMode& topic_mode(const std::string& name) {
  return named(topic_modes(), name);
}

const std::vector<Combination>& all_combinations() {
  static const std::vector<Combination> kAll = [] {
    std::vector<Combination> all;
    for (std::size_t first = 0; first < kinds().size(); ++first) {
      for (std::size_t second = 0; second < kinds().size(); ++second) {
        // Which comes first matters only where one of them has concurrency.
        for (const auto& mode : topic_modes()) {
          if (first == second || (first > second && !mode.by_key) ||
              is_refused(kinds()[first], kinds()[second], mode))
            continue;
          for (const auto* policy : kPolicies)
            all.push_back({kinds()[first].name, kinds()[second].name, policy, mode.name});
        }
      }
    }
    return all;
  }();
  return kAll;
}

std::vector<Combination> pairwise(const std::vector<Combination>& all) {
  std::set<Pair> missing;
  for (const auto& combination : all)
    missing.merge(pairs_of(combination));
  std::vector<Combination> chosen;
  while (!missing.empty()) {
    const auto gain = [&](const Combination& combination) {
      return std::ranges::count_if(pairs_of(combination),
                                   [&](const Pair& pair) { return missing.contains(pair); });
    };
    const auto best = std::ranges::max_element(
        all,
        [&](const Combination& one, const Combination& other) { return gain(one) < gain(other); });
    for (const auto& pair : pairs_of(*best))
      missing.erase(pair);
    chosen.push_back(*best);
  }
  return chosen;
}

std::vector<Combination> chosen_combinations() {
  const char* const wanted = std::getenv("PAWL_COMBINATIONS");
  if (wanted == nullptr)
    return pairwise(all_combinations());
  auto chosen = all_combinations();
  if (std::string_view(wanted) != "all") {
    std::erase_if(chosen, [&](const Combination& combination) {
      return combination.name().find(wanted) == std::string::npos;
    });
  }
  if (chosen.empty())
    throw std::logic_error("no combination contains " + std::string(wanted));
  return chosen;
}

}  // namespace pawl::test
