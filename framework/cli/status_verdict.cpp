// What `status` states first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "cli/status.hpp"
#include "console/counted.hpp"
#include "console/partition_view.hpp"
#include "ops/catching_up.hpp"

namespace pawl::cli {
namespace {

using Level = VerdictPart::Level;

struct ConditionWords {
  Condition::Kind kind;
  const char* one;
  const char* many;
};
constexpr ConditionWords kConditions[] = {
    {Condition::Kind::kPartitionBlocked, "partition blocked by a lock",
     "partitions blocked by locks"},
    {Condition::Kind::kRemoteServiceUnreachable, "remote service unreachable",
     "remote services unreachable"}};

/// What can be stated without the states of partitions.
std::string whole_verdict(const Status& status) {
  if (!status.postgres_problem.empty())
    return status.postgres_answers ? "PostgreSQL cannot be used by this command"
                                   : "PostgreSQL is unreachable for this command";
  if (!status.known)
    return "this consumer has never run against this database";
  if (std::ranges::none_of(status.partitions, [](const auto& p) { return p.row.has_value(); }))
    return status.awaits_topics ? "no topic matches its patterns yet"
                                : "no offset is stored for its topics yet";
  return "";
}

std::string halted_text(std::int64_t halted, std::int64_t partitions) {
  const auto all = counted(partitions, "partition", "partitions");
  if (halted > 0)
    return fmt::format("{} of {} halted", grouped(halted), all);
  return partitions == 1 ? all + ", not halted" : fmt::format("none of {} halted", all);
}

std::int64_t size_of(const auto& container) {
  return static_cast<std::int64_t>(container.size());
}

}  // namespace

Verdict verdict_parts(const Status& status) {
  if (auto whole = whole_verdict(status); !whole.empty())
    return {{{Level::kBad, std::move(whole)}}, {}};
  Verdict verdict;
  const auto state = [&](Level level, std::int64_t number, const char* one, const char* many) {
    if (number > 0)
      verdict.states.push_back({level, counted(number, one, many)});
  };
  const auto totals = totals_of(status);
  const auto counts = totals.counts.value_or(StatusCounts{});
  const auto of = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  verdict.states.push_back({counts.halted > 0 ? Level::kBad : Level::kGood,
                            halted_text(of(counts.halted), size_of(status.partitions))});
  state(Level::kBad, size_of(status.pending_halts), "will halt", "will halt");
  state(Level::kBad, of(counts.unowned), "unowned", "unowned");
  state(Level::kWarn, of(counts.paused), "paused", "paused");
  state(Level::kWarn, of(counts.stalled), "stalled", "stalled");
  state(Level::kWarn, of(counts.retrying), "retrying", "retrying");
  state(Level::kWarn, of(counts.on_probation), "on probation", "on probation");
  state(Level::kBad, std::ssize(kafka_waits(status)), "process waits for Kafka",
        "processes wait for Kafka");
  const auto conditions = ledger::shared_conditions(status.conditions);
  for (const auto& [kind, one, many] : kConditions) {
    state(Level::kBad,
          std::ranges::count_if(conditions,
                                [&](const auto& shared) {
                                  return shared.condition.kind == kind && shared.condition.lasting;
                                }),
          one, many);
  }
  state(Level::kWarn,
        std::ranges::count_if(conditions,
                              [](const auto& shared) {
                                return shared.condition.kind ==
                                           Condition::Kind::kPartitionBlocked &&
                                       !shared.condition.lasting;
                              }),
        "waiting for a lock", "waiting for locks");
  if (status.outbox && status.outbox->late())
    verdict.states.push_back({Level::kBad, "outbox late"});
  if (status.outbox)
    state(Level::kBad, status.outbox->set_apart, "outbox message failed", "outbox messages failed");
  state(Level::kBad, size_of(status.missing_topics), "topic missing", "topics missing");
  state(Level::kBad, size_of(status.refused_topics), "topic without access",
        "topics without access");
  state(Level::kBad, size_of(status.ambiguous_topics), "topic matches several patterns",
        "topics match several patterns");
  if (!status.kafka_problem.empty())
    verdict.states.push_back({Level::kBad, "Kafka unreachable"});

  const auto figure = [&](Level level, std::string text) {
    verdict.figures.push_back({level, std::move(text)});
  };
  figure(Level::kPlain, totals.lag ? "lag " + grouped(*totals.lag) : "lag ?");
  if (totals.rate)
    figure(Level::kPlain, rate_number(*totals.rate) + " msg/s");
  if (status.oldest && status.oldest->age >= std::chrono::seconds(1)) {
    const auto age = std::chrono::floor<std::chrono::seconds>(status.oldest->age);
    figure(Level::kPlain, fmt::format("oldest unprocessed {} ({})", ops::span_text(age.count()),
                                      name_of(status.oldest->partition)));
  }
  if (totals.eta_seconds.value_or(0) > 0)
    figure(Level::kPlain, fmt::format("caught up in {}", ops::span_text(*totals.eta_seconds)));
  figure(counts.dead_letters > 0 ? Level::kWarn : Level::kPlain,
         counts.dead_letters == 0 ? "no dead letters"
                                  : counted(counts.dead_letters, "dead letter", "dead letters"));
  if (counts.retry_later > 0)
    figure(Level::kPlain, counted(counts.retry_later, "scheduled retry", "scheduled retries"));
  if (counts.parked_messages > 0)
    figure(Level::kPlain, counted(counts.parked_messages, "parked message", "parked messages"));
  return verdict;
}

std::string verdict_of(const Status& status) {
  const auto verdict = verdict_parts(status);
  std::vector<std::string> texts;
  for (const auto* parts : {&verdict.states, &verdict.figures}) {
    for (const auto& part : *parts)
      texts.push_back(part.text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace pawl::cli
