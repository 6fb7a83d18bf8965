#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/syntax_error.hpp"
#include "message/template.hpp"

namespace pawl::handlers {

/// SQL of a handler that cannot be understood or is not allowed.
class SqlTextError : public message::SyntaxError {
 public:
  using SyntaxError::SyntaxError;
};

/// One SQL statement of a handler, with its placeholders turned into bind parameters:
///
///     INSERT INTO ledger VALUES ({header:event-id}, {/amount}::bigint)
///     INSERT INTO ledger VALUES ($1, $2::bigint)      and the templates of $1 and $2
///
/// Values never become part of the text, so a message cannot inject SQL. Each placeholder is a
/// parameter of its own, also where a source repeats: PostgreSQL derives one type per parameter,
/// and the places may want different ones. `{{` and `}}` are literal braces.
///
/// Refused, because it would not do what it seems to say:
///  * a placeholder inside a string, a quoted name or a comment. Other braces are plain text there
///    ('{1,2}' is an array); a text array such as '{key}' that reads like a placeholder can be
///    written '{"key"}'.
///  * a placeholder that touches a name, a number or another placeholder;
///  * more than one statement (one trailing semicolon is dropped), or none;
///  * $1 and the like written by hand;
///  * statements that end or alter the message's transaction (COMMIT, ROLLBACK, SAVEPOINT, SET
///    TRANSACTION, ...), that outlive it in the session (SET without LOCAL, RESET, DISCARD, LISTEN,
///    PREPARE, ...), or that leave the query protocol (COPY).
///
/// Functions and procedures that do such things are not seen here; PostgreSQL itself refuses
/// transaction control in them, and pawl's frame detects what is left. Immutable, any thread.
class SqlText {
 public:
  /// PostgreSQL's limit: the protocol counts parameters in 16 bits.
  static constexpr std::size_t kMaxParameters = 65535;

  /// Throws SqlTextError or TemplateError, with positions in `text`.
  [[nodiscard]] static SqlText parse(std::string_view text);

  /// For many messages at once: each placeholder is an array with one element a message, and must
  /// say so by a cast to an array type, `{/amount}::bigint[]`. Without it PostgreSQL might take the
  /// array's text for a single value.
  [[nodiscard]] static SqlText parse_batch(std::string_view text);

  /// A statement of code's, whose parameters are $1, $2, ... already and whose braces mean nothing:
  /// held to the same rules, without a trailing semicolon. The text of errors quotes no value of
  /// it.
  [[nodiscard]] static std::string parse_numbered(std::string_view text);

  /// The statement with $1..$n.
  [[nodiscard]] const std::string& sql() const& { return sql_; }
  [[nodiscard]] std::string sql() && { return std::move(sql_); }
  /// parameters()[0] renders $1; each is a single placeholder
  /// (message::Template::render_parameter).
  [[nodiscard]] const std::vector<message::Template>& parameters() const& { return parameters_; }
  [[nodiscard]] std::vector<message::Template> parameters() && { return std::move(parameters_); }

 private:
  friend class SqlTextParser;

  std::string sql_;
  std::vector<message::Template> parameters_;
};

/// Whether a text begins with COPY, as PostgreSQL reads it: comments and empty statements may stand
/// before.
[[nodiscard]] bool is_copy(std::string_view sql);

}  // namespace pawl::handlers
