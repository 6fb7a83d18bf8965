#pragma once

#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/own_marks.hpp"
#include "engine/partition.hpp"
#include "engine/worker_session.hpp"
#include "ledger/types.hpp"

namespace pawl::engine {

/// Records that end a process while it fetches them, before a handler gets anything. A partition
/// with such crashes is fetched alone, behind a mark, and halts in the end
/// (docs/crash-isolation.md). One worker's.
class CrashLoop {
 public:
  CrashLoop(Context& context, WorkerSession& session, OwnMarks& marks, Consequences& consequences)
      : context_(context), session_(session), marks_(marks), consequences_(consequences) {}

  /// The register gives us the partition, which may run: counts, after granted(). False: it must
  /// not run (now); that is dealt with.
  bool may_run(Partition& partition, const ledger::Acquired& acquired);

  /// Before Kafka is told to deliver. False: another partition is fetched, handlers run, or the
  /// mark cannot be left; that is dealt with.
  bool begin(Partition& partition);

  /// Something has arrived: a message, or the end of the log.
  void arrived(Partition& partition);

  /// Handlers wait for a turn only for seconds, and a turn in which nothing arrives ends.
  void watch(Partition& partition);

  /// It leaves this process. `cleanly`: nothing is counted any more if something has arrived.
  void leave(Partition& partition, bool cleanly);

  /// With the heartbeat: stores of which partitions of this process something has arrived.
  /// Throws postgres::Error, postgres::InDoubt.
  void note_begun();

 private:
  [[nodiscard]] bool is_alone(Partition& partition);
  void end_turn(Partition& partition);

  Context& context_;
  WorkerSession& session_;
  OwnMarks& marks_;
  Consequences& consequences_;
};

}  // namespace pawl::engine
