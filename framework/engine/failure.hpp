#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "ledger/halt.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"
#include "postgres/sqlstate.hpp"

namespace pawl::postgres {
class Session;
}

namespace pawl::engine {

/// A message that pawl itself finds unfit: no retry can help. `reason` is of ledger::dead_reason.
class Unfit : public PermanentError {
 public:
  Unfit(std::string reason, const std::string& what)
      : PermanentError(what), reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

/// Why one try of a message failed, in the terms that decide what happens next.
struct Failure {
  postgres::FailureClass kind = postgres::FailureClass::kMessage;
  bool permanent = false;   ///< trying again cannot help
  bool in_doubt = false;    ///< the COMMIT may have been stored
  std::string sqlstate;     ///< empty when the failure is not the database's
  std::string text;         ///< for people, bounded; holds no row values of PostgreSQL's DETAIL
  std::string detail = {};  ///< what else PostgreSQL said; may hold row values, see told()
  std::string reason = {};  ///< ledger::dead_reason, for counts and filters
  /// The key is another attempt's for now, which is no failure; after that it is asked for again.
  std::optional<std::chrono::milliseconds> pending = {};
  /// Not before that it is worth another attempt.
  std::chrono::milliseconds retry_after{0};
  /// The halt that follows whatever the policy says, because only an operator knows the outcome of
  /// an earlier call: its code and parameters.
  std::optional<ledger::Halt> halt = {};
  postgres::ErrorOrigin origin = {};  ///< of what the server raised, as far as it is known
  bool own_statement = false;         ///< raised by a statement of pawl's own
  /// Name of the handler's statement that failed: "sql[0]"; empty: it was none, or is unknown.
  std::string statement = {};
  /// What code ran, where a statement of code's failed; empty: unknown.
  std::string code_sql = {};

  /// It ran into a limit of time behind another transaction's lock.
  [[nodiscard]] bool waited_for_lock() const {
    return kind == postgres::FailureClass::kContention &&
           (sqlstate == "55P03" || sqlstate == "57014");
  }
  /// What failures in a row must share to open the breaker.
  [[nodiscard]] const std::string& way() const { return sqlstate.empty() ? reason : sqlstate; }
};

/// Whose fault it is, in a word, as Event::reason has it: a dead_reason where it is the
/// message's, else "contention", "program" and so on. A view of static text, or into `failure`.
[[nodiscard]] std::string_view class_of(const Failure& failure);

/// Whether another attempt may end otherwise. To try again what a handler committed by itself would
/// pass it as a duplicate and hide that.
[[nodiscard]] bool may_pass_later(const Failure& failure);

/// A prepared statement no longer fits: "cached plan must not change result type" after a table was
/// altered, or something has deallocated it. A new session prepares anew.
[[nodiscard]] bool is_stale_statement(const Failure& failure);

/// What the session has cached of the database's schema may be why it failed, if the schema has
/// changed since: a value that was bound with the type that a column had, a type that is gone. Not
/// where no statement of a handler's has begun.
[[nodiscard]] bool may_be_of_old_schema(const Failure& failure, bool handler_begun);

/// " (SQLSTATE 23505)", for behind a text; empty where there is none.
[[nodiscard]] std::string sqlstate_text(const Failure& failure);

/// "sql[0]: no such account", where nothing else names the statement.
[[nodiscard]] std::string located_text(const Failure& failure);

/// What observers and logs are told: `text`, and PostgreSQL's DETAIL where log.error_details asks
/// for it.
[[nodiscard]] std::string told(const Failure& failure, bool with_detail);

/// Explains an exception that left the frame. `session_alive`, asked after the frame has rolled
/// back, and so after a round trip: without a connection nothing that a handler throws says
/// anything about the message, and with one no SQLSTATE says that it is lost.
[[nodiscard]] Failure explain(const std::exception_ptr& error, bool session_alive);

/// The same of what ran on `session`, which is asked further: a statement may have failed because
/// an earlier message's handler changed the session's settings.
[[nodiscard]] Failure explain_on(postgres::Session& session, const std::exception_ptr& error);

}  // namespace pawl::engine
