#pragma once

#include "console/commands.hpp"

namespace pawl::cli {

void add_dlq(Command& parser, Commands& commands);
void add_dlq_show(Command& dlq, Commands& commands);
void add_dlq_parked(Command& dlq, Commands& commands);
void add_dlq_replay(Command& dlq, Commands& commands);
void add_dlq_discard(Command& dlq, Commands& commands);
void add_dlq_transfer(Command& dlq, Commands& commands);
void add_dlq_erase(Command& dlq, Commands& commands);

}  // namespace pawl::cli
