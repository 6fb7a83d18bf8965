#include "postgres/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <pqxx/except>

#include "postgres/flight.hpp"
#include "postgres/transaction_statements.hpp"
#include "text/count.hpp"

namespace pawl::postgres {
namespace {

constexpr const char* kPublish = "pawl.publish";

// Through a pooler nothing may outlive the transaction, so each carries its settings itself.
constexpr const char* kLocalSettings = R"sql(
  SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
   set_config('idle_in_transaction_session_timeout', $3, true),
   set_config('array_nulls', 'on', true), set_config('standard_conforming_strings', 'on', true),
   set_config('synchronous_commit', coalesce($4, current_setting('synchronous_commit')), true)
)sql";

Parameters local_settings(const SessionSettings& session, const FrameSettings& frame) {
  Parameters parameters;
  const auto add_ms = [&parameters](std::chrono::milliseconds duration) {
    parameters.add_text(fmt::format("{}ms", duration.count()));
  };
  add_ms(session.lock_timeout);
  add_ms(frame.statement_timeout);
  add_ms(session.idle_in_transaction_timeout);
  parameters.add_text_or_null(session.synchronous_commit);
  return parameters;
}

}  // namespace

Frame::Frame(Session& session, const FrameSettings& settings)
    : pqxx::dbtransaction(*session.connection_), session_(session), settings_(settings) {}

Frame::~Frame() noexcept {
  close();
  // libpqxx believes a transaction to be over after any exception from commit(), the refused one of
  // a handler among them; on the server it may be open, and the next frame would continue it.
  if (!started_next_ && session_.alive() && session_.in_transaction())
    do_abort();
}

Result Frame::begin(Request& first) {
  session_.require_statement_timeout(settings_.statement_timeout);
  register_transaction();
  Flight flight(session_, Cargo::kHandler);
  add_begin(flight);
  flight.add(first);
  auto answers = flight.run_each();
  if (answers.failure)
    throw answers.failure->as_own();
  return std::move(answers.results.back());
}

void Frame::add_begin(Flight& flight) const {
  flight.add(begin_statement(settings_.isolation));
  if (session_.pooled()) {
    auto local = local_settings(session_.settings(), settings_);
    flight.add({"", kLocalSettings + session_.in_each_transaction()}, local);
  }
}

void Frame::begin_later(Request first) {
  session_.require_statement_timeout(settings_.statement_timeout);
  register_transaction();
  first_ = std::move(first);
}

Result Frame::proceed(Ahead answer) {
  register_transaction();
  if (const auto* error = std::get_if<Error>(&answer))
    throw error->as_own();
  return std::get<Result>(std::move(answer));
}

Result Frame::exec(Request& request) {
  Flight flight(session_, Cargo::kHandler);
  flight.add(request);
  auto answers = flight.run_each();
  if (answers.failure)
    throw answers.failure->as_own();
  return std::move(answers.results.front());
}

const ParameterTypes& Frame::types_of(const Statement& statement, const std::string& label) {
  if (const auto* known = session_.known_types(statement))
    return *known;
  flush();
  try {
    return session_.remember_types(statement, describe_parameters(session_, statement));
  } catch (const Error& error) {
    throw explained(error, {nullptr, {&statement, {}}, std::nullopt, label});
  }
}

void Frame::defer_own(Request request) {
  deferred_.push_back({nullptr, std::move(request), std::nullopt, {}, true});
}

void Frame::defer(const Statement& statement, Parameters parameters,
                  std::optional<std::uint64_t> expect_rows, std::string label) {
  deferred_.push_back(
      {nullptr, {&statement, std::move(parameters)}, expect_rows, std::move(label)});
}

void Frame::defer(std::string_view sql, Parameters parameters) {
  defer(session_.by_text(sql), std::move(parameters), std::nullopt,
        calls_publish(sql) ? kPublish : "");
}

void Frame::defer(std::shared_ptr<const Statement> statement, Parameters parameters,
                  std::optional<std::uint64_t> expect_rows, std::string label) {
  const auto* address = statement.get();
  deferred_.push_back(
      {std::move(statement), {address, std::move(parameters)}, expect_rows, std::move(label)});
}

/// Says of a statement of the handler's which it is, and why it is wrong where PostgreSQL cannot
/// know.
Error Frame::explained(const Error& error, const Deferred& deferred) {
  const auto& rule = deferred.request.statement->rule;
  const std::string text = error.what();
  if (error.sqlstate() == "42601" && !rule.empty())
    return error.with_text(fmt::format("{} ({})", rule, text)).of_statement(deferred.label);
  // What pawl.publish raises itself begins with its name. PostgreSQL's errors may begin with
  // another label as well, for example with "function".
  if (deferred.label.empty() || (deferred.label == kPublish && text.starts_with(kPublish)))
    return error;
  return error.of_statement(deferred.label);
}

void Frame::add_deferred(Flight& flight, Deferred& deferred) const {
  flight.add(deferred.request, deferred.own ? std::string_view{} : comment_);
}

void Frame::check_rows(const Deferred& deferred, const PGresult* result) const {
  if (!deferred.expect_rows)
    return;
  const auto rows = affected_rows(result);
  if (rows == *deferred.expect_rows)
    return;
  throw UnexpectedRows(
      deferred.label,
      fmt::format("the statement affected {}; expect_rows requires {}. Nothing was stored",
                  texts::counted(static_cast<std::int64_t>(rows), "row", "rows"),
                  *deferred.expect_rows));
}

void Frame::flush() {
  send_first(deferred_.size());
}

/// Of what is deferred.
void Frame::send_first(std::size_t count) {
  if (count == 0)
    return;
  const auto end = deferred_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Deferred> statements(std::make_move_iterator(deferred_.begin()),
                                   std::make_move_iterator(end));
  deferred_.erase(deferred_.begin(), end);
  Flight flight(session_, Cargo::kHandler);
  for (auto& deferred : statements)
    add_deferred(flight, deferred);
  const auto answers = flight.run_each();
  if (answers.failure)
    throw explained(*answers.failure, statements[answers.failed_at]);
  for (std::size_t i = 0; i < statements.size(); ++i)
    check_rows(statements[i], answers.results[i].get());
}

std::optional<Ticket> Frame::finish(Request& last, const FinishHooks& hooks,
                                    std::optional<NextStart> next) {
  // Row counts must be known before COMMIT is sent. What is behind them goes with it: a lock that
  // pawl takes right before the last statement is not to be held while we read the counts.
  const auto counted =
      std::find_if(deferred_.rbegin(), deferred_.rend(),
                   [](const Deferred& deferred) { return deferred.expect_rows.has_value(); });
  send_first(static_cast<std::size_t>(deferred_.rend() - counted));
  for (const auto& deferred : deferred_) {
    if (deferred.request.statement->of_application)
      session_.runs_application_statement(*deferred.request.statement);
  }
  // A statement of its own for every message would be noticeable.
  if (session_.may_hold_locks() && last.statement->releasing) {
    last.statement = last.statement->releasing.get();
    session_.add_own_lock(last.parameters);
  } else if (auto release = session_.release_of_locks()) {
    defer_own(*std::move(release));
  }
  last_ = &last;
  hooks_ = &hooks;
  if (next)
    next_.emplace(*next);
  commit();
  return ahead_;
}

bool Frame::can_start_next() const {
  // What has to be prepared or set first would only make the flight longer; and a pooler hands out
  // connections by transaction.
  return next_ && !session_.pooled() &&
         next_->settings.statement_timeout == session_.statement_timeout() &&
         session_.is_prepared(session_.form_of(*next_->first.statement).name) &&
         session_.is_prepared(begin_statement(next_->settings.isolation).name);
}

/// Whose statement of the last flight failed. What runs at COMMIT is the handler's: deferred
/// constraints and triggers.
Error Frame::blame(const Error& error, std::size_t failed_at) const {
  const bool is_deferred = failed_at < deferred_.size();
  const bool own = is_deferred ? deferred_[failed_at].own : failed_at == deferred_.size();
  if (own)
    return error.as_own();
  return is_deferred ? explained(error, deferred_[failed_at]) : error;
}

void Frame::do_commit() {
  if (last_ == nullptr) {
    throw pqxx::usage_error(
        "a handler must not commit. pawl commits key, changes, and offset together after the "
        "handler returns");
  }
  bool moved = false;
  try {
    Flight flight(session_, Cargo::kHandler);
    if (first_) {
      add_begin(flight);
      flight.add(*first_);
    }
    const auto begun = flight.size();
    for (auto& deferred : deferred_)
      add_deferred(flight, deferred);
    flight.add(*last_);
    if (hooks_->before_commit) {
      flight.push();
      hooks_->before_commit();
    }
    flight.add(commit_statement());
    if (hooks_->commit_sent) {
      flight.push();
      hooks_->commit_sent();
    }
    // No Sync in between: what is behind a COMMIT that fails is skipped by the server.
    const bool start_next = can_start_next();
    if (start_next) {
      flight.add(begin_statement(next_->settings.isolation));
      flight.add(next_->first);
    }
    auto answers = flight.run_each();
    auto& results = answers.results;
    const auto commit_at = results.size() - (start_next ? 3 : 1);
    if (answers.failure && answers.failed_at < begun)
      throw answers.failure->as_own();
    if (answers.failure && answers.failed_at <= commit_at)
      throw blame(*answers.failure, answers.failed_at - begun);
    if (!has_committed(results[commit_at].get())) {
      throw Error("25P02", "the transaction was aborted before COMMIT. Nothing was stored");
    }
    if (start_next) {
      started_next_ = true;
      ahead_ = answers.failure ? session_.begun_ahead(*std::move(answers.failure))
                               : session_.begun_ahead(std::move(results.back()));
    }
    moved = std::strcmp(PQcmdTuples(results[commit_at - 1].get()), "0") != 0;
    if (moved)
      session_.locks_released();
  } catch (const Error& error) {
    if (error.failure() == FailureClass::kConnection || !session_.alive()) {
      throw InDoubt(fmt::format("connection lost during COMMIT: {}", error.what()),
                    error.sqlstate());
    }
    do_abort();
    throw;
  }
  if (!moved) {
    // The UPDATE that releases the locks found no row. If the next transaction has begun, its end
    // releases them.
    if (!started_next_)
      roll_back(session_);
    throw Error::row_missing();
  }
}

void Frame::do_abort() {
  deferred_.clear();
  if (!started_next_)
    roll_back(session_);
}

}  // namespace pawl::postgres
