#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// By pattern: the topics that were there, and that it matches, when the consumer met it first.
using FirstTopics = std::map<std::string, std::set<std::string>>;

/// Whether a topic is there only since the consumer has met the pattern that means it. `entry`: the
/// name or pattern that the topic belongs to.
[[nodiscard]] inline bool came_later(const FirstTopics& first, const std::string& entry,
                                     const std::string& topic) {
  const auto met = first.find(entry);
  return met != first.end() && !met->second.contains(topic);
}

/// Of `topics` those that did not come later than a pattern of the consumer's that matches them:
/// for whoever meets another pattern now, the others come later as well.
[[nodiscard]] std::vector<std::string> there_from_the_first(const std::vector<std::string>& topics,
                                                            const FirstTopics& met);

/// Stores for each new pattern which topics it matches now, and returns what is stored.
FirstTopics meet_patterns(postgres::Session& session, const std::string& schema,
                          ConsumerId consumer,
                          const std::map<std::string, std::vector<std::string>>& meant);

/// What is stored.
FirstTopics met_patterns(postgres::Session& session, const std::string& schema,
                         ConsumerId consumer);

}  // namespace pawl::ledger
