#pragma once

// Restores a database to an earlier state, as after a restore from a backup.
//
//   #include <pawl/testing/postgres_server.hpp>
//   #include <pqxx/pqxx>
//
//   int accounts_after_restore() {
//     pawl::testing::PostgresServer server({.settings = {"max_connections=50"}});
//     const std::string url = server.create_database("bank");
//     server.save_copy();
//     {
//       pqxx::connection connection(url);
//       pqxx::nontransaction(connection).exec("CREATE TABLE accounts (id text)");
//     }
//     server.restore_copy();
//     pqxx::connection connection(url);
//     pqxx::nontransaction sql(connection);
//     return sql.exec("SELECT count(*) FROM pg_class WHERE relname = 'accounts'")
//         .one_field()
//         .as<int>();  // 0
//   }

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include <pawl/testing/scripts.hpp>
#include <pawl/testing/temp_dir.hpp>

namespace pawl::testing {

/// How a server is stopped: the modes of pg_ctl (PostgreSQL, "Shutting Down the Server").
enum class StopMode {
  kFast,       ///< open transactions are rolled back
  kImmediate,  ///< a crash: the next start recovers from the write-ahead log
};

/// How a server is started.
struct PostgresOptions {
  /// Major version, such as "15". Empty: the newest that is installed.
  std::string version = {};
  /// Settings for postgresql.conf, "name=value".
  std::vector<std::string> settings = {};
  /// Files that are copied into the data folder, readable only for the server: certificates, keys,
  /// a pg_hba.conf.
  std::vector<std::filesystem::path> files = {};
  /// The folder of pawl's scripts.
  std::filesystem::path scripts = scripts_folder();
};

/// A set of migrations: the arguments of `scripts/migrate up --dir FOLDER --name NAME`.
struct MigrationSet {
  std::string name;
  std::filesystem::path folder;
};

/// A real PostgreSQL server with an empty cluster in a temporary folder, on a port of its own.
/// `scripts/services` runs it. The superuser is "postgres" without a password, and fsync is on. The
/// destructor stops the server and removes its folder.
///
/// Use it from one thread at a time, except url() and create_database(). Methods that start or stop
/// the server return when that is done, and throw as run_script().
class PostgresServer {
 public:
  /// Starts a server with an empty cluster.
  explicit PostgresServer(PostgresOptions options = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// The server that all tests of a program share. It starts at the first call, and stops at exit.
  /// Tests that use it must not stop it, and work in databases of their own.
  static PostgresServer& shared();

  /// The URL of a database of this server. Restarts do not change it.
  std::string url(const std::string& database = "postgres") const;
  /// The TCP port of 127.0.0.1. Restarts do not change it.
  int port() const { return port_; }
  /// The folder with its data, service.log, and service.pid.
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Creates a database, applies pawl's migrations and then `migrations`, and returns its URL. The
  /// name starts with `prefix`, and is new on this server. Throws pqxx exceptions, too.
  std::string create_database(const std::string& prefix = "test",
                              const std::vector<MigrationSet>& migrations = {});
  /// The same without pawl's migrations.
  std::string create_empty_database(const std::string& prefix = "test");

  /// Stops the server. Does nothing if it is stopped.
  void stop(StopMode mode = StopMode::kFast);
  /// Starts the server with the same port and data. Does nothing if it is running.
  void start();
  /// stop(), then start().
  void restart(StopMode mode = StopMode::kFast);

  /// Copies the cluster with all of its databases, and replaces an earlier copy. It stops the
  /// server (kFast) before, and starts it afterwards.
  void save_copy();
  /// Crashes the server, and starts it from the copy: later commits are lost, as after an
  /// asynchronous failover or a restore. Throws std::logic_error if save_copy() was never called.
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
