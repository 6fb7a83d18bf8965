#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <pqxx/dbtransaction>
#include <string>
#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

enum class Isolation { kReadCommitted, kRepeatableRead, kSerializable };

struct FrameSettings {
  Isolation isolation = Isolation::kReadCommitted;
  std::chrono::milliseconds statement_timeout{30000};
};

/// Called between the sending of the last statements of a frame; see Frame::finish.
struct FinishHooks {
  std::function<void()> before_commit;  ///< all but COMMIT is on its way to the server
  std::function<void()> commit_sent;    ///< COMMIT too; its answer is not read yet
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

  /// One statement of ours now, in a round trip of its own.
  Result exec(const Statement& statement, Parameters& parameters);

  /// Queues a statement that travels with the next flush() or finish(). `label` names it in errors.
  void defer(const Statement& statement, Parameters parameters,
             std::optional<std::uint64_t> expect_rows, std::string label);

  /// Sends the deferred statements and checks their row counts: throws Error, UnexpectedRows.
  void flush();

  /// The deferred statements, `last` and COMMIT in one flight. Throws InDoubt when the connection
  /// breaks meanwhile, Error for anything that the server refused (nothing is stored then).
  void finish(const Statement& last, Parameters& parameters, const FinishHooks& hooks);

  /// Rolls back now; never throws. A session that cannot even do that is dead.
  void rollback() noexcept;

 private:
  struct Deferred {
    const Statement* statement;
    Parameters parameters;
    std::optional<std::uint64_t> expect_rows;
    std::string label;
  };

  void do_commit() override;
  void do_abort() override;
  void check_rows(const Deferred& deferred, const PGresult* result) const;

  Session& session_;
  FrameSettings settings_;
  std::vector<Deferred> deferred_;
  const Statement* last_ = nullptr;
  Parameters* last_parameters_ = nullptr;
  const FinishHooks* hooks_ = nullptr;
};

}  // namespace pawl::postgres
