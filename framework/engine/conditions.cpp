#include "engine/conditions.hpp"

#include <fmt/format.h>

#include <utility>

#include "ledger/instant.hpp"
#include "text/bounded.hpp"
#include "text/count.hpp"

namespace pawl::engine {
namespace {

/// A restart of one broker passes sooner.
constexpr std::chrono::seconds kLastingOutage{10};

}  // namespace

std::string text_of(const Condition& condition) {
  const auto since = ledger::to_string(condition.since);
  const auto waiting = texts::counted(condition.messages, "message waits", "messages wait");
  switch (condition.kind) {
    case Condition::Kind::kRemoteServiceUnreachable:
      return fmt::format(
          "has been unreachable since {}: {}. {}; pawl probes the endpoint, counts no attempt, and "
          "continues automatically when it responds",
          since, condition.cause, waiting);
    case Condition::Kind::kKafkaUnreachable:
      return fmt::format(
          "has been unreachable since {}: {}. The process retries and continues automatically when "
          "Kafka responds",
          since, condition.cause);
    case Condition::Kind::kPartitionBlocked:
      break;
  }
  return fmt::format(
      "has waited for a lock since {}: {}. {}; pawl counts no attempt and continues automatically "
      "when the lock is released",
      since, condition.cause, waiting);
}

std::optional<Condition> kafka_condition(const std::optional<Reachability::Outage>& outage,
                                         const std::string& bootstrap_servers, Timestamp now) {
  if (!outage)
    return std::nullopt;
  Condition condition;
  condition.kind = Condition::Kind::kKafkaUnreachable;
  condition.subject = bootstrap_servers;
  condition.since = outage->since;
  condition.cause = texts::bounded(outage->why, texts::kLongestCause);
  condition.lasting = now - outage->since >= kLastingOutage;
  return condition;
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
