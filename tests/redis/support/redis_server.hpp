#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <pawl/testing/temp_dir.hpp>

#include "redis/reply.hpp"
#include "redis/settings.hpp"

namespace pawl::test {

/// A real Redis, or a Sentinel, of a test's own on a port of its own, without a disk; run by
/// scripts/services, ended when the object goes.
class RedisServer {
 public:
  /// `settings`: "name=value", for redis.conf. `mode`: "server" or "sentinel".
  explicit RedisServer(std::vector<std::string> settings = {}, std::string mode = "server");
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  /// For tests that leave it as it was: started at the first call, ended at exit. Empty now.
  static RedisServer& shared();

  [[nodiscard]] const redis::Address& address() const { return address_; }
  /// For whoever connects to it, with a timeout that only a broken test meets.
  [[nodiscard]] redis::Settings settings() const;

  /// Runs a command without a password or TLS, whatever the server is; its errors are replies.
  redis::Reply ask(const redis::Command& command) const;
  /// What it answers to that, as a text; an integer in digits, nothing as "".
  std::string text(const redis::Command& command) const;

  void stop();
  /// At the same address, empty.
  void start();
  /// The process stands still, and goes on.
  void freeze() const;
  void thaw() const;

 private:
  void signal(int number) const;

  std::vector<std::string> settings_;
  std::string mode_;
  testing::TempDir folder_;
  redis::Address address_;
  bool running_ = false;
};

}  // namespace pawl::test
