#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "postgres/statement.hpp"

namespace pawl::handlers {

/// A name on the server that no other statement of this process has: names are per session, and two
/// handlers may carry the same label.
[[nodiscard]] std::string next_sql_name();

/// What errors call a handler's statement.
[[nodiscard]] std::string sql_label(const std::string& handler, std::size_t index);

/// Whether sessions keep the statement prepared.
enum class Prepared { kOnce, kNever };

/// One statement of a handler and the number of rows that it must touch, if any. Immutable.
class HandlerStatement {
 public:
  /// `schema` is pawl's.
  HandlerStatement(std::string sql, std::optional<std::uint64_t> expect_rows,
                   const std::string& schema, Prepared prepared = Prepared::kOnce);

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
