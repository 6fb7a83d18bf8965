#include "engine/draining.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "kafka/client.hpp"

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kTopicsKnownFor{1000};
/// A broker that has just begun may not know its topics yet.
constexpr std::chrono::milliseconds kTopicsPatience{5000};

DrainView view_of(const PartitionStatus& status, Durability durability) {
  DrainView view;
  view.acquired = status.acquired;
  view.halted = status.halted;
  view.paused = status.paused;
  // Who has drained may delete the topic: nothing must depend on a replay then.
  view.durable = status.next_for_kafka(durability) >= status.position;
  view.reached = std::max(status.position.load(), status.end_seen.load());
  return view;
}

}  // namespace

Draining::Draining(Context& context, const std::atomic<bool>& unwanted)
    : context_(context), register_(context, unwanted), missing_(kTopicsPatience) {}

std::vector<std::string> Draining::missing_topics() {
  if (goal_)
    return {};
  std::vector<std::string> missing;
  try {
    for (const auto& topic : context_.directory.followed(kTopicsKnownFor)) {
      if (!context_.directory.refusal(topic) && !context_.directory.find(topic, kTopicsKnownFor))
        missing.push_back(topic);
    }
  } catch (const kafka::KafkaError&) {
    // The monitor asks the same, and tells it.
    missing.clear();
  }
  return missing_.overdue(missing, MissingTopics::Clock::now());
}

bool Draining::find_goal() {
  if (goal_)
    return true;
  try {
    std::vector<TopicPartition> all;
    for (const auto& topic : context_.directory.followed(kTopicsKnownFor)) {
      const auto found = context_.directory.find(topic, kTopicsKnownFor);
      if (!found)
        return false;
      for (std::int32_t p = 0; p < found->partitions; ++p)
        all.push_back({topic, p});
    }
    std::map<TopicPartition, std::int64_t> ends;
    for (const auto& [partition, range] : context_.kafka.log_ranges(all, kafka::kAnswerTimeout))
      ends[partition] = range.end;
    goal_.emplace(all, ends);
    return true;
  } catch (const kafka::KafkaError& error) {
    context_.kafka_reachable.failed(error.what());
    return false;
  }
}

bool Draining::is_done(const TopicPartition& partition, const DrainView& view) {
  switch (judge(view)) {
    case Drained::kNotYet:
      return false;
    case Drained::kLeftBehind:
      left_behind_.push_back(left_behind_text(partition, view));
      return true;
    case Drained::kDone:
      return true;
  }
  return false;
}

bool Draining::is_done(std::size_t owned) {
  if (!find_goal())
    return false;
  const auto all = context_.board.all();
  if (all.size() != owned)
    return false;
  left_behind_.clear();
  for (const auto& status : all) {
    auto view = view_of(*status, context_.options.consumer.durability);
    view.goal = goal_->of(status->partition, status->log_end);
    if (!is_done(status->partition, view))
      return false;
  }
  return all_taken_done();
}

/// By a rebalance that gives them to others, or back, or because Kafka or this process were away
/// for a while.
bool Draining::all_taken_done() {
  if (taken_.empty())
    return true;
  const auto* rows = register_.rows();
  if (rows == nullptr)
    return false;
  return std::all_of(taken_.begin(), taken_.end(), [&](const TopicPartition& partition) {
    const auto row = rows->find(partition);
    const auto goal = goal_of_taken(partition);
    return row == rows->end() ? goal && *goal <= 0
                              : is_done(partition, engine::view_of(row->second, goal));
  });
}

/// Nobody asks for its log's end any more; where the goal has none yet, it is asked for here.
std::optional<std::int64_t> Draining::goal_of_taken(const TopicPartition& partition) {
  if (const auto goal = goal_->of(partition, -1))
    return goal;
  try {
    const auto ranges = context_.kafka.log_ranges({partition}, kafka::kAnswerTimeout);
    const auto found = ranges.find(partition);
    return goal_->of(partition, found == ranges.end() ? -1 : found->second.end);
  } catch (const kafka::KafkaError& error) {
    context_.kafka_reachable.failed(error.what());
    return std::nullopt;
  }
}

}  // namespace pawl::engine
