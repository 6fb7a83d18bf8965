#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "dashboard/pages/parts.hpp"
#include "engine/conditions.hpp"
#include "ledger/rows.hpp"

namespace pawl::dashboard {
namespace {

using ledger::PartitionState;

std::string rate_text(const std::optional<double>& rate) {
  if (!rate)
    return "<span class=\"unknown\">unknown</span>";
  if (*rate > 0 && *rate < 10)
    return fmt::format("{:.1f}/s", *rate);
  return grouped(static_cast<std::int64_t>(std::llround(*rate))) + "/s";
}

std::vector<std::optional<double>> as_numbers(
    const std::vector<std::optional<std::int64_t>>& values) {
  std::vector<std::optional<double>> numbers;
  numbers.reserve(values.size());
  for (const auto& value : values)
    numbers.push_back(value ? std::optional(static_cast<double>(*value)) : std::nullopt);
  return numbers;
}

std::string concern_html(const PartitionLine& line) {
  using cli::Concern;
  const auto& row = line.row;
  switch (line.concern()) {
    case Concern::kHalted:
      return badge("bad", "halted");
    case Concern::kUnowned:
      return badge("warn", "unowned") +
             (row.state == PartitionState::kPaused ? " " + badge("warn", "paused") : "");
    case Concern::kPaused:
      return badge("warn", "paused");
    case Concern::kRetrying:
      return badge("warn", fmt::format("retrying, {} failed attempts",
                                       std::max(row.attempts, row.ahead.attempts)));
    case Concern::kBlocked:
      return badge("warn", "blocked");
    case Concern::kProbation:
      return badge("warn", "probation");
    case Concern::kStalled:
      return badge("warn", "stalled");
    case Concern::kNone:
      break;
  }
  return badge("good", "running");
}

/// Links to the forms that confirm.
std::string partition_buttons(const ledger::RegisterRow& row) {
  std::string text;
  const auto button = [&](const std::string& action, const std::string& name) {
    auto query = of_partition(row.partition);
    query["do"] = action;
    text += fmt::format("<a class=\"button\" href=\"/partition{}\" aria-label=\"{} {}\">{}</a> ",
                        escape(to_query(query)), name, place_text(row.partition), name);
  };
  if (row.state != PartitionState::kRunning)
    button("resume", "Resume…");
  if (row.state != PartitionState::kPaused)
    button("pause", "Pause…");
  if (row.state == PartitionState::kHalted && row.halt.message_offset)
    button("skip", "Skip…");
  return text;
}

std::string halts_html(const Frame& frame, const PartitionsPage& page) {
  std::string text;
  for (const auto& line : page.lines) {
    const auto& row = line.row;
    if (row.state != PartitionState::kHalted)
      continue;
    text += fmt::format(
        "<article class=\"halt\"><h3>{} {}</h3><p class=\"why\">{}</p><p class=\"meta\">{}{} since "
        "{}</p><p>{}</p></article>\n",
        link("/partition", of_partition(row.partition), place_text(row.partition)),
        badge("bad", "halted"), escape(line.halt), escape(row.halt.kind),
        row.halt.message_offset ? fmt::format(", offset {}", *row.halt.message_offset) : "",
        time_html(row.state_since), frame.actor ? partition_buttons(row) : "");
  }
  return text.empty() ? text : "<section><h2>Halts</h2>\n" + text + "</section>\n";
}

std::string condition_badge(const Condition& condition) {
  if (!condition.lasting)
    return badge("warn", "waits");
  switch (condition.kind) {
    case Condition::Kind::kRemoteServiceUnreachable:
    case Condition::Kind::kKafkaUnreachable:
      return badge("bad", "unreachable");
    case Condition::Kind::kPartitionBlocked:
      break;
  }
  return badge("bad", "blocked");
}

/// The conditions that messages of live processes wait for, in the words of `pawl status`.
std::string conditions_html(const std::vector<ledger::SharedCondition>& conditions) {
  std::string text;
  for (const auto& [condition, owners] : conditions) {
    const auto what = escape(condition.subject);
    text += fmt::format(
        "<article class=\"halt\"><p class=\"why\">{} {} {}.</p><p class=\"meta\">Reported by "
        "{}</p></article>\n",
        condition_badge(condition),
        condition.topic.empty()
            ? what
            : link("/partition", of_partition({condition.topic, condition.partition}), what),
        escape(engine::text_of(condition)), escape(fmt::format("{}", fmt::join(owners, ", "))));
  }
  return text.empty() ? text : "<section><h2>Conditions</h2>\n" + text + "</section>\n";
}

std::string partition_confirm(const Frame& frame, const PartitionPage& page) {
  const auto& row = page.line.row;
  const auto name = place_text(row.partition);
  auto inputs = hidden("topic", row.partition.topic) +
                hidden("partition", std::to_string(row.partition.partition)) +
                hidden("do", page.action) +
                hidden("seen", fmt::format("{}@{}", ledger::to_string(row.state), row.state_since));
  const auto back = "/partition" + to_query(of_partition(row.partition));
  if (page.action == "resume" && row.state != PartitionState::kRunning) {
    return confirm_html(
        frame, "/partition", fmt::format("Resume {}?", name),
        row.state == PartitionState::kHalted
            ? fmt::format(
                  "It resumes at offset {}, where it halted. If the cause persists, it halts "
                  "again.",
                  row.stored.next())
            : fmt::format("It resumes at offset {}.", row.stored.next()),
        inputs, page.reason, "Resume", back);
  }
  if (page.action == "pause" && row.state != PartitionState::kPaused) {
    return confirm_html(frame, "/partition", fmt::format("Pause {}?", name),
                        fmt::format("It stops before offset {} until an operator resumes it. No "
                                    "message is lost.",
                                    row.stored.next()),
                        inputs, page.reason, "Pause", back);
  }
  if (page.action == "skip" && row.halt.message_offset) {
    const auto offset = *row.halt.message_offset;
    inputs += hidden("offset", std::to_string(offset));
    return confirm_html(frame, "/partition", fmt::format("Skip {}@{}?", name, offset),
                        "The message is never applied, and the partition resumes after it. pawl "
                        "reads the message from Kafka and stores it in pawl.skipped_messages.",
                        inputs, page.reason, "Skip message", back);
  }
  return {};
}

}  // namespace

std::string sparkline(const std::vector<std::optional<double>>& all) {
  // No more than eyes tell apart: a page may have thousands of lines.
  constexpr std::size_t kMostPoints = 45;
  std::vector<std::optional<double>> values;
  const auto step = (all.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t i = all.size(); step > 0 && i > 0; i -= std::min(i, step))
    values.push_back(all[i - 1]);
  std::ranges::reverse(values);

  constexpr double kWidth = 120;
  constexpr double kHeight = 24;
  double most = 0;
  for (const auto& value : values)
    most = std::max(most, value.value_or(0));
  if (values.size() < 2)
    return {};
  std::string lines;
  std::string points;
  int count = 0;
  const auto end_line = [&] {
    if (count > 1)
      lines += fmt::format("<polyline points=\"{}\"/>", points);
    points.clear();
    count = 0;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      end_line();
      continue;
    }
    const auto x = kWidth * static_cast<double>(i) / static_cast<double>(values.size() - 1);
    const auto y = kHeight - 1 - (most > 0 ? (kHeight - 2) * *values[i] / most : 0);
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
    ++count;
  }
  end_line();
  if (lines.empty())
    return {};
  return fmt::format(
      "<svg class=\"spark\" viewBox=\"0 0 120 24\" preserveAspectRatio=\"none\" "
      "aria-hidden=\"true\" focusable=\"false\">{}</svg>",
      lines);
}

std::string partitions_html(const Frame& frame, const PartitionsPage& page) {
  if (!page.known) {
    return in_frame(frame, "Partitions",
                    "<p class=\"nothing\">This database does not contain the consumer yet. It is "
                    "created when the consumer first runs.</p>");
  }
  const auto bad_if = [](std::size_t number, const char* kind) {
    return number > 0 ? std::string(kind) : std::string();
  };
  const auto count_tile = [&](const char* name, std::size_t number, const char* kind) {
    return tile(name, grouped(static_cast<std::int64_t>(number)), bad_if(number, kind));
  };
  std::string content = "<div class=\"tiles\">";
  content += count_tile("Partitions", page.partitions, "");
  content += count_tile("Halted", page.counts.halted, "bad");
  content += count_tile("Unowned", page.counts.unowned, "warn");
  content += count_tile("Paused", page.counts.paused, "warn");
  for (const auto& [name, number] : {std::pair{"Retrying", page.counts.retrying},
                                     {"On probation", page.counts.on_probation},
                                     {"Stalled", page.counts.stalled}}) {
    if (number > 0)
      content += count_tile(name, number, "warn");
  }
  content += tile("Lag", grouped_or_unknown(page.lag), "", sparkline(as_numbers(page.total.lags)));
  content += tile("Rate", rate_text(page.total.rate), "", sparkline(page.total.rates));
  const auto letters_tile = [&](const std::string& name, std::int64_t letters, const Fields& which,
                                const char* mark) {
    content += tile(
        name,
        link("/dead-letters", which, (page.letters.more ? "at least " : "") + grouped(letters)),
        bad_if(static_cast<std::size_t>(letters), mark));
  };
  letters_tile("Dead letters", page.letters.dead, {{"status", "dead"}}, "bad");
  if (page.letters.retry_later > 0)
    letters_tile("Scheduled retries", page.letters.retry_later, {{"status", "scheduled"}}, "warn");
  if (page.letters.parked > 0)
    letters_tile("Parked messages", page.letters.parked, {{"status", "parked"}}, "warn");
  content += "</div>\n";
  for (const auto& problem : page.problems)
    content += fmt::format("<p class=\"message problem\">{}</p>", escape(problem));
  content += conditions_html(page.conditions);
  content += halts_html(frame, page);
  content += fmt::format(
      "<section><h2>All partitions</h2><form class=\"filter\" method=\"get\" action=\"/\" "
      "role=\"search\">{}<label>State <select name=\"state\">{}{}{}{}{}</select></label>"
      "<button>Filter</button></form>\n",
      input_html("Topic", "topic", page.topic, "type=\"search\" data-slash"),
      option_html("", "all", page.state), option_html("problem", "with problems", page.state),
      option_html("halted", "halted", page.state), option_html("unowned", "unowned", page.state),
      option_html("paused", "paused", page.state));
  TableHtml table("Partitions, those with problems first");
  table.column("Partition");
  table.column("State");
  table.column("Lag", "number");
  table.column("Lag over time");
  table.column("Rate", "number");
  table.column("Rate over time");
  table.column("Offset", "number");
  table.column("Updated");
  if (frame.actor)
    table.column("Actions");
  table.column("Owner");
  for (const auto& line : page.lines) {
    const auto& row = line.row;
    std::vector<std::string> cells{
        link("/partition", of_partition(row.partition), place_text(row.partition)),
        concern_html(line),
        grouped_or_unknown(line.course.lag),
        sparkline(as_numbers(line.course.lags)),
        rate_text(line.course.rate),
        sparkline(line.course.rates),
        grouped(row.stored.next()),
        time_html(row.updated_at)};
    if (frame.actor)
      cells.push_back("<span class=\"buttons\">" + partition_buttons(row) + "</span>");
    cells.push_back(row.owned() ? escape(row.owner) : "–");
    table.row(cells);
  }
  content += table.text("No partition matches the filter.");
  if (page.left_out > 0) {
    content += fmt::format("<p class=\"meta\">{} more are not shown. Use the filter.</p>",
                           grouped(static_cast<std::int64_t>(page.left_out)));
  }
  content +=
      page.total.period.count() > 0
          ? fmt::format(
                "<p class=\"meta\">Rates and charts cover the last {} s. This process takes a "
                "sample every {} s. Each lag is from the last sample, at {}.</p>",
                page.total.period.count(), Samples::kInterval.count(), instant_html(page.total.at))
          : fmt::format(
                "<p class=\"meta\">Rates and charts are not available yet. This process takes a "
                "sample every {} s.</p>",
                Samples::kInterval.count());
  return in_frame(frame, "Partitions", content + "</section>\n");
}

std::string partition_html(const Frame& frame, const PartitionPage& page) {
  const auto& row = page.line.row;
  std::string content;
  const auto confirm = frame.actor ? partition_confirm(frame, page) : std::string();
  content += confirm;
  if (confirm.empty() && frame.actor)
    content += "<p class=\"buttons\">" + partition_buttons(row) + "</p>\n";
  content += conditions_html(page.conditions);
  Facts facts;
  facts.add("State", concern_html(page.line) + " since " + time_html(row.state_since));
  if (!row.operator_reason.empty() && frame.actor)
    facts.add("Reason", "<span class=\"why\">" + escape(row.operator_reason) + "</span>");
  if (row.state == PartitionState::kHalted) {
    facts.add("Halt", "<span class=\"why\">" + escape(page.line.halt) + "</span>");
    facts.add("Halt kind", dash_if_empty(row.halt.kind));
    facts.add("Halt code", dash_if_empty(row.halt.code));
    facts.add("Halted at offset",
              row.halt.message_offset ? grouped(*row.halt.message_offset) : "–");
  }
  facts.add("Offset", grouped(row.stored.next()));
  const auto& course = page.line.course;
  const auto seen_at = course.at ? " at " + instant_html(course.at) : std::string();
  facts.add("End", grouped_or_unknown(course.end) + seen_at);
  facts.add("Lag",
            grouped_or_unknown(course.lag) + seen_at + " " + sparkline(as_numbers(course.lags)));
  facts.add(
      "Rate",
      rate_text(course.rate) +
          (course.period.count() > 0 ? fmt::format(" over {} s ", course.period.count()) : " ") +
          sparkline(course.rates));
  facts.add("Owner", row.owned() ? escape(row.owner) : "–");
  facts.add("Applied", grouped(row.applied));
  facts.add("Duplicates", grouped(row.duplicates));
  facts.add("Skipped", grouped(row.skipped));
  facts.add("Dead letters and retries",
            link("/dead-letters", of_partition(row.partition), grouped(row.dead)));
  facts.add("Parked", grouped(row.parked));
  facts.add("Updated", time_html(row.updated_at));
  content += facts.text();
  content +=
      "<section><h2>History</h2>" +
      (page.history_problem.empty()
           ? history_table(frame, page.history, false)
           : "<p class=\"nothing\">The history cannot be read: " + escape(page.history_problem) +
                 ". The role lacks the privilege SELECT on pawl.offset_history.</p>") +
      "</section>";
  return in_frame(frame, cli::name_of(row.partition), content);
}

}  // namespace pawl::dashboard
