#include "postgres/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <stdexcept>
#include <utility>

#include "postgres/connecting.hpp"
#include "postgres/exact_time.hpp"
#include "postgres/flight.hpp"
#include "postgres/session_state.hpp"
#include "postgres/transaction_statements.hpp"

namespace pawl::postgres {
namespace {

constexpr std::size_t kMaxByText = 256;
/// Of a pooler, that are ended for one session before the next one is taken as it is.
constexpr int kMostUsedProcesses = 100;

std::string to_ms(std::chrono::milliseconds duration) {
  return fmt::format("{}ms", duration.count());
}

/// A value of synchronous_commit by which a COMMIT waits for the disk.
std::string at_least_on_disk(const std::string& synchronous_commit) {
  return synchronous_commit == "off" ? "on" : synchronous_commit;
}

/// A file that cannot be read now may be on its way of being replaced: the connect is tried again.
std::string current_url(const SessionSettings& settings) {
  if (!settings.renewal.now)
    return settings.url;
  try {
    return settings.renewal.now(settings.url);
  } catch (const std::runtime_error& error) {
    throw Error::connection_lost(fmt::format("postgres.url: {}", error.what()));
  }
}

/// As session_state() has it.
std::string joined(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::string_view> values;
  for (const auto& [name, value] : settings)
    values.emplace_back(value);
  return fmt::format("{}", fmt::join(values, "|"));
}

}  // namespace

SessionSettings settings_of(const PostgresOptions& options) {
  SessionSettings settings;
  settings.url = options.url;
  settings.renewal = options.renewal;
  settings.own_schema = options.schema;
  settings.password_command = options.password_command;
  settings.pooled = options.pooled;
  settings.connect_timeout = options.connect_timeout;
  settings.lock_timeout = options.lock_timeout;
  return settings;
}

Session::Session(const SessionSettings& settings)
    : settings_(settings),
      schema_version_(settings.schema ? settings.schema->current() : 0),
      durable_commit_(at_least_on_disk(settings.durable_commit)),
      statement_timeout_(settings.statement_timeout) {
  int processes = 0;
  while (open() && ++processes < kMostUsedProcesses && end_process()) {
  }
  if (!settings_.pooled)
    apply_settings();
}

bool Session::open() {
  const auto begun = std::chrono::steady_clock::now();
  const bool of_files = settings_.url == settings_.renewal.read;
  raw_ = connect({current_url(settings_), settings_.application_name, settings_.connect_timeout,
                  settings_.unwanted, settings_.password_command,
                  of_files ? settings_.renewal.files : ""});
  connection_ = std::make_unique<pqxx::connection>(pqxx::connection::seize_raw_connection(raw_));
  // Notices of the server may quote data; handlers that want them set their own.
  PQsetNoticeProcessor(raw_, [](void*, const char*) {}, nullptr);
  {
    const std::scoped_lock lock(socket_mutex_);
    socket_ = PQsocket(raw_);
  }
  const auto age = identify_backend();
  // On the server's clock and on ours, which need not agree: durations are compared.
  return behind_pooler_ && !settings_.pooled && settings_.schema != nullptr &&
         age > std::chrono::steady_clock::now() - begun + std::chrono::seconds(1);
}

bool Session::end_process() {
  static const Statement end{"", "SELECT pg_terminate_backend(pg_backend_pid())"};
  try {
    exec(end);
    return false;
  } catch (const Error&) {
    // It may not be ended, and is used as it is; or it has ended, and the connection with it.
    if (alive())
      return false;
  }
  const std::scoped_lock lock(socket_mutex_);
  socket_ = -1;
  connection_.reset();
  return true;
}

Session::~Session() {
  const std::scoped_lock lock(socket_mutex_);
  socket_ = -1;
  connection_.reset();
}

void Session::apply_settings() {
  // The server's half of the connection is watched like ours: it lets go of the locks of a process
  // that was cut off without a word. Of no effect on a Unix socket.
  static const Statement set{"",
                             R"sql(
  SELECT current_setting('synchronous_commit'),
         set_config('tcp_keepalives_idle', '10', false),
         set_config('tcp_keepalives_interval', '5', false),
         set_config('tcp_keepalives_count', '3', false),
         set_config('tcp_user_timeout', '30000', false),
         set_config('lock_timeout', $1, false),
         set_config('statement_timeout', $2, false),
         set_config('idle_in_transaction_session_timeout', $3, false),
         set_config('default_transaction_isolation', 'read committed', false),
         set_config('array_nulls', 'on', false),
         set_config('standard_conforming_strings', 'on', false),
         set_config('synchronous_commit', coalesce($4,
                current_setting('synchronous_commit')), false)
)sql"};
  Parameters parameters;
  parameters.add_text(to_ms(settings_.lock_timeout));
  parameters.add_text(to_ms(settings_.statement_timeout));
  parameters.add_text(to_ms(settings_.idle_in_transaction_timeout));
  parameters.add_text_or_null(settings_.synchronous_commit);
  const auto row = exec(set, parameters);
  if (durable_commit_.empty())
    durable_commit_ = at_least_on_disk(PQgetvalue(row.get(), 0, 0));
  if (!settings_.by_index)
    return;
  // A table without a fitting index would seem so costly that compiling the statement seems cheap.
  static const Statement by_index{"", R"sql(
  SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)
)sql"};
  exec(by_index);
}

std::chrono::milliseconds Session::identify_backend() {
  static const Statement who{"", fmt::format(R"sql(
  SELECT pg_backend_pid(),
         {},
         current_setting('transaction_read_only'),
         coalesce(ceil(extract(epoch FROM clock_timestamp() - backend_start) * 1000)::bigint, 0)
    FROM (SELECT) one LEFT JOIN pg_stat_get_activity(pg_backend_pid()) ON true
)sql",
                                             exact_time("backend_start"))};
  const auto row = exec(who);
  const auto pid = static_cast<std::int32_t>(std::stol(PQgetvalue(row.get(), 0, 0)));
  behind_pooler_ = pid != PQbackendPID(raw_);
  connected_read_only_ = std::string_view(PQgetvalue(row.get(), 0, 2)) == "on";
  if (!settings_.pooled)
    backend_ = Backend{pid, PQgetvalue(row.get(), 0, 1)};
  return std::chrono::milliseconds(std::stoll(PQgetvalue(row.get(), 0, 3)));
}

Result Session::exec(const Statement& statement, Parameters& parameters) {
  Flight flight(*this);
  flight.add(statement, parameters);
  auto results = flight.run();
  return std::move(results.front());
}

Ticket Session::begun_ahead(Ahead answer) {
  ahead_.emplace(std::move(answer));
  return Ticket{++tickets_};
}

std::optional<Ahead> Session::go_on(Ticket ticket) {
  if (ticket != Ticket{tickets_})
    return std::nullopt;
  return std::exchange(ahead_, std::nullopt);
}

void Session::settle() noexcept {
  if (!ahead_)
    return;
  ahead_.reset();
  roll_back(*this);
}

std::chrono::milliseconds Session::answer_timeout() const {
  if (settings_.answer_timeout)
    return *settings_.answer_timeout;
  const bool unlimited = statement_timeout_.count() == 0;
  return unlimited ? statement_timeout_
                   : statement_timeout_ + settings_.lock_timeout + kAnswerMargin;
}

bool Session::is_read_only() {
  static const Statement ask{"pawl_is_read_only",
                             "SELECT current_setting('transaction_read_only')"};
  const auto row = exec(ask);
  return std::string_view(PQgetvalue(row.get(), 0, 0)) == "on";
}

bool Session::server_is_read_only() {
  // reset_val: what a handler has set for the session is no property of the server's.
  static const Statement ask{"",
                             R"sql(
  SELECT pg_is_in_recovery() OR (SELECT reset_val = 'on' FROM pg_settings
                                  WHERE name = 'default_transaction_read_only')
)sql"};
  const auto row = exec(ask);
  return std::string_view(PQgetvalue(row.get(), 0, 0)) == "t";
}

Result Session::exec(const Statement& statement) {
  Parameters none;
  return exec(statement, none);
}

std::shared_ptr<const Statement> Session::by_text(std::string_view sql) {
  const auto known = by_text_.find(sql);
  if (known != by_text_.end())
    return known->second;
  if (by_text_.size() >= kMaxByText)
    return std::make_shared<const Statement>(application_statement("", std::string(sql)));
  auto statement = std::make_shared<const Statement>(
      application_statement(fmt::format("pawl_text_{}", by_text_.size()), std::string(sql)));
  return by_text_.emplace(std::string(sql), std::move(statement)).first->second;
}

void Session::require_statement_timeout(std::chrono::milliseconds timeout) {
  if (settings_.pooled || timeout == statement_timeout_)
    return;
  static const Statement set{"pawl_statement_timeout",
                             "SELECT set_config('statement_timeout', $1, false)"};
  Parameters parameters;
  parameters.add_text(to_ms(timeout));
  const auto row = exec(set, parameters);
  statement_timeout_ = timeout;
  if (baseline_.empty())
    return;
  // The last of kVerifiedSettings.
  baseline_.back().second = PQgetvalue(row.get(), 0, 0);
  state_ = joined(baseline_);
}

void Session::verify_in_each_transaction(const std::string& expression) {
  if (settings_.pooled)
    in_each_transaction_ += ", " + expression;
}

/// What another client of the pooler has left in one of its server processes must not reach us, so
/// nothing is read there. NULL: as PostgreSQL has it for this role and database. The encoding and
/// the formats of times are those that the pooler keeps for its client (`ParameterStatus`).
void Session::carry_baseline() {
  in_each_transaction_ += ", set_config('search_path', NULL, true), set_config('role', NULL, true)";
  for (const auto* const name : {"client_encoding", "TimeZone", "DateStyle", "IntervalStyle"}) {
    if (const char* const value = PQparameterStatus(raw_, name))
      in_each_transaction_ +=
          fmt::format(", set_config('{}', {}, true)", name, connection_->quote(value));
  }
}

void Session::take_baseline() {
  if (settings_.pooled)
    return carry_baseline();
  static const Statement ask{
      "", fmt::format("SELECT name, current_setting(name, true)"
                      " FROM unnest('{{{}}}'::text[]) WITH ORDINALITY AS s (name, place)"
                      " ORDER BY place",
                      fmt::join(kVerifiedSettings, ","))};
  baseline_.clear();
  const auto rows = exec(ask);
  for (int row = 0; row < PQntuples(rows.get()); ++row) {
    if (PQgetisnull(rows.get(), row, 1) == 0)
      baseline_.emplace_back(PQgetvalue(rows.get(), row, 0), PQgetvalue(rows.get(), row, 1));
  }
  state_ = joined(baseline_);
}

bool Session::is_as_it_began() {
  static const Statement ask{"pawl_session_state", fmt::format("SELECT {}", session_state())};
  return state_.empty() || PQgetvalue(exec(ask).get(), 0, 0) == state_;
}

std::optional<std::vector<std::string>> Session::restore() {
  static const Statement set{"",
                             "SELECT set_config($1, $2, false)"
                             " WHERE current_setting($1) IS DISTINCT FROM $2"};
  // The server's configuration was changed, and nobody set anything here: a new session has the new
  // values, as those of all other programs have.
  static const Statement unset{"",
                               "SELECT FROM pg_settings WHERE name = $1 AND source <> 'session'"
                               " AND current_setting($1) IS DISTINCT FROM $2"};
  std::vector<std::string> restored;
  try {
    for (const auto& [name, value] : baseline_) {
      Parameters parameters;
      parameters.add_text(name);
      parameters.add_text(value);
      if (PQntuples(exec(unset, parameters).get()) > 0)
        return std::nullopt;
      if (PQntuples(exec(set, parameters).get()) > 0)
        restored.push_back(name);
    }
    if (is_as_it_began())
      return restored;
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): as below
  }
  // The role that it has now may not take another one, for instance: a new session has its own.
  return std::nullopt;
}

const Statement& Session::form_of(const Statement& statement) const {
  if (pooled() || behind_pooler_)
    return statement;
  if (statement.direct_unverified && !may_have_changed_settings_ && !schema_may_change_settings())
    return *statement.direct_unverified;
  return statement.direct ? *statement.direct : statement;
}

std::optional<Request> Session::release_of_locks() const {
  if (!may_hold_locks_)
    return std::nullopt;
  // In one statement, so that nobody finds the session without the lock that tells whose it is.
  static const Statement release{"pawl_release_locks",
                                 "SELECT pg_advisory_unlock_all(),"
                                 " CASE WHEN $1::integer IS NOT NULL"
                                 " THEN pg_advisory_lock_shared($1, $2::integer) END"};
  Request request;
  add_own_lock(request.to(release));
  return request;
}

void Session::add_own_lock(Parameters& parameters) const {
  parameters.add_optional_integer(own_lock_ ? std::optional<std::int64_t>(own_lock_->first)
                                            : std::nullopt);
  parameters.add_optional_integer(own_lock_ ? std::optional<std::int64_t>(own_lock_->second)
                                            : std::nullopt);
}

void Session::interrupt() {
  const std::scoped_lock lock(socket_mutex_);
  if (socket_ >= 0)
    ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace pawl::postgres
