#include "engine/position_checks.hpp"

#include <fmt/format.h>

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

/// What became of the records of a topic that was recreated beside us.
std::string applied_of_new(const PositionPlace& place, std::int64_t stored,
                           std::optional<std::int64_t> looked_at) {
  if (!looked_at) {
    return fmt::format(
        "What was applied of the new one before this was seen, if anything, is not known; this "
        "looks: {}",
        command_text(place.invocation, "audit"));
  }
  if (*looked_at > stored)
    return "Nothing of the new one was applied";
  return fmt::format(
      "Offsets {} to {} were applied after Kafka last named the old one: what was produced after "
      "the change is of the new topic, and what stands before it there was applied nowhere",
      *looked_at, stored);
}

}  // namespace

std::string set_command(const InvocationOptions& invocation, const TopicPartition& partition,
                        std::string_view to) {
  return fmt::format("{} {} --to {}", command_text(invocation, "offsets set"),
                     partition_words(partition), to);
}

std::optional<std::string> other_topic(const PositionPlace& place, const ledger::Acquired& acquired,
                                       const std::string& current_id,
                                       std::optional<std::int64_t> looked_at) {
  if (acquired.topic_id.empty() || current_id.empty() || acquired.topic_id == current_id)
    return std::nullopt;
  const auto stored = acquired.stored.last();
  return fmt::format(
      "{}: the topic was deleted and created again (topic id was {}, is {}); stored offset "
      "{} belongs to the old one. {}. To process the new topic from its start: {}",
      text_of(place), acquired.topic_id, current_id, stored,
      applied_of_new(place, stored, looked_at),
      set_command(place.invocation, place.partition, "earliest"));
}

std::optional<std::string> outside_log(const PositionPlace& place, ledger::Position stored,
                                       const kafka::LogRange& log) {
  if (stored.next() < log.start) {
    return fmt::format(
        "{}: stored offset is {}, but Kafka's log begins at {}: retention removed {} "
        "offsets before they were processed. Nothing was skipped. Restore the records, or accept "
        "the loss: {}",
        text_of(place), stored.last(), log.start, log.start - stored.next(),
        set_command(place.invocation, place.partition));
  }
  if (stored.next() > log.end) {
    return fmt::format(
        "{}: stored offset is {}, but Kafka's log ends at {}: the log was truncated or the "
        "topic was recreated with fewer records. Nothing was skipped. Find out what was lost, then "
        "state the position: {}",
        text_of(place), stored.last(), log.end, set_command(place.invocation, place.partition));
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
      "{}: stored offset is {} ({}), but Kafka's log does not hold that record any more: "
      "{}. The log lost its end, and other records stand there now: those from the end that Kafka "
      "names up to the stored offset are applied nowhere. Nothing was skipped. Find out what was "
      "lost, then state the position: {}",
      text_of(place), acquired.stored.last(), epoch, without_policy(refusal->text),
      set_command(place.invocation, place.partition));
}

}  // namespace pawl::engine
