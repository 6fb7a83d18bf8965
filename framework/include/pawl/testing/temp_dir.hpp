#pragma once

// Writes a configuration file into a folder of its own.
//
//   #include <filesystem>
//   #include <fstream>
//   #include <pawl/testing/temp_dir.hpp>
//   #include <string>
//
//   std::filesystem::path write_config(const pawl::testing::TempDir& folder,
//                                      const std::string& text) {
//     const std::filesystem::path file = folder.path() / "payments.toml";
//     std::ofstream(file) << text;
//     return file;
//   }

#include <filesystem>
#include <string>

namespace pawl::testing {

/// A new, empty folder. The destructor removes it with everything in it.
///
/// The environment variable PAWL_TEST_DIR names its parent. If the variable is not set, its parent
/// is the system's folder for temporary files. If PAWL_TEST_KEEP is set and not empty, the
/// destructor keeps the folder, so that you can inspect it.
class TempDir {
 public:
  /// Creates the folder, and its parent if that is missing. The name starts with "pawl-" and
  /// `prefix`. Throws std::filesystem::filesystem_error if it cannot be created.
  explicit TempDir(const std::string& prefix = "test");
  ~TempDir();
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&&) = delete;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;  // empty after a move
};

}  // namespace pawl::testing
