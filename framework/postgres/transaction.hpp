#pragma once

#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"

namespace pawl::postgres {

/// Runs the requests as one transaction in one flight, committed synchronously even where the
/// session has synchronous_commit=off: what a crash must not take back (an acquired epoch, an
/// operator's command). Returns one result a request; throws Error, or InDoubt when the answer to
/// COMMIT is lost.
std::vector<Result> run_transaction(Session& session, std::vector<Request> requests);

/// Runs the requests as one transaction in one flight whose COMMIT does not wait for the disk: for
/// what may be done again after a crash. Returns and throws as run_transaction().
std::vector<Result> run_relaxed_transaction(Session& session, std::vector<Request> requests);

/// Returns once everything that was committed before is on disk, whoever committed it.
void flush_commits(Session& session);

}  // namespace pawl::postgres
