#pragma once

#include <string>

#include "console/command_tree.hpp"

namespace pawl::cli {

/// docs/reference/commands.md: every command in Markdown, as `manual --markdown` prints it.
[[nodiscard]] std::string commands_page(const CommandTree& program);

}  // namespace pawl::cli
