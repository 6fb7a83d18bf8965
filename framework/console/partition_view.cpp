#include "console/partition_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/rows.hpp"

namespace pawl::cli {

std::optional<std::int64_t> lag_of(const ledger::RegisterRow* row,
                                   std::optional<std::int64_t> end) {
  if (row == nullptr || !end)
    return std::nullopt;
  return std::max<std::int64_t>(0, *end - row->stored.next());
}

std::string name_of(const TopicPartition& partition) {
  return fmt::format("{} [{}]", partition.topic, partition.partition);
}

std::string stored_text(const ledger::RegisterRow& row) {
  return row.stored.last() < 0 ? "-" : std::to_string(row.stored.last());
}

std::string known_text(std::optional<std::int64_t> number) {
  return number ? std::to_string(*number) : "?";
}

std::string state_text(const ledger::RegisterRow& row) {
  if (row.retrying())
    return "retrying";
  if (row.on_probation())
    return "probation";
  return ledger::to_string(row.state);
}

std::string owner_text(const ledger::RegisterRow& row) {
  if (row.owned())
    return row.owner;
  return row.session_gone ? fmt::format("nobody ({} has no session)", row.owner) : "nobody";
}

void describe(Json& json, const ledger::RegisterRow& row) {
  json["stored"] = row.stored.last() < 0 ? Json(nullptr) : Json(row.stored.last());
  json["state"] = ledger::to_string(row.state);
  json["since"] = row.state_since;
  json["halt_kind"] = or_null(row.halt_kind);
  json["reason"] = or_null(row.reason);
  json["message_offset"] = or_null(row.retrying() ? row.attempts_offset : row.halt_offset);
  json["failed_attempts"] = row.attempts;
  json["probation"] = row.suspect ? Json{{"offset", row.suspect->offset},
                                         {"processes_ended", row.suspect->crashes},
                                         {"runs_alone", row.suspect->runs}}
                                  : Json(nullptr);
  json["owner"] = or_null(row.owned() ? row.owner : "");
  json["last_owner"] = or_null(row.owner);
  json["owned_since"] = or_null(row.owned() ? row.acquired_at : "");
  json["epoch"] = static_cast<std::int64_t>(row.epoch);
  json["updated"] = row.updated_at;
}

}  // namespace pawl::cli
