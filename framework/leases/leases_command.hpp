#pragma once

#include <string>

#include "console/commands.hpp"
#include "leases/store/view.hpp"

namespace pawl::cli {

void add_leases(Command& parser, Commands& commands);

}  // namespace pawl::cli
