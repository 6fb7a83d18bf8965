#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "postgres/sqlstate.hpp"

namespace pawl::postgres {

struct ResultDeleter {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ResultDeleter>;

/// Rows that a statement returned or changed.
[[nodiscard]] std::uint64_t affected_rows(const PGresult* result);

/// Where in the server an error was raised (protocol, "Error and Notice Message Fields", R and q).
struct ErrorOrigin {
  std::string routine;  ///< of PostgreSQL's source code; empty: not told
  /// In a statement inside of something that the statement called, as a function or a trigger.
  bool nested = false;
};

/// A failed statement or a lost connection. what() is PostgreSQL's primary message and hint, at
/// most texts::kLongestQuote characters of each, without DETAIL and CONTEXT, which may quote row
/// values.
class Error : public std::runtime_error {
 public:
  Error(std::string sqlstate, const std::string& message, std::string detail = {},
        ErrorOrigin origin = {})
      : std::runtime_error(message),
        sqlstate_(std::move(sqlstate)),
        detail_(std::move(detail)),
        origin_(std::move(origin)),
        met_{.session_died = sqlstate_.empty()} {}

  /// Five characters, or empty when the connection itself failed.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }
  /// What else PostgreSQL reported, and its whole message if what() has a part of it; may quote row
  /// values: not for logs.
  [[nodiscard]] const std::string& detail() const { return detail_; }
  [[nodiscard]] const ErrorOrigin& origin() const { return origin_; }
  [[nodiscard]] bool is_of_own_statement() const { return met_.own_statement; }
  [[nodiscard]] FailureClass failure() const { return classify(sqlstate_, met_); }
  /// Its code alone says that the set-up is wrong: a right, a table, a function is missing.
  [[nodiscard]] bool is_of_set_up() const {
    return !met_.session_died && classify(sqlstate_) == FailureClass::kProgram;
  }
  /// Name of the handler's statement that failed: "sql[0]"; empty: unknown, or pawl's own.
  [[nodiscard]] const std::string& statement() const { return statement_; }
  /// This error in other words.
  [[nodiscard]] Error with_text(const std::string& text) const {
    Error error(sqlstate_, text, detail_, origin_);
    error.met_ = met_;
    return error;
  }
  /// This error as one of the handler's statement of that name.
  [[nodiscard]] Error of_statement(std::string name) const {
    auto error = *this;
    error.statement_ = std::move(name);
    return error;
  }
  /// This error as the last that was heard of a connection that broke.
  [[nodiscard]] Error as_last_words() const {
    auto error = *this;
    error.met_.session_died = true;
    return error;
  }
  /// This error as one of a statement of pawl's own.
  [[nodiscard]] Error as_own() const {
    auto error = *this;
    error.met_.own_statement = true;
    return error;
  }

  /// From a result with an error status. `own_schema`: pawl's; empty: not asked for.
  static Error from(const PGresult* result, const std::string& own_schema);
  /// From a connection that broke: no SQLSTATE.
  static Error connection_lost(const std::string& what);
  /// An advance that touched no row, found when all but that is stored.
  static Error row_missing();

 private:
  std::string sqlstate_;
  std::string detail_;
  ErrorOrigin origin_;
  std::string statement_;
  Circumstances met_;
};

/// A statement with `expect_rows` affected or returned another number of rows.
class UnexpectedRows : public std::runtime_error {
 public:
  UnexpectedRows(std::string statement, const std::string& message)
      : std::runtime_error(message), statement_(std::move(statement)) {}

  /// As Error::statement().
  [[nodiscard]] const std::string& statement() const { return statement_; }

 private:
  std::string statement_;
};

/// The connection broke while a COMMIT was on its way: whether it was stored is unknown until the
/// register is read under its row lock (acquire).
class InDoubt : public std::runtime_error {
 public:
  InDoubt(const std::string& message, std::string sqlstate)
      : std::runtime_error(message), sqlstate_(std::move(sqlstate)) {}

  /// What the server said before it left; empty when it said nothing.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }

 private:
  std::string sqlstate_;
};

}  // namespace pawl::postgres
