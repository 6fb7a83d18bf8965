#include "postgres/sqlstate.hpp"

namespace pawl::postgres {

namespace {

/// Whether a statement of pawl's own may fail so by what the message brings: a key that the
/// database's encoding does not have or that is too large for an index (22, 54), or what pawl
/// itself raises. 25P02: a statement of the handler's failed before, and the handler went on.
bool is_of_values(std::string_view state) {
  return state.empty() || state.starts_with("22") || state.starts_with("54") ||
         state.starts_with("PW") || state == "25P02";
}

}  // namespace

FailureClass classify(std::string_view state, Circumstances met) {
  const auto in_class = [state](std::string_view prefix) { return state.starts_with(prefix); };

  if (met.session_died)
    return FailureClass::kConnection;
  if (state == kFencedState)
    return FailureClass::kFenced;
  if (state == kOutOfOrderState || state == kScopeMovedState)
    return FailureClass::kOutOfOrder;
  if (state == kSessionChangedState)
    return FailureClass::kSessionChanged;
  // To begin anew is what it takes: the new connection is asked which database it leads to.
  if (state == kWrongDatabaseState)
    return FailureClass::kConnection;
  if (state == kTransactionEndedState)
    return FailureClass::kTransactionEnded;
  if (state == kRowMissingState)
    return FailureClass::kRowMissing;
  if (state == kKeyVanishedState || state == kLeaseLostState)
    return FailureClass::kContention;

  // A wrong number of parameters, for one; the session goes on. What a pooler says so before it
  // closes the connection is known by the closing.
  if (state == "08P01")
    return FailureClass::kProgram;
  if (state == "25006")
    return FailureClass::kReadOnly;
  if (state == "57014" && met.own_statement)
    return FailureClass::kContention;
  // 53400 is a limit that the statement itself ran into (temp_file_limit): the message's.
  if (in_class("53") && state != "53400")
    return FailureClass::kResource;
  if (in_class("58"))
    return FailureClass::kResource;
  if (state == "40001" || state == "40P01" || state == "55P03")
    return FailureClass::kContention;
  // 28 authorization, 3D database, 3F schema, 42 syntax/undefined/privilege, 0A unsupported,
  // 26 unknown prepared statement: the set-up is wrong, not the message.
  if (in_class("42") || in_class("3F") || in_class("3D") || in_class("28") || in_class("26") ||
      in_class("0A")) {
    return FailureClass::kProgram;
  }
  // Pawl's tables are as its own statements leave them; but a sequence may be behind its table.
  // What a value is not allowed to be (NULL, CHECK) is the fault of whoever gave it.
  if (met.own_constraint && (state == "23505" || state == "23503"))
    return FailureClass::kProgram;
  if (met.own_statement && !is_of_values(state))
    return FailureClass::kProgram;
  return FailureClass::kMessage;
}

bool is_goodbye(std::string_view state) {
  // 57P01 admin shutdown ... 57P05 idle session timeout; 57014 (query canceled) is not among them.
  return state.starts_with("08") || state.starts_with("57P") || state == kWrongDatabaseState;
}

std::string_view to_string(FailureClass failure) {
  switch (failure) {
    case FailureClass::kConnection:
      return "connection";
    case FailureClass::kReadOnly:
      return "read-only";
    case FailureClass::kResource:
      return "resource";
    case FailureClass::kContention:
      return "contention";
    case FailureClass::kProgram:
      return "program";
    case FailureClass::kMessage:
      return "message";
    case FailureClass::kFenced:
      return "fenced";
    case FailureClass::kOutOfOrder:
      return "out of order";
    case FailureClass::kSessionChanged:
      return "session settings";
    case FailureClass::kTransactionEnded:
      return "transaction ended by the handler";
    case FailureClass::kRowMissing:
      return "offset row missing";
  }
  return "unknown";
}

}  // namespace pawl::postgres
