#include "engine/worker_session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ledger/stalled_sessions.hpp"

namespace pawl::engine {

using std::chrono::milliseconds;

namespace {

constexpr const char* kOtherDatabase = "another database responds at postgres.url";
/// Limit of each step of open_to_end().
constexpr milliseconds kOpenToEnd{2000};

}  // namespace

postgres::SessionSettings session_settings(const Options& options) {
  auto settings = postgres::settings_of(options.postgres);
  settings.application_name = "pawl " + options.kafka.group;
  settings.synchronous_commit = options.postgres.synchronous_commit;
  settings.durable_commit = options.postgres.synchronous_commit;
  milliseconds longest{30000};
  for (const auto& handler : options.handlers)
    longest = std::max(longest, handler.timeout);
  settings.statement_timeout =
      options.handlers.empty() ? longest : options.handlers.front().timeout;
  // A handler may compute without touching the database for as long as its timeout.
  settings.idle_in_transaction_timeout = longest + milliseconds(30000);
  return settings;
}

WorkerSession::WorkerSession(Context& context, Whose whose)
    : context_(context),
      whose_(whose),
      backoff_(context.options.postgres.retry_initial, context.options.postgres.retry_max) {}

std::unique_ptr<postgres::Session> WorkerSession::open_another() {
  auto settings = session_settings(context_.options);
  if (context_.options.consumer.durability == Durability::kReplayable)
    settings.synchronous_commit = "off";
  // None of a worker's own statements waits for anything but a lock; a handler's are on top.
  settings.answer_timeout = settings.lock_timeout + postgres::kAnswerMargin;
  settings.prepares = !deallocated_;
  settings.unwanted = &stop_asked_;
  settings.schema = context_.frame.schema;
  auto fresh = open(settings);
  if (!fresh)
    return nullptr;
  if (whose_ == Whose::kHand && !fresh->pooled())
    ledger::tell_whose_hand(*fresh, context_.owner);
  fresh->established();
  run_connect_functions(*fresh);
  fresh->take_baseline();
  return fresh;
}

/// Null: on another database than ours.
std::unique_ptr<postgres::Session> WorkerSession::open(
    const postgres::SessionSettings& settings) const {
  auto fresh = std::make_unique<postgres::Session>(settings);
  if (fresh->connected_read_only())
    throw postgres::Error::connection_lost(kReadOnlyServer);
  if (!ledger::still_registered(*fresh, context_.options.postgres.schema,
                                context_.options.kafka.cluster, context_.options.kafka.group,
                                context_.registration))
    return nullptr;
  return fresh;
}

std::unique_ptr<postgres::Session> WorkerSession::open_to_end() const {
  auto settings = session_settings(context_.options);
  settings.connect_timeout = std::min(settings.connect_timeout, kOpenToEnd);
  settings.lock_timeout = std::min(settings.lock_timeout, kOpenToEnd);
  settings.answer_timeout = kOpenToEnd;
  auto fresh = open(settings);
  if (fresh)
    fresh->established();
  return fresh;
}

/// The application's code waits as it likes: the monitor watches it as it does a handler.
void WorkerSession::run_connect_functions(postgres::Session& fresh) {
  const auto publish = [this](postgres::Session* session) {
    const std::scoped_lock lock(mutex_);
    setting_up_ = session;
  };
  publish(&fresh);
  const auto watched = watch({}, std::nullopt, context_.longest_handler);
  try {
    for (const auto& on_connect : context_.registry.connect_functions())
      on_connect(fresh.connection());
  } catch (...) {
    publish(nullptr);
    throw;
  }
  publish(nullptr);
}

WorkerSession::State WorkerSession::ensure() {
  if (alive()) {
    tell_deallocated();
    return State::kSame;
  }
  if (session_)
    lose("the connection is broken");
  if (Clock::now() < connect_not_before_)
    return State::kNone;
  try {
    auto fresh = open_another();
    if (!fresh) {
      refuse_database();
      return State::kNone;
    }
    {
      const std::scoped_lock lock(mutex_);
      session_ = std::move(fresh);
    }
    backoff_.reset();
    was_lost_ = false;
    database_refused_ = false;
    context_.database_reachable.answered();
    tell(Step::kDatabaseConnected, "");
    if (session_->behind_pooler() && !session_->pooled() && whose_ == Whose::kWorker) {
      context_.observers.emit(warning_event(
          Warning::kPoolerNotConfigured,
          "pawl connects through a pooler. Set postgres.pooled = true, unless the pooler pools "
          "sessions"));
    }
    return State::kNew;
  } catch (...) {  // code's may be anything
    connect_not_before_ = Clock::now() + backoff_.next();
    const auto text =
        fmt::format("cannot use PostgreSQL: {}", explain(std::current_exception(), true).text);
    told_away(text);
    if (!was_lost_)
      tell(Step::kDatabaseDisconnected, text);
    was_lost_ = true;
    return State::kNone;
  }
}

void WorkerSession::refuse_database() {
  connect_not_before_ = Clock::now() + backoff_.next();
  context_.database_reachable.failed(kOtherDatabase);
  if (std::exchange(database_refused_, true))
    return;
  was_lost_ = true;
  const auto text = fmt::format(
      "postgres.url leads to another database than {}, in which this process started, or consumer "
      "{}/{} has another ID there. Nothing is processed in it. Restore the right database, or "
      "restart the process to use this one",
      context_.registration.database_id, context_.options.kafka.cluster,
      context_.options.kafka.group);
  if (whose_ == Whose::kWorker)
    context_.observers.emit(warning_event(Warning::kWrongDatabase, text));
  tell(Step::kDatabaseDisconnected, kOtherDatabase);
}

/// A server that accepts workers is not unreachable: most likely its connections are used up. Warns
/// once until the executor has connected.
void WorkerSession::told_away(const std::string& why) {
  if (whose_ == Whose::kWorker)
    return context_.database_reachable.failed(why);
  if (was_lost_ || context_.database_reachable.is_away())
    return;
  const auto text = fmt::format("a worker thread cannot connect, all others continue: {}", why);
  context_.observers.emit(warning_event(Warning::kInsufficientResources, text));
}

/// The worker's own sessions say enough of a server that is away.
void WorkerSession::tell(Step step, std::string_view why) const {
  if (whose_ == Whose::kHand)
    return;
  Event event{step};
  event.detail = why;
  context_.observers.emit(event);
}

/// Its server process may outlive it, with a transaction whose locks are in our way then.
void WorkerSession::discard() {
  tell_deallocated();
  if (session_ && session_->backend())
    context_.previous_owners.abandoned(*session_->backend());
  close();
}

/// Where the session has lost prepared statements. Said once; later sessions are as this one.
void WorkerSession::tell_deallocated() {
  if (!session_ || session_->pooled() || session_->prepares() || std::exchange(deallocated_, true))
    return;
  context_.observers.emit(warning_event(
      Warning::kSessionRestored,
      "a handler, or a function that it called, removed the prepared statements of its session. "
      "pawl processes the failed messages again, and no longer prepares statements in this thread, "
      "which costs time. Remove DEALLOCATE from that handler"));
}

void WorkerSession::close() {
  const std::scoped_lock lock(mutex_);
  session_.reset();
}

void WorkerSession::renew() {
  // Its locks would stay until the server has read the end of the connection.
  if (session_)
    session_->settle();
  discard();
  if (end_ == End::kNone)
    end_ = End::kRenewed;
}

bool WorkerSession::may_begin() {
  try {
    if (context_.frame.schema->may_begin(*session_))
      return true;
    renew();
  } catch (const postgres::Error& error) {
    lose(alive() ? fmt::format("cannot check whether the schema of the database has changed: {}",
                               error.what())
                 : error.what());
  }
  return false;
}

bool WorkerSession::is_of_old_schema(const Attempt& attempt) {
  const bool of_messages =
      attempt.what == Undertaking::kMessage || attempt.what == Undertaking::kBatch;
  return of_messages && !attempt.counted &&
         may_be_of_old_schema(attempt.failure, attempt.subject.handler_begun) && alive() &&
         context_.frame.schema->has_changed_since(*session_);
}

void WorkerSession::lose(const std::string& why) {
  discard();
  end_ = End::kLost;
  was_lost_ = true;
  connect_not_before_ = Clock::now() + backoff_.next();
  if (whose_ == Whose::kWorker)
    context_.database_reachable.lost(why);
  tell(Step::kDatabaseDisconnected, why);
}

void WorkerSession::lose_if_read_only() {
  if (session_->is_read_only())
    lose(kReadOnlyServer);
}

bool WorkerSession::restore() {
  const auto restored = session_->restore();
  const auto text =
      restored
          ? fmt::format(
                "the handler of an earlier message changed settings of its session ({}). pawl "
                "restored them and processes the affected message again. In that handler, use SET "
                "LOCAL or set_config(..., true)",
                fmt::join(*restored, ", "))
          : std::string(
                "settings of a session have changed: a handler or the server's configuration "
                "changed them. pawl replaced the session and processes the affected message again. "
                "In handlers, use SET LOCAL or set_config(..., true)");
  context_.observers.emit(warning_event(Warning::kSessionRestored, text));
  if (!restored)
    renew();
  return restored.has_value();
}

Failure WorkerSession::why_failed() {
  auto failure = explain_on(*session_, std::current_exception());
  if (failure.kind != postgres::FailureClass::kReadOnly)
    return failure;
  try {
    if (session_->server_is_read_only()) {
      failure.kind = postgres::FailureClass::kConnection;
      failure.text = fmt::format("{}: {}", kReadOnlyServer, failure.text);
    } else {
      failure.kind = postgres::FailureClass::kMessage;
    }
  } catch (const postgres::Error& error) {
    failure.kind = postgres::FailureClass::kConnection;
    failure.text = error.what();
  }
  return failure;
}

void WorkerSession::notice_failure(Warning warning, std::string_view what) {
  const auto failure = why_failed();
  if (failure.kind == postgres::FailureClass::kConnection) {
    lose(failure.text);
    return;
  }
  const auto text = fmt::format("{}: {}. Retrying", what, failure.text);
  auto event = warning_event(warning, text);
  event.sqlstate = failure.sqlstate;
  context_.observers.emit(event);
}

WorkerSession::Watch WorkerSession::watch(const TopicPartition& partition,
                                          std::optional<PreviousOwner> previous_owner,
                                          milliseconds limit) {
  const std::scoped_lock lock(call_mutex_);
  call_.active = true;
  call_.since = Clock::now();
  call_.limit = limit;
  call_.own = session_ ? session_->backend() : std::nullopt;
  call_.previous_owner = std::move(previous_owner);
  call_.partition = partition;
  return Watch(*this);
}

WorkerSession::Watch::~Watch() {
  const std::scoped_lock lock(session_.call_mutex_);
  session_.call_.active = false;
}

WorkerCall WorkerSession::current_call() const {
  const std::scoped_lock lock(call_mutex_);
  return call_;
}

void WorkerSession::interrupt() {
  const std::scoped_lock lock(mutex_);
  if (session_)
    session_->interrupt();
  if (setting_up_ != nullptr)
    setting_up_->interrupt();
}

}  // namespace pawl::engine
