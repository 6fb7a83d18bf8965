#pragma once

#include <filesystem>
#include <string>

namespace pawl::testing {

/// A new folder that is removed, with everything in it, when this object goes.
///
/// Its parent is the folder named by PAWL_TEST_DIR, else the system's folder for temporary files.
/// With PAWL_TEST_KEEP set (to anything but nothing), folders stay for a look at what happened.
class TempDir {
 public:
  /// Throws std::filesystem::filesystem_error. The name begins with "pawl-" and the prefix.
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
