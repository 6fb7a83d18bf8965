#pragma once

#include "console/commands.hpp"

namespace pawl::cli {

void add_consumers(Command& parser, Commands& commands);

}  // namespace pawl::cli
