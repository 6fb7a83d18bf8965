#include "ops/progress.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "postgres/sqlstate.hpp"

namespace pawl::ops {
namespace {

/// "8 partitions (1 HALTED, 2 paused)"
std::string partitions_text(const Progress& progress) {
  const auto& at = progress.at;
  if (at.partitions == 0)
    return progress.assigned_once ? "no partition is assigned" : "no partition is assigned yet";
  std::vector<std::string> standing;
  if (at.halted > 0)
    standing.push_back(fmt::format("{} HALTED", at.halted));
  if (at.paused > 0)
    standing.push_back(fmt::format("{} paused", at.paused));
  return fmt::format("{} partitions{}", at.partitions,
                     standing.empty() ? "" : fmt::format(" ({})", fmt::join(standing, ", ")));
}

/// Of a try that failed, as the register does not count it: what its message waits for is reported
/// as such.
bool is_uncounted(std::string_view failure_class) {
  using postgres::FailureClass;
  return failure_class == postgres::to_string(FailureClass::kContention) ||
         failure_class == postgres::to_string(FailureClass::kResource);
}

}  // namespace

void Counters::count(const Event& event) {
  const auto add = [](std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  };
  switch (event.step) {
    case Step::kFailed:
      if (!is_uncounted(event.failure_class))
        add(failed_);
      return;
    case Step::kDuplicate:
      add(duplicates_);
      break;
    case Step::kSkipped:
      add(skipped_);
      break;
    case Step::kDeadLettered:
      add(dead_);
      break;
    case Step::kRetryLater:  // it counts once it has ended
      return add(later_);
    case Step::kParked:
      add(parked_);
      break;
    case Step::kCommitted:
    case Step::kRetried:
      break;
    default:
      return;
  }
  add(processed_);
}

Counts Counters::read() const {
  return {processed_.load(), duplicates_.load(), skipped_.load(), dead_.load(),
          parked_.load(),    later_.load(),      failed_.load()};
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

std::string set_aside_text(const Counts& counts) {
  std::string text;
  if (counts.later > 0)
    text = fmt::format(", {} times put off for later", counts.later);
  if (counts.dead + counts.parked > 0)
    text +=
        fmt::format(", {} dead-lettered and {} parked since the start", counts.dead, counts.parked);
  return text;
}

void RelayCounters::count(const Event& event) {
  switch (event.step) {
    case Step::kOutboxAcquired:
      lanes_.fetch_add(1, std::memory_order_relaxed);
      return;
    case Step::kOutboxReleased:
      lanes_.fetch_sub(1, std::memory_order_relaxed);
      return;
    case Step::kOutboxEnded:
      published_.fetch_add(event.messages, std::memory_order_relaxed);
      return;
    case Step::kOutboxRefused:
      refused_.fetch_add(1, std::memory_order_relaxed);
      return;
    case Step::kOutboxLeftOut:
      left_out_.store(event.messages, std::memory_order_relaxed);
      return;
    default:
      return;
  }
}

LogLine relayed_line(const Relayed& before, const Relayed& now, std::chrono::milliseconds passed) {
  const auto rate = static_cast<double>(now.published - before.published) * 1000 /
                    static_cast<double>(passed.count());
  LogLine line;
  line.event = "progress";
  line.text = fmt::format("{} messages of the outbox published ({:.0f}/s), {} refused; {}",
                          now.published, rate, now.refused,
                          now.lanes == 0 ? "no lane is this process's"
                                         : fmt::format("{} lanes are this process's", now.lanes));
  line.figures = {{"published", now.published},
                  {"per_second", static_cast<std::int64_t>(rate)},
                  {"refused", now.refused},
                  {"lanes", now.lanes}};
  return line;
}

LogLine progress_line(const Progress& before, const Progress& now, std::chrono::milliseconds passed,
                      const std::vector<Unreachable>& unreachable) {
  const auto& total = now.counts;
  const auto& at = now.at;
  const auto rate = static_cast<double>(total.processed - before.counts.processed) * 1000 /
                    static_cast<double>(passed.count());
  // What a server keeps waiting does not shrink as it did before.
  const auto eta =
      unreachable.empty() ? seconds_to_catch_up(before.places, now.places, passed) : std::nullopt;
  LogLine line;
  line.event = "progress";
  line.text = fmt::format(
      "{} messages processed ({:.0f}/s), {} duplicates, {} skipped{}, {} failed tries; {}, lag "
      "{}{}",
      total.processed, rate, total.duplicates, total.skipped, set_aside_text(total), total.failed,
      partitions_text(now), at.lag ? std::to_string(*at.lag) : "not known",
      eta.value_or(0) > 0 ? fmt::format(", caught up in {}", span_text(*eta)) : "");
  for (const auto& [server, lasts, why] : unreachable)
    line.text +=
        fmt::format("; {} has been unreachable for {}: {}", server, span_text(lasts.count()), why);
  const auto figure = [&line](std::string_view name, auto number) {
    line.figures.emplace_back(name, static_cast<std::int64_t>(number));
  };
  figure("processed", total.processed);
  figure("per_second", rate);
  figure("duplicates", total.duplicates);
  figure("skipped", total.skipped);
  figure("dead", total.dead);
  figure("parked", total.parked);
  figure("retry_later", total.later);
  figure("failed", total.failed);
  figure("partitions", at.partitions);
  figure("halted", at.halted);
  figure("paused", at.paused);
  if (eta)
    figure("eta_seconds", *eta);
  line.lag = at.lag.value_or(-1);
  return line;
}

}  // namespace pawl::ops
