#include <string>

#include "config/validation.hpp"
#include "handlers/response_sql.hpp"
#include "handlers/sql_text.hpp"
#include "message/condition.hpp"
#include "message/template.hpp"

namespace pawl::config {

namespace {

/// The problem itself already ends with what to do.
Problem not_understood(const std::string& option, const message::SyntaxError& error) {
  Problem problem;
  problem.option = option;
  problem.what = error.problem();
  problem.place = TextPlace{error.line(), error.column()};
  return problem;
}

}  // namespace

void Validation::key_template(const std::string& option, const std::string& text) {
  if (text.empty())
    return;
  try {
    (void)message::Template::parse_key(text);
  } catch (const message::SyntaxError& error) {
    add(not_understood(option, error));
  }
}

void Validation::condition(const std::string& option, const std::string& text) {
  if (text.empty())
    return;
  try {
    (void)message::Condition::parse(text);
  } catch (const message::SyntaxError& error) {
    add(not_understood(option, error));
  }
}

void Validation::query(const std::string& option, const std::string& text) {
  try {
    if (!handlers::SqlText::parse(text).parameters().empty()) {
      add(option, "", "contains a placeholder, but a check has no message",
          "Write {{ and }} for literal braces");
    }
  } catch (const message::SyntaxError& error) {
    add(not_understood(option, error));
  }
}

void Validation::sql(const std::string& option, const std::string& text) {
  try {
    (void)handlers::SqlText::parse(text);
  } catch (const message::SyntaxError& error) {
    add(not_understood(option, error));
  }
}

void Validation::response(const std::string& option, const std::string& text, bool batch) {
  try {
    const auto parsed =
        batch ? handlers::SqlText::parse_batch(text) : handlers::SqlText::parse(text);
    if (const auto problem = handlers::response_problem(parsed.sql())) {
      add(option, "", *problem,
          "Write a SELECT, or an INSERT, UPDATE, or DELETE with RETURNING, that returns one value");
    }
  } catch (const message::SyntaxError&) {  // NOLINT(bugprone-empty-catch): sql() reports it
  }
}

void Validation::batch_sql(const std::string& option, const std::string& text) {
  try {
    (void)handlers::SqlText::parse_batch(text);
  } catch (const message::SyntaxError& error) {
    add(not_understood(option, error));
  }
}

}  // namespace pawl::config
