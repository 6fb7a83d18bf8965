// `status --json`.
#include "cli/status.hpp"
#include "console/json.hpp"
#include "console/partition_view.hpp"
#include "dead_letters/dlq.hpp"
#include "ops/condition_json.hpp"
#include "outbox/outbox_status.hpp"

namespace pawl::cli {
namespace {

Json totals_json(const StatusTotals& totals) {
  Json json;
  json["partitions"] = or_null(totals.partitions);
  const auto count = [&totals](auto what) {
    return totals.counts ? Json((*totals.counts).*what) : Json(nullptr);
  };
  json["halted"] = count(&StatusCounts::halted);
  json["paused"] = count(&StatusCounts::paused);
  json["unowned"] = count(&StatusCounts::unowned);
  json["stalled"] = count(&StatusCounts::stalled);
  json["retrying"] = count(&StatusCounts::retrying);
  json["on_probation"] = count(&StatusCounts::on_probation);
  json["blocked"] = count(&StatusCounts::blocked);
  json["lag"] = or_null(totals.lag);
  json["per_second"] = or_null(totals.rate);
  json["eta_seconds"] = or_null(totals.eta_seconds);
  json["dead_letters"] = count(&StatusCounts::dead_letters);
  json["parked_messages"] = count(&StatusCounts::parked_messages);
  json["scheduled_retries"] = count(&StatusCounts::retry_later);
  return json;
}

Json oldest_json(const OldestWaiting& oldest) {
  return {{"topic", oldest.partition.topic},
          {"partition", oldest.partition.partition},
          {"age_seconds", std::chrono::floor<std::chrono::seconds>(oldest.age).count()}};
}

Json pending_halt_json(const Status& status, const TopicPartition& partition) {
  const auto found = status.pending_halts.find(partition);
  if (found == status.pending_halts.end())
    return nullptr;
  const auto& [halt, text] = found->second;
  return {
      {"code", halt.code}, {"parameters", Json::parse(parameters_json(halt))}, {"text", text.what}};
}

Json partition_json(const Status& status, const StatusPartition& partition) {
  Json json;
  json["topic"] = partition.partition.topic;
  json["partition"] = partition.partition.partition;
  json["concern"] = partition.concern ? Json(to_string(*partition.concern)) : Json(nullptr);
  json["end"] = or_null(partition.end);
  json["lag"] = or_null(partition.lag());
  json["per_second"] = or_null(partition.rate);
  json["eta_seconds"] = or_null(partition.eta_seconds);
  if (!partition.row)
    return json;
  const auto& row = *partition.row;
  describe(json, row);
  json["pending_halt"] = pending_halt_json(status, partition.partition);
  json["out_of_order"] = {{"completed", row.ahead.finished},
                          {"up_to", row.ahead.finished > 0 ? Json(row.ahead.up_to) : Json(nullptr)},
                          {"retrying", row.ahead.trying},
                          {"failed_attempts", row.ahead.attempts}};
  return json;
}

Json server_json(const ledger::ServerView& server) {
  Json json;
  json["all_sessions_visible"] = server.sees_all;
  json["consumer_connections"] = server.consumer_connections;
  json["pawl_connections"] = server.pawl_connections;
  json["connections"] = server.connections;
  json["max_connections"] = server.max_connections;
  auto& holders = json["vacuum_blockers"] = Json::array();
  for (const auto& holder : server.holders) {
    holders.push_back({{"kind", holder.what},
                       {"name", holder.name},
                       {"user", or_null(holder.user)},
                       {"application_name", or_null(holder.application)},
                       {"state", or_null(holder.state)},
                       {"transactions_since", holder.transactions},
                       {"seconds", or_null(holder.since)}});
  }
  return json;
}

Json leases_json(const ledger::LeaseCounts& counts) {
  return {{"in_flight", counts.in_hand},
          {"unknown", counts.unknown},
          {"done", counts.done},
          {"lease_losses", counts.losses}};
}

}  // namespace

std::string status_json(const Status& status, bool indented) {
  Json root;
  root["cluster"] = status.cluster;
  root["group"] = status.group;
  root["verdict"] = verdict_of(status);
  root["time"] = json_of(Timestamp{std::chrono::milliseconds{status.now_ms}});
  root["postgres_problem"] = or_null(status.postgres_problem);
  root["kafka_problem"] = or_null(status.kafka_problem);
  root["missing_topics"] = status.missing_topics;
  root["deleted_topics"] = status.gone_topics;
  auto& refused = root["access_denied_topics"] = Json::array();
  for (const auto& [topic, why] : status.refused_topics)
    refused.push_back({{"topic", topic}, {"reason", why}});
  auto& ambiguous = root["ambiguous_topics"] = Json::array();
  for (const auto& [topic, why] : status.ambiguous_topics)
    ambiguous.push_back({{"topic", topic}, {"reason", why}});
  root["outbox"] = status.outbox ? outbox_json(*status.outbox) : Json(nullptr);
  root["calls"] = status.leases ? leases_json(*status.leases) : Json(nullptr);
  root["totals"] = totals_json(totals_of(status));
  root["oldest_unprocessed"] = status.oldest ? oldest_json(*status.oldest) : Json(nullptr);
  auto& partitions = root["partitions"] = Json::array();
  for (const auto& partition : status.partitions)
    partitions.push_back(partition_json(status, partition));
  if (status.postgres_problem.empty()) {
    auto& letters = root["dead_letters"] = Json::array();
    for (const auto& count : status.letters)
      letters.push_back(describe(count));
    auto& differing = root["handlers_differ"] = Json::array();
    for (const auto& topic : status.differing) {
      differing.push_back(
          {{"topic", topic.topic}, {"differs", topic.difference}, {"processes", topic.owners}});
    }
    root["processes"] = status.processes;
    auto& conditions = root["conditions"] = Json::array();
    for (const auto& [owner, condition] : status.conditions) {
      auto json = ops::condition_json(condition);
      json["process"] = owner;
      conditions.push_back(std::move(json));
    }
    root["parked_keys"] = status.server.parked_keys;
    root["parked_keys_without_dead_letter"] = status.server.left_parked_keys;
    root["server"] = server_json(status.server);
  }
  return root.dump(indented ? 2 : -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pawl::cli
