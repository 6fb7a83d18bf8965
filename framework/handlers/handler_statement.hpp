#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/errors.hpp"
#include "pawl/options.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// A name on the server that no other statement of this process has: names are per session, and two
/// handlers may carry the same label.
[[nodiscard]] std::string next_sql_name();

/// A handler of the configuration: how the configuration's own errors call it, and its name.
struct HandlerPlace {
  std::size_t index = 0;  ///< from 0
  std::string name;       ///< empty: it has none
};

/// What tables, alerts and errors call a handler that has neither name nor function: "handler[0]".
[[nodiscard]] std::string handler_option(std::size_t index);

/// "handler payment", or "handler[0]", for a sentence.
[[nodiscard]] std::string handler_text(const std::string& label);

/// A statement of the configuration, as its handler runs it.
struct WrittenStatement {
  std::string name;   ///< within its handler, as errors of a message have it: "sql[1]", "response"
  std::string label;  ///< in other errors: "handler[0].sql[1] (payment)"
  SqlStatement written;
  bool responds = false;  ///< what it returns is the message's response
};

/// All of a handler, in their order.
[[nodiscard]] std::vector<WrittenStatement> written_statements(const HandlerPlace& place,
                                                               const HandlerOptions& options);

/// What a statement that code says is called within its handler: "statements[1]".
[[nodiscard]] std::string said_name(std::size_t index);

/// A statement that code says is unsuitable, whatever the message.
class UnsuitableStatement : public PermanentError {
 public:
  UnsuitableStatement(std::string statement, const std::string& what)
      : PermanentError(what), statement_(std::move(statement)) {}

  /// Its said_name().
  [[nodiscard]] const std::string& statement() const { return statement_; }

 private:
  std::string statement_;
};

/// Whether sessions keep the statement prepared.
enum class Prepared { kOnce, kNever };

/// One statement of a handler and the number of rows that it must touch, if any. Immutable.
class HandlerStatement {
 public:
  /// `schema` is pawl's.
  HandlerStatement(std::string sql, std::optional<std::uint64_t> expect_rows,
                   const std::string& schema, Prepared prepared = Prepared::kOnce);
  /// One that counts its own rows, with postgres::Statement::rule.
  HandlerStatement(std::string sql, std::string rule);

  /// For one message at a time: whoever reads the answer counts its rows.
  [[nodiscard]] const postgres::Statement& counted_by_reader() const { return plain_; }
  /// For messages whose COMMIT is sent before any answer is read: the statement raises unless it
  /// touches the rows expected. nullptr where it cannot (counted_sql).
  [[nodiscard]] const postgres::Statement* counted_by_server() const;
  [[nodiscard]] std::optional<std::uint64_t> expect_rows() const { return expect_rows_; }

 private:
  postgres::Statement plain_;
  std::optional<std::uint64_t> expect_rows_;
  std::optional<postgres::Statement> raising_;  ///< only with expect_rows_
};

}  // namespace pawl::handlers
