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

/// The first schema version that knows patterns.
inline constexpr int kSchemaOfPatterns = 13;

/// Stores of each pattern that is new what it means now; returns what is stored. Throws FatalError
/// where the schema is older than that; `migrate` is the command that renews it.
FirstTopics meet_patterns(postgres::Session& session, const std::string& schema,
                          ConsumerId consumer,
                          const std::map<std::string, std::vector<std::string>>& meant,
                          const std::string& migrate);

/// What is stored. Empty where the schema is older.
FirstTopics met_patterns(postgres::Session& session, const std::string& schema,
                         ConsumerId consumer);

}  // namespace pawl::ledger
