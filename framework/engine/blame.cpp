#include "engine/blame.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/set_aside.hpp"
#include "handlers/bytes_binding.hpp"
#include "postgres/describe.hpp"

namespace pawl::engine {
namespace {

using postgres::FailureClass;

constexpr std::string_view kNoRight = "42501";
constexpr std::string_view kNoTable = "42P01";
constexpr std::string_view kNoFunction = "42883";
constexpr std::string_view kDiskFull = "53100";
constexpr std::string_view kTooManyConnections = "53300";
constexpr std::string_view kTerminated = "57P01";

/// PostgreSQL's own checks of rights. They also happen behind defaults and triggers, where EXPLAIN
/// does not look.
bool is_missing_right(const Failure& failure) {
  constexpr std::array<std::string_view, 5> kRoutines{"aclcheck_error", "nextval_internal",
                                                      "currval_oid", "lastval", "do_setval"};
  if (failure.sqlstate != kNoRight)
    return false;
  // Of a statement of code's it is not known who raised it. The policies of tables speak of rows.
  if (!failure.code_sql.empty())
    return failure.text.find("row-level security policy") == std::string::npos;
  return std::ranges::find(kRoutines, failure.origin.routine) != kRoutines.end();
}

Proof proof_against_program_error(const Failure& failure) {
  const bool may_be_of_values =
      failure.sqlstate.starts_with("42") || failure.sqlstate.starts_with("0A");
  if (!may_be_of_values || failure.own_statement || is_missing_right(failure))
    return Proof::kNone;
  // Inside of a function it may be missing for all messages.
  if (failure.origin.nested && (failure.sqlstate == kNoTable || failure.sqlstate == kNoFunction))
    return Proof::kHandlerWorks;
  return Proof::kSoundStatements;
}

/// Runs as a consumer's statements do, and leaves nothing behind. Not while a table is locked:
/// parsing would wait for it.
bool are_sound(Context& context, WorkerSession& session, const Attempt& attempt) {
  const auto* const binding = attempt.subject.binding;
  if (binding == nullptr)
    return false;
  const auto statements = binding->handler->statements();
  if (statements.empty() && attempt.failure.code_sql.empty())
    return false;
  try {
    const auto fresh = session.open_another();
    if (fresh == nullptr || postgres::some_table_is_locked(*fresh))
      return false;
    if (statements.empty())
      return !postgres::describe(*fresh, attempt.failure.code_sql, std::nullopt).problem;
    return std::ranges::all_of(statements, [&](const auto& statement) {
      const auto described = postgres::describe(*fresh, statement.sql, statement.parameters);
      return !described.problem && !handlers::binding_problem(statement, described.types);
    });
  } catch (...) {  // code's, which sets up a session, may be anything
    const auto why = explain(std::current_exception(), true);
    context.observers.emit(warning_event(Warning::kCauseUndetermined, why.text));
    return false;
  }
}

bool is_proven(Context& context, WorkerSession& session, const Attempt& attempt, Head& head) {
  const auto& failure = attempt.failure;
  switch (proof_against(attempt, head)) {
    case Proof::kNone:
      return false;
    case Proof::kSoundStatements:
      return are_sound(context, session, attempt);
    case Proof::kHandlerWorks:
      return head.suspicion.failed(failure.sqlstate, context.passes.of(handler_of(attempt))) >=
             kAttemptsWhileOthersPass;
    case Proof::kServerWorks:
      return head.suspicion.failed(failure.sqlstate, context.passes.of_all()) >=
             kAttemptsWhileOthersPass;
  }
  return false;
}

}  // namespace

Proof proof_against(const Attempt& attempt, const Head& head) {
  const auto& failure = attempt.failure;
  if (!runs_handler(attempt.what) || attempt.counted)
    return Proof::kNone;
  switch (failure.kind) {
    case FailureClass::kConnection:
      return attempt.subject.handler_begun && failure.sqlstate == kTerminated ? Proof::kServerWorks
                                                                              : Proof::kNone;
    case FailureClass::kResource:
      return failure.sqlstate.starts_with("53") && failure.sqlstate != kDiskFull &&
                     failure.sqlstate != kTooManyConnections
                 ? Proof::kServerWorks
                 : Proof::kNone;
    case FailureClass::kProgram:
      // Together with others it is not known whose values they were; a session may be stale.
      if (attempt.what != Undertaking::kMessage ||
          (is_stale_statement(failure) && head.prepared_anew_for != attempt.offset))
        return Proof::kNone;
      return proof_against_program_error(failure);
    default:
      return Proof::kNone;
  }
}

Attempt with_blame(Context& context, WorkerSession& session, const Attempt& attempt, Head& head) {
  auto blamed = attempt;
  if (!is_proven(context, session, attempt, head))
    return blamed;
  if (attempt.failure.kind == FailureClass::kConnection)
    blamed.breaks_connections = true;
  else
    blamed.failure.kind = FailureClass::kMessage;
  return blamed;
}

}  // namespace pawl::engine
