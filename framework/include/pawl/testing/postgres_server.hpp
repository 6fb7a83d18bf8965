#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include <pawl/testing/scripts.hpp>
#include <pawl/testing/temp_dir.hpp>

namespace pawl::testing {

/// How a server is stopped: pg_ctl's modes (PostgreSQL manual, "Shutting Down the Server").
/// kImmediate is a crash: the next start recovers from the write-ahead log.
enum class StopMode { kFast, kImmediate };

struct PostgresOptions {
  /// Major version; empty: the newest that is installed.
  std::string version = {};
  /// Settings for postgresql.conf, "name=value".
  std::vector<std::string> settings = {};
  /// Copied into the data folder, for the server alone: certificates, keys, a pg_hba.conf.
  std::vector<std::filesystem::path> files = {};
  std::filesystem::path scripts = scripts_folder();
};

/// A set of migrations: the arguments of `scripts/migrate up --dir --name`.
struct MigrationSet {
  std::string name;
  std::filesystem::path folder;
};

/// A real PostgreSQL server with an empty cluster of its own in a temporary folder, on a port of
/// its own, run by `scripts/services`. Superuser "postgres", no password, fsync on. The server is
/// stopped and its folder removed when the object goes. One thread at a time, except url() and
/// create_database().
class PostgresServer {
 public:
  explicit PostgresServer(PostgresOptions options = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// The server that all tests of a program share: started at the first call, stopped at exit.
  /// For tests that leave it running and work in databases of their own.
  static PostgresServer& shared();

  /// URL of a database of this server; the same over restarts.
  std::string url(const std::string& database = "postgres") const;
  int port() const { return port_; }
  /// Its data, service.log and service.pid are here.
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Creates a database with pawl's migrations and those given, and returns its URL. The name
  /// begins with the prefix and is new on this server.
  std::string create_database(const std::string& prefix = "test",
                              const std::vector<MigrationSet>& migrations = {});
  /// The same without any migration.
  std::string create_empty_database(const std::string& prefix = "test");

  /// Each returns when it is done. Stopping a stopped server, or starting a running one, does
  /// nothing. start() uses the same port and data.
  void stop(StopMode mode = StopMode::kFast);
  void start();
  void restart(StopMode mode = StopMode::kFast);

  /// Keeps a copy of the whole cluster as it is now (every database), replacing an earlier copy.
  /// The server is stopped (fast) meanwhile, and runs again afterwards.
  void save_copy();
  /// Crashes the server and starts it from the copy: the database comes back behind, as after an
  /// asynchronous failover or a restore. Throws std::logic_error without save_copy().
  void restore_copy();

 private:
  void service(const std::string& command, const std::vector<std::string>& more = {});

  PostgresOptions options_;
  TempDir folder_;
  int port_ = 0;
  bool running_ = false;
  std::atomic<int> databases_ = 0;
};

}  // namespace pawl::testing
