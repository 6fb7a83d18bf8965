#include "redis_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <stdexcept>
#include <utility>

#include <pawl/testing/scripts.hpp>

#include "redis/transport.hpp"

namespace pawl::test {

RedisServer::RedisServer(std::vector<std::string> settings, std::string mode)
    : settings_(std::move(settings)), mode_(std::move(mode)), folder_("redis") {
  start();
}

RedisServer::~RedisServer() {
  try {
    if (running_)
      thaw();
    stop();
  } catch (const std::exception& error) {
    fmt::print(stderr, "a Redis in {} was not stopped: {}\n", folder_.path().string(),
               error.what());
  }
}

RedisServer& RedisServer::shared() {
  static RedisServer server;
  (void)server.ask({"FLUSHALL"});
  return server;
}

redis::Settings RedisServer::settings() const {
  redis::Settings settings;
  settings.address = address_;
  settings.timeout = std::chrono::seconds(20);
  return settings;
}

redis::Reply RedisServer::ask(const redis::Command& command) const {
  redis::Transport transport(address_, {}, std::chrono::seconds(20), "the test's Redis");
  return transport.exchange({command}).front();
}

std::string RedisServer::text(const redis::Command& command) const {
  const auto reply = ask(command);
  return reply.type == redis::Reply::Type::kInteger ? std::to_string(reply.integer) : reply.text;
}

void RedisServer::start() {
  if (running_)
    return;
  std::vector<std::string> arguments{"redis", "start", folder_.path().string(), "--mode", mode_};
  if (address_.port != 0)
    arguments.insert(arguments.end(), {"--port", std::to_string(address_.port)});
  if (mode_ == "server")
    arguments.insert(arguments.end(), {"--conf", "save=\"\""});
  for (const auto& setting : settings_)
    arguments.insert(arguments.end(), {"--conf", setting});
  const auto where = testing::run_script(testing::scripts_folder() / "services", arguments);
  address_ = redis::parse_address(where).value();
  running_ = true;
}

void RedisServer::stop() {
  if (!running_)
    return;
  testing::run_script(testing::scripts_folder() / "services",
                      {"redis", "stop", folder_.path().string()});
  running_ = false;
}

void RedisServer::freeze() const {
  signal(SIGSTOP);
}

void RedisServer::thaw() const {
  signal(SIGCONT);
}

void RedisServer::signal(int number) const {
  std::ifstream file(folder_.path() / "service.pid");
  pid_t pid = 0;
  if (!(file >> pid) || ::kill(pid, number) != 0)
    throw std::runtime_error("no Redis runs in " + folder_.path().string());
}

}  // namespace pawl::test
