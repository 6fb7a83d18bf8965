#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "prelude.hpp"
#include "site.hpp"

/// An alert command of a test: a shell script in a folder of its own, and what it left there.
class Hook {
 public:
  /// $dir is the folder.
  explicit Hook(const std::string& script) {
    write_file(path(), "#!/bin/sh\ndir='" + folder_.path().string() + "'\n" + script);
    ::chmod(path().c_str(), 0755);
  }

  /// Keeps each alert as a line of `alerts`, and its environment in `env`.
  static Hook recording() {
    return Hook(
        "cat >> \"$dir/alerts\"\n"
        "env | grep ^PAWL_ALERT_ > \"$dir/env\"\n");
  }

  std::filesystem::path path() const { return folder_.path() / "hook"; }
  std::string file(const std::string& name) const { return read_file(folder_.path() / name); }

  /// For the configuration.
  std::string section(const std::string& more = "") const {
    return "\n[alerts]\ncommand = [\"" + path().string() + "\"]\n" + more;
  }

  std::vector<nlohmann::json> alerts() const {
    std::vector<nlohmann::json> alerts;
    std::istringstream lines(file("alerts"));
    for (std::string line; std::getline(lines, line);)
      alerts.push_back(nlohmann::json::parse(line));
    return alerts;
  }

  nlohmann::json wait_for(const std::string& kind) const {
    nlohmann::json found;
    wait_until(
        [&] {
          for (const auto& alert : alerts()) {
            if (alert.at("kind") == kind)
              found = alert;
          }
          return !found.is_null();
        },
        kDeadline, "an alert \"" + kind + "\"");
    return found;
  }

  /// How many of them there are.
  std::int64_t count(const std::string& kind) const {
    const auto all = alerts();
    return std::ranges::count_if(all, [&](const auto& alert) { return alert.at("kind") == kind; });
  }

  void wait_for_file(const std::string& name) const {
    wait_until([&] { return file(name).ends_with('\n'); }, kDeadline, "the hook's file " + name);
  }

 private:
  TempDir folder_{"hook"};
};
