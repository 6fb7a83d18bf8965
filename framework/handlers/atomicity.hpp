#pragma once

#include <string>
#include <vector>

#include "handlers/router.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::handlers {

/// Which effects of the handlers' SQL another server would commit separately from the message's
/// transaction, so that a message could take effect twice.
struct Atomicity {
  std::vector<std::string> problems;  ///< a consumer must not start with them
  std::vector<std::string> warnings;
};

/// Asks the database's catalog about the tables that the statements of all handlers write to.
/// Leaves nothing behind on the session. Throws postgres::Error when the connection is lost.
[[nodiscard]] Atomicity check_atomicity(postgres::Session& session, const Router& router,
                                        const std::vector<HandlerOptions>& handlers);

/// Throws FatalError with the problems that check_atomicity() finds.
void require_atomicity(postgres::Session& session, const Router& router,
                       const std::vector<HandlerOptions>& handlers);

}  // namespace pawl::handlers
