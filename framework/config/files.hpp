#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::config {

/// The files that a configuration is made of: its own, and those that ${file:PATH} names. Each is
/// read once, so that a text that was checked is the text that is used. Not thread-safe.
class Files {
 public:
  /// Nullopt: it cannot be read, for the reason in `problem`.
  struct Content {
    std::optional<std::string> text;
    std::string problem = {};
  };
  /// Of the path as it is written, from the working directory.
  [[nodiscard]] Content read(const std::filesystem::path& path);

  /// All that were read, in a form that unpacked() reads.
  [[nodiscard]] std::string packed() const;
  /// Throws std::invalid_argument.
  [[nodiscard]] static Files unpacked(std::string_view packed);

 private:
  std::map<std::string, std::string> contents_;
};

}  // namespace pawl::config
