#pragma once

#include <vector>

#include "prelude.hpp"
#include "site.hpp"

namespace pawl::test {

/// A database and a Kafka, and a configuration that does no more than relay the outbox.
class RelaySite : public Site {
 public:
  using Site::Site;

  /// `pawl ARGUMENTS... --config FILE`, to its end.
  Outcome run_relay(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--config", relay_config()});
    return run_bare(arguments);
  }

  /// `pawl relay` beside the test.
  std::unique_ptr<ChildProcess> start_relay() {
    return std::make_unique<ChildProcess>(
        PAWL_PROGRAM, std::vector<std::string>{"relay", "--config", relay_config()},
        ChildOptions{.environment = {},
                     .output = folder_.path() / ("relay-log-" + std::to_string(++started_)),
                     .errors = {},
                     .working_directory = {}});
  }

  void publish(const std::string& to, const std::string& key, const std::string& value) const {
    sql("SELECT pawl.publish('" + to + "', '" + key + "', '" + value + "')");
  }

  /// Lines behind [outbox].
  std::string outbox_lines;

 private:
  std::string relay_config() {
    const auto path = folder_.path() / "relay.toml";
    write_file(path, "[kafka]\nbootstrap_servers = \"" + bootstrap + "\"\n[postgres]\nurl = \"" +
                         url + "\"\n[outbox]\n" + outbox_lines);
    return path.string();
  }

  TempDir folder_{"relay"};
  int started_ = 0;
};

}  // namespace pawl::test
