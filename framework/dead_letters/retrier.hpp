#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "dead_letters/due_queue.hpp"
#include "dead_letters/replay.hpp"
#include "dead_letters/store/due_letters.hpp"
#include "dead_letters/store/view.hpp"
#include "engine/backoff.hpp"
#include "engine/context.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// What the configuration says of retries, by handler.
struct RetryPolicies {
  const FailureOptions& common;
  std::map<std::string, const FailureOptions*> by_handler;

  [[nodiscard]] const FailureOptions& of(const std::string& handler) const;
  /// Whether any handler has its messages tried again.
  [[nodiscard]] bool any() const;
};

void warn_of_retries(const Observers& observers, const std::string& text,
                     std::string_view sqlstate = {});

/// False: it threw, which is told unless the connection was lost, or it says so.
bool try_retrying(const Observers& observers, const std::function<bool()>& what);

/// For statements of pawl's own. Null: another database is there than the one that `context` began
/// with. Throws postgres::Error.
[[nodiscard]] std::unique_ptr<postgres::Session> connect_for_retries(const Context& context);

/// Tries dead letters again, one at a time, with sessions of its own while there are some. One
/// thread.
class Retrier {
 public:
  /// What it refers to must outlive it. `frame`: tells nobody of a letter's steps.
  Retrier(Context& context, const FrameContext& frame, const RetryPolicies& policies,
          Replay::Fetch fetch, DueQueue& queue);

  /// Until the queue's end.
  void run();

 private:
  using Clock = std::chrono::steady_clock;

  bool connect();
  void keep_if_called(const ledger::DueLetter& due);
  void rest();
  [[nodiscard]] RunGate::Pass ask_to_run(const ledger::DueLetter& due, bool runs_code);
  void try_again(ledger::DueLetter due);
  std::optional<ledger::DeadLetter> read(const ledger::DueLetter& due);
  void leave_to_others(const ledger::DueLetter& due);
  void end(const ledger::DueLetter& due, const ReplayResult& result, const FailureOptions& options);
  void give_back();
  Replay& replay();
  void tell_dead(const ledger::DueLetter& due, Event event) const;
  void give_up(const ledger::DueLetter& due, const std::string& why);
  void emit(Event event, const ledger::DueLetter& due) const;
  void warn(const std::string& text) const;

  Context& context_;
  const FrameContext& frame_;
  const RetryPolicies& policies_;
  Replay::Fetch fetch_;
  DueQueue& queue_;
  ledger::DueLetters letters_;
  ledger::DeadLetterView view_;
  std::unique_ptr<postgres::Session> session_;
  std::unique_ptr<Replay> replay_;
  /// Taken, and its try is to be given back once there is a session.
  std::optional<ledger::DueLetter> to_give_back_;
  /// Its call was made, and the outcome is not stored yet: it is tried again here.
  std::optional<std::int64_t> kept_;
  Clock::time_point kept_until_{};
  std::string traceparent_;  ///< of the letter in hand
};

}  // namespace pawl::engine
