#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pawl/options.hpp"

namespace pawl {

/// Reads the options with which `pawl run --config FILE --set KEY=VALUE ...` would run, for
/// programs with their own main() (pawl::Consumer). docs/reference describes the file.
///
///   const auto options = pawl::load_config("payments.toml", {"kafka.group=other"});
///
/// `file`: a TOML file. Empty: all options come from `overrides` and the defaults.
/// `overrides`: each as after --set, "kafka.group=other". They replace the options of the file, and
/// the last one of an option counts. ${NAME} in a string is replaced by an environment variable,
/// ${file:PATH} by the content of a file.
///
/// Throws ConfigErrors with all errors in the order of the file, one line each: place, option, what
/// is wrong, and what to do. A file that cannot be read is such an error. No text contains a
/// password or the value of ${...}. load_config() also checks properties of librdkafka. It connects
/// to no server. pawl::Consumer checks whether code has registered the handlers that the file
/// names.
[[nodiscard]] Options load_config(const std::filesystem::path& file,
                                  const std::vector<std::string>& overrides = {});

}  // namespace pawl
