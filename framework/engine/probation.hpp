#pragma once

#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/partition.hpp"
#include "engine/run_gate.hpp"
#include "engine/worker_session.hpp"
#include "ledger/types.hpp"

namespace pawl::engine {

/// Messages that were in hand when a process ended without letting go: each runs alone, behind a
/// mark that says so, and is set aside when that ends processes again and again
/// (docs/failures.md, "Messages that kill the process"). One worker's.
class Probation {
 public:
  Probation(Context& context, WorkerSession& session, Consequences& consequences)
      : context_(context), session_(session), consequences_(consequences) {}

  /// The register gives us the partition: decides what of it is on probation. Before granted().
  void consider(Partition& partition, const ledger::Acquired& acquired) const;

  /// Leave to run what is in hand. Without it the partition waits for a moment.
  RunGate::Pass ask_to_run(Partition& partition);

  /// Leaves the mark of the message at the head. False: it must not run (now); that is dealt with.
  bool mark(Partition& partition);

  /// The process has survived the message. `passed`: and it is behind.
  void end(Partition& partition, bool passed);

 private:
  Context& context_;
  WorkerSession& session_;
  Consequences& consequences_;
};

}  // namespace pawl::engine
