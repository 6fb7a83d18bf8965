#include "handlers/handler_statement.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "handlers/counted_sql.hpp"

namespace pawl::handlers {
namespace {

/// PostgreSQL forgets a statement without a name at once.
std::string name(Prepared prepared) {
  return prepared == Prepared::kOnce ? next_sql_name() : std::string{};
}

}  // namespace

std::string next_sql_name() {
  static std::atomic<unsigned> next_number{0};
  return fmt::format("pawl_sql_{}", next_number++);
}

std::string handler_option(std::size_t index) {
  return fmt::format("handler[{}]", index);
}

std::string handler_text(const std::string& label) {
  return label.starts_with("handler[") ? label : "handler " + label;
}

std::vector<WrittenStatement> written_statements(const HandlerPlace& place,
                                                 const HandlerOptions& options) {
  const auto label = [&](const std::string& option) {
    return fmt::format("{}.{}{}", handler_option(place.index), option,
                       place.name.empty() ? "" : fmt::format(" ({})", place.name));
  };
  const auto& response = options.response;
  std::vector<WrittenStatement> statements;
  for (std::size_t i = 0; i < options.sql.size(); ++i) {
    const auto& sql = options.sql[i];
    const auto name = fmt::format("sql[{}]", i);
    statements.push_back(
        {name, label(name), sql, !response.statement.empty() && sql.name == response.statement});
  }
  if (!response.text.empty())
    statements.push_back(
        {"response", label("response"), {response.text, std::nullopt, response.where}, true});
  return statements;
}

std::string said_name(std::size_t index) {
  return fmt::format("statements[{}]", index);
}

HandlerStatement::HandlerStatement(std::string sql, std::optional<std::uint64_t> expect_rows,
                                   const std::string& schema, Prepared prepared)
    : plain_(postgres::application_statement(name(prepared), std::move(sql))),
      expect_rows_(expect_rows) {
  if (!expect_rows)
    return;
  if (auto raising = counted_sql(plain_.text, *expect_rows, schema)) {
    raising_ = postgres::application_statement(name(prepared), *std::move(raising));
    raising_->typed_as = plain_.name;
  }
}

HandlerStatement::HandlerStatement(std::string sql, std::string rule)
    : plain_(postgres::application_statement(next_sql_name(), std::move(sql), std::move(rule))) {}

const postgres::Statement* HandlerStatement::counted_by_server() const {
  if (!expect_rows_)
    return &plain_;
  return raising_ ? &*raising_ : nullptr;
}

}  // namespace pawl::handlers
