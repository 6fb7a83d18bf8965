#include "engine/acquisition.hpp"

#include <fmt/format.h>

#include "engine/halt_rendering.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// A seek on a partition whose fetcher is starting answers "erroneous state" for a moment.
constexpr std::uint32_t kMaxFailedSeeks = 40;
constexpr milliseconds kSeekRetry{50};

}  // namespace

bool Acquisition::advance(Partition& partition) {
  switch (partition.phase()) {
    case Phase::kAcquiring:
      // What became due after prepare() waits for the next round.
      if (partition.range() && !partition.must_prove())
        acquire(partition);
      return true;
    case Phase::kPositioning:
      position(partition);
      return true;
    case Phase::kRunning:
    case Phase::kStopped:
      break;
  }
  return false;
}

void Acquisition::prepare(const Partitions& partitions) {
  std::vector<Partition*> due;
  const auto now = Partition::Clock::now();
  for (const auto& [name, partition] : partitions) {
    partition->note_range(std::nullopt);
    if (partition->phase() == Phase::kAcquiring && partition->is_due(now))
      due.push_back(partition.get());
  }
  if (due.empty())
    return;
  try {
    prove(due);
    ask_ranges(due);
  } catch (const kafka::KafkaError& error) {
    for (auto* partition : due)
      postpone(*partition, error.what());
  }
}

/// Those that somebody took from us are ours again only if Kafka says so.
void Acquisition::prove(const std::vector<Partition*>& due) {
  std::vector<kafka::Membership::Progress> to_prove;
  for (const auto* partition : due) {
    if (!partition->must_prove())
      continue;
    const auto next = partition->status().next_for_kafka(context_.options.consumer.durability);
    to_prove.push_back({partition->name(), next >= 0 ? next : partition->held().stored.next()});
  }
  if (to_prove.empty())
    return;
  const auto proof =
      context_.membership->prove(to_prove, context_.commit_metadata(), kafka::kAnswerTimeout);
  for (auto* partition : due) {
    if (!partition->must_prove())
      continue;
    const auto unproven = proof.unproven.find(partition->name().topic);
    if (!proof.member) {
      // Kafka will say whether it is still ours: by a revocation, or a new assignment.
      postpone(
          *partition,
          "Kafka does not recognize this process as the member that owns the partition. Waiting "
          "for a revocation or a new assignment");
    } else if (unproven != proof.unproven.end()) {
      postpone(*partition, unproven->second);
    } else {
      partition->proven();
    }
  }
}

void Acquisition::ask_ranges(const std::vector<Partition*>& due) {
  std::vector<TopicPartition> names;
  names.reserve(due.size());
  for (const auto* partition : due)
    names.push_back(partition->name());
  const auto ranges = context_.kafka.log_ranges(names, kafka::kAnswerTimeout);
  for (auto* partition : due) {
    const auto found = ranges.find(partition->name());
    if (found != ranges.end()) {
      partition->note_range(found->second);
      continue;
    }
    postpone(
        *partition,
        "Kafka does not report the ends of the partition's log. The partition has no leader, or "
        "its topic does not exist or is not permitted. Retrying");
  }
}

/// It is tried again by itself.
void Acquisition::postpone(Partition& partition, const std::string& why) {
  partition.back_off(Action::Wait::kAcquireBackoff);
  partition.warn(Warning::kPositionFailed, why);
}

void Acquisition::acquire(Partition& partition) {
  PositionAnswer answer;
  try {
    const auto watched =
        session_.watch(partition.name(), partition.held().previous_owner, milliseconds(0));
    const auto look = partition.status().last_look();
    const auto known = [](std::int64_t offset) {
      return offset < 0 ? std::nullopt : std::optional(offset);
    };
    answer = positions_.acquire(*session_, partition.name(), partition.range(),
                                partition.inbox().refusal(),
                                {known(look.next), known(look.log_end), look.topic_id});
  } catch (const kafka::KafkaError& error) {
    postpone(partition, error.what());
    return;
  } catch (const std::exception&) {
    consequences_.follow(partition, {Undertaking::kAcquire, session_.why_failed()});
    return;
  }
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    refuse(partition, *refused);
  } else {
    accept(partition, std::get<Positioned>(answer));
  }
}

void Acquisition::accept(Partition& partition, const Positioned& positioned) {
  const auto& acquired = positioned.acquired;
  probation_.consider(partition, acquired);
  partition.granted(positioned);
  const bool paused = acquired.state == ledger::PartitionState::kPaused;
  const bool halted = acquired.state == ledger::PartitionState::kHalted;
  // What is not the message's fault is tried until it can be done. A halt at a message is a stored
  // state; each process tries that message once more by itself. Not where trying ends the process.
  const auto& kind = acquired.halt.kind;
  const bool of_program =
      halted && (kind == ledger::halt_kind::kProgram || kind == ledger::halt_kind::kCircuitBreaker);
  const bool ends_processes =
      kind == ledger::halt_kind::kCrash || kind == ledger::halt_kind::kCrashLoop;
  const bool once_more = halted && !of_program && !ends_processes &&
                         !context_.tried_halts.contains(partition.name(), acquired.stored);
  if (paused || (halted && !of_program && !once_more)) {
    const auto text = paused ? acquired.operator_reason
                             : halt_text(acquired.halt, context_.options, partition.name());
    partition.stop(halted, paused, text);
    if (paused)
      partition.tell(Step::kPartitionPaused, acquired.stored.last(), text);
    else
      partition.tell_halted(acquired.halt);
    return;
  }
  if (!crash_loop_.may_run(partition, acquired))
    return;
  partition.go(once_more, halted);
  if (halted)
    partition.tell_retried(acquired);
  else
    partition.tell(Step::kPartitionAssigned, acquired.stored.last());
  position(partition);
}

void Acquisition::refuse(Partition& partition, const Refused& refused) {
  partition.refused(refused, context_.options.failures.program_error_retry);
  if (refused.epoch) {
    consequences_.halt(partition, refused.halt);
    return;
  }
  // There is no row to store the halt in; it is asked again, for an operator may have made one.
  const auto text = halt_text(refused.halt, context_.options, partition.name());
  if (!partition.status().halt(text))
    partition.tell_halted(refused.halt);
}

void Acquisition::position(Partition& partition) {
  if (!crash_loop_.begin(partition))
    return;
  try {
    partition.seek();
    partition.tell(Step::kFetchPositioned, partition.taken().next());
  } catch (const kafka::KafkaError& error) {
    if (partition.seek_failed(kSeekRetry) % kMaxFailedSeeks != 0)
      return;
    partition.warn(Warning::kPositionFailed,
                   fmt::format("Kafka does not accept the position yet: {}", error.what()));
    if (error.kind() == kafka::ErrorKind::kFetcherStarting)
      context_.requests.restart_fetch(partition.name());
  }
}

}  // namespace pawl::engine
