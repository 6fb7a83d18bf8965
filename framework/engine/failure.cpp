#include "engine/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <pqxx/except>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/leased_call.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/leased_handler.hpp"
#include "message/message_error.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"
#include "postgres/session.hpp"
#include "text/bounded.hpp"
#include "text/located.hpp"

namespace pawl::engine {
namespace {

using postgres::FailureClass;

Failure from_sqlstate(FailureClass kind, const std::string& sqlstate, std::string text) {
  Failure failure{kind, false, false, sqlstate, std::move(text)};
  failure.reason = ledger::dead_reason::kError;
  if (sqlstate == postgres::kResponseTooLargeState) {
    failure.permanent = true;
    failure.reason = ledger::dead_reason::kPermanent;
  }
  if (sqlstate == "25P02") {
    failure.text =
        "a statement of the handler failed, and the handler continued; nothing was stored. Let the "
        "exception leave the handler, or wrap the statement in a pqxx::subtransaction";
  }
  return failure;
}

/// libpqxx passes on the server's whole report. Its first line is the primary message; DETAIL and
/// CONTEXT behind it may quote values of rows, which must not reach a log.
Failure from_report(const pqxx::sql_error& error) {
  const std::string_view report(error.what());
  const auto end = std::min(report.find('\n'), report.size());
  const auto message = report.substr(0, end);
  const auto text = texts::bounded(message, texts::kLongestQuote);
  auto failure = from_sqlstate(postgres::classify(error.sqlstate()), error.sqlstate(), text);
  failure.detail = report.substr(text == message ? std::min(end + 1, report.size()) : 0);
  return failure;
}

Failure permanent(const char* what, const std::string& reason) {
  Failure failure;
  failure.permanent = true;
  failure.text = what;
  failure.reason = reason;
  return failure;
}

std::string one_line(const char* what) {
  std::string text(what);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  for (auto& c : text) {
    if (c == '\n' || c == '\r' || c == '\t')
      c = ' ';
  }
  return text;
}

}  // namespace

std::string_view class_of(const Failure& failure) {
  if (failure.kind == postgres::FailureClass::kMessage && !failure.reason.empty())
    return failure.reason;
  return postgres::to_string(failure.kind);
}

bool may_pass_later(const Failure& failure) {
  return !failure.permanent && !failure.halt && failure.kind != FailureClass::kTransactionEnded;
}

bool is_stale_statement(const Failure& failure) {
  return failure.sqlstate == "0A000" || failure.sqlstate == postgres::kNoStatementState;
}

bool may_be_of_old_schema(const Failure& failure, bool handler_begun) {
  if (failure.kind == FailureClass::kProgram)
    return true;
  return handler_begun && failure.kind == FailureClass::kMessage && !failure.pending &&
         failure.reason == ledger::dead_reason::kError;
}

std::string sqlstate_text(const Failure& failure) {
  return failure.sqlstate.empty() ? "" : fmt::format(" (SQLSTATE {})", failure.sqlstate);
}

std::string located_text(const Failure& failure) {
  return texts::located(failure.statement, failure.text);
}

std::string told(const Failure& failure, bool with_detail) {
  if (!with_detail || failure.detail.empty())
    return failure.text;
  return fmt::format("{} ({})", failure.text,
                     texts::bounded(one_line(failure.detail.c_str()), texts::kLongestCause));
}

Failure explain(const std::exception_ptr& error, bool session_alive) {
  Failure failure;
  try {
    std::rethrow_exception(error);
  } catch (const postgres::InDoubt& e) {
    return {FailureClass::kConnection,  false, true, e.sqlstate(), e.what(), "",
            ledger::dead_reason::kError};
  } catch (const postgres::Error& e) {
    failure = from_sqlstate(e.failure(), e.sqlstate(), one_line(e.what()));
    failure.detail = e.detail();
    failure.origin = e.origin();
    failure.own_statement = e.is_of_own_statement();
    // It is an earlier statement that failed.
    if (failure.sqlstate != "25P02")
      failure.statement = e.statement();
  } catch (const postgres::UnexpectedRows& e) {
    failure.text = e.what();
    failure.reason = ledger::dead_reason::kError;
    failure.statement = e.statement();
  } catch (const pqxx::sql_error& e) {
    failure = from_report(e);
    // libpqxx does not pass on where it was raised.
    failure.origin.nested = true;
    failure.code_sql = e.query();
  } catch (const LeasePending& e) {
    failure.text = e.what();
    failure.pending = e.wait();
  } catch (const UnknownOutcome& e) {
    failure.text = e.what();
    failure.reason = ledger::dead_reason::kError;
    failure.halt = e.halt();
  } catch (const Unfit& e) {
    failure = permanent(e.what(), e.reason());
  } catch (const message::MessageError& e) {
    failure = permanent(e.what(), ledger::dead_reason::kUndecodable);
  } catch (const handlers::UnsuitableStatement& e) {
    failure = permanent(e.what(), ledger::dead_reason::kPermanent);
    failure.statement = e.statement();
  } catch (const PermanentError& e) {
    failure = permanent(e.what(), ledger::dead_reason::kPermanent);
  } catch (const NotDone& e) {
    failure.text = one_line(e.what());
    failure.reason = ledger::dead_reason::kError;
    failure.retry_after =
        std::min<std::chrono::milliseconds>(e.retry_after(), std::chrono::hours(1));
  } catch (const handlers::UnknownAnswer& e) {
    failure.text = one_line(e.what());
    failure.reason = ledger::dead_reason::kError;
    failure.retry_after = e.retry_after();
  } catch (const std::exception& e) {
    failure.text = one_line(e.what());
    failure.reason = ledger::dead_reason::kError;
  } catch (...) {
    failure.text =
        "the handler threw something that is not a std::exception, so its text is unknown";
    failure.reason = ledger::dead_reason::kError;
  }
  failure.text = texts::bounded(failure.text, texts::kLongestCause);
  if (!session_alive)
    failure.kind = FailureClass::kConnection;
  return failure;
}

Failure explain_on(postgres::Session& session, const std::exception_ptr& error) {
  auto failure = explain(error, session.alive());
  const bool of_statement = !failure.sqlstate.empty() && (failure.kind == FailureClass::kProgram ||
                                                          failure.kind == FailureClass::kMessage);
  if (!of_statement || session.in_transaction())
    return failure;
  try {
    if (!session.is_as_it_began())
      failure.kind = FailureClass::kSessionChanged;
  } catch (const postgres::Error&) {
    // A session that does not even answer that says nothing about the message.
    if (!session.alive())
      failure.kind = FailureClass::kConnection;
  }
  return failure;
}

}  // namespace pawl::engine
