#include "engine/position_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/invocation.hpp"
#include "engine/halt_texts.hpp"

namespace pawl::engine {
namespace {

/// librdkafka ends by naming what its own policy does, which is to report it.
std::string without_policy(const std::string& text) {
  const auto policy = text.find(". Reset ");
  return policy == std::string::npos ? text : text.substr(0, policy);
}

std::string text_of(const PositionPlace& place) {
  return place_text(place.group, place.partition);
}

/// What of the deleted topic was never processed. Its last messages may be unknown to us.
std::string lost_of_old(const ledger::Acquired& acquired, const LastLook& last_look) {
  const auto& log_end = last_look.log_end;
  if (!log_end)
    return "How many offsets of the old one were never processed, if any, is not known";
  const auto next = acquired.stored.next();
  // What was applied from there on may be of the new one instead.
  const auto certain = std::min(next, last_look.next.value_or(next));
  if (certain < std::min(next, *log_end)) {
    return fmt::format("Whether offsets {} to {} of the old one were processed is not known",
                       certain, *log_end - 1);
  }
  const auto finished = std::ranges::count_if(acquired.ahead, [&](const auto& known) {
    return known.outcome && known.record.offset >= next && known.record.offset < *log_end;
  });
  const auto lost = *log_end - next - finished;
  if (lost <= 0)
    return fmt::format("The old one was processed up to {}, the end that Kafka last reported",
                       *log_end);
  return fmt::format(
      "The deletion removed offsets of the old one that were never processed, at least {} from {} "
      "on: have them sent again, or accept the loss",
      lost, next);
}

/// What became of the records of a topic that was recreated beside us.
std::string applied_of_new(std::int64_t stored, std::optional<std::int64_t> looked_at) {
  if (!looked_at) {
    return "What was applied of the new one before this was seen, if anything, is not known; it "
           "comes again, as duplicates where its keys are stored";
  }
  if (*looked_at > stored)
    return "Nothing of the new one was applied";
  return fmt::format(
      "Offsets {} to {} were applied after Kafka last named the old one: what was produced after "
      "the change is of the new topic, and what stands before it there was applied nowhere",
      *looked_at, stored);
}

}  // namespace

std::string earlier_halt(const ledger::Acquired& acquired) {
  if (acquired.state != ledger::PartitionState::kHalted || acquired.reason.empty())
    return {};
  return fmt::format(" The partition had halted before: {}.",
                     acquired.reason.substr(0, acquired.reason.find(". ")));
}

std::string stored_words(ledger::Position stored) {
  return stored.last() < 0 ? "no offset is stored"
                           : fmt::format("stored offset is {}", stored.last());
}

std::string set_command(const InvocationOptions& invocation, const TopicPartition& partition,
                        std::string_view to) {
  return fmt::format("{} {} --to {}", command_text(invocation, "offsets set"),
                     partition_words(partition), to);
}

std::optional<std::string> other_topic(const PositionPlace& place, const ledger::Acquired& acquired,
                                       const std::string& current_id, const LastLook& last_look) {
  if (acquired.topic_id.empty() || current_id.empty() || acquired.topic_id == current_id)
    return std::nullopt;
  const auto stored = acquired.stored.last();
  return fmt::format(
      "{}: the topic was deleted and created again (topic id was {}, is {}); {}. {}. "
      "{}.{} To process the new topic from its start: {}",
      text_of(place), acquired.topic_id, current_id,
      stored < 0 ? "no offset of the old one is stored"
                 : fmt::format("stored offset {} belongs to the old one", stored),
      lost_of_old(acquired, last_look), applied_of_new(stored, last_look.next), place.earlier_halt,
      set_command(place.invocation, place.partition, "earliest"));
}

std::optional<std::string> outside_log(const PositionPlace& place, ledger::Position stored,
                                       const kafka::LogRange& log) {
  if (stored.next() < log.start) {
    return fmt::format(
        "{}: {}, but Kafka's log begins at {}: retention removed {} "
        "offsets before they were processed. Nothing was skipped.{} Restore the records, or accept "
        "the loss: {}",
        text_of(place), stored_words(stored), log.start, log.start - stored.next(),
        place.earlier_halt, set_command(place.invocation, place.partition));
  }
  if (stored.next() > log.end) {
    return fmt::format(
        "{}: {}, but Kafka's log ends at {}: the log was truncated or the "
        "topic was recreated with fewer records. Nothing was skipped.{} Find out what was lost, "
        "then "
        "state the position: {}",
        text_of(place), stored_words(stored), log.end, place.earlier_halt,
        set_command(place.invocation, place.partition));
  }
  return std::nullopt;
}

std::optional<std::string> other_log(const PositionPlace& place, const ledger::Acquired& acquired,
                                     const std::optional<PositionRefusal>& refusal) {
  if (!refusal || refusal->next != acquired.stored.next() || refusal->times < 2)
    return std::nullopt;
  const auto epoch = acquired.leader_epoch ? fmt::format("leader epoch {}", *acquired.leader_epoch)
                                           : std::string("of an unknown leader epoch");
  return fmt::format(
      "{}: {} ({}), but Kafka's log does not hold that record any more: "
      "{}. The log lost its end, and other records stand there now: those from the end that Kafka "
      "names up to the stored offset are applied nowhere. Nothing was skipped.{} Find out what was "
      "lost, then state the position: {}",
      text_of(place), stored_words(acquired.stored), epoch, without_policy(refusal->text),
      place.earlier_halt, set_command(place.invocation, place.partition));
}

}  // namespace pawl::engine
