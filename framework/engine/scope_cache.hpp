#pragma once

#include <map>
#include <string>

#include "engine/key_retention.hpp"
#include "handlers/router.hpp"
#include "ledger/idempotency_keys.hpp"
#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// The numbers of the scopes that a worker's keys are in, as read over its connection. One thread.
class ScopeCache {
 public:
  ScopeCache(const Options& options, const ledger::IdempotencyKeys& keys)
      : options_(options), keys_(keys), retentions_(key_retentions(options)) {}

  /// Null: not read yet. It stays where it is until forget().
  [[nodiscard]] const ledger::Scope* known(const handlers::Binding& binding, std::string_view topic,
                                           ledger::SourceId source);
  /// Reads it, or makes it when it is new. It stays where it is until forget().
  const ledger::Scope& find(postgres::Session& session, const handlers::Binding& binding,
                            std::string_view topic, ledger::SourceId source);
  /// The connection is a new one, or a partition was acquired since: what was read may be of a
  /// database that has lost it.
  void forget() { scopes_.clear(); }

 private:
  [[nodiscard]] milliseconds retention_of(const std::string& scope, std::string_view topic) const;
  const std::string& name_of(const handlers::Binding& binding, std::string_view topic);

  const Options& options_;
  const ledger::IdempotencyKeys& keys_;
  const KeyRetentions retentions_;
  std::map<ledger::SourceId, std::map<std::string, ledger::Scope>> scopes_;
  std::string name_;
};

}  // namespace pawl::engine
