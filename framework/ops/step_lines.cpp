#include "ops/step_lines.hpp"

#include <fmt/format.h>

namespace pawl::ops {
namespace {

std::string acquired_text(const Event& event) {
  if (!event.detail.empty())
    return fmt::format("{}: resuming at offset {}", event.detail, event.offset + 1);
  if (event.offset < 0)
    return "assigned, nothing is processed yet: begins at offset 0";
  return fmt::format("assigned, resuming at offset {}", event.offset + 1);
}

std::string text_of(const Event& event) {
  switch (event.step) {
    case Step::kDeadLettered:
      return fmt::format("dead letter: {}", event.detail);
    case Step::kRetryLater:
      return fmt::format("tried again later: {}", event.detail);
    case Step::kFailed:
      return fmt::format("one try failed: {}", event.detail);
    case Step::kKafkaLost:
      return fmt::format("Kafka does not answer: {}; pawl asks again", event.detail);
    case Step::kKafkaBack:
      return "Kafka answers again";
    case Step::kRedisLost:
      return fmt::format("no lease can be had: {}; calls wait for that, and pawl asks again",
                         event.detail);
    case Step::kRedisBack:
      return "Redis gives leases again";
    case Step::kAcquired:
      return acquired_text(event);
    case Step::kRevoked:
      return event.offset < 0 ? "revoked, nothing is stored yet"
                              : fmt::format("revoked, stored offset {}", event.offset);
    case Step::kPaused:
      return fmt::format("paused by an operator{}{}", event.detail.empty() ? "" : ": ",
                         event.detail);
    case Step::kHalted:
      return fmt::format("HALTED: {}", event.detail);
    case Step::kFenced:
      if (event.by_operator)
        return "an operator's command changed the partition; asking for it again";
      return fmt::format(
          "another owner or an operator has taken the partition ({}); asking for it again",
          event.detail);
    case Step::kInDoubt:
      return fmt::format(
          "whether the last COMMIT was stored is unknown ({}); the register will tell",
          event.detail);
    default:
      return std::string(event.detail);
  }
}

}  // namespace

std::optional<StepLine> line_of(const Event& event) {
  using spdlog::level::level_enum;
  const auto said = [&event](level_enum level, bool limited = false) {
    return StepLine{level, limited, text_of(event)};
  };
  switch (event.step) {
    case Step::kCommitted:
    case Step::kDuplicate:
    case Step::kSkipped:
    case Step::kParked:
    case Step::kConnected:
    case Step::kDisconnected:
    case Step::kLogEnd:
    case Step::kDrained:
      return std::nullopt;
    case Step::kHalted:
    case Step::kTopicRefused:
      return said(level_enum::err);
    case Step::kHandlersDiffer:
    case Step::kOutboxLate:
    case Step::kRemoteServiceUnreachable:
    case Step::kPartitionBlocked:
      return said(level_enum::warn);
    case Step::kDeadLettered:
    case Step::kRetryLater:
    case Step::kOnProbation:
    case Step::kProbation:
    case Step::kFailed:
    case Step::kKafkaLost:
    case Step::kRedisLost:
    case Step::kWarning:
    case Step::kInDoubt:
    case Step::kOutboxRefused:
      return said(level_enum::warn, true);
    case Step::kFenced:
      return event.by_operator ? said(level_enum::info) : said(level_enum::warn, true);
    case Step::kAcquired:
    case Step::kOffProbation:
    case Step::kRevoked:
    case Step::kPaused:
    case Step::kKafkaBack:
    case Step::kRedisBack:
    case Step::kRemoteServiceReachable:
    case Step::kPartitionUnblocked:
    case Step::kTopicServed:
    case Step::kPruned:
    case Step::kGroupAwaited:
    case Step::kOutboxAcquired:
    case Step::kOutboxReleased:
    case Step::kOutboxCaughtUp:
      return said(level_enum::info);
    case Step::kOutboxLeftOut:
      return said(event.messages == 0 ? level_enum::info : level_enum::warn);
    case Step::kOutboxSeen:
      return std::nullopt;
    case Step::kRelayed:
    case Step::kOutboxBegun:
    case Step::kOutboxSent:
    case Step::kOutboxCommitted:
    case Step::kOutboxEnded:
      return said(level_enum::debug);
    default:
      return StepLine{level_enum::debug, false,
                      fmt::format("{} {} {}", to_string(event.step), event.offset, event.detail)};
  }
}

}  // namespace pawl::ops
