#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pawl/options.hpp"

namespace pawl {

/// The options with which `pawl run --config FILE --set KEY=VALUE ...` would run, for programs with
/// a main of their own (pawl::Consumer). docs/configuration.md has the format.
///
/// `file`: a TOML file; empty: none, everything comes from `overrides` and the defaults.
/// `overrides`: each as after --set, "kafka.group=other"; they come after the file, the last one of
/// an option counts. ${NAME} in a string is a variable of this process' environment, ${file:PATH} a
/// file's content.
///
/// Throws ConfigErrors with everything that is wrong, in the order of the file, one line each with
/// its place and what to do; a file that cannot be read is one of them. No text shows a password or
/// what ${...} stands for. librdkafka's properties are checked too. Connects to nothing; whether
/// code has registered a handler that the file names is Consumer's to say.
[[nodiscard]] Options load_config(const std::filesystem::path& file,
                                  const std::vector<std::string>& overrides = {});

}  // namespace pawl
