// What `tail` tells of two looks at a consumer.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/tail.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "dead_letters/dlq.hpp"

namespace pawl::cli {
namespace {

using ledger::PartitionState;
using ledger::RecentEvent;

/// More events of one kind and partition between two looks are one line.
constexpr std::size_t kMostEvents = 20;

/// Partitions whose state an operator has changed between the looks, who is told of already.
bool told_of_change(const TailLook& next, const TopicPartition& partition) {
  return std::ranges::any_of(next.events, [&](const RecentEvent& event) {
    return event.kind == RecentEvent::Kind::kChange && event.what != "halt" &&
           event.partition == partition;
  });
}

class Difference {
 public:
  Difference(const TailLook& before, const TailLook& next)
      : before_(before),
        next_(next),
        time_(fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(next.status.now_ms / 1000))) {}

  std::vector<TailLine> lines() {
    tell_servers();
    if (!next_.status.postgres_problem.empty())
      return std::move(lines_);
    std::map<TopicPartition, const StatusPartition*> known;
    for (const auto& partition : before_.status.partitions)
      known[partition.partition] = &partition;
    for (const auto& partition : next_.status.partitions) {
      if (!partition.row)
        continue;
      const auto was = known.find(partition.partition);
      if (was == known.end() || !was->second->row) {
        add("met", partition.partition,
            fmt::format("begins at offset {}", partition.row->stored.next()));
        tell_owner(nullptr, *partition.row);
      } else {
        tell_partition(*was->second->row, partition);
      }
    }
    tell_events();
    return std::move(lines_);
  }

 private:
  TailLine& add(const char* event, std::optional<TopicPartition> partition, std::string text) {
    return lines_.emplace_back(TailLine{time_, event, std::move(partition), std::move(text)});
  }

  void tell_server(const std::string& before, const std::string& next, const char* name,
                   const char* away, const char* back) {
    if (before.empty() && !next.empty())
      add(away, std::nullopt,
          fmt::format("{} does not answer: {}; goes on when it does", name, next));
    if (!before.empty() && next.empty())
      add(back, std::nullopt, fmt::format("{} answers again", name));
  }

  void tell_servers() {
    tell_server(before_.status.postgres_problem, next_.status.postgres_problem, "PostgreSQL",
                "postgres-lost", "postgres-back");
    tell_server(before_.status.kafka_problem, next_.status.kafka_problem,
                "Kafka, without which no lag is known,", "kafka-lost", "kafka-back");
  }

  void tell_owner(const ledger::RegisterRow* was, const ledger::RegisterRow& row) {
    const auto before = was != nullptr && was->owned() ? was->owner : std::string();
    if (row.owned() && row.owner != before) {
      auto& line = add("acquired", row.partition,
                       before.empty() ? fmt::format("acquired by {}", row.owner)
                                      : fmt::format("acquired by {} from {}", row.owner, before));
      line.details = {{"owner", row.owner}, {"from", or_null(before)}};
    } else if (!row.owned() && !before.empty()) {
      auto& line = add("unowned", row.partition,
                       row.released ? fmt::format("released by {}", before)
                                    : fmt::format("its owner {} is gone", before));
      line.details = {{"owner", before}, {"released", row.released}};
    }
  }

  void tell_advance(const ledger::RegisterRow& was, const StatusPartition& partition) {
    const auto& row = *partition.row;
    // A position that was set by hand is told as such.
    if (row.stored.last() <= was.stored.last() || row.base_offset != was.base_offset)
      return;
    const auto count = row.processed() - was.processed();
    const auto lag = partition.lag();
    auto text = fmt::format("offset {} to {}: {} message{}", was.stored.next(), row.stored.last(),
                            count, count == 1 ? "" : "s");
    if (was.stored.last() < 0) {
      text = fmt::format("up to offset {}: {} message{}", row.stored.last(), count,
                         count == 1 ? "" : "s");
      // Else markers of transactions, and what compaction has removed.
    } else if (const auto empty = row.stored.last() - was.stored.last() - count; empty > 0) {
      text += fmt::format(" ({} offset{} without one)", empty, empty == 1 ? "" : "s");
    }
    if (partition.rate)
      text += fmt::format(", {:.0f}/s", *partition.rate);
    text += lag ? fmt::format(", lag {}", *lag) : std::string(", lag unknown");
    const auto duplicates = row.duplicates - was.duplicates;
    if (duplicates > 0)
      text += fmt::format(", {} of them duplicates", duplicates);
    auto& line = add("advanced", row.partition, std::move(text));
    line.details = {{"from", was.stored.last() < 0 ? Json(nullptr) : Json(was.stored.last())},
                    {"to", row.stored.last()},
                    {"messages", count},
                    {"duplicates", duplicates},
                    {"per_second", or_null(partition.rate)},
                    {"lag", or_null(lag)}};
    line.passed = {was.stored.next(), row.stored.last()};
  }

  void tell_state(const ledger::RegisterRow& was, const ledger::RegisterRow& row) {
    const bool halted = row.state == PartitionState::kHalted;
    if (halted && (was.state != PartitionState::kHalted || was.halt != row.halt)) {
      const auto& halt = row.halt;
      auto& line = add("halted", row.partition,
                       fmt::format("HALTED ({}){}", halt.code,
                                   halt.cause.empty() ? "" : ": " + first_line(halt.cause)));
      describe(line.details, halt);
    }
    if (!halted && was.state == PartitionState::kHalted && !told_of_change(next_, row.partition))
      add("resumed", row.partition, "goes on: the halt is over");
    const auto offset = row.retried_offset();
    const auto attempts = row.failed_attempts();
    if (offset && (attempts != was.failed_attempts() || offset != was.retried_offset())) {
      auto& line = add("retrying", row.partition,
                       fmt::format("offset {} is tried again: {} failed attempt{}", *offset,
                                   attempts, attempts == 1 ? "" : "s"));
      line.details = {{"offset", *offset}, {"failed_attempts", attempts}};
    }
    const bool same = was.suspect && row.suspect && was.suspect->offset == row.suspect->offset &&
                      was.suspect->crashes == row.suspect->crashes;
    if (row.on_probation() && !same) {
      auto& line = add("probation", row.partition,
                       fmt::format("offset {} is on probation: it runs alone, {} processes have "
                                   "ended at that",
                                   row.suspect->offset, row.suspect->crashes));
      line.details = {{"offset", row.suspect->offset}, {"processes_ended", row.suspect->crashes}};
    }
  }

  void tell_partition(const ledger::RegisterRow& was, const StatusPartition& partition) {
    tell_owner(&was, *partition.row);
    tell_advance(was, partition);
    tell_state(was, *partition.row);
  }

  void tell_events() {
    std::map<std::pair<RecentEvent::Kind, TopicPartition>, std::vector<const RecentEvent*>> groups;
    for (const auto& event : next_.events) {
      // A halt is told by the state that it left.
      if (event.kind != RecentEvent::Kind::kChange || event.what != "halt")
        groups[{event.kind, event.partition}].push_back(&event);
    }
    for (const auto& [what, events] : groups) {
      if (events.size() > kMostEvents) {
        tell_many(events);
        continue;
      }
      for (const auto* event : events)
        tell_event(*event);
    }
  }

  static const char* name_of(RecentEvent::Kind kind) {
    switch (kind) {
      case RecentEvent::Kind::kDeadLetter:
        return "dead-letter";
      case RecentEvent::Kind::kSkipped:
        return "skipped";
      case RecentEvent::Kind::kChange:
        break;
    }
    return "changed";
  }

  void tell_many(const std::vector<const RecentEvent*>& events) {
    const auto& first = *events.front();
    const auto& last = *events.back();
    const char* what = first.kind == RecentEvent::Kind::kDeadLetter ? "dead letters"
                       : first.kind == RecentEvent::Kind::kSkipped  ? "messages skipped"
                                                                    : "changes";
    auto& line = add(name_of(first.kind), first.partition,
                     fmt::format("{} {}, offsets {} to {}", events.size(), what,
                                 known_text(first.offset), known_text(last.offset)));
    line.details = {{"count", events.size()},
                    {"first_offset", or_null(first.offset)},
                    {"last_offset", or_null(last.offset)}};
  }

  void tell_event(const RecentEvent& event) {
    auto& line = add(name_of(event.kind), event.partition, "");
    if (!event.at.empty())
      line.time = event.at;
    const auto why = event.reason.empty() ? "" : ": " + first_line(event.reason);
    switch (event.kind) {
      case RecentEvent::Kind::kDeadLetter: {
        const bool parked = event.what == "parked";
        const bool scheduled = event.what == "scheduled";
        line.text =
            parked ? fmt::format("offset {} is parked, as letter {}", known_text(event.offset),
                                 event.id)
                   : fmt::format("offset {} is {} {} ({}{}): {}", known_text(event.offset),
                                 scheduled ? "scheduled for a retry, as letter" : "dead letter",
                                 event.id, event.reason,
                                 event.handler.empty() ? "" : ", " + event.handler,
                                 first_line(event.error));
        if (parked || scheduled)
          line.event = event.what;
        line.details = {{"id", event.id},
                        {"offset", or_null(event.offset)},
                        {"status", event.what},
                        {"reason", or_null(event.reason)},
                        {"handler", or_null(event.handler)}};
        return;
      }
      case RecentEvent::Kind::kSkipped:
        line.text = fmt::format("offset {} is skipped{}", known_text(event.offset), why);
        line.details = {{"offset", or_null(event.offset)},
                        {"reason", or_null(event.reason)},
                        {"actor", or_null(event.actor)}};
        return;
      case RecentEvent::Kind::kChange:
        line.text = fmt::format("{} by {}", event.what, event.actor);
        if (event.offset && event.from != event.offset)
          line.text +=
              fmt::format(", stored offset {} to {}",
                          event.from ? std::to_string(*event.from) : "none", *event.offset);
        line.text += why;
        line.details = {{"action", event.what},
                        {"from", or_null(event.from)},
                        {"to", or_null(event.offset)},
                        {"reason", or_null(event.reason)},
                        {"actor", or_null(event.actor)}};
        return;
    }
  }

  const TailLook& before_;
  const TailLook& next_;
  const std::string time_;
  std::vector<TailLine> lines_;
};

}  // namespace

std::vector<TailLine> difference(const TailLook& before, const TailLook& next) {
  return Difference(before, next).lines();
}

TailLook remembered(TailLook before, TailLook next) {
  if (next.status.postgres_problem.empty())
    return next;
  before.status.postgres_problem = std::move(next.status.postgres_problem);
  before.status.kafka_problem = std::move(next.status.kafka_problem);
  before.events.clear();
  return before;
}

void keep_only(TailLook& look, const std::string& topic, std::optional<std::int32_t> partition) {
  const auto other = [&](const TopicPartition& name) {
    return (!topic.empty() && name.topic != topic) || (partition && name.partition != *partition);
  };
  std::erase_if(look.status.partitions, [&](const auto& one) { return other(one.partition); });
  std::erase_if(look.events, [&](const auto& one) { return other(one.partition); });
}

std::string line_text(const TailLine& line) {
  const auto place = line.partition
                         ? fmt::format("{} [{}] ", line.partition->topic, line.partition->partition)
                         : std::string();
  return printable(fmt::format("{} {}{}", line.time, place, line.text));
}

std::string line_json(const TailLine& line) {
  Json json;
  json["time"] = line.time;
  json["event"] = line.event;
  if (line.partition) {
    json["topic"] = line.partition->topic;
    json["partition"] = line.partition->partition;
  }
  json["text"] = line.text;
  for (const auto& [name, value] : line.details.items())
    json[name] = value;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pawl::cli
