#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/host_names.hpp"
#include "ops/http_message.hpp"
#include "ops/metrics.hpp"
#include "pawl/condition.hpp"
#include "pawl/consumer.hpp"

namespace pawl::ops {

/// What is asked of a process when somebody looks at it.
struct ProcessLook {
  std::string version;
  std::string cluster;
  std::string group;  ///< empty: it only relays the outbox
  /// Consumer::heartbeat_age(), not_ready_reason(), partitions(), calls_in_flight().
  std::chrono::milliseconds silent_for{0};
  std::string unready;
  std::vector<PartitionSnapshot> partitions;
  std::optional<std::size_t> leases_held;
  Timestamp now{};
  std::vector<Condition> conditions;  ///< Consumer::conditions()
};

/// For so long its threads may go without a round before a process counts as dead: no wait of
/// theirs for a server is as long.
inline constexpr std::chrono::milliseconds kDeadAfter{60000};

/// How old the message is that the partition processes next; 0: there is none. Nullopt: unknown.
[[nodiscard]] std::optional<std::chrono::milliseconds> oldest_age(
    const PartitionSnapshot& partition, Timestamp now);

/// Whether answer() knows the path.
[[nodiscard]] bool is_for_programs(std::string_view path);

/// What a request is answered under one of these names, by what `metrics` have counted and `look`
/// has seen.
[[nodiscard]] HttpAnswer answer(const HttpRequest& request, const HostNames& names,
                                const MetricsObserver& metrics, const ProcessLook& look);

}  // namespace pawl::ops
