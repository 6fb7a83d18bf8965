#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/context.hpp"
#include "engine/drain.hpp"
#include "engine/drain_register.hpp"

namespace pawl::engine {

/// `run --drain` at work: whether everything that this process has, or had, is at the end that it
/// had when draining began (engine/drain.hpp judges). The group's thread, which waits here for an
/// answer of Kafka's or PostgreSQL's no longer than kafka::kAnswerTimeout.
class Draining {
 public:
  /// `unwanted`: set by any thread, ends the wait for a connection.
  Draining(Context& context, const std::atomic<bool>& unwanted);

  void assigned(const TopicPartition& partition) { taken_.erase(partition); }
  void revoked(const TopicPartition& partition) { taken_.insert(partition); }

  /// `owned`: so many partitions Kafka has given to this process. Not during a rebalance.
  [[nodiscard]] bool is_done(std::size_t owned);

  /// Topics without which it cannot begin, and that are not waited for any longer.
  [[nodiscard]] std::vector<std::string> missing_topics();

  /// The partitions that go no further by themselves, as texts, when it is done.
  [[nodiscard]] const std::vector<std::string>& left_behind() const { return left_behind_; }

 private:
  [[nodiscard]] bool find_goal();
  [[nodiscard]] bool is_done(const TopicPartition& partition, const DrainView& view);
  [[nodiscard]] bool all_taken_done();
  [[nodiscard]] std::optional<std::int64_t> goal_of_taken(const TopicPartition& partition);

  Context& context_;
  DrainRegister register_;
  MissingTopics missing_;
  std::optional<DrainGoal> goal_;
  std::set<TopicPartition> taken_;  ///< those that it had and has no more
  std::vector<std::string> left_behind_;
};

}  // namespace pawl::engine
