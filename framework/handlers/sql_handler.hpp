#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handlers/handler.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/sql_text.hpp"
#include "pawl/options.hpp"

namespace pawl::handlers {

/// Statements from the configuration, with bind parameters taken from the message. They travel to
/// the server together with the advance and COMMIT; before it where one of them expects a number of
/// rows and the message goes alone.
class SqlHandler final : public Handler, private StatementPlanner {
 public:
  /// `place` names the statements in errors, `schema` is pawl's. `max_response`: bytes. Throws
  /// SqlTextError, message::TemplateError.
  SqlHandler(const HandlerPlace& place, const HandlerOptions& options, std::size_t max_response,
             const std::string& schema);

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  /// Not where the rows of a statement can only be counted by who reads the answer.
  [[nodiscard]] const StatementPlanner* planner() const override;
  [[nodiscard]] std::vector<DescribedStatement> statements() const override;

 private:
  struct Entry {
    std::string name;  ///< of WrittenStatement
    std::string label;
    SqlText text;
    HandlerStatement statement;
    SourceLocation where;
    bool responds = false;
  };

  [[nodiscard]] bool plan(StatementPlan& plan, const Message& message,
                          message::JsonView& json) const override;
  static void fill(const Entry& entry, const postgres::ParameterTypes& types,
                   postgres::Parameters& parameters, const Message& message,
                   message::JsonView& json);
  static void show(const Entry& entry, postgres::Parameters& parameters, const Message& message,
                   message::JsonView& json);
  [[nodiscard]] static DescribedStatement described(const Entry& entry);

  std::vector<Entry> entries_;
};

}  // namespace pawl::handlers
