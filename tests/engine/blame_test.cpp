// What must be shown before an error that speaks of the server or the handler is held against its
// message. The rows of docs/failures.md, "Errors of only one message".
#include "engine/blame.hpp"

#include "prelude.hpp"

using namespace pawl::engine;
using pawl::postgres::classify;

namespace {

struct Raised {
  std::string sqlstate;
  std::string routine = {};
  bool nested = false;
  bool session_died = false;
  bool own = false;
};

Attempt attempt_of(const Raised& raised, Undertaking what = Undertaking::kMessage) {
  Attempt attempt{what};
  attempt.offset = 7;
  attempt.subject.handler_begun = true;
  attempt.failure.sqlstate = raised.sqlstate;
  attempt.failure.kind = classify(raised.sqlstate, {.session_died = raised.session_died});
  attempt.failure.origin = {raised.routine, raised.nested};
  attempt.failure.own_statement = raised.own;
  return attempt;
}

}  // namespace

TEST_CASE("what shows that a message is at fault, by what the server raised") {
  struct Row {
    Raised raised;
    Proof proof;
  };
  const auto row = GENERATE(from_range(std::vector<Row>{
      {{"42601", "makepol"}, Proof::kSoundStatements},  // a text that is no tsquery
      {{"42501", "ExecWithCheckOptions"}, Proof::kSoundStatements},
      {{"42501", "exec_stmt_raise", true}, Proof::kSoundStatements},
      {{"42501", "aclcheck_error"}, Proof::kNone},
      {{"42501", "aclcheck_error", true}, Proof::kNone},
      {{"42501", "nextval_internal"}, Proof::kNone},
      {{"42P01", "RangeVarGetRelidExtended"}, Proof::kSoundStatements},
      {{"42P01", "parserOpenTable", true}, Proof::kHandlerWorks},
      {{"42883", "ParseFuncOrColumn", true}, Proof::kHandlerWorks},
      {{"42703", "errorMissingColumn", true}, Proof::kSoundStatements},
      {{"42P01", "parserOpenTable", false, false, true}, Proof::kNone},  // a table of pawl's
      {{"3F000"}, Proof::kNone},
      {{"28000"}, Proof::kNone},
      {{"08P01"}, Proof::kNone},
      {{"53200", "LockAcquireExtended"}, Proof::kServerWorks},
      {{"53000"}, Proof::kServerWorks},
      {{"53100"}, Proof::kNone},
      {{"53300"}, Proof::kNone},
      {{"58030"}, Proof::kNone},
      {{"57P01", "ProcessInterrupts", false, true}, Proof::kServerWorks},
      {{"57P02", "ProcessInterrupts", false, true}, Proof::kNone},
      {{"", "", false, true}, Proof::kNone},  // that is a suspect anyway
      {{"23505"}, Proof::kNone},              // as is this
      {{"40001"}, Proof::kNone},
  }));
  CAPTURE(row.raised.sqlstate, row.raised.routine, row.raised.nested);
  CHECK(proof_against(attempt_of(row.raised), {}) == row.proof);
  auto counted = attempt_of(row.raised);
  counted.counted = true;
  CHECK(proof_against(counted, {}) == Proof::kNone);
  CHECK(proof_against(attempt_of(row.raised, Undertaking::kNote), {}) == Proof::kNone);
  CHECK(proof_against(attempt_of(row.raised, Undertaking::kAcquire), {}) == Proof::kNone);
}

TEST_CASE("a prepared statement may be stale until the session was replaced for the message") {
  Head head;
  CHECK(proof_against(attempt_of({"0A000"}), head) == Proof::kNone);
  head.prepared_anew_for = 6;
  CHECK(proof_against(attempt_of({"0A000"}), head) == Proof::kNone);
  head.prepared_anew_for = 7;
  CHECK(proof_against(attempt_of({"0A000"}), head) == Proof::kSoundStatements);
}

TEST_CASE("whose values failed together with others is not known") {
  CHECK(proof_against(attempt_of({"42601"}, Undertaking::kBatch), {}) == Proof::kNone);
  CHECK(proof_against(attempt_of({"42601"}, Undertaking::kPipeline), {}) == Proof::kNone);
}

TEST_CASE("a connection that was ended before the handler began is no message's doing") {
  auto attempt = attempt_of({"57P01", "", false, true});
  attempt.subject.handler_begun = false;
  CHECK(proof_against(attempt, {}) == Proof::kNone);
}

TEST_CASE("of code's statement a missing right is the program's, a table's policy the message's") {
  auto attempt = attempt_of({"42501"});
  attempt.failure.code_sql = "INSERT INTO orders VALUES ($1)";
  attempt.failure.text = "ERROR:  permission denied for table orders";
  CHECK(proof_against(attempt, {}) == Proof::kNone);
  attempt.failure.text = "ERROR:  new row violates row-level security policy for table \"orders\"";
  CHECK(proof_against(attempt, {}) == Proof::kSoundStatements);
}

TEST_CASE("attempts count as suspicious while others pass between them, and one code alone fails") {
  Suspicion suspicion;
  CHECK(suspicion.failed("53200", 10) == 0);
  CHECK(suspicion.failed("53200", 10) == 0);
  CHECK(suspicion.failed("53200", 11) == 1);
  CHECK(suspicion.failed("53200", 11) == 1);
  CHECK(suspicion.failed("53200", 15) == 2);
  CHECK(suspicion.failed("57P01", 16) == 0);
  CHECK(suspicion.failed("57P01", 17) == 1);
}

TEST_CASE("what passes is counted for each handler once somebody compares") {
  Passes passes;
  passes.applied("orders");
  CHECK(passes.of("orders") == 0);
  passes.applied("orders");
  passes.applied("mails");
  passes.heartbeat();
  CHECK(passes.of("orders") == 1);
  CHECK(passes.of("mails") == 1);
  CHECK(passes.of_all() == 3);
}
