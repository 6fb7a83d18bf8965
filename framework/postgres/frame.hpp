#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <pqxx/dbtransaction>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"
#include "postgres/transaction_statements.hpp"

namespace pawl::postgres {

struct FrameSettings {
  Isolation isolation = Isolation::kReadCommitted;
  std::chrono::milliseconds statement_timeout{30000};

  bool operator==(const FrameSettings&) const = default;
};

/// Called between the sending of the last statements of a frame; see Frame::finish.
struct FinishHooks {
  std::function<void()> before_commit;  ///< all but COMMIT is on its way to the server
  std::function<void()> commit_sent;    ///< COMMIT too; its answer is not read yet
};

/// The first statement of the frame to come, to travel behind the COMMIT of the frame before.
struct NextStart {
  Request& first;
  FrameSettings settings;
};

class Flight;

/// The one transaction of one message. A pqxx::dbtransaction, so that handlers use libpqxx as they
/// know it; but BEGIN travels with the first statement and COMMIT with the last, and every answer
/// is checked, including COMMIT's tag (a COMMIT of an aborted transaction answers ROLLBACK).
/// Lives on the stack of the session's thread. Destroying it without finish() rolls back.
class Frame final : public pqxx::dbtransaction {
 public:
  Frame(Session& session, const FrameSettings& settings);
  ~Frame() noexcept override;

  [[nodiscard]] const FrameSettings& settings() const { return settings_; }

  /// BEGIN and `first` in one flight; returns the answer to `first`. Call once, before all else.
  Result begin(Request& first);

  /// Instead of begin(), where nothing needs an answer before COMMIT: BEGIN and `first` travel with
  /// finish(). Nothing may be executed before that.
  void begin_later(Request first);

  /// Instead of begin(): the transaction is open already, see Session::go_on(). Throws Error when
  /// its first statement failed.
  Result proceed(Ahead answer);

  /// One statement of ours now, in a round trip of its own.
  Result exec(Request& request);

  /// What the server takes the statement's parameters for; asked once a session. What is deferred
  /// is sent before, for the statement may need it to be understood. `label`: Error::statement().
  const ParameterTypes& types_of(const Statement& statement, const std::string& label);

  /// Queues a statement that travels with the next flush() or finish(). `label` is
  /// Error::statement() of what it throws.
  void defer(const Statement& statement, Parameters parameters,
             std::optional<std::uint64_t> expect_rows, std::string label);

  void defer(std::shared_ptr<const Statement> statement, Parameters parameters,
             std::optional<std::uint64_t> expect_rows, std::string label);

  /// Queues a statement of pawl's own, which outlives the frame.
  void defer_own(Request request);

  /// Queues a statement of the application's, known by its text.
  void defer(std::string_view sql, Parameters parameters);

  /// Code of the application's is about to run in it. It may take locks of the session and change
  /// its settings.
  void runs_code() { session_.runs_application_code(); }

  /// What stands behind each statement of the handler's that is deferred (Flight::add).
  void comment(std::string comment) { comment_ = std::move(comment); }

  /// Sends the deferred statements and checks their row counts: throws Error, UnexpectedRows.
  void flush();

  /// The deferred statements, `last` and COMMIT in one flight. Throws InDoubt when the connection
  /// breaks meanwhile, Error for anything that the server refused (nothing is stored then), and
  /// PW004 when `last` touched no row: all but that is stored.
  /// `next`: the beginning of the next transaction, sent along where the session can. Returns the
  /// ticket under which the session keeps it, for the frame that goes on from it and says what
  /// failed in it.
  std::optional<Ticket> finish(Request& last, const FinishHooks& hooks,
                               std::optional<NextStart> next = std::nullopt);

 private:
  struct Deferred {
    std::shared_ptr<const Statement> owned;  ///< null: one that outlives the frame
    Request request;
    std::optional<std::uint64_t> expect_rows;
    std::string label;
    bool own = false;  ///< pawl's, not the handler's
  };

  void do_commit() override;
  void do_abort() override;
  [[nodiscard]] static Error explained(const Error& error, const Deferred& deferred);
  [[nodiscard]] Error blame(const Error& error, std::size_t failed_at) const;
  void send_first(std::size_t count);
  void add_deferred(Flight& flight, Deferred& deferred) const;
  void check_rows(const Deferred& deferred, const PGresult* result) const;
  void add_begin(Flight& flight) const;
  [[nodiscard]] bool can_start_next() const;

  Session& session_;
  FrameSettings settings_;
  std::optional<Request> first_;  ///< of begin_later()
  std::vector<Deferred> deferred_;
  std::string comment_;
  Request* last_ = nullptr;
  const FinishHooks* hooks_ = nullptr;
  std::optional<NextStart> next_;
  std::optional<Ticket> ahead_;
  bool started_next_ = false;  ///< the session's transaction is no more ours
};

}  // namespace pawl::postgres
