#include <fmt/format.h>
#include <unistd.h>

#include <pawl/testing/postgres_server.hpp>
#include <pqxx/pqxx>
#include <stdexcept>

namespace pawl::testing {

PostgresServer::PostgresServer(PostgresOptions options)
    : options_{std::move(options)}, folder_{"postgres"} {
  std::vector<std::string> arguments;
  if (!options_.version.empty()) {
    arguments.insert(arguments.end(), {"--version", options_.version});
  }
  for (const auto& setting : options_.settings) {
    arguments.insert(arguments.end(), {"--conf", setting});
  }
  for (const auto& file : options_.files) {
    arguments.insert(arguments.end(), {"--file", file.string()});
  }
  service("start", arguments);
  running_ = true;
  const std::string first_url =
      run_script(options_.scripts / "services", {"postgres", "url", folder_.path().string()});
  port_ = std::stoi(first_url.substr(first_url.rfind(':') + 1));
}

PostgresServer::~PostgresServer() {
  try {
    stop(StopMode::kImmediate);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pawl::testing: a PostgreSQL server in {} was not stopped: {}\n",
               folder_.path().string(), error.what());
  }
}

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

std::string PostgresServer::url(const std::string& database) const {
  return fmt::format("postgresql://postgres@127.0.0.1:{}/{}", port_, database);
}

std::string PostgresServer::create_empty_database(const std::string& prefix) {
  const std::string name = fmt::format("{}_{}_{}", prefix, getpid(), ++databases_);
  pqxx::connection connection{url()};
  pqxx::nontransaction statement{connection};
  statement.exec("CREATE DATABASE " + connection.quote_name(name));
  return url(name);
}

std::string PostgresServer::create_database(const std::string& prefix,
                                            const std::vector<MigrationSet>& migrations) {
  const std::string database = create_empty_database(prefix);
  run_script(options_.scripts / "migrate", {"up", "--database", database});
  for (const auto& set : migrations) {
    run_script(options_.scripts / "migrate",
               {"up", "--database", database, "--name", set.name, "--dir", set.folder.string()});
  }
  return database;
}

void PostgresServer::service(const std::string& command, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"postgres", command, folder_.path().string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  run_script(options_.scripts / "services", arguments);
}

void PostgresServer::stop(StopMode mode) {
  if (running_) {
    service("stop", {"--mode", mode == StopMode::kFast ? "fast" : "immediate"});
    running_ = false;
  }
}

void PostgresServer::start() {
  if (!running_) {
    service("start");
    running_ = true;
  }
}

void PostgresServer::restart(StopMode mode) {
  stop(mode);
  start();
}

// cp -a and not std::filesystem::copy: the files belong to the user that the server runs as.
void PostgresServer::save_copy() {
  const auto copy = folder_.path() / "copy";
  stop(StopMode::kFast);
  std::filesystem::remove_all(copy);
  run_script("cp", {"-a", "--", (folder_.path() / "data").string(), copy.string()});
  start();
}

void PostgresServer::restore_copy() {
  const auto copy = folder_.path() / "copy";
  if (!std::filesystem::exists(copy)) {
    throw std::logic_error{"there is no copy to restore: call save_copy() first"};
  }
  stop(StopMode::kImmediate);
  std::filesystem::remove_all(folder_.path() / "data");
  run_script("cp", {"-a", "--", copy.string(), (folder_.path() / "data").string()});
  start();
}

}  // namespace pawl::testing
