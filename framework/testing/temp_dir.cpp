#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <pawl/testing/temp_dir.hpp>
#include <system_error>
#include <utility>

namespace pawl::testing {

namespace fs = std::filesystem;

namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

TempDir::TempDir(const std::string& prefix) {
  const char* given = environment("PAWL_TEST_DIR");
  const fs::path parent = given != nullptr ? fs::path{given} : fs::temp_directory_path();
  fs::create_directories(parent);
  std::string name = (fs::absolute(parent) / ("pawl-" + prefix + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) {
    throw fs::filesystem_error{"cannot create a folder for the test. Set PAWL_TEST_DIR", parent,
                               std::error_code{errno, std::generic_category()}};
  }
  path_ = name;
  // PostgreSQL refuses to run as root; the user it runs as instead must be able to enter.
  fs::permissions(path_, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
}

TempDir::TempDir(TempDir&& other) noexcept : path_{std::exchange(other.path_, fs::path{})} {}

TempDir::~TempDir() {
  if (path_.empty() || environment("PAWL_TEST_KEEP") != nullptr) {
    return;
  }
  std::error_code ignored;  // a folder left behind must not end the program
  fs::remove_all(path_, ignored);
}

}  // namespace pawl::testing
