#include "outbox/outbox_status.hpp"

#include <fmt/format.h>

#include <chrono>

#include "config/units.hpp"

namespace pawl::cli {
namespace {

std::optional<double> age(const std::optional<ledger::Instant>& since, ledger::Instant now) {
  if (!since)
    return std::nullopt;
  return std::chrono::duration<double>(now - *since).count();
}

}  // namespace

std::string outbox_age(const std::optional<ledger::Instant>& since, ledger::Instant now) {
  const auto seconds = age(since, now);
  return seconds ? fmt::format("{:.1f} s", *seconds) : "-";
}

std::string outbox_count(std::int64_t waiting, bool more) {
  return fmt::format("{}{}", more ? "more than " : "", waiting);
}

Json outbox_json(const ledger::OutboxStatus& status) {
  Json json;
  json["waiting"] = status.waiting();
  json["more_wait"] = status.more();
  json["oldest_age_seconds"] = or_null(age(status.oldest(), status.now));
  json["late"] = status.late();
  json["set_apart"] = status.set_apart;
  auto& entries = json["lanes"] = Json::array();
  for (const auto& lane : status.lanes) {
    entries.push_back(
        {{"lane", lane.lane},
         {"owner", or_null(lane.owner)},
         {"owner_late", lane.owner_late},
         {"waiting", lane.waiting},
         {"more_wait", lane.more},
         {"oldest_age_seconds", or_null(age(lane.oldest, status.now))},
         {"published", lane.published},
         {"last_published_at",
          lane.last_published ? Json(ledger::to_string(*lane.last_published)) : Json(nullptr)}});
  }
  return json;
}

std::string outbox_text(const ledger::OutboxStatus& status) {
  const auto waiting = status.waiting();
  auto text = fmt::format(
      "{} messages wait, the oldest for {}{}; {} are set apart{}",
      outbox_count(waiting, status.more()), outbox_age(status.oldest(), status.now),
      status.late()
          ? fmt::format(", LATE (outbox.alert_age = {})", config::format_duration(status.alert_age))
          : "",
      status.set_apart, status.set_apart > 0 ? " (`outbox list`)" : "");
  if (waiting > 0 && !status.relayed())
    text += "; NO PROCESS PUBLISHES: set outbox.relay = \"on\" for a `run`, or start `relay`";
  return text;
}

}  // namespace pawl::cli
