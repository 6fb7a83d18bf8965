#include "engine/probation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dead_letters/store/dead_letters.hpp"

namespace pawl::engine {
namespace {

/// How long to wait before asking again whether a message may run.
constexpr std::chrono::milliseconds kGateRetry{2};

}  // namespace

void Probation::consider(Partition& partition, const ledger::Acquired& acquired) const {
  // Our own session may have been lost, or an operator have changed something: no process ended.
  const bool ended_by_another = acquired.previous_owner != context_.owner;
  // With nothing left in the log nothing was in hand.
  const auto& range = partition.range();
  if (acquired.released || !ended_by_another || !range || range->end <= acquired.stored.next())
    return;
  // What came into the log after the process had ended was not in its hands.
  const auto waiting = range->end - acquired.stored.next();
  const auto& plan = context_.router.plan_of(partition.name().topic);
  partition.head().on_probation =
      static_cast<std::uint32_t>(std::min<std::int64_t>(plan.most_in_hand, waiting));
}

RunGate::Pass Probation::ask_to_run(Partition& partition) {
  auto pass = partition.head().on_probation > 0 ? context_.gate.alone(&partition)
                                                : context_.gate.among_others();
  if (!pass)
    partition.wait(kGateRetry);
  return pass;
}

bool Probation::mark(Partition& partition) {
  const auto& item = partition.inbox().front();
  const auto offset = item.record.offset();
  Attempt attempt{Undertaking::kMessage};
  attempt.offset = offset;
  attempt.subject = identify(context_.router, partition.view(item));
  const auto most = consequences_.options_of(attempt).max_crashes;
  std::optional<std::uint32_t> crashes;
  try {
    crashes = context_.suspects.mark(*session_, partition.name(), *partition.held().epoch, offset,
                                     context_.owner, most);
  } catch (...) {
    attempt.what = Undertaking::kNote;
    attempt.failure = session_.why_failed();
    consequences_.follow(partition, attempt);
    return false;
  }
  if (!crashes) {
    consequences_.give_way(partition);
    return false;
  }
  if (*crashes > 0 && *crashes < most) {
    partition.tell(Step::kProbation, offset,
                   fmt::format("{} of at most {} processes ended while they ran this message "
                               "alone; it runs alone again",
                               *crashes, most));
  }
  if (*crashes < most)
    return true;
  auto& failure = attempt.failure;
  failure.permanent = true;
  failure.reason = ledger::dead_reason::kCrash;
  failure.text =
      fmt::format("{} processes ended while they ran this message and nothing else", *crashes);
  partition.tell(Step::kProbation, offset, failure.text);
  attempt.counted = true;  // by the marks
  consequences_.follow(partition, attempt);
  if (partition.held().stored.last() >= offset)
    end(partition, true);
  return false;
}

void Probation::end(Partition& partition, bool passed) {
  auto& left = partition.head().on_probation;
  if (passed && left > 0)
    --left;
  if (!session_.alive())
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
    const auto failure = session_.why_failed();
    if (failure.kind != postgres::FailureClass::kConnection) {
      partition.warn(
          Warning::kFailureNotStored,
          fmt::format("the mark of a message that ran alone cannot be removed: {}; it counts "
                      "against that message only if this process ends before the next one does so",
                      failure.text));
    }
  }
}

}  // namespace pawl::engine
