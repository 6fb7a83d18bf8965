#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pqxx/connection>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

struct SessionSettings {
  /// libpq connection string or URI; what it leaves out comes from libpq's environment and files.
  std::string url;
  std::string application_name = "pawl";
  /// Nothing is set or prepared per session; settings travel with each transaction.
  bool pooled = false;
  /// Of the frames; empty: the database's own.
  std::string synchronous_commit;
  /// Of what a crash must not take back, whatever the frames have; empty: the database's own. At
  /// least the disk is waited for.
  std::string durable_commit = {};
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds lock_timeout{5000};
  std::chrono::milliseconds statement_timeout{30000};
  /// Ends a session whose process was stopped inside a transaction, with its locks.
  std::chrono::milliseconds idle_in_transaction_timeout{60000};
};

/// Who a session is for the server; lets others recognise it in pg_stat_activity.
struct Backend {
  std::int32_t pid = 0;
  std::string backend_start;  ///< as PostgreSQL's text, exact
};

/// One PostgreSQL connection of one worker, seen from both sides: libpq's (for flights) and
/// libpqxx's (for handlers). Owned and used by one thread; only interrupt() may be called from
/// others.
class Session {
 public:
  /// Connects and applies the settings; throws Error. Blocks up to the connect timeout per host.
  explicit Session(const SessionSettings& settings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] pqxx::connection& connection() { return *connection_; }
  [[nodiscard]] PGconn* raw() { return raw_; }
  [[nodiscard]] bool alive() const { return PQstatus(raw_) == CONNECTION_OK; }
  /// Also when the transaction is aborted and waits for its ROLLBACK.
  [[nodiscard]] bool in_transaction() const { return PQtransactionStatus(raw_) != PQTRANS_IDLE; }
  [[nodiscard]] bool pooled() const { return settings_.pooled; }
  [[nodiscard]] const SessionSettings& settings() const { return settings_; }
  /// The synchronous_commit of what a crash must not take back; empty: the server knows (pooled).
  [[nodiscard]] const std::string& durable_commit() const { return durable_commit_; }

  /// Nullopt through a pooler, where server processes are shared.
  [[nodiscard]] const std::optional<Backend>& backend() const { return backend_; }
  /// The server process we talk to is not the one we connected to: there is a pooler in between.
  [[nodiscard]] bool behind_pooler() const { return behind_pooler_; }

  /// Runs one statement outside any transaction of ours, in a transaction of its own.
  Result exec(const Statement& statement, Parameters& parameters);
  Result exec(const Statement& statement);

  /// Makes statement_timeout hold for the session's next transactions; costs a round trip only
  /// when it changes. Through a pooler frames carry it instead.
  void require_statement_timeout(std::chrono::milliseconds timeout);
  /// What holds for the session's next transaction; meaningless through a pooler.
  [[nodiscard]] std::chrono::milliseconds statement_timeout() const { return statement_timeout_; }

  /// Breaks whatever call is waiting on this connection; the session is dead afterwards.
  /// The only member that other threads may call.
  void interrupt();

  /// A statement of the application's, prepared under a name of ours when it is first used. Shared
  /// by its uses; beyond 256 texts (somebody writes values into them) none is kept.
  std::shared_ptr<const Statement> by_text(std::string_view sql);

  [[nodiscard]] bool is_prepared(const std::string& name) const { return prepared_.contains(name); }
  void remember_prepared(const std::string& name) { prepared_.insert(name); }

 private:
  void apply_settings();
  void identify_backend();

  SessionSettings settings_;
  std::string durable_commit_;
  PGconn* raw_ = nullptr;  // owned by connection_
  std::unique_ptr<pqxx::connection> connection_;
  std::optional<Backend> backend_;
  bool behind_pooler_ = false;
  std::chrono::milliseconds statement_timeout_{0};
  std::unordered_set<std::string> prepared_;
  std::map<std::string, std::shared_ptr<const Statement>, std::less<>> by_text_;

  std::mutex socket_mutex_;
  int socket_ = -1;  // guarded by socket_mutex_
};

}  // namespace pawl::postgres
