// The first line of `status`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "console/counted.hpp"
#include "cli/status.hpp"
#include "ops/catching_up.hpp"

namespace pawl::cli {
namespace {

struct ConditionWords {
  Condition::Kind kind;
  const char* one;
  const char* many;
};
constexpr ConditionWords kConditions[] = {
    {Condition::Kind::kPartitionBlocked, "BLOCKED by a lock", "BLOCKED by a lock"},
    {Condition::Kind::kRemoteServiceUnreachable, "remote service UNREACHABLE",
     "remote services UNREACHABLE"}};

}  // namespace

std::string verdict_of(const Status& status) {
  const auto totals = totals_of(status);
  if (!status.postgres_problem.empty())
    return status.postgres_answers ? "PostgreSQL CANNOT BE USED by this command"
                                   : "PostgreSQL DOES NOT ANSWER this command";
  if (!status.known)
    return "this consumer has never run against this database";
  if (std::ranges::none_of(status.partitions, [](const auto& p) { return p.row.has_value(); }))
    return status.awaits_topics ? "there is no topic for its patterns yet"
                                : "no partition is stored yet";
  std::vector<std::string> parts;
  const auto part = [&](std::size_t number, const char* what) {
    if (number > 0)
      parts.push_back(fmt::format("{} {}", number, what));
  };
  const auto part_if = [&](bool is_so, const char* what) {
    if (is_so)
      parts.emplace_back(what);
  };
  const auto counts = totals.counts.value_or(StatusCounts{});
  const auto partitions = status.partitions.size();
  if (counts.halted > 0) {
    parts.push_back(fmt::format("{} of {} partitions HALTED", counts.halted, partitions));
  } else {
    parts.push_back(fmt::format("no partition of {} halted", partitions));
  }
  part(counts.unowned, "WITHOUT OWNER");
  part(counts.paused, "paused");
  part(counts.stalled, "stalled");
  part(counts.retrying, "retrying");
  part(counts.on_probation, "on probation");
  const auto conditions = ledger::shared_conditions(status.conditions);
  for (const auto& [kind, one, many] : kConditions) {
    std::size_t number = 0;
    for (const auto& shared : conditions)
      number += shared.condition.kind == kind && shared.condition.lasting ? 1 : 0;
    part(number, number == 1 ? one : many);
  }
  part(static_cast<std::size_t>(std::ranges::count_if(
           conditions, [](const auto& shared) { return !shared.condition.lasting; })),
       "waiting for a lock");
  parts.push_back(totals.lag ? "lag " + grouped(*totals.lag) : "lag unknown");
  if (totals.rate)
    parts.push_back(fmt::format("{:.0f}/s", *totals.rate));
  if (totals.eta_seconds.value_or(0) > 0)
    parts.push_back(fmt::format("caught up in {}", ops::span_text(*totals.eta_seconds)));
  parts.push_back(counts.dead_letters == 0
                      ? "no dead letters"
                      : counted(counts.dead_letters, "dead letter", "dead letters"));
  if (counts.retry_later > 0)
    parts.push_back(fmt::format("{} to be tried again later", grouped(counts.retry_later)));
  if (counts.parked_messages > 0)
    parts.push_back(counted(counts.parked_messages, "parked message", "parked messages"));
  part_if(status.outbox && status.outbox->late(), "the outbox is LATE");
  if (status.outbox && status.outbox->set_apart > 0)
    parts.push_back(counted(status.outbox->set_apart, "message", "messages") +
                    " of the outbox SET APART");
  part_if(!status.missing_topics.empty(), "TOPICS ARE MISSING");
  part_if(!status.refused_topics.empty(), "Kafka REFUSES TOPICS");
  part_if(!status.ambiguous_topics.empty(), "TOPICS OF SEVERAL PATTERNS");
  part_if(!status.kafka_problem.empty(), "Kafka DOES NOT ANSWER");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace pawl::cli
