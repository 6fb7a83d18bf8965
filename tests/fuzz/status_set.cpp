// Sets of HTTP statuses: a line each for success, not_done, retry, permanent, and outage.
#include "handlers/http/status_set.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fuzz.hpp"

using namespace pawl::handlers;
using pawl::fuzzing::require;

namespace {

/// What each text of a status, or of a class, stands for.
const std::map<std::string, std::vector<long>>& all_texts() {
  static const auto texts = [] {
    std::map<std::string, std::vector<long>> made;
    for (long status = 100; status < 600; ++status) {
      const auto number = std::to_string(status);
      made[number].push_back(status);
      made[number.substr(0, 1) + "xx"].push_back(status);
    }
    return made;
  }();
  return texts;
}

/// The same set by another way.
struct Reference {
  std::set<long> named;
  std::set<long> classes;
};

std::optional<Reference> reference(std::string_view text) {
  Reference result;
  if (text.empty())
    return result;
  std::vector<std::string> items(1);
  for (const char c : text) {
    if (c == ',')
      items.emplace_back();
    else
      items.back() += c;
  }
  for (auto& item : items) {
    const auto begin = item.find_first_not_of(' ');
    if (begin == std::string::npos)
      return std::nullopt;
    item = item.substr(begin, item.find_last_not_of(' ') + 1 - begin);
    const auto found = all_texts().find(item);
    if (found == all_texts().end())
      return std::nullopt;
    (item.ends_with('x') ? result.classes : result.named)
        .insert(found->second.begin(), found->second.end());
  }
  return result;
}

StatusSet checked_set(std::string_view text, Reference& expected) {
  const auto set = StatusSet::parse(text);
  const auto other = reference(text);
  require(set.has_value() == other.has_value(), "a list is one of statuses", text);
  if (!set)
    return {};
  for (long status = -2; status < 700; ++status) {
    require(set->names(status) == other->named.contains(status), "a set names its numbers", text);
    require(
        set->contains(status) == (other->named.contains(status) || other->classes.contains(status)),
        "a set contains its numbers and classes", text);
  }
  expected = *other;
  return *set;
}

/// The first list that names it, else the first with its class, else permanent.
CallMeaning expected_meaning(long status, const std::array<Reference, 4>& lists) {
  constexpr std::array kMeanings{CallMeaning::kDone, CallMeaning::kNotDone, CallMeaning::kUnknown,
                                 CallMeaning::kPermanent};
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].named.contains(status))
      return kMeanings[i];
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].classes.contains(status))
      return kMeanings[i];
  }
  return CallMeaning::kPermanent;
}

}  // namespace

void fuzz(std::string_view input) {
  std::array<Reference, 4> lists;
  Reference outage;
  StatusSets sets;
  sets.success = checked_set(pawl::fuzzing::take_line(input), lists[0]);
  sets.not_done = checked_set(pawl::fuzzing::take_line(input), lists[1]);
  sets.retry = checked_set(pawl::fuzzing::take_line(input), lists[2]);
  sets.permanent = checked_set(pawl::fuzzing::take_line(input), lists[3]);
  sets.outage = checked_set(pawl::fuzzing::take_line(input), outage);
  for (long status = 200; status < 600; ++status) {
    auto expected = expected_meaning(status, lists);
    if (expected == CallMeaning::kNotDone &&
        (outage.named.contains(status) || outage.classes.contains(status)))
      expected = CallMeaning::kOutage;
    require(meaning_of({.status = status}, sets) == expected, "a status has its meaning");
    const auto cut = meaning_of({.whole = false, .status = status}, sets);
    require(cut == (expected == CallMeaning::kDone ? CallMeaning::kNoAnswer : expected),
            "a response that was cut off is no success");
  }
}
