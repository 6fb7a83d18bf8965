#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config/load.hpp"

namespace pawl::test {

/// What every config needs, on 11 lines; the handler's header is line 9.
inline const std::string kRequired = R"([kafka]
bootstrap_servers = "localhost:9092"
group = "payments"

[idempotency]
key = "{header:event-id}"

# the one handler
[[handler]]
topics = ["payments"]
sql = "SELECT 1"
)";

using Environment = std::map<std::string, std::string>;

/// A request for a text as the file "a.toml".
inline config::LoadRequest request(std::string text, std::vector<std::string> overrides = {},
                                   Environment environment = {}) {
  config::LoadRequest request;
  request.path = "a.toml";
  request.text = std::move(text);
  request.overrides = std::move(overrides);
  request.environment = [environment = std::move(environment)](
                            const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional{found->second};
  };
  return request;
}

/// A folder of this test process' own that goes away with it.
inline std::string testing_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string pattern =
          (std::filesystem::temp_directory_path() / "pawl-config-XXXXXX").string();
      if (mkdtemp(pattern.data()) == nullptr)
        throw std::runtime_error{"no temporary folder"};
      path = pattern;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
  };
  static const Folder folder;
  return folder.path.string();
}

/// The error texts of a config that must not load, one per line; empty when it does.
inline std::string messages_of(const config::LoadRequest& request) {
  try {
    (void)config::load(request);
  } catch (const ConfigErrors& errors) {
    return errors.what();
  }
  return "";
}

}  // namespace pawl::test
