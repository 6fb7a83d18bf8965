#include "engine/observers.hpp"

namespace pawl {

std::string_view to_string(Step step) {
  switch (step) {
    case Step::kAssigned:
      return "assigned";
    case Step::kAcquired:
      return "acquired";
    case Step::kPositioned:
      return "positioned";
    case Step::kFetched:
      return "fetched";
    case Step::kClaimed:
      return "claimed";
    case Step::kDuplicate:
      return "duplicate";
    case Step::kHandled:
      return "handled";
    case Step::kAdvancing:
      return "advancing";
    case Step::kCommitting:
      return "committing";
    case Step::kCommitted:
      return "committed";
    case Step::kSkipped:
      return "skipped";
    case Step::kDeadLettered:
      return "dead_lettered";
    case Step::kParked:
      return "parked";
    case Step::kProbation:
      return "probation";
    case Step::kFailed:
      return "failed";
    case Step::kFenced:
      return "fenced";
    case Step::kInDoubt:
      return "in_doubt";
    case Step::kHalted:
      return "halted";
    case Step::kPaused:
      return "paused";
    case Step::kRevoked:
      return "revoked";
    case Step::kReleased:
      return "released";
    case Step::kCaughtUp:
      return "caught_up";
    case Step::kLogEnd:
      return "log_end";
    case Step::kConnected:
      return "connected";
    case Step::kDisconnected:
      return "disconnected";
    case Step::kBreakerOpen:
      return "breaker_open";
    case Step::kDatabaseLost:
      return "database_lost";
    case Step::kDatabaseBack:
      return "database_back";
    case Step::kKafkaLost:
      return "kafka_lost";
    case Step::kKafkaBack:
      return "kafka_back";
    case Step::kGroupAwaited:
      return "group_awaited";
    case Step::kTopicRefused:
      return "topic_refused";
    case Step::kTopicServed:
      return "topic_served";
    case Step::kPruned:
      return "pruned";
    case Step::kHandlersDiffer:
      return "handlers_differ";
    case Step::kRelayed:
      return "relayed";
    case Step::kDrained:
      return "drained";
    case Step::kWarning:
      return "warning";
  }
  return "unknown";
}

bool is_of_message(Step step) {
  switch (step) {
    case Step::kDuplicate:
    case Step::kCommitted:
    case Step::kSkipped:
    case Step::kDeadLettered:
    case Step::kParked:
    case Step::kProbation:
    case Step::kFailed:
    case Step::kInDoubt:
      return true;
    default:
      return false;
  }
}

std::optional<std::int64_t> message_offset(const Event& event) {
  if (is_of_message(event.step) && event.offset >= 0)
    return event.offset;
  return event.message_offset;
}

}  // namespace pawl

namespace pawl::engine {

Observers::Observers(std::vector<std::shared_ptr<Observer>> observers)
    : observers_(std::move(observers)) {
  for (const auto& observer : observers_)
    every_step_ = every_step_ || observer->watches_every_step();
}

}  // namespace pawl::engine
