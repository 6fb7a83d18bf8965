#pragma once

#include <string>

#include "console/commands.hpp"
#include "leases/store/view.hpp"

namespace pawl::cli {

void add_leases(Command& parser, Commands& commands);

/// The word for the state of a lease: calling, done, unknown or waiting.
[[nodiscard]] std::string lease_state(const ledger::LeaseRow& lease);

}  // namespace pawl::cli
