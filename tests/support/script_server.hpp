#pragma once

#include <string>
#include <vector>

#include <pawl/testing/child_process.hpp>
#include <pawl/testing/temp_dir.hpp>

namespace pawl::test {

/// A server that is a Python script of the tests. The script takes a free port of 127.0.0.1 and
/// writes "PORT n" when it listens; it is killed with this object.
class ScriptServer {
 public:
  ScriptServer(const std::string& script, std::vector<std::string> arguments);

  [[nodiscard]] int port() const { return port_; }
  /// What it has written behind its port, errors as well.
  [[nodiscard]] std::string log() const;

 private:
  testing::TempDir folder_;
  testing::ChildProcess process_;
  int port_ = 0;
};

}  // namespace pawl::test
