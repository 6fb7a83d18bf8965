#pragma once

#include <string>
#include <vector>

#include "handlers/handler.hpp"
#include "message/sql_text.hpp"
#include "pawl/options.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// Statements from the configuration, with bind parameters taken from the message. They travel to
/// the server together with the advance and COMMIT. Where one of them expects a number of rows,
/// they travel before it, or in flights as statements that raise (counted_sql).
class SqlHandler final : public Handler, private FixedStatements {
 public:
  /// `label` names the handler in errors and its statements on the server, `schema` is pawl's.
  /// Throws message::SqlTextError, message::TemplateError.
  SqlHandler(const std::string& label, const std::vector<SqlStatement>& statements,
             const std::string& schema);

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  /// Not where a row count must be known and cannot be demanded in SQL.
  [[nodiscard]] const FixedStatements* fixed_statements() const override;
  [[nodiscard]] std::vector<DescribedStatement> statements() const override;

 private:
  [[nodiscard]] std::size_t count() const override { return entries_.size(); }
  [[nodiscard]] const postgres::Statement& statement(std::size_t index) const override {
    const auto& entry = entries_[index];
    return entry.counted ? *entry.counted : entry.statement;
  }
  void fill(std::size_t index, postgres::Parameters& parameters, const Message& message,
            message::JsonView& json) const override;

  struct Entry {
    std::string label;
    message::SqlText text;
    postgres::Statement statement;
    std::optional<std::uint64_t> expect_rows;
    std::optional<postgres::Statement> counted;  ///< raises unless it touches expect_rows rows
  };
  std::vector<Entry> entries_;
};

}  // namespace pawl::handlers
