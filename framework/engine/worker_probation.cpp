// What a worker does with messages that were in hand when a process ended without letting go: each
// runs alone, behind a mark that says so, and is set aside when that ends processes again and
// again.
#include <fmt/format.h>

#include <algorithm>

#include "engine/worker.hpp"

namespace pawl::engine {
namespace {

/// How long to wait before asking again whether a message may run.
constexpr std::chrono::milliseconds kGateRetry{2};

}  // namespace

/// Called when the register has given us the partition.
void Worker::consider_probation(Partition& partition, const ledger::Acquired& acquired) {
  // Our own session may have been lost, or an operator have changed something: no process ended.
  const bool ended_by_another = !partition.epoch || acquired.previous_owner != context_.owner;
  // With nothing left in the log nothing was in hand.
  const bool something_waits =
      partition.log_hint && partition.log_hint->end > acquired.stored_offset + 1;
  if (acquired.released || !ended_by_another || !something_waits)
    return;
  // What came into the log after the process had ended was not in its hands.
  const auto waiting = partition.log_hint->end - acquired.stored_offset - 1;
  partition.on_probation =
      static_cast<std::uint32_t>(std::min<std::int64_t>(context_.max_in_hand, waiting));
}

RunGate::Pass Worker::ask_to_run(Partition& partition) {
  auto pass =
      partition.on_probation > 0 ? context_.gate.alone(&partition) : context_.gate.among_others();
  if (!pass) {
    processor_.settle();
    partition.not_before = Clock::now() + kGateRetry;
  }
  return pass;
}

/// Leaves the mark. False: the message must not run (now); that is dealt with.
bool Worker::mark_suspect(Partition& partition, const Partition::Item& item) {
  const auto message = item.record.view(partition.name().topic, partition.topic_id);
  processor_.identify(message);
  auto attempt = attempt_of(partition, Undertaking::kMessage, {});
  const auto most = failure_options(attempt).max_crashes;
  std::optional<std::uint32_t> crashes;
  try {
    crashes = context_.suspects.mark(*session_, partition.name(), *partition.epoch,
                                     item.record.offset(), context_.owner, most);
  } catch (...) {
    failed(partition, attempt_of(partition, Undertaking::kNote, why_failed()));
    return false;
  }
  if (!crashes) {
    give_way(partition);
    return false;
  }
  if (*crashes > 0 && *crashes < most) {
    emit(Step::kProbation, partition, item.record.offset(),
         fmt::format("{} of at most {} processes ended while they ran this message alone; it runs "
                     "alone again",
                     *crashes, most));
  }
  if (*crashes < most)
    return true;
  auto& failure = attempt.failure;
  failure.permanent = true;
  failure.reason = ledger::dead_reason::kCrash;
  failure.text =
      fmt::format("{} processes ended while they ran this message and nothing else", *crashes);
  const auto offset = item.record.offset();
  emit(Step::kProbation, partition, offset, failure.text);
  attempt.counted = true;  // by the marks
  failed(partition, attempt);
  if (partition.stored >= offset)
    end_probation(partition, true);
  return false;
}

/// The process has survived the message. `passed`: and it is behind.
void Worker::end_probation(Partition& partition, bool passed) {
  if (passed && partition.on_probation > 0)
    --partition.on_probation;
  if (!session_ || !session_->alive())
    return;
  try {
    if (passed) {
      context_.suspects.clear(*session_, partition.name(), context_.owner);
    } else {
      context_.suspects.unmark(*session_, partition.name(), context_.owner);
    }
  } catch (const std::exception&) {
    // A mark of ours that stays is not counted against the message by us; a lost session is noticed
    // at its next use.
    const auto failure = why_failed();
    if (failure.kind != postgres::FailureClass::kConnection) {
      emit(Step::kWarning, partition, partition.stored,
           fmt::format("the mark of a message that ran alone cannot be removed: {}; it counts "
                       "against that message only if this process ends before the next one does so",
                       failure.text));
    }
  }
}

}  // namespace pawl::engine
