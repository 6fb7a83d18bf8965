#include "outbox/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/alerts.hpp"
#include "outbox/lateness.hpp"
#include "outbox/session.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestInterval{500};
constexpr milliseconds kLongestInterval{10000};
/// Whoever dies is replaced after so many looks.
constexpr int kLeaseLooks = 3;
/// It waits for nobody, and a look that takes longer is no cheap one.
constexpr milliseconds kLockTimeout{1000};
constexpr milliseconds kStatementTimeout{5000};

}  // namespace

OutboxWatcher::OutboxWatcher(const Options& options, const Observers& observers, std::string owner,
                             Reachability* database)
    : options_(options),
      observers_(observers),
      owner_(std::move(owner)),
      database_(database),
      watch_(options.postgres.schema),
      alerts_(ops::AlertObserver::wanted(options.alerts)),
      interval_(std::clamp(options.outbox.alert_age / 2, kShortestInterval, kLongestInterval)),
      thread_([this] { run(); }) {}

OutboxWatcher::~OutboxWatcher() {
  stop();
  thread_.join();
}

void OutboxWatcher::stop() {
  bell_.stop(Bell::Clock::now(), false);
}

void OutboxWatcher::run() {
  while (!bell_.stopping()) {
    auto pause = interval_;
    const bool reuses = session_ != nullptr;
    try {
      connect();
      if (!look()) {
        session_.reset();
        pause *= kLeaseLooks;
      }
      last_warning_.clear();
      if (database_ != nullptr)
        database_->answered();
    } catch (const postgres::InDoubt&) {
      session_.reset();
    } catch (const postgres::Error& error) {
      session_.reset();
      // The server may have restarted since the last look: only a new session shows whether it is
      // unreachable now.
      if (reuses && error.failure() == postgres::FailureClass::kConnection)
        continue;
      failed(error);
    } catch (const std::exception& error) {
      warn_once(error.what());
      session_.reset();
    }
    bell_.wait(pause, pause);
  }
}

void OutboxWatcher::connect() {
  if (session_ && session_->alive())
    return;
  session_ = std::make_unique<postgres::Session>(
      outbox_session(options_, bell_, kLockTimeout, kStatementTimeout));
}

/// False: another process does.
bool OutboxWatcher::look() {
  const auto look = watch_.look(*session_, owner_, alerts_, interval_ * kLeaseLooks);
  if (!look)
    return false;
  const auto bound = options_.outbox.alert_age;
  Event seen{Step::kOutboxSampled};
  seen.waits = look->oldest ? std::max(look->at - *look->oldest, milliseconds{0}) : milliseconds{0};
  observers_.emit(seen);
  const auto news =
      late_news(look->told, ledger::outbox_is_late(look->oldest, look->at, bound), alerts_);
  if (news == LateNews::kNone)
    return true;
  Event event{news == LateNews::kLate ? Step::kOutboxLate : Step::kOutboxCaughtUp};
  const auto text = news == LateNews::kLate ? late_text(options_.invocation, *look, bound)
                                            : std::string(
                                                  "no message waits for longer than "
                                                  "outbox.alert_age");
  event.detail = text;
  observers_.emit(event);
  // Behind it: a process that dies in between has it told twice, and not never.
  watch_.tell(*session_, owner_, told_after(news, alerts_));
  return true;
}

void OutboxWatcher::failed(const postgres::Error& error) {
  using postgres::FailureClass;
  // A row that another process holds for a moment is no news.
  if (bell_.stopping() || error.failure() == FailureClass::kContention)
    return;
  if (error.failure() == FailureClass::kConnection) {
    // In a consumer that is the workers' to tell.
    if (database_ != nullptr)
      database_->failed(error.what());
    return;
  }
  warn_once(error.what(), error.sqlstate());
}

void OutboxWatcher::warn_once(const std::string& text, std::string_view sqlstate) {
  if (std::exchange(last_warning_, text) == text)
    return;
  observers_.emit(warning_event(Warning::kOutboxDelayed,
                                fmt::format("cannot check outbox.alert_age: {}. Retrying", text),
                                sqlstate));
}

}  // namespace pawl::engine
