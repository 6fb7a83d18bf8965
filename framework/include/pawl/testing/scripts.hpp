#pragma once

// Returns the grants that a role needs, as SQL.
//
//   #include <pawl/testing/scripts.hpp>
//   #include <string>
//
//   std::string grants(const std::string& url) {
//     return pawl::testing::run_script(pawl::testing::scripts_folder() / "migrate",
//                                      {"grants", "--database", url, "--role", "payments"});
//   }

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace pawl::testing {

/// The folder with pawl's scripts (`services`, `migrate`). The environment variable PAWL_SCRIPTS
/// names it. If the variable is not set, it is the folder of the source tree, if pawl is built as a
/// part of this build. Throws std::runtime_error if neither exists.
inline std::filesystem::path scripts_folder() {
  if (const char* folder = std::getenv("PAWL_SCRIPTS"); folder != nullptr && *folder != '\0') {
    return folder;
  }
#ifdef PAWL_SOURCE_DIR
  return std::filesystem::path{PAWL_SOURCE_DIR} / "scripts";
#else
  throw std::runtime_error{
      "cannot find pawl's scripts. Set PAWL_SCRIPTS to the folder that contains them"};
#endif
}

/// Runs a script, and returns its stdout without trailing newlines. If its exit code is not 0,
/// throws std::runtime_error with its stderr. If it runs for more than 2 minutes, kills it and
/// throws Timeout. Throws std::system_error if the script cannot be started.
std::string run_script(const std::filesystem::path& script,
                       const std::vector<std::string>& arguments);

}  // namespace pawl::testing
