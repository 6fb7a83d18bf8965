#pragma once

#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

struct Step {
  const Statement* statement;
  Parameters parameters;
};

/// Runs the steps as one transaction in one flight, committed synchronously even where the session
/// has synchronous_commit=off: what a crash must not take back (an acquired epoch, an operator's
/// command). Returns one result a step; throws Error, or InDoubt when the answer to COMMIT is lost.
std::vector<Result> run_transaction(Session& session, std::vector<Step> steps);

/// The same, but COMMIT does not wait for the disk: for what may be done again after a crash.
std::vector<Result> run_relaxed_transaction(Session& session, std::vector<Step> steps);

}  // namespace pawl::postgres
