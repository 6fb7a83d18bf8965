#include <fmt/format.h>
#include <unistd.h>

#include <functional>
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

namespace {

/// Held while a template is made: by one thread of all that use the server. The number is any.
constexpr const char* kLock = "SELECT pg_advisory_lock(1885435765)";

std::string template_name(const std::vector<MigrationSet>& migrations) {
  std::string sets;
  for (const auto& set : migrations)
    sets += set.name + '\n' + set.folder.string() + '\n';
  return fmt::format("template_{:016x}", std::hash<std::string>{}(sets));
}

}  // namespace

// Migrations take seconds and a copy of what they made a fraction of one, so they run once for each
// choice of them. The template is asked for each time: restore_copy() may have taken it away.
std::string PostgresServer::create_database(const std::string& prefix,
                                            const std::vector<MigrationSet>& migrations) {
  const auto origin = template_name(migrations);
  const auto name = fmt::format("{}_{}_{}", prefix, getpid(), ++databases_);
  pqxx::connection connection{url()};
  pqxx::nontransaction statement{connection};
  statement.exec(kLock);
  if (statement.exec("SELECT FROM pg_database WHERE datname = $1", pqxx::params{origin}).empty()) {
    const auto unfinished = create_empty_database(prefix);
    run_script(options_.scripts / "migrate", {"up", "--database", unfinished});
    for (const auto& set : migrations) {
      run_script(options_.scripts / "migrate", {"up", "--database", unfinished, "--name", set.name,
                                                "--dir", set.folder.string()});
    }
    statement.exec(fmt::format("ALTER DATABASE {} RENAME TO {}",
                               connection.quote_name(unfinished.substr(unfinished.rfind('/') + 1)),
                               origin));
  }
  statement.exec(
      fmt::format("CREATE DATABASE {} TEMPLATE {}", connection.quote_name(name), origin));
  // A copy would pass for the same database.
  pqxx::connection made{url(name)};
  pqxx::nontransaction(made).exec(
      "UPDATE pawl.database_identity SET database_id = gen_random_uuid(), created_at = now()");
  return url(name);
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
    throw std::logic_error{"no copy exists. Call save_copy() first"};
  }
  stop(StopMode::kImmediate);
  std::filesystem::remove_all(folder_.path() / "data");
  run_script("cp", {"-a", "--", copy.string(), (folder_.path() / "data").string()});
  start();
}

}  // namespace pawl::testing
