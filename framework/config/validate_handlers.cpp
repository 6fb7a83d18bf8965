#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "config/validation.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/http/request_template.hpp"
#include "handlers/topic_plan.hpp"
#include "message/topic_entries.hpp"

namespace pawl::config {

namespace {

constexpr std::size_t kLabelBytes = 255;

/// One part of a function's name: plain, or in double quotes. The part is taken off `rest`.
bool take_identifier(std::string_view& rest) {
  if (rest.starts_with('"')) {
    const std::size_t end = rest.find('"', 1);
    if (end == std::string_view::npos || end == 1)
      return false;
    rest.remove_prefix(end + 1);
    return true;
  }
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (rest.empty() || !letter(rest.front()))
    return false;
  const auto end = std::find_if_not(rest.begin(), rest.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '$';
  });
  rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()));
  return true;
}

/// "name" or "schema.name".
bool is_function_name(std::string_view name) {
  if (!take_identifier(name))
    return false;
  if (name.empty())
    return true;
  name.remove_prefix(1);
  return take_identifier(name) && name.empty();
}

void validate_topics(const HandlerOptions& handler, const std::string& option, bool manual,
                     Validation& validation) {
  if (handler.topics.empty()) {
    validation.add(option + ".topics", "", "no topics", "List its topics, such as [\"payments\"]");
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < handler.topics.size(); ++i) {
    const std::string& topic = handler.topics[i];
    const std::string item = fmt::format("{}.topics[{}]", option, i);
    if (message::is_topic_pattern(topic)) {
      const auto problem = message::problem_of_topic_pattern(topic);
      if (!problem.what.empty()) {
        validation.add(item, in_quotes(topic), problem.what, problem.fix);
      } else if (manual) {
        validation.add(item, in_quotes(topic), "is a pattern, but kafka.assignment is \"manual\"",
                       "List each topic by its name, or set kafka.assignment = \"group\"",
                       "kafka.assignment");
      } else if (!seen.insert(topic).second) {
        validation.add(item, in_quotes(topic), "listed twice", "Remove one");
      }
    } else if (validation.topic(item, topic) && !seen.insert(topic).second) {
      validation.add(item, in_quotes(topic), "listed twice", "Remove one");
    }
  }
}

void validate_sql(const HandlerOptions& handler, const std::string& option, Validation& validation);

void validate_action(const HandlerOptions& handler, const std::string& option,
                     Validation& validation) {
  if (!handler.http.empty() && !(handler.sql.empty() && handler.function.empty())) {
    validation.add(option, "", "has both http and sql or function",
                   "Keep one, because an HTTP request cannot be part of the transaction");
  } else if (!handler.sql.empty() && !handler.function.empty()) {
    validation.add(option, "", "has both sql and function",
                   "Keep one. A statement can also call functions");
  } else if (handler.sql.empty() && handler.function.empty() && handler.http.empty() &&
             handler.name.empty()) {
    validation.add(option, "", "does nothing",
                   "Set sql, function, http, or the name of a C++ handler");
  }
  if (handler.http.empty())
    return validate_sql(handler, option, validation);
  for (const auto& problem : handlers::problems_of(handler.http))
    validation.add(fmt::format("{}.http.{}", option, problem.option), "", problem.what,
                   problem.fix);
  if (handler.batch)
    validation.add(option + ".batch", "", "an HTTP handler sends one request per message",
                   "Remove it");
  if (handler.on_unknown == OnUnknown::kReconcile) {
    validation.add(option + ".on_unknown", "\"reconcile\"",
                   "only a C++ handler can check with the remote service",
                   "Use \"call\" or \"halt\"");
  }
}

void validate_sql(const HandlerOptions& handler, const std::string& option,
                  Validation& validation) {
  for (std::size_t i = 0; i < handler.sql.size(); ++i) {
    const std::string item = fmt::format("{}.sql[{}]", option, i);
    const std::string& text = handler.sql[i].text;
    if (text.find_first_not_of(" \t\r\n;") == std::string::npos) {
      validation.add(item, "", "an empty statement", "Write a statement, or remove it");
    } else if (handler.batch) {
      validation.batch_sql(item, text);
    } else {
      validation.sql(item, text);
    }
    if (handler.batch && handler.sql[i].expect_rows) {
      validation.add(
          item + ".expect_rows", "", "rows cannot be counted per message of a batch",
          "Remove it, or remove batch. A statement can raise an error itself if a row is missing");
    }
  }
  if (handler.batch && !handler.function.empty()) {
    validation.add(option + ".batch", "", "a function takes one message",
                   "Write sql = \"SELECT f(...)\" with unnest for its arguments");
  }
  if (!handler.function.empty() && !is_function_name(handler.function)) {
    validation.add(option + ".function", in_quotes(handler.function), "not a function name",
                   "Write schema.function, without arguments");
  }
}

/// Where the response comes from is there, and can give one.
void validate_response(const HandlerOptions& handler, const std::string& option,
                       Validation& validation) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < handler.sql.size(); ++i) {
    const std::string item = fmt::format("{}.sql[{}].name", option, i);
    const std::string& name = handler.sql[i].name;
    validation.label(item, name, kLabelBytes);
    if (!name.empty() && !names.insert(name).second)
      validation.add(item, in_quotes(name), "another statement has this name",
                     "Choose another name");
  }
  const SqlResponse& response = handler.response;
  const std::string item = option + ".response";
  if (response.empty())
    return;
  if (handler.sql.empty()) {
    validation.add(
        item, "", "only SQL handlers can set a response",
        !handler.http.empty()
            ? "Remove it, because pawl stores the body of the HTTP response automatically"
        : handler.function.empty() ? "Return it from the handler's code"
                                   : "Call the function in sql: sql = [\"SELECT ...\"]");
  } else if (!response.text.empty() && !response.statement.empty()) {
    validation.add(item, "", "has both text and statement", "Keep one");
  } else if (!response.text.empty()) {
    if (handler.batch) {
      validation.batch_sql(item, response.text);
    } else {
      validation.sql(item, response.text);
    }
    validation.response(item, response.text, handler.batch);
  } else {
    const auto named = std::ranges::find(handler.sql, response.statement, &SqlStatement::name);
    const std::string place = item + ".statement";
    if (named == handler.sql.end()) {
      validation.add(place, in_quotes(response.statement), "no statement of sql has this name",
                     fmt::format("Write {{ text = \"...\", name = {} }} in sql",
                                 in_quotes(response.statement)));
      return;
    }
    validation.response(place, named->text, handler.batch);
    if (named->expect_rows && *named->expect_rows != 1) {
      validation.add(fmt::format("{}.sql[{}].expect_rows", option, named - handler.sql.begin()),
                     std::to_string(*named->expect_rows),
                     "the response is the one row of this statement", "Use 1, or remove it", place);
    }
  }
}

/// C++ handlers may bring a key function of their own, which only the program knows.
void validate_key(const HandlerOptions& handler, const IdempotencyOptions& defaults,
                  const std::string& option, Validation& validation) {
  if (handler.key)
    validation.key_template(option + ".key", *handler.key);
  if (handler.scope)
    validation.scope(option + ".scope", *handler.scope);
  const bool code = handler.sql.empty() && handler.function.empty() && handler.http.empty();
  const std::string& key = handler.key ? *handler.key : defaults.key;
  const MissingKey missing = handler.missing_key.value_or(defaults.missing_key);
  if (!code && key.empty() && missing != MissingKey::kProcess) {
    validation.add(option + ".key", "", "no idempotency key",
                   "Set it here or in [idempotency], such as \"{header:event-id}\". missing_key = "
                   "\"process\" applies messages without a duplicate check");
  }
}

/// Redis may forget an attempt: after one that is unknown, only a side that knows repetitions by
/// their key may be called.
void validate_unknown(const HandlerOptions& handler, const CallOptions& calls,
                      const std::string& option, Validation& validation) {
  if (calls.lease_store != LeaseStore::kRedis)
    return;
  const auto refuse = [&](const std::string& name, const std::string& fix) {
    validation.add(fmt::format("{}.{}", option, name), "",
                   "Redis may lose a lease, and with it the record that an outcome is unknown",
                   fmt::format("{}, or set calls.lease_store = \"postgres\"", fix),
                   "calls.lease_store");
  };
  if (handler.on_unknown != OnUnknown::kCall)
    refuse("on_unknown", "Set on_unknown = \"call\"");
  if (handler.remote_dedup_window != milliseconds{0})
    refuse("remote_dedup_window", "Remove it");
}

void validate_handler(const HandlerOptions& handler, const Settings& common,
                      const std::string& option, Validation& validation) {
  const bool manual = common.options.kafka.assignment == Assignment::kManual;
  validate_topics(handler, option, manual, validation);
  validation.condition(option + ".when", handler.when);
  validate_action(handler, option, validation);
  validate_response(handler, option, validation);
  validate_key(handler, common.options.idempotency, option, validation);
  if (handler.retention && *handler.retention != milliseconds{0})
    validation.range(option + ".retention", *handler.retention, std::chrono::seconds{1},
                     kLongestRetention);
  if (!handler.order_by.empty())
    validation.key_template(option + ".order_by", handler.order_by);
  validate_unknown(handler, common.options.calls, option, validation);
  validate_own(common, handler, option, validation);
}

/// What handlers of one topic do not allow each other. The Router checks what only the
/// registered code decides.
void validate_topics_together(const Options& options, Validation& validation) {
  const auto plans = handlers::plan_topics(handlers::traits_of(options, nullptr), options);
  for (const auto& refusal : plans.refusals)
    validation.add(handlers::handler_option(refusal.handler) + "." + refusal.option, refusal.shown,
                   refusal.what, refusal.fix);
}

/// Handlers are tried from the top, so one without `when` takes all that comes below it.
void validate_order(const Options& options, Validation& validation) {
  std::map<std::string_view, std::size_t> takes_all;
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    const HandlerOptions& handler = options.handlers[i];
    for (std::size_t t = 0; t < handler.topics.size(); ++t) {
      const std::string& topic = handler.topics[t];
      const auto [first, added] = handler.when.empty() ? takes_all.try_emplace(topic, i)
                                                       : std::pair{takes_all.find(topic), false};
      if (added || first == takes_all.end() || first->second == i)
        continue;
      const HandlerOptions& other = options.handlers[first->second];
      const std::string place = other.where.empty() ? "" : fmt::format(" ({})", other.where);
      validation.add(
          fmt::format("handler[{}].topics[{}]", i, t), in_quotes(topic),
          fmt::format("handler[{}]{} has no `when`, so it receives every message of this topic",
                      first->second, place),
          handler.when.empty() ? "Set `when` for all handlers of the topic except the last"
                               : "Place the handler without `when` last");
    }
  }
}

}  // namespace

void validate_handlers(const Options& options, Validation& validation) {
  if (options.handlers.empty()) {
    validation.add("handler", "", "none", "Add at least one [[handler]] with topics and sql");
  }
  const Settings common = common_settings(options);
  for (std::size_t i = 0; i < options.handlers.size(); ++i)
    validate_handler(options.handlers[i], common, fmt::format("handler[{}]", i), validation);
  validate_order(options, validation);
  validate_topics_together(options, validation);
}

}  // namespace pawl::config
