#pragma once

#include <string>
#include <vector>

#include "handlers/handler.hpp"
#include "message/sql_text.hpp"
#include "pawl/options.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// Statements from the configuration, with bind parameters taken from the message. They travel to
/// the server together with the advance and COMMIT, unless one of them expects a number of rows.
class SqlHandler final : public Handler {
 public:
  /// `label` names the handler in errors and its statements on the server. Throws
  /// message::SqlTextError, message::TemplateError.
  SqlHandler(const std::string& label, const std::vector<SqlStatement>& statements);

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  [[nodiscard]] std::vector<DescribedStatement> statements() const override;

 private:
  struct Entry {
    std::string label;
    message::SqlText text;
    postgres::Statement statement;
    std::optional<std::uint64_t> expect_rows;
  };
  std::vector<Entry> entries_;
};

}  // namespace pawl::handlers
