#include "engine/fingerprints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "handlers/topic_plan.hpp"
#include "message/digest.hpp"

namespace pawl::engine {
namespace {

constexpr std::size_t kDigits = 16;

/// Fields, so written that no two lists of them give the same text.
class Fields {
 public:
  void add(std::string_view field) { text_ += fmt::format("{}:{};", field.size(), field); }
  void add_flag(bool field) { add(field ? "yes" : "no"); }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void add(Enum field) {
    add(fmt::format("{}", static_cast<int>(field)));
  }
  [[nodiscard]] std::string digest() const { return message::sha256_hex(text_).substr(0, kDigits); }

 private:
  std::string text_;
};

struct Collected {
  Fields handlers;
  Fields conditions;
  Fields keys;
  Fields policies;
};

/// What another process would send, or take from the answer, otherwise.
void add_request(Fields& fields, const HttpOptions& http) {
  fields.add(http.method);
  fields.add(http.url.written);
  for (const auto& [name, value] : http.headers) {
    fields.add(name);
    fields.add(value.written);
  }
  for (const auto& text : {http.body.written, http.json.written, http.key_header, http.success,
                           http.not_done, http.retry, http.permanent, http.outage})
    fields.add(text);
}

void add_work(Fields& fields, const HandlerOptions& handler, const Options& options) {
  fields.add_flag(handler.batch);
  fields.add(handler.function);
  // For SQL and functions the name is only a label.
  const bool code = handler.sql.empty() && handler.function.empty() && handler.http.empty();
  fields.add(code ? handler.name : "");
  if (!handler.http.empty())
    add_request(fields, handler.http);
  fields.add(fmt::format("{}", static_cast<int>(handler.on_unknown)));
  // Two that keep their leases apart would call side by side.
  if (options.calls.lease_store == LeaseStore::kRedis) {
    const auto& redis = options.redis;
    for (const auto& text : {std::string("redis"), redis.prefix, redis.address, redis.master,
                             std::to_string(redis.database)})
      fields.add(text);
  }
  for (const auto& statement : handler.sql) {
    fields.add(statement.text);
    fields.add(statement.expect_rows ? fmt::format("{}", *statement.expect_rows) : "any");
  }
  // Its statement's place tells what its name stands for.
  const auto named =
      std::ranges::find(handler.sql, handler.response.statement, &SqlStatement::name);
  fields.add(handler.response.text);
  fields.add(handler.response.statement.empty() ? "none"
                                                : fmt::format("{}", named - handler.sql.begin()));
  fields.add(handler.isolation);
}

void add_key(Fields& fields, const HandlerOptions& handler, const Options& options,
             const Registry& registry) {
  const bool code = registry.find_key(handler.name) != nullptr;
  fields.add(code ? "code " + handler.name : handler.key.value_or(options.idempotency.key));
  fields.add(handler.scope.value_or(options.idempotency.scope));
  fields.add(handler.missing_key.value_or(options.idempotency.missing_key));
  fields.add(handler.conflict.value_or(options.idempotency.conflict));
  fields.add(fmt::format("{}", handler.max_response.value_or(options.idempotency.max_response)));
}

}  // namespace

std::map<std::string, ledger::Fingerprint> fingerprints(const Options& options,
                                                        const Registry& registry) {
  std::map<std::string, Collected> collected;
  for (const auto& handler : options.handlers) {
    for (const auto& topic : handler.topics) {
      auto& of = collected[topic];
      add_work(of.handlers, handler, options);
      of.conditions.add(handler.when);
      add_key(of.keys, handler, options, registry);
      of.policies.add(handler.failures.value_or(options.failures).on_failure);
    }
  }
  const auto plans = handlers::plan_topics(handlers::traits_of(options, &registry), options);
  std::map<std::string, ledger::Fingerprint> result;
  for (auto& [topic, of] : collected) {
    if (plans.of(topic).order == handlers::TopicPlan::Order::kKey)
      of.handlers.add("completes in the order of order_by");
    of.conditions.add(options.failures.unmatched);
    result[topic] = {of.handlers.digest(), of.conditions.digest(), of.keys.digest(),
                     of.policies.digest()};
  }
  return result;
}

}  // namespace pawl::engine
