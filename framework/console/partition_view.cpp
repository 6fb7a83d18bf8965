#include "console/partition_view.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>

#include "ledger/rows.hpp"

namespace pawl::cli {
namespace {

constexpr auto kStalledAfterMs = std::chrono::milliseconds(kStalledAfter).count();

}  // namespace

const char* to_string(Concern concern) {
  switch (concern) {
    case Concern::kNone:
      return "none";
    case Concern::kStalled:
      return "stalled";
    case Concern::kProbation:
      return "probation";
    case Concern::kRetrying:
      return "retrying";
    case Concern::kBlocked:
      return "blocked";
    case Concern::kPaused:
      return "paused";
    case Concern::kUnowned:
      return "unowned";
    case Concern::kHalted:
      return "halted";
  }
  return "unknown";
}

bool may_be_stalled(const ledger::RegisterRow& row) {
  return row.state == ledger::PartitionState::kRunning && row.owned() && !row.any_retrying() &&
         !row.on_probation() && row.since_update_ms > kStalledAfterMs;
}

bool stalled(const ledger::RegisterRow& row, std::optional<std::int64_t> end_before) {
  return may_be_stalled(row) && end_before && *end_before > row.stored.next();
}

Concern concern_of(const ledger::RegisterRow* row, std::optional<std::int64_t> end_before,
                   bool blocked) {
  using ledger::PartitionState;
  if (row == nullptr)
    return Concern::kUnowned;
  if (row->state == PartitionState::kHalted)
    return Concern::kHalted;
  if (!row->owned())
    return Concern::kUnowned;
  if (row->state == PartitionState::kPaused)
    return Concern::kPaused;
  if (blocked)
    return Concern::kBlocked;
  if (row->any_retrying())
    return Concern::kRetrying;
  if (row->on_probation())
    return Concern::kProbation;
  return stalled(*row, end_before) ? Concern::kStalled : Concern::kNone;
}

void ConcernCounts::add(const ledger::RegisterRow* row, std::optional<std::int64_t> end_before,
                        bool blocked_by_lock) {
  using ledger::PartitionState;
  unowned += row == nullptr || !row->owned() ? 1 : 0;
  if (row == nullptr)
    return;
  halted += row->state == PartitionState::kHalted ? 1 : 0;
  paused += row->state == PartitionState::kPaused ? 1 : 0;
  blocked += concern_of(row, end_before, blocked_by_lock) == Concern::kBlocked ? 1 : 0;
  stalled += !blocked_by_lock && cli::stalled(*row, end_before) ? 1 : 0;
  retrying += row->any_retrying() ? 1 : 0;
  on_probation += row->on_probation() ? 1 : 0;
}

std::optional<std::int64_t> lag_of(const ledger::RegisterRow* row,
                                   std::optional<std::int64_t> end) {
  // A log that ends before the next offset is another one, or was truncated.
  if (row == nullptr || !end || *end < row->stored.next())
    return std::nullopt;
  return *end - row->stored.next();
}

std::string names_of(const std::vector<TopicPartition>& partitions) {
  std::map<std::string, std::set<std::int32_t>> numbers;
  for (const auto& [topic, number] : partitions)
    numbers[topic].insert(number);
  std::string text;
  for (const auto& [topic, of_topic] : numbers) {
    text += fmt::format("{}{}[", text.empty() ? "" : ", ", topic);
    std::string ranges;
    for (auto first = of_topic.begin(); first != of_topic.end();) {
      auto last = first;
      while (std::next(last) != of_topic.end() && *std::next(last) == *last + 1)
        ++last;
      ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", *first);
      if (last != first)
        ranges += fmt::format("-{}", *last);
      first = std::next(last);
    }
    text += ranges + ']';
  }
  return text;
}

std::string offset_text(const ledger::RegisterRow& row) {
  return std::to_string(row.stored.next());
}

std::string known_text(std::optional<std::int64_t> number) {
  return number ? std::to_string(*number) : "?";
}

std::string state_text(const ledger::RegisterRow& row) {
  if (row.any_retrying())
    return "retrying";
  if (row.on_probation())
    return "probation";
  if (row.state == ledger::PartitionState::kRunning && !row.owned())
    return "unowned";
  return ledger::to_string(row.state);
}

std::string owner_text(const ledger::RegisterRow& row) {
  return row.owned() ? row.owner : "-";
}

std::string short_owner(const std::string& owner) {
  const auto colon = owner.rfind(':');
  return colon == std::string::npos || owner.find(':') == colon ? owner : owner.substr(0, colon);
}

void describe(Json& json, const ledger::Halt& halt) {
  json["halt_kind"] = or_null(halt.kind);
  json["halt_code"] = or_null(halt.code);
  json["halt_handler"] = or_null(halt.handler);
  json["halt_cause"] = or_null(halt.cause);
  json["halt_parameters"] = halt.code.empty()         ? Json(nullptr)
                            : halt.parameters.empty() ? Json::object()
                                                      : Json::parse(parameters_json(halt));
}

void describe(Json& json, const ledger::RegisterRow& row) {
  json["offset"] = row.stored.next();
  json["state"] = ledger::to_string(row.state);
  json["since"] = row.state_since;
  json["operator_reason"] = or_null(row.operator_reason);
  describe(json, row.halt);
  json["message_offset"] =
      or_null(row.any_retrying() ? row.retried_offset() : row.halt.message_offset);
  json["failed_attempts"] = row.failed_attempts();
  json["probation"] = row.suspect ? Json{{"offset", row.suspect->offset},
                                         {"processes_crashed", row.suspect->crashes},
                                         {"runs_alone", row.suspect->runs}}
                                  : Json(nullptr);
  json["owner"] = or_null(row.owned() ? row.owner : "");
  json["last_owner"] = or_null(row.owner);
  json["owned_since"] = or_null(row.owned() ? row.acquired_at : "");
  json["epoch"] = static_cast<std::int64_t>(row.epoch);
  json["updated_at"] = row.updated_at;
}

}  // namespace pawl::cli
