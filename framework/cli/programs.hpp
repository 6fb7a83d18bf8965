#pragma once

#include <string_view>
#include <vector>

#include "pawl/options.hpp"

namespace pawl::cli {

/// A program that an option names.
struct NamedProgram {
  std::string_view option;
  std::string_view what;  ///< for people: "alert command"
  const std::vector<std::string>& command;
};

/// Of all options that name one.
[[nodiscard]] std::vector<NamedProgram> programs_of(const Options& options);

/// Throws BadCall when one of them cannot be run on this machine.
void require_programs(const Options& options);

}  // namespace pawl::cli
