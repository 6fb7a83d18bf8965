#pragma once

#include <memory>
#include <string>
#include <vector>

#include "console/command.hpp"
#include "pawl/options.hpp"

namespace pawl::config {
class Files;
struct OptionInForce;
}  // namespace pawl::config

namespace pawl::cli {

/// --config and --set, which every command that needs a configuration has, and --default.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> defaults;  ///< of a command that has the option
  std::string program;                ///< that has the command
  /// The command's texts are read elsewhere than it runs: in a log, in a browser. Their commands
  /// name the file even if PAWL_CONFIG is set here.
  bool read_elsewhere = false;

  /// Throws ConfigErrors with all errors. `files`: those that were read before; null: none.
  [[nodiscard]] Options load(config::Files* files = nullptr) const;

  /// The same, where what lacks both kafka.group and handlers is enough to relay the outbox
  /// (config::only_relays()).
  [[nodiscard]] Options load_to_relay(config::Files* files = nullptr) const;

  /// The same for a person to look at; without a file nothing is missing.
  [[nodiscard]] std::vector<config::OptionInForce> in_force() const;

 private:
  [[nodiscard]] Options load(config::Files* files, bool may_only_relay) const;
};

/// Adds the two options; the arguments are filled when the command line is parsed. The default of
/// --config is $PAWL_CONFIG.
std::shared_ptr<ConfigArguments> add_config_arguments(Command& command);

/// The same, but --config may be omitted.
std::shared_ptr<ConfigArguments> add_optional_config_arguments(Command& command);

}  // namespace pawl::cli
