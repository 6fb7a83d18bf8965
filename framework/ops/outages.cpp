#include "ops/outages.hpp"

#include "kafka/advice.hpp"
#include "postgres/connect_advice.hpp"
#include "redis/error.hpp"

namespace pawl::ops {
namespace {

constexpr std::size_t kPostgres = 0;
constexpr std::size_t kKafka = 1;
constexpr std::size_t kRedis = 2;

struct Server {
  std::string_view name;
  std::string_view field;
  std::string_view repeats_field;
  Step reachable;
  /// What an operator must fix before the server can be used; empty: it may return without that.
  std::string (*correction)(std::string_view cause);
};

constexpr std::array kServers{
    Server{"PostgreSQL", "database_unreachable_s", "database_unreachable_repeats",
           Step::kDatabaseReachable, postgres::correction},
    Server{"Kafka", "kafka_unreachable_s", "kafka_unreachable_repeats", Step::kKafkaReachable,
           kafka::correction},
    Server{"Redis", "redis_unreachable_s", "redis_unreachable_repeats", Step::kRedisReachable,
           redis::correction},
};

}  // namespace

bool Outages::note(const Event& event, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  switch (event.step) {
    case Step::kDatabaseConnected:
      workers_connected_ = true;
      found(kPostgres, now);
      return false;
    case Step::kDatabaseDisconnected:
      return lost(kPostgres, event.detail, now, {.is_latest = false});
    // Workers report each connection that they lose. After they have connected, this event alone
    // can also mean that a server that responds has no space for a partition. At the start, and in
    // a relay, no worker reports anything.
    case Step::kDatabaseUnreachable:
      return lost(kPostgres, event.detail, now, {.begins = !workers_connected_});
    case Step::kDatabaseReachable:
      if (!workers_connected_)
        found(kPostgres, now);
      return false;
    case Step::kKafkaUnreachable:
      return lost(kKafka, event.detail, now, {});
    case Step::kKafkaReachable:
      found(kKafka, now);
      return false;
    case Step::kRedisUnreachable:
      return lost(kRedis, event.detail, now, {});
    case Step::kRedisReachable:
      found(kRedis, now);
      return false;
    default:
      return false;
  }
}

bool Outages::lost(std::size_t server, std::string_view cause, Clock::time_point now,
                   Report report) {
  auto& outage = outages_[server];
  const bool stands = outage.stands();
  if (!stands && !report.begins)
    return false;
  if (!outage.since) {
    outage = Outage{};
    outage.since = now;
  }
  outage.back.reset();
  // A connection that broke in an outage says how the server was before.
  if (!stands || report.is_latest) {
    outage.cause = cause;
    if (outage.logged.insert(kServers[server].correction(cause)).second)
      return true;
  }
  ++outage.repeats;
  return false;
}

void Outages::found(std::size_t server, Clock::time_point now) {
  if (outages_[server].since)
    outages_[server].back = now;
}

std::vector<Unreachable> Outages::standing(Clock::time_point now) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Unreachable> standing;
  for (std::size_t i = 0; i < kServers.size(); ++i) {
    const auto& outage = outages_[i];
    if (outage.stands())
      standing.push_back({kServers[i].name, kServers[i].field, kServers[i].repeats_field,
                          std::chrono::duration_cast<std::chrono::seconds>(now - *outage.since),
                          outage.repeats, outage.cause});
  }
  return standing;
}

std::vector<Outages::Ended> Outages::take_ended(Clock::time_point now, bool all) {
  const std::scoped_lock lock(mutex_);
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < kServers.size(); ++i) {
    auto& outage = outages_[i];
    if (!outage.since || !outage.back || (!all && now - *outage.back < quiet_))
      continue;
    ended.push_back({kServers[i].reachable, *outage.back - *outage.since});
    outage = Outage{};
  }
  return ended;
}

}  // namespace pawl::ops
