#pragma once

#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/message_processor.hpp"
#include "engine/own_marks.hpp"
#include "engine/partition.hpp"
#include "engine/run_gate.hpp"
#include "engine/worker_session.hpp"
#include "ledger/types.hpp"
#include "message/json.hpp"

namespace pawl::engine {

/// Messages that may be why a process ended that had their partition and did not give it back: each
/// runs alone, behind a mark that says so, and is set aside when that ends processes again and
/// again (docs/crash-isolation.md). One worker's.
class Probation {
 public:
  /// How long to wait before asking again whether a message may run.
  static constexpr std::chrono::milliseconds kGateRetry{2};

  Probation(Context& context, WorkerSession& session, OwnMarks& marks, Consequences& consequences,
            MessageProcessor& processor)
      : context_(context),
        session_(session),
        marks_(marks),
        consequences_(consequences),
        processor_(processor) {}

  /// The register gives us the partition: decides whether some of it is on probation.
  void consider(Partition& partition, const ledger::Acquired& acquired);

  /// Decides whether the first message of the inbox is a suspect, if that is open. For each
  /// unfinished message in the log's order, before it begins.
  void consider_next(Partition& partition);

  /// Leave to run what is in hand. Without it the partition waits for a moment. `runs_code`: of the
  /// application.
  RunGate::Pass ask_to_run(Partition& partition, bool runs_code);

  /// Leave to run this suspect of the window, which waits there without it.
  [[nodiscard]] RunGate::Pass ask_to_run_alone(Partition& partition, std::int64_t offset);

  /// Leaves the mark of the message at the head. False: it must not run (now); that is dealt with.
  bool mark(Partition& partition);
  struct Marked {
    bool stands = false;            ///< if not: that is dealt with
    std::optional<Failure> failed;  ///< it must not run any more, because this counts against it
  };
  /// Leaves the mark of this message, in the inbox or in the window. What counts against it is left
  /// to the caller.
  Marked mark(Partition& partition, const Inbox::Item& item);

  /// The process has survived the message. `passed`: and it is behind.
  void end(const Partition& partition, bool passed) { marks_.remove(partition, passed); }
  /// The same of a partition that has left.
  void end_after_leaving(const TopicPartition& partition) {
    marks_.remove_after_leaving(partition);
  }
  /// A suspect that ran side by side has come back. `passed`: and it is finished.
  void note_end(Partition& partition, std::int64_t offset, bool passed);

 private:
  void tell_end(Partition& partition);
  [[nodiscard]] std::optional<std::int64_t> marked_before(const Partition& partition);
  [[nodiscard]] bool ended(const ledger::Acquired& acquired);
  [[nodiscard]] bool is_suspect(Partition& partition, const Inbox::Item& item);
  [[nodiscard]] bool was_called(Partition& partition, const handlers::Binding& binding,
                                const Message& message, message::JsonView& json);

  Context& context_;
  WorkerSession& session_;
  OwnMarks& marks_;
  Consequences& consequences_;
  MessageProcessor& processor_;
  message::JsonReader reader_;
};

}  // namespace pawl::engine
