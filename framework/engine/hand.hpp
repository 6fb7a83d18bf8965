#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "engine/backoff.hpp"
#include "engine/context.hpp"
#include "engine/errand.hpp"
#include "engine/message_processor.hpp"
#include "engine/verdict.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// Runs messages one by one, each in a transaction that finishes it ahead of its partition's stored
/// offset, and carries out what decide() says of those that fail. Has a PostgreSQL session of its
/// own. Used by one thread, but for what is said to be for others.
class Hand {
 public:
  explicit Hand(Context& context);

  /// Sees to it that there is a session; nullopt: there is. Else when that is tried again.
  [[nodiscard]] std::optional<WorkerSession::Clock::time_point> make_ready();
  [[nodiscard]] Landing run(const Errand& errand);

  /// Of a leased handler's message: what is to be called without this hand, with `pass`, or how it
  /// landed.
  [[nodiscard]] std::variant<Landing, std::unique_ptr<LeasedCall>> begin_call(const Errand& errand,
                                                                              RunGate::Pass& pass);
  /// On any thread.
  static void make_call(const Context& context, const Errand& errand, LeasedCall& call);
  /// Leave to store what became of a call, as end_call() needs it. False: not now. On any thread.
  [[nodiscard]] static RunGate::Pass ask_to_store(Context& context, const Errand& errand);
  /// Stores what became of the call. What is unstored any hand may try again.
  [[nodiscard]] Landing end_call(const Errand& errand, LeasedCall& call, RunGate::Pass pass);

  // From any thread:
  [[nodiscard]] WorkerCall current_call() const { return session_.current_call(); }
  void interrupt() { session_.interrupt(); }
  void stop() { session_.stop(); }

 private:
  [[nodiscard]] std::optional<WorkerSession::Clock::time_point> connect();
  Landing try_once(const Errand& errand);
  [[nodiscard]] RunGate::Pass ask_to_run(const Errand& errand);
  std::optional<Landing> refused(const Errand& errand);
  Landing apply(const Errand& errand, bool nothing_to_call, RunGate::Pass pass);
  void applied(const Errand& errand, const Landing& landing, const Subject& subject);
  Landing fail(const Errand& errand);
  Landing follow(const Errand& errand, const Attempt& failed);
  Landing act(const Errand& errand, const Attempt& attempt, const Action& action);
  Landing count_and_decide(const Errand& errand, const Attempt& attempt);
  Landing set_aside(const Errand& errand, const Attempt& attempt);
  void tell(const Errand& errand, Step step, std::string_view detail) const;
  void tell_failed(const Errand& errand, const Attempt& attempt, Action::What what,
                   std::uint32_t attempts = 0) const;
  void emit(const Errand& errand, Event event) const;
  void say(const Errand& errand, const Attempt& attempt, const Action& action) const;

  Context& context_;
  WorkerSession session_;
  MessageProcessor processor_;
  Backoff backoff_;
  std::chrono::steady_clock::time_point last_used_{};  ///< the session, and it answered
  /// When what was read of the database was forgotten last.
  std::chrono::steady_clock::time_point forgot_at_{};
  /// The same of the one that was lost last.
  std::optional<std::chrono::steady_clock::time_point> lost_after_;
};

}  // namespace pawl::engine
