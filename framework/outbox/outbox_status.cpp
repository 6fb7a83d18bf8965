#include "outbox/outbox_status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <ranges>
#include <vector>

#include "config/units.hpp"
#include "console/counted.hpp"

namespace pawl::cli {
namespace {

std::optional<double> age(const std::optional<ledger::Instant>& since, ledger::Instant now) {
  if (!since)
    return std::nullopt;
  return std::chrono::duration<double>(now - *since).count();
}

/// What is known of the processes that should publish the messages that wait.
void add_relays(std::vector<std::string>& parts, const ledger::OutboxStatus& status) {
  const auto before = parts.size();
  for (const auto& relay : status.relays) {
    if (!relay.problem.empty())
      parts.push_back(fmt::format("{} cannot publish and retries: {}", relay.owner, relay.problem));
    if (!relay.left_out.empty()) {
      parts.push_back(
          fmt::format("{} cannot write to {}, retries, and publishes all other messages",
                      relay.owner, relay.left_out));
    }
  }
  if (parts.size() > before || status.relayed())
    return;
  if (status.relays.empty()) {
    parts.emplace_back(
        "no process publishes. Set outbox.relay = \"on\" for a `run`, or start `relay`. If such a "
        "process runs, its log contains the cause");
    return;
  }
  parts.push_back(fmt::format(
      "no process holds a shard, although {} can publish. Read {} log",
      fmt::join(status.relays | std::views::transform(&ledger::RelayStatus::owner), ", "),
      status.relays.size() == 1 ? "its" : "their"));
}

}  // namespace

std::string outbox_age(const std::optional<ledger::Instant>& since, ledger::Instant now) {
  const auto seconds = age(since, now);
  return seconds ? fmt::format("{:.1f} s", *seconds) : "-";
}

std::string outbox_count(std::int64_t waiting, bool more) {
  return (more ? "more than " : "") + grouped(waiting);
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

std::string outbox_text(const ledger::OutboxStatus& status) {
  std::vector<std::string> parts;
  const auto waiting = status.waiting();
  if (waiting > 0) {
    parts.push_back(fmt::format("{} {}, the oldest for {}{}", outbox_count(waiting, status.more()),
                                waiting == 1 && !status.more() ? "message waits" : "messages wait",
                                outbox_age(status.oldest(), status.now),
                                status.late()
                                    ? fmt::format(", late (outbox.alert_age = {})",
                                                  config::format_duration(status.alert_age))
                                    : ""));
  } else {
    parts.emplace_back("no message waits");
  }
  if (status.set_apart > 0)
    parts.push_back(grouped(status.set_apart) + " failed");
  if (waiting > 0)
    add_relays(parts, status);
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace pawl::cli
