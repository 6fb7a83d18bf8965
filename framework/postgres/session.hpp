#pragma once

#include <libpq-fe.h>

#include <atomic>
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
#include <utility>
#include <variant>
#include <vector>

#include "pawl/options.hpp"
#include "postgres/error.hpp"
#include "postgres/parameter_types.hpp"
#include "postgres/parameters.hpp"
#include "postgres/request.hpp"
#include "postgres/schema_version.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

struct SessionSettings {
  /// libpq connection string or URI; what it leaves out comes from libpq's environment and files.
  std::string url;
  /// What `url` is at each connect (PostgresOptions).
  UrlRenewal renewal = {};
  /// Prints the password, at each connect (PostgresOptions); empty: none.
  std::vector<std::string> password_command = {};
  std::string application_name = "pawl";
  /// Pawl's (PostgresOptions::schema): what is violated there is no message's fault.
  std::string own_schema = "pawl";
  /// Nothing is set or prepared per session; settings travel with each transaction.
  bool pooled = false;
  /// Statements with a name are prepared once; false: each is sent as a text, because something
  /// deallocates what is prepared.
  bool prepares = true;
  /// Its statements are pawl's own, and find their rows by an index whatever the statistics say: a
  /// plan that was made while a table was empty would read all of it once it is large.
  bool by_index = false;
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
  /// How long the server may be silent while statements of ours wait for their answer, before the
  /// connection is given up. Nullopt: the timeouts above and ten seconds, for none of our
  /// statements takes longer on a server that answers.
  std::optional<std::chrono::milliseconds> answer_timeout = std::nullopt;
  /// Set by another thread when the connection is not wanted any more. Looked at until
  /// Session::established().
  const std::atomic<bool>* unwanted = nullptr;
  /// Whether what the session has cached of the schema holds; null: its user caches nothing.
  std::shared_ptr<SchemaVersion> schema = nullptr;
};

/// What the options say of every session, whoever makes it: where the server is, as whom to
/// connect, and its bounds.
[[nodiscard]] SessionSettings settings_of(const PostgresOptions& options);

/// On top of the timeouts that PostgreSQL itself keeps: for the way there and back, and a disk
/// that is busy.
inline constexpr std::chrono::milliseconds kAnswerMargin{10000};

/// Who a session is for the server; lets others recognise it in pg_stat_activity.
struct Backend {
  std::int32_t pid = 0;
  std::string backend_start;  ///< exact, in UTC, as every DateStyle reads it
};

/// The answer to the first statement of a transaction that was begun ahead, behind the COMMIT of
/// the one before.
using Ahead = std::variant<Result, Error>;
/// Names it.
enum class Ticket : std::uint64_t {};

/// One PostgreSQL connection of one worker, seen from both sides: libpq's (for flights) and
/// libpqxx's (for handlers). Owned and used by one thread; only interrupt() may be called from
/// others. Half of its methods are one-line answers about the connection.
class Session {
 public:
  /// Connects (postgres/connecting.hpp) and applies the settings; throws Error. Blocks up to the
  /// connect timeout per address, and then up to the answer timeout, unless it becomes unwanted.
  explicit Session(const SessionSettings& settings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Both for use outside of what was begun ahead: that is rolled back first.
  [[nodiscard]] pqxx::connection& connection() {
    settle();
    return *connection_;
  }
  [[nodiscard]] PGconn* raw() {
    settle();
    return raw_;
  }
  [[nodiscard]] bool alive() const { return PQstatus(raw_) == CONNECTION_OK; }
  /// Also when the transaction is aborted and waits for its ROLLBACK.
  [[nodiscard]] bool in_transaction() const { return PQtransactionStatus(raw_) != PQTRANS_IDLE; }
  [[nodiscard]] bool pooled() const { return settings_.pooled; }
  [[nodiscard]] const SessionSettings& settings() const { return settings_; }
  /// The synchronous_commit of what a crash must not take back; empty: the server knows (pooled).
  [[nodiscard]] const std::string& durable_commit() const { return durable_commit_; }

  /// Whoever connected keeps it: SessionSettings::unwanted is not looked at any more.
  void established() { settings_.unwanted = nullptr; }

  /// The schema's when the session was opened (SessionSettings::schema).
  [[nodiscard]] SchemaVersion::Number schema_version() const { return schema_version_; }

  /// Zero: no limit.
  [[nodiscard]] std::chrono::milliseconds answer_timeout() const;

  /// The server let nothing be written when we connected: a standby, or
  /// default_transaction_read_only.
  [[nodiscard]] bool connected_read_only() const { return connected_read_only_; }
  /// Asks whether the next transaction of this session could write nothing, by the server's state
  /// or by what was set in the session. Neither of these inside a transaction; both throw Error.
  bool is_read_only();
  /// Asks whether the server lets nothing be written, whatever was set in the session.
  bool server_is_read_only();

  /// Nullopt through a pooler, where server processes are shared.
  [[nodiscard]] const std::optional<Backend>& backend() const { return backend_; }
  /// The server process we talk to is not the one we connected to: there is a pooler in between.
  [[nodiscard]] bool behind_pooler() const { return behind_pooler_; }

  /// Runs one statement outside any transaction of ours, in a transaction of its own.
  Result exec(const Statement& statement, Parameters& parameters);
  Result exec(const Statement& statement);

  /// The transaction that a frame began ahead is open still.
  [[nodiscard]] bool keeps(Ticket ticket) const { return ahead_ && ticket == Ticket{tickets_}; }
  /// The caller goes on with it. Nullopt: it was rolled back.
  std::optional<Ahead> go_on(Ticket ticket);
  /// Rolls back what was begun ahead, if anything. Whoever leaves the session to itself calls it:
  /// the transaction holds locks. A session that cannot even do that is dead.
  void settle() noexcept;

  /// Makes statement_timeout hold for the session's next transactions; costs a round trip only
  /// when it changes. Through a pooler frames carry it instead.
  void require_statement_timeout(std::chrono::milliseconds timeout);
  /// What holds for the session's next transaction; through a pooler what the settings say.
  [[nodiscard]] std::chrono::milliseconds statement_timeout() const { return statement_timeout_; }

  /// Breaks whatever call is waiting on this connection; the session is dead afterwards.
  /// The only member that other threads may call.
  void interrupt();

  /// A statement of the application's, prepared under a name of ours when it is first used. Shared
  /// by its uses; beyond 256 texts (somebody writes values into them) none is kept.
  std::shared_ptr<const Statement> by_text(std::string_view sql);

  /// Takes the settings that hold now, after on_connect, as the baseline: each claim compares them,
  /// and restore() sets them. Costs a round trip; none through a pooler, where each transaction
  /// sets its own. Throws Error.
  void take_baseline();
  /// An SQL expression for each transaction through a pooler, which may lead elsewhere any time.
  void verify_in_each_transaction(const std::string& expression);
  /// Through a pooler: more columns for the statement with which each transaction begins.
  [[nodiscard]] const std::string& in_each_transaction() const { return in_each_transaction_; }
  /// The value that session_state() must have in each transaction; empty: it is not compared.
  [[nodiscard]] const std::string& state() const { return state_; }
  /// Asks whether the settings are those of the baseline, outside of a transaction.
  bool is_as_it_began();
  /// Sets each setting that differs from the baseline, and names them. Nullopt: one cannot be set;
  /// the session must be replaced.
  [[nodiscard]] std::optional<std::vector<std::string>> restore();

  /// Code of the application's is about to run in a transaction. The end of that transaction
  /// releases the advisory locks of the session that the code takes. From now on each claim
  /// compares the settings.
  void runs_application_code() { may_hold_locks_ = may_have_changed_settings_ = true; }
  /// A statement of the application's is sent. It can take such locks only through a function or
  /// the like, and change settings also by its own text.
  void runs_application_statement(const Statement& statement) {
    if (!settings_.schema || settings_.schema->has_session_locks())
      may_hold_locks_ = true;
    if (statement.may_change_settings || schema_may_change_settings())
      may_have_changed_settings_ = true;
  }
  /// The cheapest form of the statement that compares everything that can differ in this session.
  [[nodiscard]] const Statement& form_of(const Statement& statement) const;
  [[nodiscard]] bool may_hold_locks() const { return may_hold_locks_; }
  /// The statement that releases the advisory locks of the session; nullopt: none can be held.
  [[nodiscard]] std::optional<Request> release_of_locks() const;
  /// For a statement that releases them beside its own work (Statement::releasing): the numbers of
  /// the lock that is kept, null where there is none.
  void add_own_lock(Parameters& parameters) const;
  void locks_released() { may_hold_locks_ = false; }
  /// A lock of pawl's own, of the class of its sessions, that the session has taken and keeps.
  void keep_lock(std::int32_t class_id, std::int32_t object) { own_lock_ = {class_id, object}; }

  /// A statement that publishes has been sent since this was asked last.
  [[nodiscard]] bool take_published() { return std::exchange(published_, false); }
  void note_published() { published_ = true; }

  [[nodiscard]] bool prepares() const { return !settings_.pooled && settings_.prepares; }
  /// A prepared statement is gone (26000): all may be, and whatever removed them may do so again.
  void stop_preparing() {
    settings_.prepares = false;
    prepared_.clear();
  }
  [[nodiscard]] bool is_prepared(const std::string& name) const { return prepared_.contains(name); }
  void remember_prepared(const std::string& name) { prepared_.insert(name); }

  /// What the server took the statement's parameters for when it was asked; nullptr: it was not.
  [[nodiscard]] const ParameterTypes* known_types(const Statement& statement) const {
    const auto found = types_.find(statement.types_name());
    return found == types_.end() ? nullptr : &found->second;
  }
  const ParameterTypes& remember_types(const Statement& statement, ParameterTypes types) {
    return types_.insert_or_assign(statement.types_name(), std::move(types)).first->second;
  }

 private:
  friend class Frame;  // begins ahead, and goes on with it

  /// A transaction is open that was begun ahead. It stays so until somebody goes on with it; any
  /// other use of the session rolls it back first.
  Ticket begun_ahead(Ahead answer);
  /// Connects. True: another client of a pooler has used the server process before, and what
  /// plpgsql keeps there of an older schema outlives even DISCARD ALL.
  bool open();
  /// Ends that process. False: it is still running, and the session uses it as it is.
  bool end_process();
  void apply_settings();
  std::chrono::milliseconds identify_backend();
  void carry_baseline();
  /// A statement may change settings by what it does not name; true also where that is not known.
  [[nodiscard]] bool schema_may_change_settings() const {
    return !settings_.schema || settings_.schema->may_change_settings();
  }

  SessionSettings settings_;
  const SchemaVersion::Number schema_version_;  // before the connection is made
  std::string durable_commit_;
  PGconn* raw_ = nullptr;  // owned by connection_
  std::unique_ptr<pqxx::connection> connection_;
  std::optional<Backend> backend_;
  bool behind_pooler_ = false;
  bool may_have_changed_settings_ = false;
  bool connected_read_only_ = false;
  std::chrono::milliseconds statement_timeout_;
  std::optional<Ahead> ahead_;
  std::uint64_t tickets_ = 0;
  bool published_ = false;
  bool may_hold_locks_ = false;
  std::optional<std::pair<std::int32_t, std::int32_t>> own_lock_;
  std::string in_each_transaction_;
  std::string state_;                                          ///< of the baseline
  std::vector<std::pair<std::string, std::string>> baseline_;  ///< each setting with its value
  std::unordered_set<std::string> prepared_;
  std::map<std::string, ParameterTypes> types_;  ///< by Statement::types_name()
  std::map<std::string, std::shared_ptr<const Statement>, std::less<>> by_text_;

  std::mutex socket_mutex_;
  int socket_ = -1;  // guarded by socket_mutex_
};

}  // namespace pawl::postgres
