#include "engine/position_checks.hpp"

#include <algorithm>
#include <utility>

#include "text/bounded.hpp"
#include "text/located.hpp"

namespace pawl::engine {
namespace {

namespace code = ledger::halt_code;
namespace parameter = ledger::halt_parameter;

/// librdkafka ends by naming what its own policy does, which is to report it.
std::string without_policy(const std::string& text) {
  const auto policy = text.find(". Reset ");
  return policy == std::string::npos ? text : text.substr(0, policy);
}

ledger::Halt halt_before(const char* halt_code, ledger::Position stored) {
  auto halt = ledger::make_halt(halt_code);
  halt.parameters[parameter::kNextOffset] = std::to_string(stored.next());
  return halt;
}

/// What of the deleted topic was not processed. Its last messages may be unknown.
void add_lost_of_deleted(ledger::Halt& halt, const ledger::Acquired& acquired,
                         const LastLook& last_look) {
  const auto& log_end = last_look.log_end;
  if (!log_end)
    return;
  halt.parameters[parameter::kLogEnd] = std::to_string(*log_end);
  const auto next = acquired.stored.next();
  // Messages that were applied from there on may be of the new topic instead.
  const auto certain = std::min(next, last_look.next.value_or(next));
  if (certain < std::min(next, *log_end)) {
    halt.parameters[parameter::kUncertainFrom] = std::to_string(certain);
    return;
  }
  const auto finished = std::ranges::count_if(acquired.ahead, [&](const auto& known) {
    return known.outcome && known.record.offset >= next && known.record.offset < *log_end;
  });
  if (const auto lost = *log_end - next - finished; lost > 0)
    halt.parameters[parameter::kUnprocessed] = std::to_string(lost);
}

}  // namespace

ledger::Halt after_earlier_halt(ledger::Halt halt, const ledger::Acquired& acquired) {
  if (acquired.state != ledger::PartitionState::kHalted)
    return halt;
  halt.parameters[parameter::kEarlierHalt] = acquired.halt.code;
  auto cause = texts::located(acquired.halt.parameter(parameter::kStatement), acquired.halt.cause);
  if (!cause.empty())
    halt.parameters[parameter::kEarlierCause] = std::move(cause);
  return halt;
}

std::optional<ledger::Halt> other_topic(const ledger::Acquired& acquired,
                                        const std::string& current_id, const LastLook& last_look) {
  if (acquired.topic_id.empty() || current_id.empty() || acquired.topic_id == current_id)
    return std::nullopt;
  auto halt = halt_before(code::kTopicRecreated, acquired.stored);
  halt.parameters[parameter::kOldTopicId] = acquired.topic_id;
  halt.parameters[parameter::kTopicId] = current_id;
  add_lost_of_deleted(halt, acquired, last_look);
  if (last_look.next)
    halt.parameters[parameter::kAppliedFrom] = std::to_string(*last_look.next);
  return halt;
}

std::optional<ledger::Halt> outside_log(ledger::Position stored, const kafka::LogRange& log) {
  if (stored.next() < log.start) {
    auto halt = halt_before(code::kLogStartMoved, stored);
    halt.parameters[parameter::kLogStart] = std::to_string(log.start);
    return halt;
  }
  if (stored.next() > log.end) {
    auto halt = halt_before(code::kLogTruncated, stored);
    halt.parameters[parameter::kLogEnd] = std::to_string(log.end);
    return halt;
  }
  return std::nullopt;
}

std::optional<ledger::Halt> other_log(const ledger::Acquired& acquired,
                                      const std::optional<PositionRefusal>& refusal) {
  if (!refusal || refusal->next != acquired.stored.next() || refusal->times < 2)
    return std::nullopt;
  auto halt = halt_before(code::kRecordReplaced, acquired.stored);
  halt.cause = texts::bounded(without_policy(refusal->text), texts::kLongestCause);
  if (acquired.leader_epoch)
    halt.parameters[parameter::kStoredLeaderEpoch] = std::to_string(*acquired.leader_epoch);
  return halt;
}

}  // namespace pawl::engine
