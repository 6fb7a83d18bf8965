#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "pawl/options.hpp"

namespace pawl::cli {

/// --config and --set, which every command that needs a configuration has.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;

  /// Throws ConfigErrors with everything that is wrong.
  [[nodiscard]] Options load() const;
};

/// Adds the two options; the arguments are filled when the command line is parsed.
std::shared_ptr<ConfigArguments> add_config_arguments(CLI::App& command);

}  // namespace pawl::cli
