// The events that `tail` derives from two samples of a consumer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/tail.hpp"
#include "console/counted.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "message/rfc3339.hpp"
#include "text/located.hpp"

namespace pawl::cli {
namespace {

using ledger::PartitionState;
using ledger::RecentEvent;

/// More events of one kind and partition between two samples are one line.
constexpr std::size_t kMostEvents = 20;
/// Columns of "payments[0]@1336-1337": a longer subject moves the rest of its line.
constexpr std::size_t kSubject = 24;
/// Between the parts of a text.
constexpr const char* kGap = "  ";

std::string messages_text(std::int64_t count) {
  return counted(count, "message", "messages");
}

/// Whether an operator has changed the state of a partition between the samples: a line of its own.
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
        time_(message::rfc3339(Timestamp(std::chrono::milliseconds(next.status.now_ms)))) {}

  std::vector<TailLine> lines() {
    tell_servers();
    if (next_.status.postgres_problem.empty())
      tell_partitions();
    // An event of the database has a time of its own, before that of the sample.
    std::ranges::stable_sort(lines_, [](const TailLine& one, const TailLine& other) {
      return seconds_of(one) < seconds_of(other);
    });
    return std::move(lines_);
  }

 private:
  static std::string_view seconds_of(const TailLine& line) {
    constexpr std::size_t kSeconds = sizeof("2026-11-26T17:08:03") - 1;
    return std::string_view(line.time).substr(0, kSeconds);
  }

  void tell_partitions() {
    std::map<TopicPartition, const StatusPartition*> known;
    for (const auto& partition : before_.status.partitions)
      known[partition.partition] = &partition;
    for (const auto& partition : next_.status.partitions) {
      if (!partition.row)
        continue;
      const auto was = known.find(partition.partition);
      if (was == known.end() || !was->second->row) {
        add("first_assigned", partition.partition,
            fmt::format("first assignment, starts at offset {}", partition.row->stored.next()));
        tell_owner(nullptr, *partition.row);
      } else {
        tell_partition(*was->second->row, partition);
      }
    }
    tell_events();
  }

  TailLine& add(const char* event, const TopicPartition& partition, std::string text,
                std::optional<Symbol> mark = {}) {
    auto& line = lines_.emplace_back(TailLine{time_, event, partition, std::move(text)});
    line.subject = name_of(partition);
    line.mark = mark;
    return line;
  }
  TailLine& add(const char* event, const TopicPartition& partition,
                std::optional<std::int64_t> offset, std::string text, std::optional<Symbol> mark) {
    auto& line = add(event, partition, std::move(text), mark);
    if (offset)
      line.subject = name_of(partition, *offset);
    return line;
  }

  void tell_server(const std::string& before, const std::string& next, const char* subject,
                   const std::string& unreachable, const char* event_unreachable,
                   const char* event_reachable) {
    if (before.empty() == next.empty())
      return;
    auto& line = lines_.emplace_back(TailLine{time_, event_reachable, std::nullopt, ""});
    line.subject = subject;
    line.mark = next.empty() ? Symbol::kGood : Symbol::kBad;
    line.text = "reachable again";
    if (!next.empty()) {
      line.event = event_unreachable;
      line.text = fmt::format("{}: {}. Retrying", unreachable, next);
    }
  }

  void tell_servers() {
    tell_server(before_.status.postgres_problem, next_.status.postgres_problem, "PostgreSQL",
                next_.status.postgres_answers ? "cannot be used" : "unreachable",
                "database_unreachable", "database_reachable");
    tell_server(before_.status.kafka_problem, next_.status.kafka_problem, "Kafka",
                "unreachable, lag is unknown", "kafka_unreachable", "kafka_reachable");
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
                                    : fmt::format("owner {} has no session any more", before));
      line.details = {{"owner", before}, {"released", row.released}};
    }
  }

  void tell_advance(const ledger::RegisterRow& was, const StatusPartition& partition) {
    const auto& row = *partition.row;
    // An offset that an operator has set is an event of its own.
    if (row.stored.last() <= was.stored.last() || row.base_offset != was.base_offset)
      return;
    const auto count = row.processed() - was.processed();
    const auto lag = partition.lag();
    const auto first = was.stored.next();
    const auto last = row.stored.last();
    std::vector<std::string> parts{messages_text(count)};
    const auto duplicates = row.duplicates - was.duplicates;
    if (duplicates > 0)
      parts.push_back(counted(duplicates, "duplicate", "duplicates"));
    // Markers of transactions, and records that compaction has removed. The start of the log is
    // unknown.
    if (const auto empty = last - first + 1 - count; empty > 0 && first > 0)
      parts.push_back(counted(empty, "offset", "offsets") + " without a message");
    if (partition.rate)
      parts.push_back(fmt::format("{:.0f}/s", *partition.rate));
    parts.push_back(lag ? "lag " + grouped(*lag) : "lag ?");
    auto& line =
        add("advanced", row.partition, fmt::format("{}", fmt::join(parts, kGap)), Symbol::kGood);
    line.subject = last == first ? name_of(row.partition, last)
                                 : fmt::format("{}-{}", name_of(row.partition, first), last);
    line.details = {{"from", first},
                    {"to", row.stored.next()},
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
      const auto cause =
          texts::located(halt.parameter(ledger::halt_parameter::kStatement), halt.cause);
      auto& line = add("halted", row.partition, halt.message_offset,
                       fmt::format("halted ({}){}", halt.code,
                                   halt.cause.empty() ? "" : ": " + first_line(cause)),
                       Symbol::kBad);
      describe(line.details, halt);
    }
    if (!halted && was.state == PartitionState::kHalted && !told_of_change(next_, row.partition))
      add("resumed", row.partition, "resumed: the halt is over", Symbol::kGood);
    const auto offset = row.retried_offset();
    const auto attempts = row.failed_attempts();
    if (offset && (attempts != was.failed_attempts() || offset != was.retried_offset())) {
      auto& line =
          add("retrying", row.partition, offset,
              "retrying" + (kGap + counted(attempts, "failed attempt", "failed attempts")), {});
      line.details = {{"offset", *offset}, {"failed_attempts", attempts}};
    }
    const bool same = was.suspect && row.suspect && was.suspect->offset == row.suspect->offset &&
                      was.suspect->crashes == row.suspect->crashes;
    if (row.on_probation() && !same) {
      auto& line = add(
          "probation", row.partition, row.suspect->offset,
          fmt::format("on probation: processed alone; {} since",
                      counted(row.suspect->crashes, "process has exited", "processes have exited")),
          {});
      line.details = {{"offset", row.suspect->offset}, {"processes_crashed", row.suspect->crashes}};
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
      // A halt has a line already, by the state of its partition.
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

  static const char* name_of_kind(RecentEvent::Kind kind) {
    switch (kind) {
      case RecentEvent::Kind::kDeadLetter:
        return "dead_letter";
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
    const auto count = static_cast<std::int64_t>(events.size());
    const auto text =
        first.kind == RecentEvent::Kind::kDeadLetter ? counted(count, "dead letter", "dead letters")
        : first.kind == RecentEvent::Kind::kSkipped  ? messages_text(count) + " skipped"
                                                     : counted(count, "change", "changes");
    auto& line = add(name_of_kind(first.kind), first.partition, text, Symbol::kBad);
    if (first.offset && last.offset)
      line.subject = fmt::format("{}-{}", name_of(first.partition, *first.offset), *last.offset);
    line.details = {{"count", events.size()},
                    {"first_offset", or_null(first.offset)},
                    {"last_offset", or_null(last.offset)}};
  }

  [[nodiscard]] std::string retry_text(const RecentEvent& event) const {
    return fmt::format("retry {} {}", event.retries + 1,
                       event.due_at.empty() ? "after earlier messages of its record key"
                                            : "at " + time_near(event.due_at, time_));
  }

  void tell_event(const RecentEvent& event) {
    auto& line = add(name_of_kind(event.kind), event.partition, "");
    if (!event.at.empty())
      line.time = event.at;
    const auto why = event.reason.empty() ? "" : ": " + first_line(event.reason);
    if (event.offset && event.kind != RecentEvent::Kind::kChange)
      line.subject = name_of(event.partition, *event.offset);
    switch (event.kind) {
      case RecentEvent::Kind::kDeadLetter: {
        const bool parked = event.what == "parked";
        const bool scheduled = event.what == "scheduled";
        std::vector<std::string> parts{parked      ? "parked"
                                       : scheduled ? retry_text(event)
                                                   : "dead letter",
                                       fmt::format("#{}", event.id)};
        if (!event.handler.empty())
          parts.push_back(event.handler);
        if (!parked && event.reason != ledger::dead_reason::kError)
          parts.push_back(event.reason);
        if (!parked)
          parts.push_back(short_error(event.sqlstate, event.statement, event.error));
        line.text = fmt::format("{}", fmt::join(parts, kGap));
        line.mark = parked ? Symbol::kWait : Symbol::kBad;
        if (parked || scheduled)
          line.event = event.what;
        line.details = {{"id", event.id},
                        {"offset", or_null(event.offset)},
                        {"status", event.what},
                        {"reason", or_null(event.reason)},
                        {"sqlstate", or_null(event.sqlstate)},
                        {"statement", or_null(event.statement)},
                        {"handler", or_null(event.handler)},
                        {"retries", event.retries},
                        {"due_at", or_null(event.due_at)}};
        return;
      }
      case RecentEvent::Kind::kSkipped:
        line.text = "skipped" + why;
        line.details = {{"offset", or_null(event.offset)},
                        {"reason", or_null(event.reason)},
                        {"actor", or_null(event.actor)}};
        return;
      case RecentEvent::Kind::kChange:
        line.text = fmt::format("{} by {}", event.what, event.actor);
        if (event.offset && event.from != event.offset) {
          line.text += fmt::format(", offset {} to {}",
                                   event.from ? std::to_string(*event.from) : "-", *event.offset);
        }
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
  before.status.postgres_answers = next.status.postgres_answers;
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

std::string line_text(const TailLine& line, const Terminal& terminal) {
  auto text = fmt::format("{}  {}  ", terminal.columns > 0 ? time_of_day(line.time) : line.time,
                          padded(printable(line.subject), kSubject));
  const auto indent = width_of(text);
  const auto mark = line.mark ? symbol(terminal, *line.mark) : std::string_view();
  const auto color = line.mark == Symbol::kBad    ? std::optional(Color::kRed)
                     : line.mark == Symbol::kWait ? std::optional(Color::kYellow)
                                                  : std::nullopt;
  const auto rest = wrapped(std::string(mark) + printable(line.text), terminal.columns, indent);
  return text + (color ? painted(terminal, *color, rest) : rest);
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
