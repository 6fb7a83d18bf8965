#include "engine/failure.hpp"

#include <pqxx/except>

#include "pawl/errors.hpp"
#include "postgres/error.hpp"

namespace pawl::engine {
namespace {

using postgres::FailureClass;

Failure from_sqlstate(const std::string& sqlstate, std::string text) {
  Failure failure{postgres::classify(sqlstate), false, false, sqlstate, std::move(text)};
  if (sqlstate == "25P02") {
    failure.text =
        "a statement of the handler failed and the handler went on as if it had not; nothing was "
        "stored. Let the exception leave the handler, or wrap the statement in a "
        "pqxx::subtransaction";
  }
  return failure;
}

/// libpqxx passes on the server's whole report. Its first line is the primary message; DETAIL and
/// CONTEXT behind it may quote values of rows, which must not reach a log.
std::string primary_message(const char* what) {
  const std::string_view text(what);
  return std::string(text.substr(0, text.find('\n')));
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

Failure explain(const std::exception_ptr& error, bool session_alive) {
  Failure failure;
  try {
    std::rethrow_exception(error);
  } catch (const postgres::InDoubt& e) {
    return {FailureClass::kConnection, false, true, "", e.what()};
  } catch (const postgres::Error& e) {
    failure = from_sqlstate(e.sqlstate(), one_line(e.what()));
  } catch (const pqxx::broken_connection& e) {
    return {FailureClass::kConnection, false, false, "", one_line(e.what())};
  } catch (const pqxx::sql_error& e) {
    failure = from_sqlstate(e.sqlstate(), primary_message(e.what()));
  } catch (const PermanentError& e) {
    failure = {FailureClass::kMessage, true, false, "", e.what()};
  } catch (const std::exception& e) {
    failure = {FailureClass::kMessage, false, false, "", one_line(e.what())};
  } catch (...) {
    failure = {FailureClass::kMessage, false, false, "",
               "the handler threw something that is no std::exception; throw one, so that its text "
               "can be shown"};
  }
  if (!session_alive)
    failure.kind = FailureClass::kConnection;
  return failure;
}

}  // namespace pawl::engine
