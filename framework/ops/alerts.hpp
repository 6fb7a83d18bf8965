#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "ops/alerts_limit.hpp"
#include "ops/alerts_message.hpp"
#include "ops/alerts_notify.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"
#include "process/program.hpp"

namespace pawl::ops {

/// Tells somebody when something needs a person: by a command, by NOTIFY, or both ([alerts]).
///
/// Made by `run`, shared with the consumer, called from all of its threads, which only leave a note
/// here; a thread of its own sends, one alert after another, so that no command and no database
/// holds up a message.
class AlertObserver final : public Observer {
 public:
  /// `report` is told what could not be sent; called on the sending thread.
  AlertObserver(const Options& options, std::function<void(const std::string&)> report);
  ~AlertObserver() override;
  AlertObserver(const AlertObserver&) = delete;
  AlertObserver& operator=(const AlertObserver&) = delete;

  [[nodiscard]] static bool wanted(const AlertOptions& options);

  void on_event(const Event& event) noexcept override;

  /// Sends what is due or waits for alerts.min_interval, for 2 s at most, and reports how many are
  /// not sent then; a command that still runs then is ended. False: the thread
  /// still waits for a connection, and the destructor would wait with it.
  bool finish();

 private:
  using Clock = AlertLimit::Clock;

  void note(const Event& event);
  void run();
  void send(const Alert& alert);

  const InvocationOptions invocation_;
  const AlertSender sender_;
  const std::function<void(const std::string&)> report_;
  std::unique_ptr<process::Program> command_;  ///< null: none is asked for
  std::unique_ptr<AlertNotify> notify_;        ///< the same

  std::mutex mutex_;
  std::condition_variable changed_;
  AlertLimit limit_;                                      // guarded by mutex_
  bool finishing_ = false;                                // guarded by mutex_
  bool finished_ = false;                                 // guarded by mutex_
  Clock::time_point deadline_{Clock::time_point::max()};  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::ops
