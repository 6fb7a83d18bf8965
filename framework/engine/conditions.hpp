#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pawl/condition.hpp"

namespace pawl::engine {

/// The text that log, alerts, dashboard, and `pawl status` show after Condition::subject:
/// sentences, the last one without its period.
[[nodiscard]] std::string text_of(const Condition& condition);

/// Which conditions are news: each is reported when it begins, again each minute while it lasts,
/// and when it ends. Knows no clock. One thread.
class ConditionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::minutes kReminder{1};

  struct News {
    Condition condition;
    bool ended = false;
  };
  /// `now`: all that there are.
  [[nodiscard]] std::vector<News> look(const std::vector<Condition>& now, Clock::time_point at);

 private:
  struct Told {
    Condition condition;
    Clock::time_point at;
  };
  std::map<std::pair<Condition::Kind, std::string>, Told> told_;
};

}  // namespace pawl::engine
