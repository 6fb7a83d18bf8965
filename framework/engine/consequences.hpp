#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/context.hpp"
#include "engine/halt_texts.hpp"
#include "engine/message_processor.hpp"
#include "engine/partition.hpp"
#include "engine/set_aside.hpp"
#include "engine/verdict.hpp"
#include "engine/worker_session.hpp"
#include "ledger/types.hpp"

namespace pawl::engine {

/// Carries out what decide() says of a failed attempt: tells of it, counts it, waits, sets the
/// message aside, halts, lets go of the session. What fails meanwhile is an attempt as well. One
/// worker's.
class Consequences {
 public:
  Consequences(Context& context, WorkerSession& session, MessageProcessor& processor)
      : context_(context), session_(session), processor_(processor) {}

  void follow(Partition& partition, const Attempt& attempt);

  /// The message at the head broke its connection before, perhaps: that is counted now. False: it
  /// must not run (now).
  bool count_broken_connection(Partition& partition);

  /// The register refused us: the partition is ours again only once Kafka confirms it.
  void give_way(Partition& partition, std::string_view why = "another process owns it");

  /// What follows from an attempt: tells of the breaker, and stores the halt.
  void halt_after_attempt(Partition& partition, const AttemptHalt& of);

  /// Stores it. `retry_after`: it is retried automatically, without losing its place.
  void halt(Partition& partition, const ledger::Halt& halt,
            std::optional<std::chrono::milliseconds> retry_after = std::nullopt);

  /// The policy of the handler that the attempt was of, or the general one.
  [[nodiscard]] const FailureOptions& options_of(const Attempt& attempt) const {
    return failure_options(context_.options, attempt);
  }

 private:
  [[nodiscard]] Action verdict_on(const Partition& partition, const Attempt& attempt) const;
  void apply(Partition& partition, const Attempt& attempt, const Action& action);
  void act(Partition& partition, const Attempt& attempt, const Action& action);
  void say(const Partition& partition, const Attempt& attempt, const Action& action) const;
  void tell_failed(const Partition& partition, const Attempt& attempt, Action::What what,
                   std::uint32_t attempts = 0) const;
  void count_and_decide(Partition& partition, const Attempt& attempt);
  bool count_attempt(Partition& partition, const Attempt& attempt);
  void restore_session(Partition& partition, const Attempt& attempt);
  void prepare_anew(Partition& partition, const Attempt& attempt);
  static void decide_halt_again(Partition& partition, const Attempt& attempt);
  void set_aside(Partition& partition, const Attempt& attempt);

  Context& context_;
  WorkerSession& session_;
  MessageProcessor& processor_;
};

}  // namespace pawl::engine
