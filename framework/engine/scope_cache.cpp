#include "engine/scope_cache.hpp"

#include "engine/message_key.hpp"
#include "handlers/topic_entries.hpp"

namespace pawl::engine {

const std::string& ScopeCache::name_of(const handlers::Binding& binding, std::string_view topic) {
  return scope_name(options_.kafka, binding.scope, topic, name_);
}

const ledger::Scope* ScopeCache::known(const handlers::Binding& binding, std::string_view topic,
                                       ledger::SourceId source) {
  const auto& scopes = scopes_[source];
  const auto found = scopes.find(name_of(binding, topic));
  return found == scopes.end() ? nullptr : &found->second;
}

/// Of a scope and topic that a handler has.
milliseconds ScopeCache::retention_of(const std::string& scope, std::string_view topic) const {
  const std::pair place{scope, std::string(topic)};
  if (const auto found = retentions_.find(place); found != retentions_.end())
    return found->second;
  // A pattern means it.
  const auto meant = key_retentions(handlers::with_topics(options_, {place.second}));
  const auto found = meant.find(place);
  return found == meant.end() ? options_.retention.keys : found->second;
}

const ledger::Scope& ScopeCache::find(postgres::Session& session, const handlers::Binding& binding,
                                      std::string_view topic, ledger::SourceId source) {
  if (const auto* scope = known(binding, topic, source))
    return *scope;
  const auto& name = name_of(binding, topic);
  const auto scope = keys_.scope(session, name, source, retention_of(name, topic));
  return scopes_[source].emplace(name, ledger::Scope{scope, name}).first->second;
}

}  // namespace pawl::engine
