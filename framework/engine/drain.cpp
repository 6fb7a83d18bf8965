#include "engine/drain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "message/partition_name.hpp"

namespace pawl::engine {

DrainGoal::DrainGoal(const std::vector<TopicPartition>& partitions,
                     const std::map<TopicPartition, std::int64_t>& told) {
  for (const auto& partition : partitions) {
    const auto found = told.find(partition);
    goals_[partition] = found == told.end() ? std::nullopt : std::optional{found->second};
  }
}

std::optional<std::int64_t> DrainGoal::of(const TopicPartition& partition,
                                          std::int64_t log_end_now) {
  const auto known = goals_.find(partition);
  if (known == goals_.end())
    return 0;
  if (!known->second && log_end_now >= 0)
    known->second = log_end_now;
  return known->second;
}

std::vector<std::string> MissingTopics::overdue(const std::vector<std::string>& missing,
                                                Clock::time_point now) {
  std::map<std::string, Clock::time_point> since;
  std::vector<std::string> overdue;
  for (const auto& topic : missing) {
    const auto known = since_.find(topic);
    const auto first = known == since_.end() ? now : known->second;
    since[topic] = first;
    if (now - first >= patience_)
      overdue.push_back(topic);
  }
  since_ = std::move(since);
  return overdue;
}

std::string missing_topics_text(const std::vector<std::string>& topics) {
  const bool one = topics.size() == 1;
  return fmt::format(
      "{} {} {} not exist in Kafka, so {} cannot be drained. Create {}, or fix the topics of "
      "the handlers",
      one ? "topic" : "topics", fmt::join(topics, ", "), one ? "does" : "do",
      one ? "the topic" : "the topics", one ? "it" : "them");
}

Drained judge(const DrainView& view) {
  if (view.halted)
    return Drained::kLeftBehind;
  if (!view.acquired)
    return Drained::kNotYet;
  if (view.goal && view.reached >= *view.goal && view.durable)
    return Drained::kDone;
  return view.paused ? Drained::kLeftBehind : Drained::kNotYet;
}

DrainView view_of(const ledger::RegisterRow& row, std::optional<std::int64_t> goal) {
  DrainView view;
  view.acquired = true;
  view.halted = row.state == ledger::PartitionState::kHalted;
  view.paused = row.state == ledger::PartitionState::kPaused;
  view.durable = true;
  view.reached = row.stored.next();
  view.goal = goal;
  return view;
}

std::string left_behind_text(const TopicPartition& partition, const DrainView& view) {
  // A partition that halted at its first assignment has no stored offset.
  const auto place =
      view.reached < 0 ? std::string("before its first offset")
                       : fmt::format("before offset {}{}", view.reached,
                                     view.goal ? fmt::format(" of {}", *view.goal) : std::string());
  return fmt::format("{} is {} {}", message::name_of(partition), view.halted ? "halted" : "paused",
                     place);
}

}  // namespace pawl::engine
