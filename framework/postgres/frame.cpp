#include "postgres/frame.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <pqxx/except>

#include "postgres/flight.hpp"

namespace pawl::postgres {
namespace {

const Statement kCommit{"pawl_commit", "COMMIT"};
const Statement kRollback{"pawl_rollback", "ROLLBACK"};

// Through a pooler nothing may outlive the transaction, so each carries its settings itself.
const Statement kLocalSettings{
    "",
    "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),"
    " set_config('idle_in_transaction_session_timeout', $3, true),"
    " set_config('synchronous_commit', coalesce($4, current_setting('synchronous_commit')), true)"};

const Statement& begin_statement(Isolation isolation) {
  static const Statement read_committed{"pawl_begin", "BEGIN ISOLATION LEVEL READ COMMITTED"};
  static const Statement repeatable_read{"pawl_begin_rr", "BEGIN ISOLATION LEVEL REPEATABLE READ"};
  static const Statement serializable{"pawl_begin_s", "BEGIN ISOLATION LEVEL SERIALIZABLE"};
  switch (isolation) {
    case Isolation::kReadCommitted:
      return read_committed;
    case Isolation::kRepeatableRead:
      return repeatable_read;
    case Isolation::kSerializable:
      return serializable;
  }
  return read_committed;
}

Parameters local_settings(const SessionSettings& session, const FrameSettings& frame) {
  Parameters parameters;
  const auto add_ms = [&parameters](std::chrono::milliseconds duration) {
    parameters.add_text(fmt::format("{}ms", duration.count()));
  };
  add_ms(session.lock_timeout);
  add_ms(frame.statement_timeout);
  add_ms(session.idle_in_transaction_timeout);
  if (session.synchronous_commit.empty()) {
    parameters.add_null();
  } else {
    parameters.add_text(session.synchronous_commit);
  }
  return parameters;
}

std::uint64_t row_count(const PGresult* result) {
  // PQcmdTuples takes a non-const result but only reads it.
  const char* affected = PQcmdTuples(const_cast<PGresult*>(result));
  return std::strtoull(affected, nullptr, 10);
}

}  // namespace

Frame::Frame(Session& session, const FrameSettings& settings)
    : pqxx::dbtransaction(session.connection()), session_(session), settings_(settings) {}

Frame::~Frame() noexcept {
  close();
  // libpqxx believes a transaction to be over after any exception from commit(), the refused one of
  // a handler among them; on the server it may be open, and the next frame would continue it.
  if (session_.alive() && session_.in_transaction())
    do_abort();
}

Result Frame::begin(const Statement& first, Parameters& parameters) {
  session_.require_statement_timeout(settings_.statement_timeout);
  register_transaction();
  Flight flight(session_);
  flight.add(begin_statement(settings_.isolation));
  if (session_.pooled()) {
    auto local = local_settings(session_.settings(), settings_);
    flight.add(kLocalSettings, local);
  }
  flight.add(first, parameters);
  auto results = flight.run();
  return std::move(results.back());
}

Result Frame::exec(const Statement& statement, Parameters& parameters) {
  return session_.exec(statement, parameters);
}

void Frame::defer(const Statement& statement, Parameters parameters,
                  std::optional<std::uint64_t> expect_rows, std::string label) {
  deferred_.push_back({&statement, std::move(parameters), expect_rows, std::move(label)});
}

void Frame::check_rows(const Deferred& deferred, const PGresult* result) const {
  if (!deferred.expect_rows)
    return;
  const auto rows = row_count(result);
  if (rows == *deferred.expect_rows)
    return;
  throw UnexpectedRows(fmt::format("{} touched {} rows, expect_rows demands {}; nothing was stored",
                                   deferred.label, rows, *deferred.expect_rows));
}

void Frame::flush() {
  if (deferred_.empty())
    return;
  auto statements = std::move(deferred_);
  deferred_.clear();
  Flight flight(session_);
  for (auto& deferred : statements)
    flight.add(*deferred.statement, deferred.parameters);
  const auto results = flight.run();
  for (std::size_t i = 0; i < statements.size(); ++i)
    check_rows(statements[i], results[i].get());
}

void Frame::finish(const Statement& last, Parameters& parameters, const FinishHooks& hooks) {
  // Row counts must be known before COMMIT is sent.
  for (const auto& deferred : deferred_) {
    if (deferred.expect_rows) {
      flush();
      break;
    }
  }
  last_ = &last;
  last_parameters_ = &parameters;
  hooks_ = &hooks;
  commit();
}

void Frame::do_commit() {
  if (last_ == nullptr) {
    throw pqxx::usage_error(
        "a handler must not commit: pawl commits key, effects and offset together after it "
        "returns");
  }
  try {
    Flight flight(session_);
    for (auto& deferred : deferred_)
      flight.add(*deferred.statement, deferred.parameters);
    flight.add(*last_, *last_parameters_);
    if (hooks_->before_commit) {
      flight.push();
      hooks_->before_commit();
    }
    flight.add(kCommit);
    if (hooks_->commit_sent) {
      flight.push();
      hooks_->commit_sent();
    }
    const auto results = flight.run();
    if (std::strcmp(PQcmdStatus(results.back().get()), "COMMIT") != 0) {
      throw Error("25P02", "the transaction was aborted before COMMIT; nothing was stored");
    }
  } catch (const Error& error) {
    if (error.failure() == FailureClass::kConnection || !session_.alive()) {
      throw InDoubt(fmt::format("connection lost during COMMIT: {}", error.what()));
    }
    do_abort();
    throw;
  }
}

void Frame::do_abort() {
  deferred_.clear();
  if (!session_.alive() || PQtransactionStatus(session_.raw()) == PQTRANS_IDLE)
    return;
  try {
    Flight flight(session_);
    flight.add(kRollback);
    flight.run();
  } catch (const std::exception&) {
    // Without a ROLLBACK the session is of no use; the next call on it will say that it is dead.
    session_.interrupt();
  }
}

void Frame::rollback() noexcept {
  close();
}

}  // namespace pawl::postgres
