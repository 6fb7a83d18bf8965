#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/reachability.hpp"
#include "pawl/condition.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// The text that log, alerts, dashboard, and `pawl status` show after Condition::subject:
/// sentences, the last one without its period.
[[nodiscard]] std::string text_of(const Condition& condition);

/// The condition of a process whose Kafka is unreachable; nullopt: `outage` is. It is lasting once
/// the outage has lasted for 10 s, because a single request may fail during a restart of a broker.
[[nodiscard]] std::optional<Condition> kafka_condition(
    const std::optional<Reachability::Outage>& outage, const std::string& bootstrap_servers,
    Timestamp now);

/// Which conditions are news: each is reported when it begins and when it ends. Partitions that
/// wait for one session are one condition: the first is reported, and it ends when none waits for
/// that session. A partition is reported again if it waits for another session, at most once a
/// minute, and 10 s later if the session is not known yet. Knows no clock. One thread.
class ConditionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::minutes kPause{1};
  /// For the session: it is known while an attempt waits.
  static constexpr std::chrono::seconds kPatience{10};

  struct News {
    Condition condition;
    bool ended = false;
    /// Partitions that wait for the same session, the reported one included. Empty: the session is
    /// unknown. The condition has the messages of all.
    std::vector<TopicPartition> blocked = {};
  };
  /// `now`: all that there are.
  [[nodiscard]] std::vector<News> look(const std::vector<Condition>& now, Clock::time_point at);

 private:
  struct Told {
    Condition condition;
    Clock::time_point at;
    bool reported = true;  ///< false: another partition is reported for the session
  };
  std::map<std::pair<Condition::Kind, std::string>, Told> told_;
};

}  // namespace pawl::engine
