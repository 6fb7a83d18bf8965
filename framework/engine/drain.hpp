#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ledger/register_view.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// How far `--drain` goes: to the end that each partition had when it began. Group thread.
class DrainGoal {
 public:
  /// `partitions`: those that the topics had then; `told`: the ends of those of which Kafka told
  /// one. It tells none of a partition without leader.
  DrainGoal(const std::vector<TopicPartition>& partitions,
            const std::map<TopicPartition, std::int64_t>& told);

  /// The offset to reach. `log_end_now`: as Kafka told last, negative while it has not. Of a
  /// partition that had no leader it is the first end that Kafka tells; nullopt: none yet. A
  /// partition that was added since had no message then: 0.
  std::optional<std::int64_t> of(const TopicPartition& partition, std::int64_t log_end_now);

 private:
  std::map<TopicPartition, std::optional<std::int64_t>> goals_;
};

/// Which topics `--drain` does not wait for any longer. Group thread.
class MissingTopics {
 public:
  using Clock = std::chrono::steady_clock;

  explicit MissingTopics(std::chrono::milliseconds patience) : patience_(patience) {}

  /// `missing`: the topics that do not exist by what Kafka answers at `now`; none if Kafka does not
  /// answer. Returns those that have been missing in every answer for `patience`, in their order.
  [[nodiscard]] std::vector<std::string> overdue(const std::vector<std::string>& missing,
                                                 Clock::time_point now);

 private:
  std::chrono::milliseconds patience_;
  std::map<std::string, Clock::time_point> since_;
};

/// "topic payments does not exist in Kafka, ...", for people, with what to do.
[[nodiscard]] std::string missing_topics_text(const std::vector<std::string>& topics);

/// What is known of one partition while draining.
struct DrainView {
  bool acquired = false;
  bool halted = false;
  bool paused = false;
  bool durable = false;      ///< what was processed is on disk
  std::int64_t reached = 0;  ///< the next offset to process, or the end that was seen
  std::optional<std::int64_t> goal;
};

enum class Drained {
  kNotYet,
  kDone,
  kLeftBehind,  ///< halted, or paused before its goal: it goes no further by itself
};
[[nodiscard]] Drained judge(const DrainView& view);

/// The same of a partition that this process had and has no more, by its row of the register.
[[nodiscard]] DrainView view_of(const ledger::RegisterRow& row, std::optional<std::int64_t> goal);

/// "payments [0] is paused before offset 3 of 6"
[[nodiscard]] std::string left_behind_text(const TopicPartition& partition, const DrainView& view);

}  // namespace pawl::engine
