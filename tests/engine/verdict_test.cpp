// What a failure leads to. The rows of docs/failures.md, "Failure classes", are here.
#include "engine/verdict.hpp"

#include <ostream>

#include "dead_letters/store/dead_letters.hpp"
#include "prelude.hpp"

using namespace pawl::engine;
using namespace pawl::postgres;
using Company = Action::Company;
using Say = Action::Say;
using Wait = Action::Wait;
using What = Action::What;

namespace {

/// As the server says it: of the handler's statements or of pawl's own.
Failure of_state(const std::string& sqlstate, bool own = false, bool session_died = false) {
  Failure failure;
  failure.sqlstate = sqlstate;
  failure.kind =
      pawl::postgres::classify(sqlstate, {.session_died = session_died, .own_statement = own});
  failure.reason = pawl::ledger::dead_reason::kError;
  return failure;
}

Failure permanent() {
  Failure failure;
  failure.permanent = true;
  failure.reason = pawl::ledger::dead_reason::kPermanent;
  return failure;
}

Attempt attempt(Undertaking what, Failure failure) {
  Attempt attempt{what, std::move(failure)};
  attempt.offset = 7;
  attempt.messages = what == Undertaking::kBatch || what == Undertaking::kPipeline ? 4 : 1;
  return attempt;
}

Attempt counted(Failure failure) {
  auto of = attempt(Undertaking::kMessage, std::move(failure));
  of.counted = true;
  return of;
}

constexpr Policy kLetters{FailurePolicy::kDeadLetter, 3, false};
constexpr Policy kHalts{FailurePolicy::kHalt, 3, false};
constexpr Action kReconnect{What::kReconnect};
constexpr Action kGiveWay{What::kGiveWay};
constexpr Action kAskAgain{What::kAskAgain, Wait::kAcquireBackoff, Say::kWarning};
constexpr Action kCount{What::kCount};
constexpr Action kHalved{What::kTryAgain, Wait::kNone, Say::kFailed, Company::kHalved};
constexpr Action kAnew{What::kPrepareAnew, Wait::kAcquireBackoff, Say::kWarning};
constexpr Policy kFlood{FailurePolicy::kDeadLetter, 3, true};

Action alone(bool so) {
  auto action = kReconnect;
  action.company = so ? Company::kAlone : Company::kAsBefore;
  return action;
}

const std::vector<Undertaking> kAll{Undertaking::kMessage, Undertaking::kPipeline,
                                    Undertaking::kBatch,   Undertaking::kLostConnection,
                                    Undertaking::kNote,    Undertaking::kEndOfLog,
                                    Undertaking::kHalt,    Undertaking::kAcquire};

}  // namespace

TEST_CASE("a lost session is nobody's attempt, whatever was tried") {
  for (const auto what : kAll) {
    CAPTURE(static_cast<int>(what));
    CHECK(decide(attempt(what, of_state("", false, true)), {}, kLetters) == kReconnect);
    CHECK(decide(attempt(what, of_state("57P01", false, true)), {}, kLetters) == kReconnect);
  }
}

TEST_CASE("what ran when a connection broke without a goodbye goes alone, and is counted then") {
  for (const auto what : kAll) {
    CAPTURE(static_cast<int>(what));
    const bool runs_handler = what == Undertaking::kMessage || what == Undertaking::kPipeline ||
                              what == Undertaking::kBatch;
    auto of = attempt(what, of_state("", false, true));
    of.subject.handler_begun = true;
    CHECK(decide(of, {}, kLetters) == alone(runs_handler));
    of.failure = of_state("57P01", false, true);  // the server said that it stops
    CHECK(decide(of, {}, kLetters) == kReconnect);
    of.breaks_connections = true;  // but to nobody else
    CHECK(decide(of, {}, kLetters) == alone(runs_handler));
    of.breaks_connections = false;
    of.failure = of_state("25P03", false, true);  // idle in transaction: the session's own doing
    CHECK(decide(of, {}, kLetters) == alone(runs_handler));
  }
}

TEST_CASE("one message that fails") {
  struct Row {
    std::string sqlstate;
    bool own;
    Action expected;
  };
  const Action again{What::kTryAgain, Wait::kJitter, Say::kFailed};
  const Action later{What::kTryAgain, Wait::kRetryBackoff, Say::kFailed};
  const Action room{What::kWaitForRoom, Wait::kNone, Say::kFailed};
  const Action anew{What::kPrepareAnew, Wait::kNone, Say::kFailed};
  const Action program{What::kHaltProgram, Wait::kNone, Say::kFailed};
  const std::vector<Row> rows{
      {"58030", false, room},     {"3F000", false, program}, {"28000", false, program},
      {"3D000", false, program},  {"08P01", false, program}, {"42704", false, program},
      {"53300", false, room},     {"53100", false, room},    {"53200", false, room},
      {"40P01", false, again},    {"40001", false, again},   {"55P03", false, later},
      {"57014", true, later},  // a statement of ours waited for a lock
      {"42P01", false, program},  {"42501", false, program}, {"42883", false, program},
      {"0A000", false, anew},     {"26000", false, anew},    {"23505", false, kCount},
      {"22P02", false, kCount},   {"P0001", false, kCount},  {"57014", false, kCount},
      {"53400", false, kCount},                         // temp_file_limit
      {"08006", false, kCount},                         // dblink's words: the session lives
      {"57P01", false, kCount},   {"", false, kCount},  // the handler threw
      {"PW003", true, kCount},    {"PW001", true, kGiveWay}, {"PW004", true, kGiveWay},
      {"PW002", true, kAskAgain}, {"22021", true, kCount},   {"23505", true, program},
      {"XX002", true, program},
  };
  for (const auto& row : rows) {
    CAPTURE(row.sqlstate, row.own);
    CHECK(decide(attempt(Undertaking::kMessage, of_state(row.sqlstate, row.own)), {}, kLetters) ==
          row.expected);
  }
  // Told apart by asking the server: the handler's own read-only transaction, or the server is a
  // standby.
  auto read_only = of_state("25006");
  read_only.kind = FailureClass::kMessage;
  CHECK(decide(attempt(Undertaking::kMessage, read_only), {}, kLetters) == kCount);
  read_only.kind = FailureClass::kConnection;
  CHECK(decide(attempt(Undertaking::kMessage, read_only), {}, kLetters) == kReconnect);
  // No key, a conflict, no `when`, what cannot be decoded.
  CHECK(decide(attempt(Undertaking::kMessage, permanent()), {}, kLetters) == kCount);
  // A new session was of no help.
  Head head;
  head.prepared_anew_for = 7;
  CHECK(decide(attempt(Undertaking::kMessage, of_state("0A000")), head, kLetters) == program);
}

TEST_CASE("an attempt that was counted is followed by another, or by the policy") {
  struct Row {
    Failure failure;
    Head head;
    Policy policy;
    What expected;
  };
  Policy flood_but_halts = kHalts;
  flood_but_halts.breaker_open = true;
  const Policy skips{FailurePolicy::kSkip, 3, false};
  const Policy parks{FailurePolicy::kPark, 3, false};
  Head halted_before{1};
  halted_before.one_try_only = true;
  const std::vector<Row> rows{
      {of_state("23505"), {1}, kLetters, What::kRetry},
      {of_state("23505"), {2}, kLetters, What::kRetry},
      {of_state("23505"), {3}, kLetters, What::kSetAside},
      {of_state("23505"), {3}, skips, What::kSetAside},
      {of_state("23505"), {3}, parks, What::kSetAside},
      {of_state("23505"), {3}, kHalts, What::kHaltAtMessage},
      {of_state("23505"), {2}, kHalts, What::kRetry},
      {of_state("23505"), {2}, kFlood, What::kRetry},
      {of_state("23505"), {3}, kFlood, What::kHaltFlood},
      {of_state("23505"), {3}, flood_but_halts, What::kHaltAtMessage},
      {of_state("23505"), halted_before, kHalts, What::kHaltAtMessage},
      {of_state("23505"), halted_before, kLetters, What::kSetAside},
      {permanent(), {1}, kLetters, What::kSetAside},
      {permanent(), {1}, kHalts, What::kHaltAtMessage},
      {permanent(), {1}, kFlood, What::kHaltFlood},
      // A message that killed processes: counted by its marks, and never by attempts.
      {permanent(), {0}, kLetters, What::kSetAside},
      {permanent(), {0}, kHalts, What::kHaltAtMessage},
      // What the handler committed cannot be taken back: whatever the policy.
      {of_state("PW003"), {1}, kLetters, What::kHaltAtMessage},
      {of_state("PW003"), {1}, kFlood, What::kHaltAtMessage},
  };
  for (const auto& row : rows) {
    CAPTURE(row.failure.sqlstate, row.head.attempts, static_cast<int>(row.policy.on_failure));
    CHECK(decide(counted(row.failure), row.head, row.policy) == Action{row.expected});
  }
}

TEST_CASE("a message that breaks its connection again and again has five attempts at most") {
  const Policy patient{FailurePolicy::kDeadLetter, 25, false};
  const auto again = attempt(Undertaking::kLostConnection, {});
  CHECK(decide(again, {1, 1}, patient) == Action{What::kGoOn});
  CHECK(decide(again, {4, 4}, patient) == Action{What::kGoOn});
  CHECK(decide(again, {5, 5}, patient) == Action{What::kSetAside});
  CHECK(decide(again, {20, 5}, patient) == Action{What::kSetAside});
  CHECK(decide(again, {25, 1}, patient) == Action{What::kSetAside});
  CHECK(decide(again, {3, 3}, kLetters) == Action{What::kSetAside});
  CHECK(decide(again, {5, 5}, kFlood) == Action{What::kHaltFlood});
  CHECK(decide(again, {5, 5}, {FailurePolicy::kHalt, 25, false}) == Action{What::kHaltAtMessage});
}

TEST_CASE("messages that fail together go by fewer, and what waits for all of them waits") {
  for (const std::string state : {"23505", "P0001", "", "42P01", "0A000", "57014"}) {
    CAPTURE(state);
    CHECK(decide(attempt(Undertaking::kBatch, of_state(state)), {}, kLetters) == kHalved);
  }
  CHECK(decide(attempt(Undertaking::kBatch, permanent()), {}, kLetters) == kHalved);
  CHECK(decide(attempt(Undertaking::kBatch, of_state("40P01")), {}, kLetters) ==
        Action{What::kTryAgain, Wait::kJitter, Say::kFailed, Company::kFewer});
  for (const std::string state : {"53100", "58030"}) {
    CHECK(decide(attempt(Undertaking::kBatch, of_state(state)), {}, kLetters) ==
          Action{What::kWaitForRoom, Wait::kNone, Say::kFailed, Company::kFewer});
  }
  CHECK(decide(attempt(Undertaking::kBatch, of_state("PW003", true)), {}, kLetters) == kCount);
  auto ended = attempt(Undertaking::kBatch, of_state("PW003", true));
  ended.counted = true;
  CHECK(decide(ended, {1}, kLetters) == Action{What::kHaltAtMessage});
  CHECK(decide(attempt(Undertaking::kBatch, of_state("PW001", true)), {}, kLetters) == kGiveWay);
  CHECK(decide(attempt(Undertaking::kBatch, of_state("PW002", true)), {}, kLetters) == kAskAgain);
  for (const std::string state : {"42P01", "40P01", "53100", "57014"}) {
    CAPTURE(state);
    CHECK(decide(attempt(Undertaking::kPipeline, of_state(state, true)), {}, kLetters) ==
          Action{What::kTryAgain, Wait::kNone, Say::kNothing, Company::kHalved});
  }
  CHECK(decide(attempt(Undertaking::kPipeline, of_state("PW001", true)), {}, kLetters) == kGiveWay);
  CHECK(decide(attempt(Undertaking::kPipeline, of_state("PW002", true)), {}, kLetters) ==
        kAskAgain);
  CHECK(decide(attempt(Undertaking::kPipeline, of_state("PW004", true)), {}, kLetters) == kGiveWay);
}

TEST_CASE("the end of the log has no attempts and no policy") {
  struct Row {
    std::string sqlstate;
    bool prepared_anew;
    Action expected;
  };
  const Action later{What::kTryAgain, Wait::kRetryBackoff, Say::kWarning};
  const Action room{What::kWaitForRoom, Wait::kNone, Say::kWarning};
  const Action program{What::kHaltProgram};
  const std::vector<Row> rows{
      {"57P01", false, program},  // a trigger's words: the session lives
      {"PW001", false, kGiveWay}, {"PW004", false, kGiveWay}, {"PW002", false, kAskAgain},
      {"40001", false, later},    {"40P01", false, later},    {"55P03", false, later},
      {"57014", false, later},    {"53100", false, room},     {"0A000", false, kAnew},
      {"26000", false, kAnew},    {"0A000", true, program},   {"26000", true, program},
      {"42501", false, program},  {"P0001", false, program},  {"23514", false, program},
      {"PW003", false, program},
  };
  for (const auto& row : rows) {
    for (const bool breaker_open : {false, true}) {
      CAPTURE(row.sqlstate, row.prepared_anew);
      Head head;
      if (row.prepared_anew)
        head.prepared_anew_for = 7;
      head.attempts = 9;
      auto policy = kLetters;
      policy.breaker_open = breaker_open;
      CHECK(decide(attempt(Undertaking::kEndOfLog, of_state(row.sqlstate, true)), head, policy) ==
            row.expected);
    }
  }
}

TEST_CASE("a record about a message that is refused is no attempt of it") {
  const Action later{What::kTryAgain, Wait::kRetryBackoff, Say::kWarning};
  for (const std::string state : {"23505", "P0001", "42501", "53100", "40001", "57014"}) {
    CAPTURE(state);
    CHECK(decide(attempt(Undertaking::kNote, of_state(state, true)), {9}, kLetters) == later);
  }
  for (const std::string state : {"0A000", "26000"}) {
    CAPTURE(state);
    Head head;
    CHECK(decide(attempt(Undertaking::kNote, of_state(state, true)), head, kLetters) == kAnew);
    head.prepared_anew_for = 7;
    CHECK(decide(attempt(Undertaking::kNote, of_state(state, true)), head, kLetters) == later);
  }
  CHECK(decide(attempt(Undertaking::kNote, of_state("PW001", true)), {}, kLetters) == kGiveWay);
  CHECK(decide(attempt(Undertaking::kNote, of_state("PW002", true)), {}, kLetters) == kAskAgain);
}

TEST_CASE("what cannot be acquired, or halted, is asked for again") {
  const Action later{What::kTryAgain, Wait::kAcquireBackoff, Say::kWarning};
  for (const std::string state :
       {"23505", "P0001", "42501", "53100", "40001", "PW001", "PW002", "PW004"}) {
    CAPTURE(state);
    CHECK(decide(attempt(Undertaking::kAcquire, of_state(state, true)), {}, kLetters) == later);
    CHECK(decide(attempt(Undertaking::kHalt, of_state(state, true)), {}, kLetters) == kAskAgain);
  }
  for (const std::string state : {"0A000", "26000"}) {
    CAPTURE(state);
    CHECK(decide(attempt(Undertaking::kAcquire, of_state(state, true)), {}, kLetters) == kAnew);
    CHECK(decide(attempt(Undertaking::kHalt, of_state(state, true)), {}, kLetters) == kAnew);
  }
}

TEST_CASE("only what ran a message shows that the server has room again") {
  for (const auto what : kAll) {
    CAPTURE(static_cast<int>(what));
    const bool ran = what == Undertaking::kMessage || what == Undertaking::kBatch;
    for (const std::string state : {"23505", "40001", "42501", "PW001"})
      CHECK(shows_room(attempt(what, of_state(state))) == ran);
    CHECK_FALSE(shows_room(attempt(what, of_state("53100"))));
    CHECK_FALSE(shows_room(attempt(what, of_state("", false, true))));
  }
}

TEST_CASE("in doubt are effects and positions, not what is asked for again") {
  auto lost = of_state("", false, true);
  lost.in_doubt = true;
  for (const auto what :
       {Undertaking::kMessage, Undertaking::kPipeline, Undertaking::kBatch, Undertaking::kEndOfLog})
    CHECK(leaves_doubt(attempt(what, lost)));
  for (const auto what : {Undertaking::kNote, Undertaking::kHalt, Undertaking::kAcquire})
    CHECK_FALSE(leaves_doubt(attempt(what, lost)));
  lost.in_doubt = false;
  CHECK_FALSE(leaves_doubt(attempt(Undertaking::kMessage, lost)));
}
