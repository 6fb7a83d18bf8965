#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <pawl/options.hpp>
#include <string>
#include <vector>

#include "config/files.hpp"
#include "config/in_force.hpp"
#include "config/problems.hpp"
#include "config/substitution.hpp"

namespace pawl::config {

/// The value of an environment variable of this process.
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct LoadRequest {
  /// The configuration file. Empty: none, all options come from `overrides` and the defaults.
  std::filesystem::path path;
  /// Replaces the content of the file. `path` is then only its name in error texts.
  std::optional<std::string> text;
  /// Files that were read before are taken from it. Null: all files are read. Must outlive the
  /// call.
  Files* files = nullptr;
  /// "kafka.group=other", as after --set. The last one of an option counts. The value is a TOML
  /// value or a bare string.
  std::vector<std::string> overrides;
  /// The same, as after --default: the file and `overrides` take precedence.
  std::vector<std::string> defaults = {};
  /// The source of ${NAME}.
  EnvironmentLookup environment = process_environment;
  /// Returns the problem of a property of [kafka.librdkafka], or an empty text. Empty: properties
  /// are not checked. This module does not use librdkafka (kafka::property_problem does).
  std::function<std::string(const std::string& name, const std::string& value)> property_problem =
      {};
  /// False: required options may be missing.
  bool complete = true;
  /// A configuration without kafka.group and without handlers is valid, because it can relay the
  /// outbox.
  bool may_only_relay = false;
};

/// Reads the defaults, then the file, then the overrides. The result passes validate(). Throws
/// ConfigErrors with all errors in the order of the file. Its texts never contain a substituted
/// value or a password.
[[nodiscard]] Options load(const LoadRequest& request);

/// The same, as a list of options with their values and origins.
[[nodiscard]] std::vector<OptionInForce> load_in_force(const LoadRequest& request);

}  // namespace pawl::config
