#include "engine/make_leases.hpp"

#include <algorithm>
#include <optional>

#include "config/redis_settings.hpp"
#include "engine/context.hpp"
#include "leases/store/postgres_leases.hpp"
#include "leases/store/redis_leases.hpp"

namespace pawl::engine {
namespace {

/// For as long as the keys of any handler that may call; zero for ever.
std::chrono::milliseconds history(const Options& options) {
  std::optional<std::chrono::milliseconds> longest;
  for (const auto& handler : options.handlers) {
    if (!handler.sql.empty() || !handler.function.empty())
      continue;
    const auto own = handler.retention.value_or(options.retention.keys);
    if (own.count() == 0)
      return own;
    longest = std::max(longest.value_or(own), own);
  }
  return longest.value_or(options.retention.keys);
}

}  // namespace

std::shared_ptr<const ledger::KeyLeases> make_leases(const Options& options) {
  if (options.calls.lease_store == LeaseStore::kRedis) {
    return std::make_shared<ledger::RedisLeases>(
        options.postgres.schema,
        ledger::RedisLeases::Settings{config::redis_settings(options.redis), options.redis.prefix,
                                      options.calls.lease_time, history(options)});
  }
  return std::make_shared<ledger::PostgresLeases>(
      options.postgres.schema, session_settings(options), options.calls.lease_time);
}

}  // namespace pawl::engine
