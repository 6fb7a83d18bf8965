#pragma once

#include <string>
#include <string_view>

#include "config/option_table.hpp"

namespace pawl::config {

/// conf/reference.toml: every option of the table with what it means, and its default.
[[nodiscard]] std::string reference_toml(OptionTable table);

/// docs/configuration.md with the tables of its options made anew: what stands between the lines
/// "<!-- options: kafka -->" and "<!-- end of options -->". Throws std::runtime_error when the
/// marks are not those of the table's sections, each once.
[[nodiscard]] std::string with_option_tables(std::string_view markdown, OptionTable table);

}  // namespace pawl::config
