// The output of `status`: what is wrong and what to do comes first, and it stays one screen.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "cli/status.hpp"
#include "cli/status_problems.hpp"
#include "config/invocation.hpp"
#include "console/counted.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "ops/catching_up.hpp"
#include "outbox/outbox_status.hpp"

namespace pawl::cli {
namespace {

using Align = Table::Align;
using Kind = StatusBlock::Kind;

/// Of a heading; topics; groups of dead letters.
constexpr std::size_t kMostProblems = 5;
constexpr std::size_t kMostTopics = 10;
constexpr std::size_t kMostLetters = 8;
constexpr std::size_t kMostOwners = 2;
/// Columns of the labels "OUTBOX", "CALLS", "POSTGRESQL".
constexpr std::size_t kLabel = 16;
/// Between two parts of a line.
constexpr std::string_view kGap = "   ";
/// While a transaction is open for longer than that, the rows of the register pile up noticeably.
/// The transaction of a message is short.
constexpr std::int64_t kLongOpenSeconds = 60;
/// The limit if that time is unknown: a replication slot has none, and without pg_read_all_stats
/// PostgreSQL does not show it of other roles' sessions. One of them may be an ANALYZE by
/// autovacuum, which ends within seconds.
constexpr std::int64_t kManyTransactions = 100'000;

std::string rate_text(std::optional<double> rate) {
  return rate ? rate_number(*rate) + "/s" : "?";
}

/// "-": the lag does not shrink.
std::string eta_text(const std::optional<std::int64_t>& seconds, std::optional<double> rate) {
  return seconds ? ops::span_text(*seconds) : rate ? "-" : "?";
}

std::string group_error(const ledger::DeadLetterCount& count) {
  return (count.reason == ledger::dead_reason::kError ? "" : count.reason + ": ") +
         short_error(count.sqlstate, count.statement, count.error);
}

class Renderer {
 public:
  Renderer(const Status& status, const StatusView& view)
      : status_(status), view_(view), terminal_(view.terminal) {}

  std::vector<StatusBlock> blocks() {
    add_verdict();
    add_problems();
    if (view_.problems_only)
      return std::move(blocks_);
    add_letters();
    add_figures();
    if (view_.partitions)
      add_partitions();
    else
      add_topics();
    return std::move(blocks_);
  }

 private:
  void add(Kind kind, const std::string& text) {
    if (!text.empty())
      blocks_.push_back({kind, text});
  }

  [[nodiscard]] std::string command(std::string_view words, std::string_view more = "") const {
    return printable(command_text(status_.invocation, words)) + std::string(more);
  }

  [[nodiscard]] std::string omitted_line(std::size_t number, const char* one,
                                         const char* many) const {
    return fmt::format("{}{}: {}\n", symbol(terminal_, Symbol::kMore),
                       counted(static_cast<std::int64_t>(number), one, many),
                       command("status", " --all"));
  }

  /// Parts on as few lines as the width permits.
  [[nodiscard]] std::string joined(const std::vector<std::string>& parts,
                                   std::size_t indent) const {
    std::string text;
    std::size_t used = indent;
    for (const auto& part : parts) {
      const auto width = width_of(part);
      if (!text.empty() && terminal_.columns > 0 &&
          used + kGap.size() + width > terminal_.columns) {
        text += '\n' + std::string(indent, ' ');
        used = indent;
      } else if (!text.empty()) {
        text += kGap;
        used += kGap.size();
      }
      text += part;
      used += width;
    }
    return text;
  }

  [[nodiscard]] std::string shown(const VerdictPart& part) const {
    using Level = VerdictPart::Level;
    auto text = printable(part.text);
    switch (part.level) {
      case Level::kGood:
        return painted(terminal_, Color::kGreen, text);
      case Level::kWarn:
        return painted(terminal_, Color::kYellow, text);
      case Level::kBad:
        return painted(terminal_, Color::kRed, text);
      case Level::kPlain:
        break;
    }
    return text;
  }

  void add_verdict() {
    const auto verdict = verdict_parts(status_);
    const auto group = printable(status_.group);
    const auto indent = width_of(group) + kGap.size();
    std::vector<std::string> states;
    for (const auto& part : verdict.states)
      states.push_back(shown(part));
    const bool good = verdict.states.front().level == VerdictPart::Level::kGood;
    states.front() = painted(terminal_, good ? Color::kGreen : Color::kRed,
                             symbol(terminal_, good ? Symbol::kGood : Symbol::kBad)) +
                     states.front();
    const auto time = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(status_.now_ms / 1000));
    auto text = joined(states, indent);
    const auto used = indent + width_of(text);
    // At the right edge if there is room.
    if (text.find('\n') == std::string::npos &&
        used + kGap.size() + time.size() <= terminal_.columns) {
      text += std::string(terminal_.columns - used - time.size(), ' ') + time;
    } else {
      states.push_back(time);
      text = joined(states, indent);
    }
    text = painted(terminal_, Color::kBold, group) + std::string(kGap) + text + '\n';
    std::vector<std::string> figures;
    for (const auto& part : verdict.figures)
      figures.push_back(shown(part));
    if (!figures.empty())
      text += std::string(indent, ' ') + joined(figures, indent) + '\n';
    add(Kind::kSection, text);
  }

  void add_problems() {
    const auto problems = problems_of(status_);
    for (std::size_t first = 0; first < problems.size();) {
      const auto& heading = problems[first].heading;
      auto end = first;
      while (end < problems.size() && problems[end].heading == heading)
        ++end;
      const auto most = view_.all ? end : std::min(end, first + kMostProblems);
      add(Kind::kHeading, '\n' + painted(terminal_, Color::kBold, heading) + '\n');
      std::vector<std::size_t> widths;
      for (auto i = first; i < most; ++i) {
        const auto& title = problems[i].title;
        widths.resize(std::max(widths.size(), title.size()));
        for (std::size_t cell = 0; cell + 1 < title.size(); ++cell)
          widths[cell] = std::max(widths[cell], width_of(printable(title[cell])));
      }
      for (auto i = first; i < most; ++i) {
        // After the last one, so that a narrow screen repeats no page.
        const auto page =
            i + 1 == most ? fmt::format("  See {}\n", page_of(heading)) : std::string();
        add(Kind::kProblem, problem_text(problems[i], widths) + page);
      }
      if (most < end)
        add(Kind::kSection, "  " + omitted_line(end - most, "more", "more"));
      first = end;
    }
  }

  [[nodiscard]] std::string problem_text(const Problem& problem,
                                         const std::vector<std::size_t>& widths) const {
    std::vector<std::string> title;
    for (std::size_t cell = 0; cell < problem.title.size(); ++cell) {
      const auto text = printable(problem.title[cell]);
      title.push_back(cell + 1 < problem.title.size() ? padded(text, widths[cell]) : text);
    }
    auto text = "  " + joined(title, 4) + '\n';
    for (const auto& paragraph : problem.texts)
      text += "      " + wrapped(printable_lines(paragraph), terminal_.columns, 6) + '\n';
    return text + steps_text(problem.steps, 6);
  }

  /// Each command on its own line, which is not wrapped: it can be pasted.
  [[nodiscard]] std::string steps_text(const std::vector<Step>& steps, std::size_t indent) const {
    std::size_t width = 0;
    for (const auto& step : steps)
      width = std::max(width, width_of(printable(step.text)));
    std::string text;
    const auto next = symbol(terminal_, Symbol::kNext);
    for (const auto& step : steps) {
      text += std::string(indent, ' ') +
              (text.empty() ? std::string(next) : std::string(width_of(next), ' '));
      const auto words = printable(step.text);
      text += step.comment.empty() ? words
                                   : fmt::format("{}  # {}", padded(words, width), step.comment);
      text += '\n';
    }
    return text;
  }

  struct Letters {
    std::int64_t dead = 0;
    std::int64_t scheduled = 0;
    std::int64_t parked = 0;
    std::string oldest;
    std::string error = "-";  ///< of most of them, the newest

    void add(const ledger::DeadLetterCount& count) {
      if (count.status == "parked") {
        parked += count.letters;
      } else {
        dead += count.letters - count.retried;
        scheduled += count.retried;
        // The largest group comes first.
        if (error == "-")
          error = group_error(count);
      }
      if (oldest.empty() || count.oldest < oldest)
        oldest = count.oldest;
    }
    [[nodiscard]] std::vector<std::string> figures() const {
      const auto figure = [](std::int64_t number) { return number == 0 ? "-" : grouped(number); };
      return {figure(dead), figure(scheduled), figure(parked)};
    }
  };

  /// By handler; those of no handler by topic.
  void add_letters() {
    if (status_.letters.empty())
      return;
    std::map<std::string, Letters> by_handler;
    Letters total;
    std::string next_due;
    for (const auto& count : status_.letters) {
      by_handler[count.handler.empty() ? "topic " + count.topic : count.handler].add(count);
      total.add(count);
      if (!count.next_due.empty() && (next_due.empty() || count.next_due < next_due))
        next_due = count.next_due;
    }
    std::vector<std::pair<std::string, Letters>> sorted(by_handler.begin(), by_handler.end());
    std::ranges::stable_sort(sorted, [](const auto& one, const auto& other) {
      return std::tuple(one.second.dead, one.second.scheduled, one.second.parked) >
             std::tuple(other.second.dead, other.second.scheduled, other.second.parked);
    });
    const auto most = view_.all ? sorted.size() : std::min(kMostLetters, sorted.size());
    Table table({{"DEAD LETTERS"},
                 {"DEAD", Align::kRight},
                 {"SCHEDULED", Align::kRight},
                 {"PARKED", Align::kRight},
                 {"OLDEST", Align::kRight},
                 {"ERROR"}});
    const auto row = [&](const std::string& name, const Letters& letters) {
      auto cells = letters.figures();
      cells.insert(cells.begin(), name);
      cells.push_back(age_text(status_, letters.oldest));
      cells.push_back(letters.error);
      table.add(cells);
    };
    for (std::size_t i = 0; i < most; ++i)
      row("  " + sorted[i].first, sorted[i].second);
    total.error = "-";
    if (sorted.size() > 1)
      row("  total", total);
    auto text = '\n' + table.text(terminal_.columns);
    if (most < sorted.size())
      text += "  " + omitted_line(sorted.size() - most, "more handler", "more handlers");
    add(Kind::kSection, text + letters_notes(next_due, total));
  }

  [[nodiscard]] std::string letters_notes(const std::string& next_due, const Letters& total) const {
    std::vector<std::string> notes;
    if (!next_due.empty())
      notes.push_back(fmt::format("Next scheduled retry at {} UTC.", date_time(next_due)));
    const auto left = status_.server.left_parked_keys;
    if (const auto waiting = status_.server.parked_keys - left; waiting > 0) {
      notes.push_back(
          fmt::format("Later messages of {} wait for a dead letter or a scheduled "
                      "retry.",
                      counted(waiting, "record key", "record keys")));
    }
    std::vector<Step> steps{{command("dlq list")}};
    if (total.dead > 0)
      steps.push_back({command("dlq replay", " --all"), "after the fix"});
    if (left > 0) {
      notes.push_back(
          fmt::format("Parked messages of {} have no dead letter any more and wait for "
                      "a replay.",
                      counted(left, "record key", "record keys")));
      steps.push_back({command("dlq replay", " --all --reason parked")});
    }
    std::string text;
    for (const auto& note : notes)
      text += "  " + wrapped(note, terminal_.columns, 2) + '\n';
    return text + steps_text(steps, 2);
  }

  [[nodiscard]] std::string labeled(std::string_view label, const std::string& text) const {
    return painted(terminal_, Color::kBold, label) + std::string(kLabel - label.size(), ' ') +
           wrapped(printable_lines(text), terminal_.columns, kLabel) + '\n';
  }

  void add_figures() {
    std::string text;
    if (status_.outbox && (status_.outbox->waiting() > 0 || status_.outbox->set_apart > 0)) {
      text += labeled("OUTBOX", outbox_text(*status_.outbox) + '.');
      if (status_.outbox->set_apart > 0)
        text += steps_text({{command("outbox list")}}, kLabel);
    }
    text += calls_text();
    if (status_.postgres_problem.empty())
      text += server_text();
    if (!text.empty())
      add(Kind::kSection, '\n' + text);
  }

  [[nodiscard]] std::string calls_text() const {
    if (!status_.leases)
      return "";
    const auto& counts = *status_.leases;
    std::vector<std::string> parts;
    std::vector<Step> steps;
    if (counts.in_hand > 0)
      parts.push_back(fmt::format("{} in flight", grouped(counts.in_hand)));
    if (counts.done > 0)
      parts.push_back(fmt::format("{} done, not recorded yet", grouped(counts.done)));
    if (counts.unknown > 0) {
      parts.push_back(fmt::format("{} with an unknown outcome", grouped(counts.unknown)));
      steps.push_back({command("calls list", " --unknown")});
    }
    if (counts.losses > 0) {
      parts.push_back(fmt::format("{} lost their lease", grouped(counts.losses)));
      steps.push_back({command("calls list", " --lost")});
    }
    if (parts.empty())
      return "";
    return labeled("CALLS", fmt::format("{}", fmt::join(parts, ", "))) + steps_text(steps, kLabel);
  }

  static std::string holder_text(const ledger::HorizonHolder& holder) {
    auto text = fmt::format("{} {}", holder.what, holder.name);
    if (!holder.application.empty())
      text += fmt::format(" \"{}\"", holder.application);
    if (!holder.user.empty())
      text += fmt::format(" of {}", holder.user);
    if (!holder.state.empty())
      text += fmt::format(", {}", holder.state);
    if (holder.since)
      text += fmt::format(", open for {}", ops::span_text(*holder.since));
    return text + fmt::format(", {} since", counted(holder.transactions, "transaction has started",
                                                    "transactions have started"));
  }

  [[nodiscard]] std::string server_text() const {
    const auto& server = status_.server;
    const auto holder = std::ranges::find_if(server.holders, [](const ledger::HorizonHolder& one) {
      return one.since ? *one.since >= kLongOpenSeconds : one.transactions >= kManyTransactions;
    });
    const bool blocked = holder != server.holders.end();
    auto text = labeled(
        "POSTGRESQL",
        fmt::format("{}{} of {} connections ({} of this consumer, {} of pawl in total), vacuum {}",
                    blocked ? "" : "ok, ", server.connections, server.max_connections,
                    server.consumer_connections, server.pawl_connections,
                    blocked ? "blocked by " + holder_text(*holder) : "not blocked"));
    const std::string indent(kLabel, ' ');
    const auto note = [&](std::string_view words) {
      text += indent + wrapped(words, terminal_.columns, kLabel) + '\n';
    };
    if (blocked && holder->since)
      note("Every message gets slower until that transaction ends.");
    if (!server.sees_all) {
      note(
          "This role cannot see since when sessions of other roles are open. A superuser can "
          "grant that:");
      text += indent + fmt::format("GRANT pg_read_all_stats TO {};\n", printable(server.role));
    }
    return text;
  }

  struct Topic {
    std::int64_t partitions = 0;
    std::int64_t running = 0;
    std::int64_t halted = 0;
    std::int64_t paused = 0;
    std::int64_t unowned = 0;
    std::optional<std::int64_t> lag = 0;
    std::optional<double> rate;
    std::optional<std::int64_t> eta = 0;
    std::set<std::string> owners;

    /// Each partition counts once: as halted, else as paused, else as unowned, else as running.
    void add(const StatusPartition& partition) {
      using ledger::PartitionState;
      ++partitions;
      const auto* row = partition.row ? &*partition.row : nullptr;
      if (row != nullptr && row->state == PartitionState::kHalted)
        ++halted;
      else if (row != nullptr && row->state == PartitionState::kPaused)
        ++paused;
      else if (row == nullptr || !row->owned())
        ++unowned;
      else
        ++running;
      if (row != nullptr && row->owned())
        owners.insert(short_owner(row->owner));
      const auto own = partition.lag();
      lag = lag && own ? std::optional(*lag + *own) : std::nullopt;
      if (partition.rate)
        rate = rate.value_or(0) + *partition.rate;
      if (own != 0)
        eta = eta && partition.eta_seconds ? std::optional(std::max(*eta, *partition.eta_seconds))
                                           : std::nullopt;
    }
    [[nodiscard]] std::string owners_text() const {
      if (owners.empty())
        return "-";
      std::vector<std::string> first;
      for (const auto& owner : owners) {
        if (first.size() < kMostOwners)
          first.push_back(owner);
      }
      auto text = fmt::format("{}", fmt::join(first, ", "));
      if (owners.size() > first.size())
        text += fmt::format(", {} more", owners.size() - first.size());
      return text;
    }
  };

  void add_topics() {
    std::map<std::string, Topic> by_name;
    for (const auto& partition : status_.partitions)
      by_name[partition.partition.topic].add(partition);
    if (by_name.empty())
      return;
    std::vector<std::pair<std::string, Topic>> topics(by_name.begin(), by_name.end());
    const bool all = view_.all || topics.size() <= kMostTopics;
    if (!all) {
      std::ranges::stable_sort(topics, [](const auto& one, const auto& other) {
        return std::tuple(one.second.halted, one.second.unowned, one.second.paused,
                          one.second.lag.value_or(0)) >
               std::tuple(other.second.halted, other.second.unowned, other.second.paused,
                          other.second.lag.value_or(0));
      });
    }
    Table table({{"TOPIC"},
                 {"PARTITIONS", Align::kRight},
                 {"RUNNING", Align::kRight},
                 {"HALTED", Align::kRight},
                 {"PAUSED", Align::kRight},
                 {"UNOWNED", Align::kRight},
                 {"LAG", Align::kRight},
                 {"RATE", Align::kRight},
                 {"ETA", Align::kRight},
                 {"OWNERS"}});
    const auto most = all ? topics.size() : kMostTopics;
    const bool asked = status_.postgres_problem.empty();
    const auto figure = [&](std::int64_t number) { return asked ? grouped(number) : "?"; };
    for (std::size_t i = 0; i < most; ++i) {
      const auto& [name, topic] = topics[i];
      table.add({name, grouped(topic.partitions), figure(topic.running), figure(topic.halted),
                 figure(topic.paused), figure(topic.unowned), topic.lag ? grouped(*topic.lag) : "?",
                 rate_text(topic.rate), eta_text(topic.eta, topic.rate),
                 asked ? topic.owners_text() : "?"});
    }
    add_rows(table, Kind::kTopic);
    if (most < topics.size())
      add(Kind::kSection, omitted_line(topics.size() - most, "more topic", "more topics"));
    add(Kind::kSection, fmt::format("Each partition with OFFSET, END, and OWNER: {}\n",
                                    command("status", " --partitions")));
  }

  void add_partitions() {
    if (status_.partitions.empty())
      return;
    Table table({{"TOPIC"},
                 {"PARTITION", Align::kRight},
                 {"STATE"},
                 {"OFFSET", Align::kRight},
                 {"END", Align::kRight},
                 {"LAG", Align::kRight},
                 {"RATE", Align::kRight},
                 {"ETA", Align::kRight},
                 {"FOR", Align::kRight},
                 {"OWNER"}});
    const bool asked = status_.postgres_problem.empty();
    for (const auto& partition : status_.partitions) {
      const auto& row = partition.row;
      const std::string none = asked ? "-" : "?";
      const auto state =
          !row ? (asked ? "unowned" : "?")
          : partition.concern == Concern::kStalled || partition.concern == Concern::kBlocked
              ? std::string(to_string(*partition.concern))
              : state_text(*row);
      table.add({partition.partition.topic, std::to_string(partition.partition.partition), state,
                 row ? offset_text(*row) : none, known_text(partition.end),
                 known_text(partition.lag()), rate_text(partition.rate),
                 eta_text(partition.eta_seconds, partition.rate),
                 row ? age_text(status_, row->state_since) : none,
                 row ? (terminal_.columns > 0 ? short_owner(owner_text(*row)) : owner_text(*row))
                     : none});
    }
    add_rows(table, Kind::kPartition);
  }

  void add_rows(const Table& table, Kind kind) {
    auto lines = table.lines(terminal_.columns);
    auto& heading = lines.front();
    heading.pop_back();
    add(Kind::kHeading, '\n' + painted(terminal_, Color::kBold, heading) + '\n');
    for (std::size_t i = 1; i < lines.size(); ++i)
      add(kind, lines[i]);
  }

  const Status& status_;
  const StatusView& view_;
  const Terminal& terminal_;
  std::vector<StatusBlock> blocks_;
};

}  // namespace

std::vector<StatusBlock> status_blocks(const Status& status, const StatusView& view) {
  return Renderer(status, view).blocks();
}

std::string status_text(const Status& status, const StatusView& view) {
  std::string text;
  for (const auto& block : status_blocks(status, view))
    text += block.text;
  return text;
}

}  // namespace pawl::cli
