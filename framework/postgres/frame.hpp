#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <pqxx/dbtransaction>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
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
  const Statement& first;
  Parameters& parameters;
  FrameSettings settings;
};

/// A transaction that was begun behind the COMMIT of the one before: the next frame of its session
/// continues it, and unless one does it is rolled back. The session serves nothing else meanwhile.
class StartedTransaction {
 public:
  StartedTransaction(Session& session, std::variant<Result, Error> answer)
      : session_(&session), answer_(std::move(answer)) {}
  ~StartedTransaction();
  StartedTransaction(StartedTransaction&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)), answer_(std::move(other.answer_)) {}
  StartedTransaction(const StartedTransaction&) = delete;
  StartedTransaction& operator=(const StartedTransaction&) = delete;
  StartedTransaction& operator=(StartedTransaction&&) = delete;

 private:
  friend class Frame;

  Session* session_;  // null once a frame continues it
  std::variant<Result, Error> answer_;
};

/// The one transaction of one message. A pqxx::dbtransaction, so that handlers use libpqxx as they
/// know it; but BEGIN travels with the first statement and COMMIT with the last, and every answer
/// is checked, including COMMIT's tag (a COMMIT of an aborted transaction answers ROLLBACK).
/// Lives on the stack of the session's thread. Destroying it without finish() rolls back.
class Frame final : public pqxx::dbtransaction {
 public:
  Frame(Session& session, const FrameSettings& settings);
  ~Frame() noexcept override;

  /// BEGIN and `first` in one flight; returns the answer to `first`. Call once, before all else.
  Result begin(const Statement& first, Parameters& parameters);

  /// Instead of begin(): the transaction is open already. Throws Error when its first statement
  /// failed.
  Result proceed(StartedTransaction started);

  /// One statement of ours now, in a round trip of its own.
  Result exec(const Statement& statement, Parameters& parameters);

  /// Queues a statement that travels with the next flush() or finish(). `label` names it in errors.
  void defer(const Statement& statement, Parameters parameters,
             std::optional<std::uint64_t> expect_rows, std::string label);

  void defer(std::shared_ptr<const Statement> statement, Parameters parameters,
             std::optional<std::uint64_t> expect_rows, std::string label);

  /// Queues a statement of pawl's own, which outlives the frame.
  void defer_own(const Statement& statement, Parameters parameters);

  /// The same for a statement of the application's, known by its text.
  void defer(std::string_view sql, Parameters parameters);

  /// Sends the deferred statements and checks their row counts: throws Error, UnexpectedRows.
  void flush();

  /// The deferred statements, `last` and COMMIT in one flight. Throws InDoubt when the connection
  /// breaks meanwhile, Error for anything that the server refused (nothing is stored then), and
  /// PW004 when `last` touched no row: all but that is stored.
  /// `next` is sent along where the session can; what was begun so is returned, and what failed in
  /// it is the next frame's to say.
  std::optional<StartedTransaction> finish(const Statement& last, Parameters& parameters,
                                           const FinishHooks& hooks,
                                           std::optional<NextStart> next = std::nullopt);

  /// Rolls back now; never throws. A session that cannot even do that is dead.
  void rollback() noexcept;

 private:
  struct Deferred {
    std::shared_ptr<const Statement> owned;  ///< null: one that outlives the frame
    const Statement* statement;
    Parameters parameters;
    std::optional<std::uint64_t> expect_rows;
    std::string label;
    bool own = false;  ///< pawl's, not the handler's
  };

  void do_commit() override;
  void do_abort() override;
  [[nodiscard]] Error blame(const Error& error, std::size_t failed_at) const;
  void check_rows(const Deferred& deferred, const PGresult* result) const;
  [[nodiscard]] bool can_start_next() const;

  Session& session_;
  FrameSettings settings_;
  std::vector<Deferred> deferred_;
  const Statement* last_ = nullptr;
  Parameters* last_parameters_ = nullptr;
  const FinishHooks* hooks_ = nullptr;
  std::optional<NextStart> next_;
  std::optional<StartedTransaction> started_;
  bool started_next_ = false;  ///< the session's transaction is no more ours
};

}  // namespace pawl::postgres
