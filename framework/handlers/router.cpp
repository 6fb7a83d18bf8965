#include "handlers/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "handlers/around.hpp"
#include "handlers/batch_code_handler.hpp"
#include "handlers/batch_sql_handler.hpp"
#include "handlers/code_handler.hpp"
#include "handlers/function_handler.hpp"
#include "handlers/http/http_handler.hpp"
#include "handlers/leased_code_handler.hpp"
#include "handlers/sql_handler.hpp"
#include "handlers/statement_handler.hpp"
#include "handlers/topic_entries.hpp"
#include "message/entity_key.hpp"
#include "pawl/errors.hpp"

namespace pawl {

std::vector<std::string> Registry::handler_names() const {
  std::vector<std::string> names;
  for (const auto& [name, function] : handlers_)
    names.push_back(name);
  for (const auto& [name, function] : statement_handlers_)
    names.push_back(name);
  for (const auto& [name, function] : batch_handlers_)
    names.push_back(name);
  for (const auto& [name, handler] : leased_handlers_)
    names.push_back(name);
  return names;
}

}  // namespace pawl

namespace pawl::handlers {
namespace {

postgres::Isolation parse_isolation(const std::string& text) {
  if (text == "repeatable read")
    return postgres::Isolation::kRepeatableRead;
  if (text == "serializable")
    return postgres::Isolation::kSerializable;
  return postgres::Isolation::kReadCommitted;
}

std::unique_ptr<Handler> make_leased_handler(const HandlerOptions& options,
                                             const std::string& label,
                                             const pawl::LeasedHandler& functions,
                                             const std::vector<AroundFunction>& arounds) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigErrors({fmt::format("{}: the handler of external calls \"{}\" {}", options.where,
                                    options.name, why)});
  };
  if (!functions.call)
    refuse("was registered without `call`. Register one");
  if (options.batch)
    refuse("applies one message at a time. Remove batch");
  if (options.on_unknown == OnUnknown::kReconcile && !functions.reconcile) {
    refuse(
        "was registered without `reconcile`, which on_unknown = \"reconcile\" requires. Register "
        "one, or use \"call\" or \"halt\"");
  }
  return std::make_unique<LeasedCodeHandler>(inside(arounds, label, functions));
}

std::unique_ptr<Handler> make_handler(const HandlerOptions& options, const std::string& label,
                                      std::size_t position, std::size_t max_response,
                                      const Registry& registry, const std::string& schema) {
  if (!options.sql.empty() && options.batch)
    return std::make_unique<BatchSqlHandler>(HandlerPlace{position, options.name}, options,
                                             max_response, schema);
  if (!options.sql.empty())
    return std::make_unique<SqlHandler>(HandlerPlace{position, options.name}, options, max_response,
                                        schema);
  if (!options.function.empty())
    return std::make_unique<FunctionHandler>(HandlerPlace{position, options.name}, options.function,
                                             options.where);
  if (!options.http.empty())
    return std::make_unique<HttpHandler>(options.http, max_response);
  const auto& arounds = registry.around_functions();
  if (const auto* function = registry.find_batch_handler(options.name))
    return std::make_unique<BatchCodeHandler>(label, inside(arounds, label, *function));
  if (const auto* leased = registry.find_leased_handler(options.name))
    return make_leased_handler(options, label, *leased, arounds);
  const auto* function = registry.find_handler(options.name);
  const auto* gives_statements = registry.find_statement_handler(options.name);
  if (function == nullptr && gives_statements == nullptr) {
    const auto names = registry.handler_names();
    throw ConfigErrors({fmt::format(
        "{}: no C++ handler is registered as \"{}\". {}", options.where, options.name,
        names.empty() ? std::string("This program has none, so set sql = [...]")
                      : fmt::format("Registered handlers: {}", fmt::join(names, ", ")))});
  }
  if (options.batch) {
    throw ConfigErrors(
        {fmt::format("{}: the code of handler \"{}\" applies one message at a time. Register it "
                     "with batch_handler(), or remove batch",
                     options.where, options.name)});
  }
  if (gives_statements != nullptr)
    return std::make_unique<StatementHandler>(inside(arounds, label, *gives_statements), schema);
  return std::make_unique<CodeHandler>(inside(arounds, label, *function));
}

Liability liability_of(const Binding& binding) {
  // These functions run without a lease.
  if (binding.leased == nullptr || binding.key_function != nullptr ||
      binding.on_duplicate != nullptr)
    return Liability::kAny;
  return binding.calls_code ? Liability::kCall : Liability::kNone;
}

}  // namespace

/// A key of a leased handler's must not be claimed beside its lease.
void Router::require_own_scopes(const Options& options) const {
  for (std::size_t i = 0; i < bindings_.size(); ++i) {
    for (std::size_t other = 0; other < bindings_.size(); ++other) {
      const auto& leased = *bindings_[i];
      const auto& plain = *bindings_[other];
      if (leased.leased == nullptr || plain.leased != nullptr || leased.scope != plain.scope)
        continue;
      const auto& topics = options.handlers[other].topics;
      const auto shared =
          leased.scope.empty()
              ? std::ranges::find_first_of(topics, options.handlers[i].topics) != topics.end()
              : true;
      if (!shared)
        continue;
      throw ConfigErrors({fmt::format(
          "{}: {} shares its scope with {}, which makes external calls under leases of its keys. "
          "Set a scope of its own for one of them: scope = \"NAME\"",
          options.handlers[other].where, handler_text(plain.label), handler_text(leased.label))});
    }
  }
}

Router::Router(const Options& options, const Registry& registry)
    : entries_(topic_entries(options)) {
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    const auto& from = options.handlers[i];
    auto binding = std::make_unique<Binding>();
    binding->label = label_of(from, i);
    if (!from.when.empty())
      binding->when = message::Condition::parse(from.when);
    const auto& key = from.key ? *from.key : options.idempotency.key;
    if (!key.empty())
      binding->key_template = message::Template::parse_key(key);
    binding->key_checked = from.key_checked.value_or(options.idempotency.key_checked);
    binding->key_function = registry.find_key(from.name);
    binding->on_duplicate = registry.find_on_duplicate(from.name);
    binding->scope = from.scope.value_or(options.idempotency.scope);
    binding->missing_key = from.missing_key.value_or(options.idempotency.missing_key);
    binding->conflict = from.conflict.value_or(options.idempotency.conflict);
    binding->frame = {parse_isolation(from.isolation), from.timeout};
    binding->failures = from.failures.value_or(options.failures);
    binding->max_response = from.max_response.value_or(options.idempotency.max_response);
    binding->handler = make_handler(from, binding->label, i, binding->max_response, registry,
                                    options.postgres.schema);
    binding->concurrency = from.concurrency;
    binding->leased = binding->handler->as_leased_handler();
    binding->on_unknown = from.on_unknown;
    binding->remote_memory = from.remote_dedup_window;
    binding->calls_code = binding->leased != nullptr && from.http.empty();
    binding->liability = liability_of(*binding);
    if (!from.order_by.empty())
      binding->order_by = message::Template::parse_key(from.order_by);
    for (const auto& topic : from.topics) {
      auto& bound = by_topic_[topic];
      if (bound.empty())
        topics_.push_back(topic);
      bound.push_back(binding.get());
    }
    bindings_.push_back(std::move(binding));
  }
  require_own_scopes(options);
  plan(options, registry);
}

void Router::plan(const Options& options, const Registry& registry) {
  auto traits = traits_of(options, &registry);
  for (std::size_t i = 0; i < bindings_.size(); ++i)
    traits[i].plans_ahead = bindings_[i]->handler->planner() != nullptr;
  plans_ = plan_topics(traits, options);
  std::vector<std::string> refused;
  for (const auto& refusal : plans_.refusals) {
    const auto& where = options.handlers[refusal.handler].where;
    refused.push_back(fmt::format("{}{}.{}{}: {}. {}",
                                  where.empty() ? "" : fmt::format("{}: ", where),
                                  handler_option(refusal.handler), refusal.option,
                                  refusal.shown.empty() ? "" : fmt::format(" = {}", refusal.shown),
                                  refusal.what, refusal.fix));
  }
  if (!refused.empty())
    throw ConfigErrors(refused);
  for (std::size_t i = 0; i < bindings_.size(); ++i) {
    if (plans_.grouping(i) == Grouping::kBatch)
      bindings_[i]->batch = bindings_[i]->handler->as_batch_handler();
  }
}

std::string_view Router::entry_of(std::string_view topic) const {
  if (!entries_.has_patterns() || by_topic_.contains(topic))
    return topic;
  {
    const std::shared_lock lock(known_mutex_);
    if (const auto known = known_.find(topic); known != known_.end())
      return known->second;
  }
  const std::string name(topic);
  const std::scoped_lock lock(known_mutex_);
  return known_.try_emplace(name, entries_.entry_of(name)).first->second;
}

const std::vector<const Binding*>& Router::bound_to(std::string_view topic) const {
  static const std::vector<const Binding*> kNone;
  const auto bound = by_topic_.find(entry_of(topic));
  return bound == by_topic_.end() ? kNone : bound->second;
}

const Binding* Router::route(const Message& message, message::JsonView& json) const {
  // Also where no condition names a header: keys, bodies and code do.
  if (message.headers_unreadable())
    throw message::HeadersUnreadable();
  const auto bound = by_topic_.find(entry_of(message.topic()));
  if (bound == by_topic_.end())
    return nullptr;
  for (const auto* binding : bound->second) {
    if (!binding->when || binding->when->matches(message, json))
      return binding;
  }
  return nullptr;
}

std::vector<std::string> key_warnings(const Router& router) {
  std::vector<std::string> warnings;
  for (const auto& binding : router.bindings()) {
    if (binding->key_function != nullptr || !binding->key_template || binding->key_checked)
      continue;
    const auto entity = message::entity_in_key(*binding->key_template);
    if (!entity)
      continue;
    const auto& key = binding->key_template->text();
    warnings.push_back(fmt::format(
        "{}: its key {} looks like the ID of an entity, not of an event{}. If several events "
        "concern one entity, all except the first are duplicates or conflicts. Use an ID that the "
        "producer assigns to each event, or add one to the key. If no two events have the same "
        "key, set key_checked = true",
        handler_text(binding->label), key, *entity == key ? "" : fmt::format(" ({})", *entity)));
  }
  return warnings;
}

}  // namespace pawl::handlers
