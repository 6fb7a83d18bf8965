#include "engine/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  const auto is_reported = [&](std::int32_t pid) {
    const auto reports = [pid](const auto& entry) {
      return entry.second.reported && entry.second.condition.blocking_pid == pid;
    };
    return pid != 0 && (std::ranges::any_of(told_, reports) || std::ranges::any_of(told, reports));
  };
  for (const auto& condition : now) {
    const std::pair key{condition.kind, condition.subject};
    const auto known = told_.extract(key);
    const auto pid = condition.blocking_pid;
    if (known.empty()) {
      const bool nameless = condition.kind == Condition::Kind::kPartitionBlocked && pid == 0;
      const bool first = !nameless && !is_reported(pid);
      if (first)
        news.push_back({condition});
      told[key] = {condition, at, first};
      continue;
    }
    auto entry = std::move(known.mapped());
    const auto pid_before = entry.condition.blocking_pid;
    const bool due = at - entry.at >= kPause;
    const bool other_session = pid != 0 && pid_before != 0 && pid != pid_before;
    const bool reported_with_others = other_session && is_reported(pid);
    const bool was_nameless = !entry.reported && pid_before == 0;
    const bool has_name = was_nameless && pid != 0 && !is_reported(pid);
    const bool stays_nameless = was_nameless && pid == 0 && at - entry.at >= kPatience;
    if (reported_with_others) {
      entry.at = at;
    } else if ((due && other_session) || has_name || stays_nameless) {
      news.push_back({condition});
      entry.at = at;
      entry.reported = true;
    }
    entry.condition = condition;
    // Between two attempts, the session is not known. And many sessions may lock one row in turn.
    if (pid == 0 || (other_session && !due && !reported_with_others))
      entry.condition.blocking_pid = pid_before;
    told.insert_or_assign(key, std::move(entry));
  }
  for (auto& one : news) {
    const auto pid = one.condition.blocking_pid;
    if (pid == 0)
      continue;
    one.condition.messages = 0;
    for (const auto& condition : now) {
      if (condition.blocking_pid != pid)
        continue;
      one.condition.messages += condition.messages;
      one.blocked.push_back({condition.topic, condition.partition});
    }
  }
  std::map<std::pair<Condition::Kind, std::string>, Told> remaining;
  for (auto& [key, ended] : told_) {
    if (!ended.reported)
      continue;
    const auto pid = ended.condition.blocking_pid;
    const bool others_wait =
        pid != 0 && std::ranges::any_of(told, [pid](const auto& entry) {
          return !entry.second.reported && entry.second.condition.blocking_pid == pid;
        });
    if (others_wait)
      remaining.emplace(key, std::move(ended));
    else
      news.push_back({std::move(ended.condition), true});
  }
  told.merge(remaining);
  told_ = std::move(told);
  return news;
}

}  // namespace pawl::engine
