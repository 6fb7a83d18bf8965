#include "ops/progress.hpp"

#include <fmt/format.h>

#include "postgres/sqlstate.hpp"

namespace pawl::ops {
namespace {

/// Rounded down.
std::int64_t per_second(std::uint64_t count, std::chrono::milliseconds passed) {
  return static_cast<std::int64_t>(static_cast<double>(count) * 1000 /
                                   static_cast<double>(passed.count()));
}

/// Such attempts are not counted as attempts of their message. What it waits for is reported.
bool is_uncounted(std::string_view reason) {
  using postgres::FailureClass;
  return reason == postgres::to_string(FailureClass::kContention) ||
         reason == postgres::to_string(FailureClass::kResource);
}

/// What became of messages other than by being applied.
void add_counts(LogLine& line, const Counts& counts) {
  const auto add = [&line](std::string_view name, std::uint64_t number) {
    line.add(name, static_cast<std::int64_t>(number));
  };
  add("duplicates", counts.duplicates);
  add("skipped", counts.skipped);
  add("retries_scheduled", counts.scheduled);
  add("dead_letters", counts.dead);
  add("parked", counts.parked);
}

void add_cause(LogLine& line, std::string_view what, std::string_view cause) {
  line.text += fmt::format("{}{}: {}", line.text.empty() ? "" : ". ", what, cause);
}

void add_unreachable(LogLine& line, const std::vector<Unreachable>& unreachable) {
  for (const auto& one : unreachable) {
    line.add(one.field, std::int64_t{one.lasts.count()});
    line.add(one.repeats_field, static_cast<std::int64_t>(one.repeats));
    add_cause(line, fmt::format("{} is unreachable", one.server), one.cause);
  }
}

void add_conditions(LogLine& line, const std::vector<Condition>& conditions) {
  using Kind = Condition::Kind;
  constexpr std::int64_t kMostNamed = 3;
  std::int64_t count = 0;
  for (const auto& condition : conditions) {
    if (!condition.lasting || condition.kind == Kind::kKafkaUnreachable || ++count > kMostNamed)
      continue;
    const bool blocked = condition.kind == Kind::kPartitionBlocked;
    add_cause(
        line,
        fmt::format("{} {}", condition.subject, blocked ? "waits for a lock" : "is unreachable"),
        condition.cause);
  }
  if (count > 0)
    line.add("conditions", count);
}

}  // namespace

void Counters::count(const Event& event) {
  const auto add = [](std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  };
  switch (event.step) {
    case Step::kAttemptFailed:
      if (!is_uncounted(event.reason))
        add(failed_);
      return;
    case Step::kMessageDeduplicated:
      add(duplicates_);
      break;
    case Step::kMessageSkipped:
      add(skipped_);
      break;
    case Step::kMessageDeadLettered:
      add(dead_);
      break;
    case Step::kRetryScheduled:  // it counts as processed once it has ended
      return add(scheduled_);
    case Step::kMessageParked:
      add(parked_);
      break;
    case Step::kMessageCommitted:
    case Step::kRetrySucceeded:
      break;
    default:
      return;
  }
  add(processed_);
}

Counts Counters::read() const {
  return {processed_.load(), duplicates_.load(), skipped_.load(), dead_.load(),
          parked_.load(),    scheduled_.load(),  failed_.load()};
}

Standing standing(const std::vector<PartitionSnapshot>& partitions) {
  Standing at;
  if (!partitions.empty())
    at.lag = 0;
  for (const auto& partition : partitions) {
    ++at.partitions;
    at.halted += partition.halted ? 1 : 0;
    at.paused += partition.paused ? 1 : 0;
    const auto lag = partition.lag();
    at.lag = at.lag && lag ? std::optional(*at.lag + *lag) : std::nullopt;
  }
  return at;
}

Places places(const std::vector<PartitionSnapshot>& partitions) {
  Places places;
  for (const auto& one : partitions)
    places[one.partition] = {one.next, one.lag(), one.halted || one.paused};
  return places;
}

void RelayCounters::count(const Event& event) {
  switch (event.step) {
    case Step::kOutboxShardAcquired:
      shards_.fetch_add(1, std::memory_order_relaxed);
      return;
    case Step::kOutboxShardReleased:
      shards_.fetch_sub(1, std::memory_order_relaxed);
      return;
    case Step::kOutboxBatchFinished:
      published_.fetch_add(event.messages, std::memory_order_relaxed);
      return;
    case Step::kOutboxMessageRejected:
      rejected_.fetch_add(1, std::memory_order_relaxed);
      return;
    case Step::kOutboxPartitionsUnwritable:
    case Step::kOutboxPartitionsWritable:
      unwritable_.store(event.messages, std::memory_order_relaxed);
      return;
    default:
      return;
  }
}

LogLine relayed_line(const Relayed& before, const Relayed& now, std::chrono::milliseconds passed,
                     const std::vector<Unreachable>& unreachable) {
  const auto published = static_cast<std::uint64_t>(now.published - before.published);
  LogLine line{spdlog::level::info, "progress_reported"};
  line.add("published", now.published);
  line.add("published_per_s", per_second(published, passed));
  line.add("rejected", now.rejected);
  line.add("shards", now.shards);
  add_unreachable(line, unreachable);
  return line;
}

LogLine progress_line(const Progress& before, const Progress& now, std::chrono::milliseconds passed,
                      const std::vector<Unreachable>& unreachable,
                      const std::vector<Condition>& conditions) {
  const auto& total = now.counts;
  const auto& at = now.at;
  LogLine line{spdlog::level::info, "progress_reported"};
  const auto add = [&line](std::string_view name, auto number) {
    line.add(name, static_cast<std::int64_t>(number));
  };
  add("processed", total.processed);
  add("processed_per_s", per_second(total.processed - before.counts.processed, passed));
  if (at.lag)
    add("lag", *at.lag);
  // While a server is unreachable, the lag does not shrink as it did before.
  if (unreachable.empty()) {
    const auto eta = seconds_to_catch_up(before.places, now.places, passed);
    if (eta.value_or(0) > 0)
      add("eta_s", *eta);
  }
  add_counts(line, total);
  add("failed_attempts", total.failed);
  add("partitions", at.partitions);
  add("halted", at.halted);
  add("paused", at.paused);
  add_unreachable(line, unreachable);
  add_conditions(line, conditions);
  return line;
}

LogLine stopped_line(const Counts& counts, std::chrono::seconds took) {
  LogLine line{spdlog::level::info, "consumer_stopped"};
  line.add("processed", static_cast<std::int64_t>(counts.processed));
  line.add("duration_s", std::int64_t{took.count()});
  add_counts(line, counts);
  return line;
}

}  // namespace pawl::ops
