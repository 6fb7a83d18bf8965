#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace pawl::testing {

/// The folder with pawl's scripts (`services`, `migrate`): named by PAWL_SCRIPTS, else that of the
/// source tree when pawl is built as part of this build. Throws std::runtime_error without either.
inline std::filesystem::path scripts_folder() {
  if (const char* folder = std::getenv("PAWL_SCRIPTS"); folder != nullptr && *folder != '\0') {
    return folder;
  }
#ifdef PAWL_SOURCE_DIR
  return std::filesystem::path{PAWL_SOURCE_DIR} / "scripts";
#else
  throw std::runtime_error{
      "pawl::testing does not know where pawl's scripts are: set PAWL_SCRIPTS to their folder"};
#endif
}

/// Runs a script and returns what it wrote to stdout, without the newline at its end. Throws
/// std::runtime_error with what it wrote to stderr when its exit code is not 0, and Timeout after
/// two minutes.
std::string run_script(const std::filesystem::path& script,
                       const std::vector<std::string>& arguments);

}  // namespace pawl::testing
