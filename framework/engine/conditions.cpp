#include "engine/conditions.hpp"

#include <fmt/format.h>

#include <utility>

#include "ledger/instant.hpp"
#include "text/count.hpp"

namespace pawl::engine {

std::string text_of(const Condition& condition) {
  const auto since = ledger::to_string(condition.since);
  const auto waiting = texts::counted(condition.messages, "message waits", "messages wait");
  switch (condition.kind) {
    case Condition::Kind::kRemoteServiceUnreachable:
      return fmt::format(
          "has been unreachable since {}: {}. {}; pawl probes the endpoint, counts no attempt, and "
          "continues automatically when it responds",
          since, condition.cause, waiting);
    case Condition::Kind::kPartitionBlocked:
      break;
  }
  return fmt::format(
      "has waited for a lock since {}: {}. {}; pawl counts no attempt and continues automatically "
      "when the lock is released",
      since, condition.cause, waiting);
}

std::vector<ConditionWatch::News> ConditionWatch::look(const std::vector<Condition>& now,
                                                       Clock::time_point at) {
  std::vector<News> news;
  std::map<std::pair<Condition::Kind, std::string>, Told> told;
  for (const auto& condition : now) {
    auto known = told_.extract({condition.kind, condition.subject});
    if (known.empty() || at - known.mapped().at >= kReminder) {
      news.push_back({condition});
      told[{condition.kind, condition.subject}] = {condition, at};
    } else {
      known.mapped().condition = condition;
      told.insert(std::move(known));
    }
  }
  for (const auto& [what, ended] : std::exchange(told_, std::move(told)))
    news.push_back({ended.condition, true});
  return news;
}

}  // namespace pawl::engine
