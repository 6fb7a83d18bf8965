#include "retention/scope_retention.hpp"

#include <optional>

namespace pawl::engine {

milliseconds retention_of(const ledger::PrunableScope& scope, const KeyRetentions& own,
                          milliseconds otherwise) {
  std::optional<milliseconds> longest;
  const auto count = [&longest](milliseconds retention) {
    longest = longest ? longer(*longest, retention) : retention;
  };
  // Also of topics that have not been met: their first messages may be duplicates.
  for (const auto& [place, retention] : own) {
    if (place.first == scope.name)
      count(retention);
  }
  for (const auto& user : scope.users) {
    const bool configured = user.own && own.contains({scope.name, user.topic});
    if (!configured && user.retention)
      count(*user.retention);
  }
  return longest.value_or(otherwise);
}

}  // namespace pawl::engine
