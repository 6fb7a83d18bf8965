#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "engine/batch_processor.hpp"
#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/crash_loop.hpp"
#include "engine/message_pipeline.hpp"
#include "engine/message_processor.hpp"
#include "engine/partition.hpp"
#include "engine/probation.hpp"
#include "engine/run_gate.hpp"
#include "engine/verdict.hpp"
#include "engine/worker_session.hpp"
#include "message/json.hpp"

namespace pawl::engine {

/// Runs what a partition has in hand: chooses how many messages go together, tries them, and leaves
/// what fails to the Consequences. One worker's.
class Runner {
 public:
  Runner(Context& context, WorkerSession& session, Consequences& consequences, Probation& probation,
         CrashLoop& crash_loop, MessageProcessor& processor);

  enum class Turn {
    kIdle,  ///< there is nothing to do
    kWorked,
    kCall,  ///< what comes next is a call, which must not keep the worker's thread
  };

  /// The turn of a partition that runs: some messages, or one pipeline or batch of them.
  /// `called_away`: somebody waits for the worker.
  Turn turn(Partition& partition, const std::function<bool()>& called_away);

  /// Whether the first of what was taken is a call.
  [[nodiscard]] bool is_call_next(const Partition& partition);

  /// Takes from its stream, up to so many. False: nothing has come, or it is not running any more.
  bool take(Partition& partition, std::size_t most);
  /// The first of what it has taken, by itself, as long as it may run.
  void turn_alone(Partition& partition);

 private:
  using Clock = std::chrono::steady_clock;

  /// What goes to the server next.
  struct Work {
    enum class Kind {
      kOne,
      kPipeline,  ///< many, each in a transaction of its own
      kBatch,     ///< many in one transaction
      kWait,      ///< for more messages
    };
    Kind kind = Kind::kOne;
    Clock::time_point begun{};  ///< code of handlers' may have run since
    std::size_t items = 1;      ///< of the inbox, that a batch covers: ends of the log too
  };
  enum class Filled {
    kPartly,  ///< with all that there is
    kFull,    ///< as much as a batch may hold
  };

  void tell_stream_error(Partition& partition, const kafka::Record& error);

  [[nodiscard]] const handlers::Binding* next_handler(const Partition& partition);
  [[nodiscard]] bool may_batch(const Partition& partition) const;
  [[nodiscard]] bool may_pipeline(const Partition& partition) const;
  [[nodiscard]] bool pipelines(const Partition& partition) const;
  std::optional<Filled> fill(Partition& partition);
  Work choose(Partition& partition, Filled filled);
  std::size_t collect_batch(const Partition& partition, Clock::time_point until);
  [[nodiscard]] bool is_complete(const Partition& partition, Filled filled,
                                 std::size_t items) const;
  void collect_pipeline(const Partition& partition, Clock::time_point until);

  // Nullopt: nothing failed. What was stored is behind then; a batch in which messages conflict
  // stores nothing, and those run alone next.
  std::optional<Attempt> run_one(Partition& partition, const Work& work, bool more_follows);
  std::optional<Attempt> run_pipeline(Partition& partition, const Work& work);
  std::optional<Attempt> run_batch(Partition& partition, const Work& work);
  void run_alone(Partition& partition, const Work& work, bool more_follows, RunGate::Pass pass);
  [[nodiscard]] std::optional<Upcoming> upcoming(const Partition& partition) const;
  [[nodiscard]] ledger::Advance step_over_batch(const Partition& partition,
                                                std::size_t items) const;
  void tell_landed(std::size_t index, const Timing* timing) const;
  void tell_outbox();

  bool halts_at(Partition& partition);
  void pass_end(Partition& partition);

  Context& context_;
  WorkerSession& session_;
  Consequences& consequences_;
  Probation& probation_;
  CrashLoop& crash_loop_;
  MessageProcessor& processor_;
  MessagePipeline pipeline_;
  BatchProcessor batches_;
  message::JsonReader reader_;
};

}  // namespace pawl::engine
