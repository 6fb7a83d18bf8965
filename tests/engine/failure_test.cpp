// What an exception says of a message, a session and their set-up.
#include "engine/failure.hpp"

#include <pqxx/except>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/leased_call.hpp"
#include "handlers/handler_statement.hpp"
#include "message/message_error.hpp"
#include "postgres/error.hpp"
#include "prelude.hpp"

using namespace pawl::engine;
using namespace pawl::ledger;
using namespace pawl::postgres;

namespace {

template <typename Thrown>
Failure explained(const Thrown& thrown, bool session_alive = true) {
  return explain(std::make_exception_ptr(thrown), session_alive);
}

}  // namespace

TEST_CASE("what a handler throws is a lost connection only when its session is gone") {
  const std::runtime_error error("remote is down");
  CHECK(explained(error, true).kind == FailureClass::kMessage);
  CHECK(explained(error, false).kind == FailureClass::kConnection);
  // A connection of the handler's own, to another database.
  const pqxx::broken_connection other("could not connect");
  CHECK(explained(other, true).kind == FailureClass::kMessage);
  CHECK(explained(other, false).kind == FailureClass::kConnection);
  const Error remote("08006", "could not connect to server");
  CHECK(explained(remote, true).kind == FailureClass::kMessage);
  CHECK(explained(remote, false).kind == FailureClass::kConnection);
}

TEST_CASE("an error of pawl's own statements keeps what was found out about it") {
  const auto failure =
      explained(Error("55P03", "canceling statement\ndue to lock timeout\n", "Process 1 waits"));
  CHECK(failure.kind == FailureClass::kContention);
  CHECK(failure.sqlstate == "55P03");
  CHECK(failure.text == "canceling statement due to lock timeout");
  CHECK(failure.detail == "Process 1 waits");
  CHECK(failure.reason == dead_reason::kError);
  CHECK_FALSE(failure.permanent);
  CHECK_FALSE(failure.in_doubt);
  CHECK(explained(Error("57014", "canceled").as_own()).kind == FailureClass::kContention);
  CHECK(explained(Error("57014", "canceled")).kind == FailureClass::kMessage);
}

TEST_CASE("the statement that failed is apart from the text") {
  const auto failed = explained(Error("22P02", "invalid input").of_statement("sql[0]"));
  CHECK(failed.statement == "sql[0]");
  CHECK(failed.text == "invalid input");
  CHECK(located_text(failed) == "sql[0]: invalid input");
  const auto rows = explained(UnexpectedRows("sql[1]", "the statement affected 0 rows"));
  CHECK(rows.statement == "sql[1]");
  CHECK(rows.text == "the statement affected 0 rows");
  CHECK(rows.reason == dead_reason::kError);
  CHECK_FALSE(rows.permanent);
  const auto unsuitable = explained(pawl::handlers::UnsuitableStatement("statements[1]", "COMMIT"));
  CHECK(unsuitable.statement == "statements[1]");
  CHECK(unsuitable.text == "COMMIT");
  CHECK(unsuitable.reason == dead_reason::kPermanent);
  CHECK(unsuitable.permanent);
  const auto none = explained(Error("22P02", "invalid input"));
  CHECK(none.statement.empty());
  CHECK(located_text(none) == "invalid input");
}

TEST_CASE("of libpqxx's report the first line alone is told, for the rest may quote rows") {
  const pqxx::unique_violation error(
      "ERROR:  duplicate key\nDETAIL:  Key (iban)=(DE02) already exists.\nCONTEXT:  line 1",
      "INSERT", "23505");
  const auto failure = explained(error);
  CHECK(failure.kind == FailureClass::kMessage);
  CHECK(failure.sqlstate == "23505");
  CHECK(failure.text == "ERROR:  duplicate key");
  CHECK(failure.detail == "DETAIL:  Key (iban)=(DE02) already exists.\nCONTEXT:  line 1");
  CHECK(told(failure, false) == "ERROR:  duplicate key");
  CHECK(told(failure, true) ==
        "ERROR:  duplicate key (DETAIL:  Key (iban)=(DE02) already exists. CONTEXT:  line 1)");
}

TEST_CASE("an error text has a limit, and the detail has PostgreSQL's whole message") {
  const std::string value(900'000, 'x');
  const auto report =
      "ERROR:  invalid input syntax for type bigint: \"" + value + "\"\nCONTEXT:  $1";
  const auto failure = explained(pqxx::sql_error(report, "INSERT", "22P02"));
  CHECK(failure.text == report.substr(0, 200) + "... (" + std::to_string(report.find('\n') - 200) +
                            " bytes omitted)");
  CHECK(failure.detail == report);
  CHECK(told(failure, false) == failure.text);
  CHECK(told(failure, true).size() < 2500);
  // Of any other exception, and of each kind: the limit is in one place.
  for (const auto& other : {explained(std::runtime_error(value)), explained(PermanentError(value)),
                            explained(Error("22000", value)), explained(LeasePending(value, 1s))}) {
    CHECK(other.text == value.substr(0, 2000) + "... (898000 bytes omitted)");
  }
}

TEST_CASE("a report of one line has no detail to tell") {
  const auto failure = explained(pqxx::sql_error("ERROR:  no", "SELECT", "22000"));
  CHECK(failure.detail.empty());
  CHECK(told(failure, true) == "ERROR:  no");
}

TEST_CASE("an SQLSTATE means the same in libpqxx's errors and in pawl's") {
  for (const auto* state : {"40001", "40P01", "53300", "42P01", "25006", "PW001", "23505"}) {
    CAPTURE(state);
    const auto kind = classify(state);
    CHECK(explained(Error(state, "text")).kind == kind);
    CHECK(explained(pqxx::sql_error("text", "SELECT", state)).kind == kind);
  }
}

TEST_CASE("the failure of a handler that continues in an aborted transaction names the action") {
  for (const auto& failure : {explained(Error("25P02", "aborted").of_statement("sql[1]")),
                              explained(pqxx::sql_error("ERROR:  aborted", "SELECT", "25P02"))}) {
    CHECK(failure.kind == FailureClass::kMessage);
    CHECK(failure.sqlstate == "25P02");
    CHECK(failure.statement.empty());
    CHECK_THAT(failure.text, ContainsSubstring("the handler continued") &&
                                 ContainsSubstring("pqxx::subtransaction"));
  }
}

TEST_CASE("a COMMIT without an answer is in doubt, with what the server said last") {
  const auto failure = explained(InDoubt("connection lost during COMMIT", "57P01"), true);
  CHECK(failure.in_doubt);
  CHECK(failure.kind == FailureClass::kConnection);
  CHECK(failure.sqlstate == "57P01");
  CHECK_FALSE(failure.permanent);
}

TEST_CASE("who says that trying again cannot help is believed, and why is kept") {
  const auto unfit = explained(Unfit(dead_reason::kMissingKey, "no header event-id"));
  CHECK(unfit.permanent);
  CHECK(unfit.reason == dead_reason::kMissingKey);
  CHECK(unfit.text == "no header event-id");
  const auto unreadable = explained(message::MessageError("the value is no JSON"));
  CHECK(unreadable.permanent);
  CHECK(unreadable.reason == dead_reason::kUndecodable);
  const auto handlers_own = explained(PermanentError("unknown currency"));
  CHECK(handlers_own.permanent);
  CHECK(handlers_own.reason == dead_reason::kPermanent);
  for (const auto& failure : {unfit, unreadable, handlers_own}) {
    CHECK(failure.kind == FailureClass::kMessage);
    CHECK(failure.sqlstate.empty());
  }
  // Without a session none of that was found out about the message.
  CHECK(explained(PermanentError("unknown currency"), false).kind == FailureClass::kConnection);
}

TEST_CASE("whatever else is thrown fails the message, on one line") {
  const auto failure = explained(std::runtime_error("two\nlines\tand a tab \n"));
  CHECK(failure.text == "two lines and a tab");
  CHECK(failure.reason == dead_reason::kError);
  CHECK_FALSE(failure.permanent);
  const auto no_exception = explained(42);
  CHECK(no_exception.kind == FailureClass::kMessage);
  CHECK(no_exception.reason == dead_reason::kError);
  CHECK_THAT(no_exception.text, ContainsSubstring("not a std::exception"));
}

TEST_CASE("an old schema may be why a handler's statement failed, not why a message is unfit") {
  struct Row {
    std::string sqlstate;
    bool handler_begun;
    bool may_be;
  };
  const auto row = GENERATE(from_range(std::vector<Row>{
      {"0A000", true, true},   // cached plan must not change result type
      {"26000", false, true},  // a prepared statement that is gone
      {"42804", true, true},   // the column is of another type
      {"42883", false, true},  // the function is another one
      {"22003", true, true},   // out of the range that the type had
      {"22P02", true, true},   // no value of the type that it was
      {"XX000", true, true},   // cache lookup failed for type
      {"23505", true, true},   // made equal by the old type
      {"P0001", true, true},   // by what a function has cached
      {"22P02", false, false},
      {"40001", true, false},
      {"53100", true, false},
  }));
  CAPTURE(row.sqlstate, row.handler_begun);
  const auto failure = explained(Error(row.sqlstate, "refused"));
  CHECK(may_be_of_old_schema(failure, row.handler_begun) == row.may_be);
  CHECK_FALSE(may_be_of_old_schema(explained(Unfit(dead_reason::kMissingKey, "no key")), true));
  CHECK_FALSE(may_be_of_old_schema(explained(Error("42804", "refused"), false), true));
}

TEST_CASE("failures are alike for the breaker by their SQLSTATE, else by their reason") {
  CHECK(explained(Error("23505", "one text")).way() == "23505");
  CHECK(explained(Error("23505", "another text")).way() == "23505");
  CHECK(explained(std::runtime_error("one text")).way() ==
        explained(std::runtime_error("another text")).way());
  CHECK(explained(PermanentError("text")).way() != explained(std::runtime_error("text")).way());
}

TEST_CASE("a prepared statement that no longer fits is known by its SQLSTATE") {
  CHECK(is_stale_statement(explained(Error("0A000", "cached plan must not change result type"))));
  CHECK(is_stale_statement(explained(Error("26000", "prepared statement does not exist"))));
  CHECK_FALSE(is_stale_statement(explained(Error("42P01", "relation does not exist"))));
  CHECK_FALSE(is_stale_statement(explained(std::runtime_error("0A000"))));
}

TEST_CASE("an SQLSTATE stands behind a text only where there is one") {
  CHECK(sqlstate_text(explained(Error("23505", "text"))) == " (SQLSTATE 23505)");
  CHECK(sqlstate_text(explained(std::runtime_error("text"))).empty());
}
