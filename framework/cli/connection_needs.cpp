#include "cli/connection_needs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "console/counted.hpp"
#include "outbox/task.hpp"

namespace pawl::cli {
namespace {

/// One that takes samples, and those that the dashboard keeps for its pages.
constexpr std::size_t kDashboard = 3;
/// Of each delayed retry that runs: pawl's own, and the handler's.
constexpr std::size_t kRetry = 2;

bool retries_later(const Options& options) {
  const auto later = [](const FailureOptions& failures) {
    return failures.on_failure == FailurePolicy::kRetryLater;
  };
  return later(options.failures) ||
         std::ranges::any_of(options.handlers, [&](const HandlerOptions& handler) {
           return handler.failures && later(*handler.failures);
         });
}

}  // namespace

std::vector<ConnectionNeed> connection_needs(const Options& options,
                                             const handlers::TopicPlans* plans, std::size_t lanes) {
  constexpr std::chrono::milliseconds kNever{0};
  std::vector<ConnectionNeed> needs;
  const auto add = [&](bool needed, std::size_t connections, const char* what, bool always = true) {
    if (needed)
      needs.push_back({connections, what, always});
  };
  constexpr bool kAtTimes = false;
  if (plans != nullptr) {
    const auto any = [plans](auto holds) {
      return std::ranges::any_of(plans->by_entry,
                                 [&](const auto& entry) { return holds(entry.second); });
    };
    const bool calls = any([](const handlers::TopicPlan& plan) { return plan.calls; });
    const bool by_key = any([](const handlers::TopicPlan& plan) {
      return plan.order == handlers::TopicPlan::Order::kKey;
    });
    add(true, options.consumer.workers, "workers (consumer.workers)");
    add(calls || by_key, options.consumer.concurrency,
        "handlers with concurrency or calls (consumer.concurrency)", kAtTimes);
    add(calls && options.calls.lease_store == LeaseStore::kPostgres, 1, "leases");
    add(true, 1, "the search for delayed retries");
    add(retries_later(options), kRetry * options.consumer.concurrency,
        "delayed retries (consumer.concurrency)", kAtTimes);
    add(true, 1, "sessions that block a partition");
    add(options.retention.interval != kNever, 1, "retention");
    add(!options.dead_letters.topic.empty(), 1, "dead_letters.topic");
    add(!options.monitoring.listen.empty(), kDashboard, "the dashboard", kAtTimes);
  }
  add(plans == nullptr || options.outbox.relay != RelayOutbox::kOff, 1 + lanes,
      "the outbox and its shards",
      plans == nullptr || engine::relays_outbox(options) == engine::RelayBegins::kAtOnce);
  add(options.outbox.alert_age != kNever, 1, "outbox.alert_age");
  add(!options.alerts.notify_channel.empty(), 1, "alerts.notify_channel");
  return needs;
}

ConnectionFinding connection_finding(const std::vector<ConnectionNeed>& needs,
                                     const ledger::ConnectionLimits* limits) {
  std::int64_t all = 0;
  std::int64_t always = 0;
  std::vector<std::string> parts;
  for (const auto& need : needs) {
    all += static_cast<std::int64_t>(need.connections);
    if (need.always)
      always += static_cast<std::int64_t>(need.connections);
    parts.push_back(
        fmt::format("{}{} for {}", need.always ? "" : "up to ", need.connections, need.what));
  }
  const auto text = fmt::format("each process has up to {} to PostgreSQL: {}",
                                counted(all, "connection", "connections"), fmt::join(parts, ", "));
  if (limits == nullptr)
    return {true, text + ". A pooler has them, so its limits apply"};
  const auto& [limit, whose] = limits->least();
  if (all <= limit)
    return {true, fmt::format("{}. {} allows {}", text, whose, limit)};
  const bool enough = always <= limit;
  return {enough, fmt::format("{}. {} allows {}{}: raise that limit, or lower consumer.workers or "
                              "consumer.concurrency",
                              text, whose, limit,
                              enough ? ". If more are needed at once, PostgreSQL rejects some, "
                                       "and the messages that need them wait"
                                     : "")};
}

}  // namespace pawl::cli
