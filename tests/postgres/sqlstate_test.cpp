#include "postgres/sqlstate.hpp"

#include "postgres/error.hpp"
#include "prelude.hpp"

using namespace pawl::postgres;

TEST_CASE("an SQLSTATE on a session that lives is classified by what it says of the statement") {
  struct Row {
    const char* sqlstate;
    FailureClass kind;
    FailureClass of_own_statement;
  };
  using enum FailureClass;
  const Row rows[] = {
      // What dblink, postgres_fdw and RAISE say of connections of their own.
      {"08000", kMessage, kProgram},
      {"08001", kMessage, kProgram},
      {"08003", kMessage, kProgram},
      {"08006", kMessage, kProgram},
      {"57P01", kMessage, kProgram},
      {"57P02", kMessage, kProgram},
      {"57P03", kMessage, kProgram},
      {"57P05", kMessage, kProgram},
      {"25P03", kMessage, kProgram},
      {"25P04", kMessage, kProgram},
      {"08P01", kProgram, kProgram},
      {"25006", kReadOnly, kReadOnly},
      // A statement of ours that runs into statement_timeout waited for a lock.
      {"57014", kMessage, kContention},
      {"55P03", kContention, kContention},
      {"40001", kContention, kContention},
      {"PW011", kContention, kContention},
      {"40P01", kContention, kContention},
      {"53100", kResource, kResource},
      {"53200", kResource, kResource},
      {"53300", kResource, kResource},
      {"53400", kMessage, kProgram},
      {"58030", kResource, kResource},
      {"42P01", kProgram, kProgram},
      {"42501", kProgram, kProgram},
      {"0A000", kProgram, kProgram},
      {"26000", kProgram, kProgram},
      {"23505", kMessage, kProgram},
      {"22P02", kMessage, kMessage},
      // Of the key: it does not fit into an index.
      {"54000", kMessage, kMessage},
      // The handler went on behind a statement that failed.
      {"25P02", kMessage, kMessage},
      {"PW014", kMessage, kMessage},
      {"P0001", kMessage, kProgram},
      {"", kMessage, kMessage},
      {"PW001", kFenced, kFenced},
      {"PW002", kOutOfOrder, kOutOfOrder},
      {"PW003", kTransactionEnded, kTransactionEnded},
      {"PW004", kRowMissing, kRowMissing},
  };
  for (const auto& [sqlstate, kind, of_own_statement] : rows) {
    CAPTURE(sqlstate);
    CHECK(classify(sqlstate) == kind);
    CHECK(classify(sqlstate, {.own_statement = true}) == of_own_statement);
    // Whatever was said last, the session is gone.
    CHECK(classify(sqlstate, {.session_died = true}) == kConnection);
  }
}

TEST_CASE("what is violated in pawl's own tables is no message's fault, but for wrong values") {
  const Circumstances own{.own_constraint = true};
  CHECK(classify("23505", own) == FailureClass::kProgram);
  CHECK(classify("23503", own) == FailureClass::kProgram);
  CHECK(classify("23502", own) == FailureClass::kMessage);
  CHECK(classify("23514", own) == FailureClass::kMessage);
}

TEST_CASE("a server that leaves by its own decision says goodbye") {
  for (const auto* state : {"57P01", "57P02", "57P03", "08P01", "08006"})
    CHECK(is_goodbye(state));
  for (const auto* state : {"", "57014", "25P03", "25006", "53300"})
    CHECK_FALSE(is_goodbye(state));
}

TEST_CASE("an error knows whether its session died and whose statement it was") {
  const Error gone = Error::connection_lost("server closed the connection unexpectedly");
  CHECK(gone.failure() == FailureClass::kConnection);
  const Error shutdown("57P01", "terminating connection due to administrator command");
  CHECK(shutdown.failure() == FailureClass::kMessage);
  CHECK(shutdown.as_last_words().failure() == FailureClass::kConnection);
  CHECK(shutdown.as_last_words().sqlstate() == "57P01");
  const Error timeout("57014", "canceling statement due to statement timeout");
  CHECK(timeout.failure() == FailureClass::kMessage);
  CHECK(timeout.as_own().failure() == FailureClass::kContention);
}
