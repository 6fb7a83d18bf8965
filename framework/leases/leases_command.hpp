#pragma once

#include <string>

#include "console/commands.hpp"
#include "leases/store/view.hpp"

namespace pawl::cli {

void add_leases(Command& parser, Commands& commands);

/// What the state of a lease is called: in hand, unknown, done, waiting.
[[nodiscard]] std::string lease_state(const ledger::LeaseRow& lease);

}  // namespace pawl::cli
