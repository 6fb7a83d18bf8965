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

/// The value of a variable of this process' environment.
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct LoadRequest {
  /// The config file. Empty: none, everything comes from `overrides` and the defaults.
  std::filesystem::path path;
  /// Taken instead of the file's content; `path` is then only its name in error texts.
  std::optional<std::string> text;
  /// What was read of them before is taken from here; null: all are read. Outlives the call.
  Files* files = nullptr;
  /// "kafka.group=other", as after --set; later ones win. The value is any TOML value, or a bare
  /// string.
  std::vector<std::string> overrides;
  /// The same, as after --default: the file and `overrides` win.
  std::vector<std::string> defaults = {};
  /// Whence ${NAME} comes.
  EnvironmentLookup environment = process_environment;
  /// Says what is wrong with a property of [kafka.librdkafka]; empty: nothing, or not asked. This
  /// room does not know librdkafka (kafka::property_problem does).
  std::function<std::string(const std::string& name, const std::string& value)> property_problem =
      {};
  /// False: what nobody has said may be missing.
  bool complete = true;
  /// What lacks both kafka.group and handlers is no consumer's, and enough to relay the outbox.
  bool may_only_relay = false;
};

/// The options of the user's file over the defaults, and the overrides over both.
/// They are valid in the sense of validate(). Throws ConfigErrors with everything that is wrong,
/// in the order of the file; its texts never show a substituted value or a password.
[[nodiscard]] Options load(const LoadRequest& request);

/// The same, with each option's value and where it comes from; throws the same.
[[nodiscard]] std::vector<OptionInForce> load_in_force(const LoadRequest& request);

}  // namespace pawl::config
