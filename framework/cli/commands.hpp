#pragma once

#include "console/commands.hpp"

namespace pawl::cli {

void add_run(Command& parser, Commands& commands);
void add_relay(Command& parser, Commands& commands);
void add_dashboard(Command& parser, Commands& commands);
void add_check(Command& parser, Commands& commands);
void add_config(Command& parser, Commands& commands);
void add_offsets(Command& parser, Commands& commands);
void add_offsets_show(Command& offsets, Commands& commands);
void add_offsets_set(Command& offsets, Commands& commands);
void add_offsets_reset(Command& offsets, Commands& commands);
void add_partitions(Command& parser, Commands& commands);
void add_partitions_peek(Command& partitions, Commands& commands);
void add_skipped(Command& parser, Commands& commands);
void add_keys(Command& parser, Commands& commands);
void add_init(Command& parser, Commands& commands);
void add_migrate(Command& parser, Commands& commands);
void add_status(Command& parser, Commands& commands);
void add_tail(Command& parser, Commands& commands);
void add_try(Command& parser, Commands& commands);
void add_version(Command& parser, Commands& commands);

}  // namespace pawl::cli
