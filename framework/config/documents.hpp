#pragma once

#include <string>
#include <vector>

#include "config/option_table.hpp"

namespace pawl::config {

/// conf/reference.toml: every option of the table with its meaning and its default.
[[nodiscard]] std::string reference_toml(OptionTable table);

/// A page of docs/reference, without ".md" in its name.
struct ReferencePage {
  std::string name;
  std::string text;
};

/// A page for each section of the configuration.
[[nodiscard]] std::vector<ReferencePage> reference_pages(OptionTable table);

}  // namespace pawl::config
