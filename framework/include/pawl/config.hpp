#pragma once

// Prints the consumer group of a configuration, or all problems of the configuration.
//
//   #include <iostream>
//   #include <pawl/config.hpp>
//   #include <pawl/errors.hpp>
//
//   int main() {
//     try {
//       const pawl::Options options = pawl::load_config("payments.toml", {"log.level=debug"});
//       std::cout << options.kafka.group << '\n';
//     } catch (const pawl::ConfigErrors& errors) {
//       for (const std::string& problem : errors.problems())
//         std::cerr << problem << '\n';
//       return 2;
//     }
//   }

#include <filesystem>
#include <string>
#include <vector>

#include "pawl/options.hpp"

namespace pawl {

/// Returns the options with which `pawl run --config FILE --set NAME=VALUE ...` would run. For
/// programs with a main of their own (Consumer).
///
/// `file`: a TOML file (docs/reference/configuration.md). Empty: no file, so that all options come
/// from `overrides` and the defaults. In a string, ${NAME} is an environment variable of this
/// process, and ${file:PATH} is the content of a file.
///
/// `overrides`: options as after --set, such as "kafka.group=other". They override the file. If an
/// option occurs twice, the last one applies.
///
/// Throws ConfigErrors with all problems, in the order of the file. Each is one line with its
/// location and the fix. A file that cannot be read is one of them. No text contains a password or
/// a substituted value. load_config() also checks the properties of librdkafka, but connects to
/// nothing. Consumer checks that the handlers that the file names are registered.
[[nodiscard]] Options load_config(const std::filesystem::path& file,
                                  const std::vector<std::string>& overrides = {});

}  // namespace pawl
