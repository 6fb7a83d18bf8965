#include "ops/monitoring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "message/rfc3339.hpp"
#include "ops/condition_json.hpp"
#include "ops/metrics_text.hpp"
#include "text/bounded.hpp"

namespace pawl::ops {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
/// Prometheus' text format, https://prometheus.io/docs/instrumenting/exposition_formats/
constexpr const char* kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

bool lives(const ProcessLook& look) {
  return look.silent_for < kDeadAfter;
}

HttpAnswer live(const ProcessLook& look) {
  if (lives(look))
    return {200, kText, "live\n"};
  return {
      503, kText,
      fmt::format("stuck: the watching threads of the consumer have completed no round for {} s\n",
                  look.silent_for.count() / 1000)};
}

HttpAnswer ready(const ProcessLook& look) {
  if (look.unready.empty())
    return {200, kText, "ready\n"};
  return {503, kText, fmt::format("not ready: {}\n", look.unready)};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json reached(MetricsObserver::Reached reached) {
  if (reached == MetricsObserver::Reached::kUnknown)
    return nullptr;
  return reached == MetricsObserver::Reached::kYes;
}

/// As this process has it: running also while it tries once more where the register is halted.
Json state_of(const PartitionSnapshot& partition) {
  if (partition.halted)
    return "halted";
  if (partition.paused)
    return "paused";
  return partition.acquired ? Json("running") : Json(nullptr);
}

/// What `pawl status --json` says as well has the same name here.
Json partition_json(const PartitionSnapshot& partition, Timestamp now) {
  const auto age = oldest_age(partition, now);
  const auto reason = texts::bounded(partition.halt_reason, texts::kLongestLine);
  return {{"topic", partition.partition.topic},
          {"partition", partition.partition.partition},
          {"acquired", partition.acquired},
          {"state", state_of(partition)},
          {"reason", reason.empty() ? Json(nullptr) : Json(reason)},
          {"offset", or_null(partition.next)},
          {"end", or_null(partition.log_end)},
          {"lag", or_null(partition.lag())},
          {"oldest_age_ms", age ? Json(age->count()) : Json(nullptr)}};
}

HttpAnswer status(const MetricsObserver& metrics, const ProcessLook& look) {
  Json root;
  root["version"] = look.version;
  root["cluster"] = look.cluster;
  root["group"] = look.group.empty() ? Json(nullptr) : Json(look.group);
  root["time"] = message::rfc3339(look.now);
  root["live"] = lives(look);
  root["heartbeat_age_ms"] = look.silent_for.count();
  root["ready"] = look.unready.empty();
  root["not_ready_reason"] = look.unready.empty() ? Json(nullptr) : Json(look.unready);
  root["database_reached"] = reached(metrics.database());
  root["kafka_reached"] = reached(metrics.kafka());
  root["redis_reached"] = reached(metrics.redis());
  root["calls_in_flight"] = or_null(look.leases_held);
  auto& conditions = root["conditions"] = Json::array();
  for (const auto& condition : look.conditions)
    conditions.push_back(condition_json(condition));
  auto& partitions = root["partitions"] = Json::array();
  for (const auto& partition : look.partitions)
    partitions.push_back(partition_json(partition, look.now));
  return {200, kJson, root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"};
}

}  // namespace

std::optional<std::chrono::milliseconds> oldest_age(const PartitionSnapshot& partition,
                                                    Timestamp now) {
  const auto lag = partition.lag();
  if (lag == 0)
    return std::chrono::milliseconds(0);
  if (!lag || !partition.waits_since)
    return std::nullopt;
  // The producer's clock, or the broker's, may be ahead of ours.
  return std::max(std::chrono::milliseconds(0), now - *partition.waits_since);
}

bool is_for_programs(std::string_view path) {
  return path == "/metrics" || path == "/live" || path == "/ready" || path == "/status";
}

HttpAnswer answer(const HttpRequest& request, const HostNames& names,
                  const MetricsObserver& metrics, const ProcessLook& look) {
  const auto& path = request.path;
  if (request.method != "GET" && request.method != "HEAD")
    return {405, kText, "only GET and HEAD are served\n"};
  if (path == "/metrics")
    return {200, kMetricsText, metrics_text(metrics, look)};
  if (path == "/live")
    return live(look);
  if (path == "/ready")
    return ready(look);
  if (path == "/status") {
    // It has the reasons of halts, which may quote messages; programs ask for the others by any
    // name.
    if (const auto why = names.refusal(request.header("Host")))
      return {403, kText, *why + "\n"};
    return status(metrics, look);
  }
  return {404, kText, "there are /metrics, /live, /ready and /status\n"};
}

}  // namespace pawl::ops
