#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dead_letters/letter_source.hpp"
#include "dead_letters/replay.hpp"
#include "dead_letters/store/due_letters.hpp"
#include "dead_letters/store/view.hpp"
#include "engine/background_task.hpp"
#include "engine/bell.hpp"
#include "engine/context.hpp"
#include "engine/observers.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Tries dead letters again whose time has come (failures.retry_later), while a consumer runs.
/// Every process of a group does; of two that want one letter the database gives it to one. Ends by
/// itself where no handler asks for it and no letter waits.
class RetryTask final : public BackgroundTask {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RetryTask(Context& context);
  /// Waits for the letter in hand.
  ~RetryTask() override;

  /// What is due then waits for the next process.
  void stop(Clock::time_point deadline, bool finish) override { bell_.stop(deadline, finish); }

 private:
  void run();
  bool try_to(const std::function<bool()>& what);
  bool pass();
  bool tell_waiting();
  bool connect();
  bool wanted();
  [[nodiscard]] RunGate::Pass ask_to_run();
  void try_again(const ledger::DueLetter& due);
  std::optional<ledger::DeadLetter> read(const ledger::DueLetter& due);
  void leave_to_others(const ledger::DueLetter& due);
  void end(const ledger::DueLetter& due, const ReplayResult& result, const FailureOptions& options);
  void give_back();
  Replay& replay();
  void tell_dead(const ledger::DueLetter& due, const std::string& why) const;
  void give_up(const ledger::DueLetter& due, const std::string& why);
  [[nodiscard]] const FailureOptions& policy_of(const ledger::DeadLetter& letter);
  [[nodiscard]] const FailureOptions& options_of(const std::string& handler) const;
  [[nodiscard]] FrameContext quiet_frame() const;
  void emit(Step step, const ledger::DueLetter& due, const std::string& text) const;
  void warn(const std::string& text) const;

  Context& context_;
  Observers nobody_{{}};  ///< a letter's steps are no progress of its partition
  FrameContext frame_;
  ledger::DueLetters letters_;
  ledger::DeadLetterView view_;
  std::map<std::string, const FailureOptions*> by_handler_;
  LetterSource source_;
  std::unique_ptr<postgres::Session> session_;
  std::unique_ptr<Replay> replay_;
  /// Taken, and its try is to be given back once there is a session.
  std::optional<ledger::DueLetter> to_give_back_;
  std::string traceparent_;  ///< of the letter in hand
  bool idle_ = false;        ///< nobody wants anything of it
  Bell bell_;
  std::thread thread_;
};

}  // namespace pawl::engine
