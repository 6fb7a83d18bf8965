#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handlers/topic_plan.hpp"
#include "ledger/connection_limits.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// Connections to PostgreSQL that one process may have at the same time.
struct ConnectionNeed {
  std::size_t connections = 0;
  std::string what;    ///< "workers (consumer.workers)"
  bool always = true;  ///< false: only under load, or while something is used
};

/// Each part that needs some. `plans` null: of `pawl relay`. `lanes`: of the outbox. Pure.
[[nodiscard]] std::vector<ConnectionNeed> connection_needs(const Options& options,
                                                           const handlers::TopicPlans* plans,
                                                           std::size_t lanes);

struct ConnectionFinding {
  /// For what one process always needs, as far as the limits are known.
  bool enough = true;
  std::string text;
};

/// What `pawl check` reports. `limits` null: unknown, because a pooler has the connections.
[[nodiscard]] ConnectionFinding connection_finding(const std::vector<ConnectionNeed>& needs,
                                                   const ledger::ConnectionLimits* limits);

}  // namespace pawl::cli
