#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "engine/background_task.hpp"
#include "engine/bell.hpp"
#include "engine/observers.hpp"
#include "engine/reachability.hpp"
#include "outbox/store/watch.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Tells when messages of the outbox wait for longer than outbox.alert_age, and when they no longer
/// do (Step::kOutboxLate, kOutboxCaughtUp), and at each look for how long. Of all processes of a
/// database one looks, with one query every 10 s at most; the others ask now and then whether it
/// still does, and have no connection meanwhile. While PostgreSQL is away nothing is known, and
/// nothing told. Its thread begins with the object.
class OutboxWatcher {
 public:
  /// All outlive it. `owner`: this process, as elsewhere in the database. `database`, where
  /// somebody wants to know: whether PostgreSQL answered.
  OutboxWatcher(const Options& options, const Observers& observers, std::string owner,
                Reachability* database = nullptr);
  ~OutboxWatcher();
  OutboxWatcher(const OutboxWatcher&) = delete;
  OutboxWatcher& operator=(const OutboxWatcher&) = delete;

  /// Begins to end. From any thread.
  void stop();

 private:
  void run();
  bool look();
  void connect();
  void failed(const postgres::Error& error);
  void warn_once(const std::string& text, std::string_view sqlstate = {});

  const Options& options_;
  const Observers& observers_;
  const std::string owner_;
  Reachability* const database_;
  const ledger::OutboxWatch watch_;
  const bool alerts_;
  const std::chrono::milliseconds interval_;
  Bell bell_;
  std::unique_ptr<postgres::Session> session_;
  std::string last_warning_;
  std::thread thread_;
};

/// The same while a consumer runs, whether it publishes or not.
class OutboxWatchTask final : public BackgroundTask {
 public:
  explicit OutboxWatchTask(Context& context)
      : watcher_(context.options, context.observers, context.owner) {}

  void stop(std::chrono::steady_clock::time_point /*deadline*/, bool /*finish*/) override {
    watcher_.stop();
  }

 private:
  OutboxWatcher watcher_;
};

}  // namespace pawl::engine
