#pragma once

#include <map>
#include <optional>
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

  /// Nullopt: not read yet.
  [[nodiscard]] std::optional<ledger::ScopeId> known(const handlers::Binding& binding,
                                                     std::string_view topic,
                                                     ledger::SourceId source);
  /// Reads it, or makes it when it is new.
  ledger::ScopeId find(postgres::Session& session, const handlers::Binding& binding,
                       std::string_view topic, ledger::SourceId source);
  /// The connection is a new one.
  void forget() { scopes_.clear(); }

 private:
  [[nodiscard]] milliseconds retention_of(const std::string& scope, std::string_view topic) const;
  const std::string& name_of(const handlers::Binding& binding, std::string_view topic);

  const Options& options_;
  const ledger::IdempotencyKeys& keys_;
  const KeyRetentions retentions_;
  std::map<ledger::SourceId, std::map<std::string, ledger::ScopeId>> scopes_;
  std::string name_;
};

}  // namespace pawl::engine
