#include "outbox/outbox_status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <ranges>

#include "config/invocation.hpp"
#include "config/units.hpp"

namespace pawl::cli {
namespace {

std::optional<double> age(const std::optional<ledger::Instant>& since, ledger::Instant now) {
  if (!since)
    return std::nullopt;
  return std::chrono::duration<double>(now - *since).count();
}

/// What is known of those that should publish what waits.
std::string relays_text(const ledger::OutboxStatus& status) {
  std::string text;
  for (const auto& relay : status.relays) {
    if (!relay.problem.empty())
      text += fmt::format("; {} CANNOT PUBLISH, and tries again: {}", relay.owner, relay.problem);
    if (!relay.left_out.empty()) {
      text += fmt::format("; {} CANNOT WRITE to {}, tries again, and publishes the others",
                          relay.owner, relay.left_out);
    }
  }
  if (!text.empty() || status.relayed())
    return text;
  if (status.relays.empty()) {
    return "; NO PROCESS PUBLISHES: set outbox.relay = \"on\" for a `run`, or start `relay`; where "
           "one runs all the same, its log says what it lacks";
  }
  return fmt::format(
      "; NO LANE IS HELD, although {} {} there to publish: {} log says why",
      fmt::join(status.relays | std::views::transform(&ledger::RelayStatus::owner), ", "),
      status.relays.size() == 1 ? "is" : "are", status.relays.size() == 1 ? "its" : "their");
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
  json["more_waiting"] = status.more();
  json["oldest_age_seconds"] = or_null(age(status.oldest(), status.now));
  json["late"] = status.late();
  json["failed"] = status.set_apart;
  auto& entries = json["shards"] = Json::array();
  for (const auto& lane : status.lanes) {
    entries.push_back(
        {{"shard", lane.lane},
         {"owner", or_null(lane.owner)},
         {"owner_late", lane.owner_late},
         {"waiting", lane.waiting},
         {"more_waiting", lane.more},
         {"oldest_age_seconds", or_null(age(lane.oldest, status.now))},
         {"published", lane.published},
         {"last_published_at",
          lane.last_published ? Json(ledger::to_string(*lane.last_published)) : Json(nullptr)}});
  }
  auto& relays = json["relays"] = Json::array();
  for (const auto& relay : status.relays) {
    relays.push_back(
        {{"owner", relay.owner},
         {"transactions", relay.transactions ? Json(*relay.transactions) : Json(nullptr)},
         {"problem", or_null(relay.problem)},
         {"unwritable", or_null(relay.left_out)}});
  }
  return json;
}

std::string outbox_text(const ledger::OutboxStatus& status, const InvocationOptions& invocation) {
  const auto waiting = status.waiting();
  auto text = fmt::format(
      "{} messages wait, the oldest for {}{}; {} are set apart{}",
      outbox_count(waiting, status.more()), outbox_age(status.oldest(), status.now),
      status.late()
          ? fmt::format(", LATE (outbox.alert_age = {})", config::format_duration(status.alert_age))
          : "",
      status.set_apart,
      status.set_apart > 0 ? fmt::format(" (`{}`)", command_text(invocation, "outbox list")) : "");
  if (waiting > 0)
    text += relays_text(status);
  return text;
}

}  // namespace pawl::cli
