#include "dashboard/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "console/decoded.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "ledger/rows.hpp"
#include "message/hexadecimal.hpp"

namespace pawl::dashboard {
namespace {

using ledger::PartitionState;

/// Of a value on a page.
constexpr std::size_t kMostShown = 65536;
constexpr std::size_t kShortText = 160;

std::string link(const std::string& path, const Fields& query, const std::string& text,
                 const std::string& kind = "") {
  return fmt::format("<a href=\"{}{}\"{}>{}</a>", path, escape(to_query(query)),
                     kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), text);
}

std::string hidden(const std::string& name, const std::string& value) {
  return fmt::format("<input type=\"hidden\" name=\"{}\" value=\"{}\">", name, escape(value));
}

std::string short_text(const std::string& text) {
  const auto line = text.substr(0, text.find('\n'));
  const auto shown = cli::head(line, kShortText);
  return escape(shown) + (shown.size() < text.size() ? "…" : "");
}

std::string time_html(const std::string& rfc3339) {
  if (rfc3339.empty())
    return "–";
  return fmt::format("<time datetime=\"{0}\">{0}</time>", escape(rfc3339));
}

std::string dash_if_empty(const std::string& text) {
  return text.empty() ? "–" : escape(text);
}

std::string badge(const std::string& kind, const std::string& text) {
  return fmt::format("<span class=\"badge {}\">{}</span>", kind, text);
}

struct NavigationEntry {
  const char* path;
  const char* text;
};
constexpr NavigationEntry kNavigation[] = {{"/", "Partitions"},   {"/letters", "Dead letters"},
                                           {"/keys", "Keys"},     {"/outbox", "Outbox"},
                                           {"/leases", "Leases"}, {"/history", "History"}};

std::string who(const Frame& frame) {
  if (frame.actor) {
    auto text = fmt::format("<span>acting as <b>{}</b></span>", escape(frame.actor->name));
    if (frame.actor->by_token) {
      text += "<form method=\"post\" action=\"/sign-out\">" +
              hidden("form_key", frame.actor->form_key) + "<button>Sign out</button></form>";
    }
    return text;
  }
  if (frame.may_sign_in)
    return "<span>read-only</span><a href=\"/sign-in\">Sign in to act</a>";
  return frame.may_act ? "<span>read-only: the proxy names nobody</span>"
                       : "<span>read-only</span>";
}

std::string in_frame(const Frame& frame, const std::string& title, const std::string& content,
                     bool fresh = false) {
  std::string navigation;
  for (const auto& entry : kNavigation) {
    navigation += fmt::format("<a href=\"{}\"{}>{}</a>", entry.path,
                              frame.path == entry.path ? " aria-current=\"page\"" : "", entry.text);
  }
  std::string messages;
  if (!frame.done.empty())
    messages += fmt::format("<p class=\"message done\" role=\"status\">{}</p>", escape(frame.done));
  if (!frame.problem.empty())
    messages +=
        fmt::format("<p class=\"message problem\" role=\"alert\">{}</p>", escape(frame.problem));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>{0} – {1}</title>"
      "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/assets/style.css\">"
      "<script src=\"/assets/script.js\" defer></script></head>\n<body>"
      "<a class=\"skip\" href=\"#main\">To the content</a>"
      "<header><div class=\"brand\"><b>pawl</b> <span>{2}/{1}</span></div>"
      "<nav aria-label=\"Pages\">{3}</nav><div class=\"who\">{4}</div></header>\n"
      "<main id=\"main\" tabindex=\"-1\"{5}><h1>{0}</h1>\n{6}{7}</main></body></html>\n",
      escape(title), escape(frame.group), escape(frame.cluster), navigation, who(frame),
      fresh ? " data-refresh=\"10\"" : "", messages, content);
}

/// A table that scrolls by itself on a narrow screen; cells are HTML.
class TableHtml {
 public:
  explicit TableHtml(const std::string& caption) {
    text_ = fmt::format(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\"><table>"
        "<caption>{0}</caption><thead><tr>",
        caption);
  }
  /// `kind`: "number", "wide" or nothing.
  void column(const std::string& name, const std::string& kind = "") {
    text_ += fmt::format("<th scope=\"col\"{}>{}</th>", of(kind), name);
    kinds_.push_back(kind);
  }
  void row(const std::vector<std::string>& cells) {
    if (!rows_)
      text_ += "</tr></thead><tbody>\n";
    rows_ = true;
    text_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i)
      text_ += fmt::format("<td{}>{}</td>", of(kinds_[i]), cells[i]);
    text_ += "</tr>\n";
  }
  std::string text(const std::string& nothing) {
    if (!rows_)
      return fmt::format("<p class=\"nothing\">{}</p>", nothing);
    return text_ + "</tbody></table></div>\n";
  }

 private:
  static std::string of(const std::string& kind) {
    return kind.empty() ? "" : fmt::format(" class=\"{}\"", kind);
  }
  std::string text_;
  std::vector<std::string> kinds_;
  bool rows_ = false;
};

class Facts {
 public:
  void add(const std::string& name, const std::string& html) {
    text_ += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html);
  }
  [[nodiscard]] std::string text() const { return "<dl class=\"facts\">" + text_ + "</dl>\n"; }

 private:
  std::string text_;
};

std::string tile(const std::string& name, const std::string& value, const std::string& kind = "",
                 const std::string& more = "") {
  return fmt::format("<div class=\"tile {}\"><span>{}</span><b>{}</b>{}</div>", kind, name, value,
                     more);
}

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
      return badge("warn", "no owner") +
             (row.state == PartitionState::kPaused ? " " + badge("warn", "paused") : "");
    case Concern::kPaused:
      return badge("warn", "paused");
    case Concern::kRetrying:
      return badge("warn", fmt::format("retrying, {} failed", row.attempts));
    case Concern::kProbation:
      return badge("warn", "probation");
    case Concern::kStalled:
      return badge("warn", "stalled");
    case Concern::kNone:
      break;
  }
  return badge("good", "running");
}

Fields of_partition(const TopicPartition& partition) {
  return {{"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
}

std::string place_text(const TopicPartition& partition) {
  return escape(cli::name_of(partition));
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
  if (row.state == PartitionState::kHalted && row.halt_offset)
    button("skip", "Skip…");
  return text;
}

std::string option_html(const std::string& value, const std::string& text,
                        const std::string& chosen) {
  return fmt::format("<option value=\"{}\"{}>{}</option>", value,
                     value == chosen ? " selected" : "", text);
}

std::string input_html(const std::string& label, const std::string& name, const std::string& value,
                       const std::string& more = "") {
  return fmt::format("<label>{} <input name=\"{}\" value=\"{}\" {}></label>", label, name,
                     escape(value), more);
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
        badge("bad", "halted"), escape(row.reason), escape(row.halt_kind),
        row.halt_offset ? fmt::format(", offset {}", *row.halt_offset) : "",
        time_html(row.state_since), frame.actor ? partition_buttons(row) : "");
  }
  return text.empty() ? text : "<section><h2>Halts</h2>\n" + text + "</section>\n";
}

std::string history_table(const std::vector<ledger::HistoryRow>& rows, bool with_place) {
  TableHtml table(with_place ? "What was done" : "What was done to this partition");
  table.column("Time");
  if (with_place)
    table.column("Partition");
  table.column("Action");
  table.column("From", "number");
  table.column("To", "number");
  table.column("Reason", "wide");
  table.column("Database role");
  for (const auto& row : rows) {
    std::vector<std::string> cells{time_html(row.happened_at)};
    if (with_place)
      cells.push_back(link("/partition", of_partition(row.partition), place_text(row.partition)));
    cells.push_back(escape(row.action));
    cells.push_back(row.from ? std::to_string(*row.from) : "–");
    cells.push_back(row.to ? std::to_string(*row.to) : "–");
    cells.push_back(dash_if_empty(row.reason));
    cells.push_back(escape(row.actor));
    table.row(cells);
  }
  return table.text("Nothing yet.");
}

/// The form that confirms an action. `inputs`: hidden fields, and whatever else it asks.
std::string confirm_html(const Frame& frame, const std::string& path, const std::string& title,
                         const std::string& what, const std::string& inputs,
                         const std::string& reason, const std::string& button,
                         const std::string& back) {
  return fmt::format(
      "<section class=\"confirm\" aria-labelledby=\"confirm\"><h2 id=\"confirm\">{}</h2><p>{}</p>"
      "<form method=\"post\" action=\"{}\" data-once>{}{}"
      "<label>Reason <input name=\"reason\" value=\"{}\" required maxlength=\"500\" autofocus "
      "autocomplete=\"off\"></label>"
      "<p class=\"meta\">It is kept in the history, as by {}.</p>"
      "<p><button class=\"primary\">{}</button> <a class=\"button\" href=\"{}\">Cancel</a></p>"
      "</form></section>\n",
      title, what, path, hidden("form_key", frame.actor->form_key), inputs, escape(reason),
      escape(frame.actor->name), button, escape(back));
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
            ? fmt::format("It goes on with offset {}, the message that it halted at. If the cause "
                          "is still there it halts again.",
                          row.stored.next())
            : fmt::format("It goes on with offset {}.", row.stored.next()),
        inputs, page.reason, "Resume", back);
  }
  if (page.action == "pause" && row.state != PartitionState::kPaused) {
    return confirm_html(frame, "/partition", fmt::format("Pause {}?", name),
                        fmt::format("It stops behind offset {}, until somebody resumes it. "
                                    "Nothing is lost.",
                                    row.stored.last()),
                        inputs, page.reason, "Pause", back);
  }
  if (page.action == "skip" && row.halt_offset) {
    inputs += hidden("offset", std::to_string(*row.halt_offset));
    return confirm_html(frame, "/partition",
                        fmt::format("Skip offset {} of {}?", *row.halt_offset, name),
                        "The message is left out for good, and the partition goes on behind it. "
                        "The message is kept in pawl.skipped_messages. Kafka is asked for it.",
                        inputs, page.reason, "Skip the message", back);
  }
  return {};
}

std::string letter_status(const ledger::DeadLetter& letter) {
  if (letter.status == "dead")
    return badge("bad", "dead");
  if (letter.status == "parked")
    return badge("warn", "parked");
  return badge("good", escape(letter.status));
}

std::string part_html(const std::string& name, const std::optional<std::string>& bytes) {
  const auto decoded = cli::decode(bytes, kMostShown);
  if (decoded.form == "null")
    return fmt::format("<h3>{}</h3><p class=\"nothing\">null</p>", name);
  return fmt::format("<h3>{} <small>{}, {} bytes{}</small></h3><pre tabindex=\"0\">{}</pre>", name,
                     escape(decoded.form), grouped(static_cast<std::int64_t>(decoded.bytes)),
                     decoded.cut ? ", cut" : "", escape(decoded.text));
}

std::string letter_confirm(const Frame& frame, const LetterPage& page) {
  const auto& letter = page.letter;
  auto inputs = hidden("id", std::to_string(letter.id)) + hidden("do", page.action);
  const auto back = fmt::format("/letter?id={}", letter.id);
  if (page.action == "replay") {
    if (page.needs_force) {
      inputs +=
          "<p class=\"message problem\">It needs to be said twice, for the reason above.</p>"
          "<label class=\"check\"><input type=\"checkbox\" name=\"force\" value=\"yes\"> Replay it "
          "all "
          "the same: I have looked for its effects</label>";
    }
    return confirm_html(frame, "/letter", fmt::format("Replay dead letter {}?", letter.id),
                        "Its message goes through the handler of the configuration of this "
                        "process, once in effect. If it fails again it stays here.",
                        inputs, page.reason, "Replay", back);
  }
  if (page.action == "discard") {
    return confirm_html(frame, "/letter", fmt::format("Discard dead letter {}?", letter.id),
                        "Its message is given up for good. The letter stays in the table until "
                        "its retention ends.",
                        inputs, page.reason, "Discard", back);
  }
  return {};
}

std::string instant_html(const std::optional<ledger::Instant>& time) {
  return time ? time_html(ledger::to_string(*time)) : "–";
}

/// A key is content of a message.
std::string key_html(const Frame& frame, const std::string& key) {
  return frame.actor ? escape(std::string(cli::head(key, kShortText)))
                     : "<span class=\"unknown\">sign in</span>";
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
                    "<p class=\"nothing\">This database knows no such consumer yet. It is made "
                    "when the consumer first runs.</p>",
                    true);
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
  content += count_tile("Without owner", page.counts.unowned, "warn");
  content += count_tile("Paused", page.counts.paused, "warn");
  for (const auto& [name, number] : {std::pair{"Retrying", page.counts.retrying},
                                     {"On probation", page.counts.on_probation},
                                     {"Stalled", page.counts.stalled}}) {
    if (number > 0)
      content += count_tile(name, number, "warn");
  }
  content += tile("Lag", grouped_or_unknown(page.lag), "", sparkline(as_numbers(page.total.lags)));
  content += tile("Rate", rate_text(page.total.rate), "", sparkline(page.total.rates));
  const bool more = page.letters >= page.letters_most;
  content += tile(
      "Dead letters",
      link("/letters", {}, (more ? "over " : "") + grouped(more ? page.letters - 1 : page.letters)),
      bad_if(static_cast<std::size_t>(page.letters), "bad"));
  content += "</div>\n";
  if (!page.kafka_problem.empty()) {
    content += fmt::format(
        "<p class=\"message problem\">Kafka does not say where its logs end, so no lag is known: "
        "{}</p>",
        escape(page.kafka_problem));
  }
  content += halts_html(frame, page);
  content += fmt::format(
      "<section><h2>All partitions</h2><form class=\"filter\" method=\"get\" action=\"/\" "
      "role=\"search\">{}<label>State <select name=\"state\">{}{}{}{}{}</select></label>"
      "<button>Filter</button></form>\n",
      input_html("Topic", "topic", page.topic, "type=\"search\" data-slash"),
      option_html("", "all", page.state), option_html("trouble", "any trouble", page.state),
      option_html("halted", "halted", page.state), option_html("unowned", "no owner", page.state),
      option_html("paused", "paused", page.state));
  TableHtml table("Partitions, those in trouble first");
  table.column("Partition");
  table.column("State");
  table.column("Lag", "number");
  table.column("Lag over time");
  table.column("Rate", "number");
  table.column("Rate over time");
  table.column("Next offset", "number");
  table.column("Last change");
  if (frame.actor)
    table.column("Actions");
  table.column("Owner");
  for (const auto& line : page.lines) {
    const auto& row = line.row;
    std::vector<std::string> cells{
        link("/partition", of_partition(row.partition), place_text(row.partition)),
        concern_html(line),
        grouped_or_unknown(line.lag()),
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
  content += table.text("No partition is like that.");
  if (page.left_out > 0) {
    content += fmt::format("<p class=\"meta\">{} more are left out; the filter finds them.</p>",
                           grouped(static_cast<std::int64_t>(page.left_out)));
  }
  content += page.total.period.count() > 0
                 ? fmt::format(
                       "<p class=\"meta\">Rates and lines are of the last {} s that this "
                       "process has looked, every {} s. Lag is as Kafka said then.</p>",
                       page.total.period.count(), Samples::kInterval.count())
                 : fmt::format(
                       "<p class=\"meta\">Rates and lines are not known yet: this process "
                       "has just begun to look, every {} s.</p>",
                       Samples::kInterval.count());
  return in_frame(frame, "Partitions", content + "</section>\n", true);
}

std::string partition_html(const Frame& frame, const PartitionPage& page) {
  const auto& row = page.line.row;
  std::string content;
  const auto confirm = frame.actor ? partition_confirm(frame, page) : std::string();
  content += confirm;
  if (confirm.empty() && frame.actor)
    content += "<p class=\"buttons\">" + partition_buttons(row) + "</p>\n";
  Facts facts;
  facts.add("State", concern_html(page.line) + " since " + time_html(row.state_since));
  if (!row.reason.empty())
    facts.add("Reason", "<span class=\"why\">" + escape(row.reason) + "</span>");
  if (row.state == PartitionState::kHalted) {
    facts.add("Kind of halt", dash_if_empty(row.halt_kind));
    facts.add("Halted at offset", row.halt_offset ? grouped(*row.halt_offset) : "–");
  }
  facts.add("Next offset", grouped(row.stored.next()));
  facts.add("End of the log", grouped_or_unknown(page.line.course.end));
  facts.add("Lag", grouped_or_unknown(page.line.lag()) + " " +
                       sparkline(as_numbers(page.line.course.lags)));
  facts.add("Rate", rate_text(page.line.course.rate) +
                        (page.line.course.period.count() > 0
                             ? fmt::format(" over {} s ", page.line.course.period.count())
                             : " ") +
                        sparkline(page.line.course.rates));
  facts.add("Owner", row.owned() ? escape(row.owner) : "none");
  facts.add("Applied", grouped(row.applied));
  facts.add("Duplicates", grouped(row.duplicates));
  facts.add("Skipped", grouped(row.skipped));
  facts.add("Dead", link("/letters", of_partition(row.partition), grouped(row.dead)));
  facts.add("Parked", grouped(row.parked));
  facts.add("Last change", time_html(row.updated_at));
  content += facts.text();
  content += "<section><h2>History</h2>" +
             (page.history_problem.empty()
                  ? history_table(page.history, false)
                  : "<p class=\"nothing\">It cannot be read: " + escape(page.history_problem) +
                        ". The role lacks SELECT on pawl.offset_history.</p>") +
             "</section>";
  return in_frame(frame, fmt::format("{} [{}]", row.partition.topic, row.partition.partition),
                  content);
}

std::string letters_html(const Frame& frame, const LettersPage& page) {
  const auto value = [&](const std::string& name) { return field(page.filters, name); };
  const auto status = value("status");
  std::string content;
  if (!page.problem.empty())
    content +=
        fmt::format("<p class=\"message problem\" role=\"alert\">{}</p>", escape(page.problem));
  content += fmt::format(
      "<form class=\"filter\" method=\"get\" action=\"/letters\" role=\"search\">{}{}<label>Status "
      "<select name=\"status\">{}{}{}{}{}{}</select></label>{}{}{}{}{}"
      "<button>Search</button> <a class=\"button\" href=\"/letters\">Clear</a></form>\n",
      input_html("Topic", "topic", value("topic"), "data-slash"),
      input_html("Partition", "partition", value("partition"), "inputmode=\"numeric\" size=\"5\""),
      option_html("", "unresolved", status), option_html("dead", "dead", status),
      option_html("parked", "parked", status), option_html("replayed", "replayed", status),
      option_html("discarded", "discarded", status), option_html("all", "all", status),
      input_html("Reason", "reason", value("reason")),
      input_html("Handler", "handler", value("handler")),
      input_html("SQLSTATE", "sqlstate", value("sqlstate"),
                 "size=\"6\" maxlength=\"5\" title=\"All five characters, or the first two: the "
                 "class\""),
      input_html("Record key", "record_key", value("record_key"), "autocomplete=\"off\""),
      input_html("Idempotency key", "idempotency_key", value("idempotency_key"),
                 "autocomplete=\"off\""));
  TableHtml table("Dead letters, by topic, partition and offset");
  table.column("Letter", "number");
  table.column("Status");
  table.column("Message");
  table.column("Reason");
  table.column("Handler");
  table.column("SQLSTATE");
  table.column("Record key");
  table.column("Died");
  table.column("Error", "wide");
  for (const auto& letter : page.letters) {
    table.row({link("/letter", {{"id", std::to_string(letter.id)}}, std::to_string(letter.id)),
               letter_status(letter),
               fmt::format("{} {}", place_text(letter.partition), letter.offset),
               escape(letter.reason), dash_if_empty(letter.handler), dash_if_empty(letter.sqlstate),
               letter.record_key ? key_html(frame, *letter.record_key) : "–",
               time_html(letter.died_at), short_text(letter.error)});
  }
  content += table.text("No dead letter is like that.");
  content += "<p class=\"pages\">";
  if (!page.first)
    content += link("/letters", page.filters, "From the beginning", "button") + " ";
  if (page.next) {
    auto query = page.filters;
    query["after_topic"] = page.next->partition.topic;
    query["after_partition"] = std::to_string(page.next->partition.partition);
    query["after_offset"] = std::to_string(page.next->offset);
    query["after_id"] = std::to_string(page.next->id);
    content += link("/letters", query, "Next page", "button");
  }
  return in_frame(frame, "Dead letters", content + "</p>\n");
}

std::string letter_html(const Frame& frame, const LetterPage& page) {
  const auto& letter = page.letter;
  std::string content;
  const auto confirm =
      frame.actor && letter.unresolved() ? letter_confirm(frame, page) : std::string();
  content += confirm;
  if (confirm.empty() && frame.actor && letter.unresolved()) {
    const auto id = std::to_string(letter.id);
    content += "<p class=\"buttons\">" +
               link("/letter", {{"id", id}, {"do", "replay"}}, "Replay…", "button") + " " +
               link("/letter", {{"id", id}, {"do", "discard"}}, "Discard…", "button") + "</p>\n";
  }
  Facts facts;
  facts.add("Status", letter_status(letter));
  facts.add("Message",
            link("/partition", of_partition(letter.partition), place_text(letter.partition)) +
                fmt::format(" offset {}", letter.offset));
  facts.add("Reason", escape(letter.reason));
  facts.add("Error", "<span class=\"why\">" + escape(letter.error) + "</span>");
  facts.add("Handler", dash_if_empty(letter.handler));
  facts.add("SQLSTATE", dash_if_empty(letter.sqlstate));
  facts.add("Attempts", grouped(letter.attempts));
  facts.add("Replays that failed", grouped(letter.replays));
  facts.add("Died", time_html(letter.died_at));
  if (!letter.due_at.empty())
    facts.add("Tried again by itself",
              letter.due_at == "turn" ? "in its turn" : time_html(letter.due_at));
  if (!letter.resolved_at.empty()) {
    facts.add("Resolved", time_html(letter.resolved_at) + " by role " + escape(letter.resolved_by));
    facts.add("Resolution", dash_if_empty(letter.resolution));
  }
  facts.add("Bytes here", escape(letter.payload));
  content += facts.text();
  content += "<section><h2>What it carried</h2>\n";
  if (!frame.actor) {
    content += fmt::format("<p class=\"nothing\">Keys, values and headers are shown to who {}.</p>",
                           frame.may_sign_in ? "<a href=\"/sign-in\">signs in</a>"
                           : frame.may_act   ? "the proxy names"
                                             : "may act, which nobody may here: see "
                                               "monitoring.actions_token");
    return in_frame(frame, fmt::format("Dead letter {}", letter.id), content + "</section>\n");
  }
  if (!letter.error_detail.empty())
    content +=
        "<h3>Detail of the error</h3><pre tabindex=\"0\">" + escape(letter.error_detail) + "</pre>";
  if (letter.idempotency_key)
    content += "<h3>Idempotency key</h3><p>" +
               link("/keys", {{"key", *letter.idempotency_key}}, escape(*letter.idempotency_key)) +
               "</p>";
  content += part_html("Record key", letter.record_key);
  if (letter.payload == "complete" || letter.payload == "truncated") {
    content += part_html("Value", letter.record_value);
    if (!letter.headers.empty()) {
      TableHtml table("Headers");
      table.column("Name");
      table.column("Value", "wide");
      for (const auto& header : letter.headers)
        table.row({escape(header.name),
                   header.value ? escape(cli::decode(*header.value, kMostShown).text) : "null"});
      content += table.text("");
    }
  } else {
    content +=
        "<p class=\"nothing\">The value is not stored here; a replay reads it from Kafka, if "
        "it was not erased.</p>";
  }
  return in_frame(frame, fmt::format("Dead letter {}", letter.id), content + "</section>\n");
}

std::string keys_html(const Frame& frame, const std::optional<KeysPage>& page) {
  std::string content = fmt::format(
      "<form class=\"filter\" method=\"get\" action=\"/keys\" role=\"search\">{}"
      "<button>Look up</button></form>\n",
      input_html("Idempotency key", "key", page ? page->key : "",
                 "required size=\"40\" autocomplete=\"off\" data-slash"));
  if (!page)
    return in_frame(frame, "Keys", content);
  const auto rows = [&](const std::vector<ledger::KeyRow>& keys, const std::string& caption,
                        const std::string& nothing) {
    TableHtml table(caption);
    table.column("Scope");
    table.column("Consumer");
    table.column("Message");
    table.column("Claimed");
    table.column("Response", "wide");
    for (const auto& key : keys) {
      std::string response = "–";
      if (key.response_bytes > 0 || key.response) {
        response = frame.actor && key.response ? escape(cli::decode(*key.response, kMostShown).text)
                                               : fmt::format("{} bytes", key.response_bytes);
      }
      table.row({escape(key.scope), dash_if_empty(key.consumer),
                 key.topic.empty()
                     ? "–"
                     : fmt::format("{} {}", place_text({key.topic, key.partition}), key.offset),
                 time_html(key.created_at), response});
    }
    return table.text(nothing);
  };
  content += rows(page->keys, "Where the key was claimed",
                  "The key is not in the scopes of this consumer: no message with it was "
                  "processed, or its retention is over.");
  if (!page->elsewhere.empty())
    content += rows(page->elsewhere, "In other scopes of the database", "");
  if (!page->letters.empty()) {
    content += "<h2>Dead letters with it</h2><p>";
    for (const auto id : page->letters)
      content += link("/letter", {{"id", std::to_string(id)}}, std::to_string(id)) + " ";
    content += "</p>";
  }
  if (!page->leases.empty()) {
    content += "<h2>Calls under a lease</h2><ul>";
    for (const auto& lease : page->leases)
      content += fmt::format("<li>{}: {}, {} attempts</li>", escape(lease.scope),
                             ledger::to_string(lease.state), lease.attempts);
    content += "</ul>";
  }
  content += "<section><h2>Scopes of this consumer</h2><ul>";
  for (const auto& scope : page->scopes)
    content += fmt::format(
        "<li>{}{}</li>", escape(scope.name),
        scope.pruned_to.empty() ? "" : ", keys removed up to " + time_html(scope.pruned_to));
  return in_frame(frame, "Keys", content + "</ul></section>\n");
}

std::string outbox_html(const Frame& frame, const OutboxPage& page) {
  const auto& status = page.status;
  std::string content = "<div class=\"tiles\">";
  content += tile("Waiting", (status.more() ? "over " : "") + grouped(status.waiting()),
                  status.late() ? "bad" : "");
  content += tile("Oldest since", instant_html(status.oldest()), status.late() ? "bad" : "");
  content += tile("Set apart", grouped(status.set_apart), status.set_apart > 0 ? "bad" : "");
  content += tile("Publishing processes", grouped(static_cast<std::int64_t>(status.relays.size())),
                  status.waiting() > 0 && !status.relayed() ? "bad" : "");
  content += "</div>\n";
  for (const auto& relay : status.relays) {
    if (!relay.problem.empty())
      content += fmt::format("<p class=\"message problem\">{}: {}</p>", escape(relay.owner),
                             escape(relay.problem));
  }
  TableHtml lanes("Lanes");
  lanes.column("Lane", "number");
  lanes.column("Waiting", "number");
  lanes.column("Oldest since");
  lanes.column("Published", "number");
  lanes.column("Last published");
  lanes.column("Owner");
  for (const auto& lane : status.lanes) {
    lanes.row({std::to_string(lane.lane), (lane.more ? "over " : "") + grouped(lane.waiting),
               instant_html(lane.oldest), grouped(lane.published),
               instant_html(lane.last_published),
               lane.owner.empty()
                   ? "–"
                   : escape(lane.owner) + (lane.owner_late ? " " + badge("warn", "late") : "")});
  }
  content += "<section><h2>Lanes</h2>" + lanes.text("There is no lane.") + "</section>\n";
  TableHtml apart("Messages that were set apart");
  apart.column("Message", "number");
  apart.column("Topic");
  apart.column("Record key");
  apart.column("Written");
  apart.column("Failed");
  apart.column("Reason", "wide");
  for (const auto& message : page.set_apart) {
    apart.row({std::to_string(message.id), escape(message.topic),
               message.key ? key_html(frame, *message.key) : "–", instant_html(message.created),
               instant_html(message.failed), escape(message.reason)});
  }
  content += "<section><h2>Set apart</h2>" + apart.text("No message is set apart.");
  if (status.set_apart > static_cast<std::int64_t>(page.set_apart.size()))
    content += fmt::format("<p class=\"meta\">The first {} of {}.</p>", page.set_apart.size(),
                           status.set_apart);
  return in_frame(frame, "Outbox", content + "</section>\n", true);
}

std::string leases_html(const Frame& frame, const LeasesPage& page) {
  if (page.in_redis) {
    return in_frame(frame, "Leases",
                    "<p class=\"nothing\">leases.store is Redis, and this page asks PostgreSQL "
                    "alone: <code>pawl leases list</code> looks there.</p>");
  }
  std::string content = "<div class=\"tiles\">";
  content += tile("In hand", grouped(page.counts.in_hand));
  content += tile("Done, to be recorded", grouped(page.counts.done));
  content += tile("Unknown", grouped(page.counts.unknown), page.counts.unknown > 0 ? "bad" : "");
  content += tile("Lost", grouped(page.counts.losses), page.counts.losses > 0 ? "bad" : "");
  content += "</div>\n";
  TableHtml leases("Calls that have no outcome yet");
  leases.column("Scope");
  leases.column("Key");
  leases.column("State");
  leases.column("Attempts", "number");
  leases.column("Begun");
  leases.column("Until");
  leases.column("Message");
  leases.column("Owner");
  for (const auto& lease : page.leases) {
    leases.row(
        {escape(lease.scope), key_html(frame, lease.key),
         lease.state == ledger::LeaseState::kUnknown ? badge("bad", ledger::to_string(lease.state))
                                                     : std::string(ledger::to_string(lease.state)),
         std::to_string(lease.attempts), instant_html(lease.begun), instant_html(lease.until),
         fmt::format(
             "{} {}{}", place_text({lease.topic, lease.partition}), lease.offset,
             lease.dead_letter
                 ? ", letter " + link("/letter", {{"id", std::to_string(*lease.dead_letter)}},
                                      std::to_string(*lease.dead_letter))
                 : ""),
         dash_if_empty(lease.owner)});
  }
  content += "<section><h2>Calls</h2>" + leases.text("No call is without outcome.");
  if (page.leases.size() == page.most)
    content += fmt::format("<p class=\"meta\">The first {}; there may be more.</p>", page.most);
  content += "</section>\n";
  TableHtml losses("Calls that lost their lease");
  losses.column("Loss", "number");
  losses.column("Key");
  losses.column("Attempt", "number");
  losses.column("At");
  losses.column("Message");
  losses.column("The call");
  for (const auto& loss : page.losses) {
    losses.row({std::to_string(loss.id), key_html(frame, loss.key), std::to_string(loss.attempt),
                instant_html(loss.at),
                fmt::format("{} {}", place_text({loss.topic, loss.partition}), loss.offset),
                loss.returned ? "returned" : "did not return"});
  }
  content += "<section><h2>Lost</h2>" + losses.text("No call has lost its lease.");
  return in_frame(frame, "Leases", content + "</section>\n", true);
}

std::string history_html(const Frame& frame, const HistoryPage& page) {
  auto content = history_table(page.rows, true);
  if (page.more)
    content +=
        "<p class=\"pages\">" +
        link("/history", {{"before", std::to_string(page.rows.back().id)}}, "Older", "button") +
        "</p>";
  return in_frame(frame, "History", content);
}

std::string sign_in_html(const Frame& frame, const std::string& name) {
  if (!frame.may_sign_in) {
    return in_frame(frame, "Sign in",
                    "<p class=\"nothing\">Nobody may act by a token here: set "
                    "monitoring.actions_token.</p>");
  }
  return in_frame(
      frame, "Sign in",
      fmt::format("<form class=\"sign-in\" method=\"post\" action=\"/sign-in\">"
                  "<p>Who signs in may act, and see keys and values of messages.</p>"
                  "<label>Your name <input name=\"name\" value=\"{}\" required maxlength=\"80\" "
                  "autofocus autocomplete=\"username\"></label>"
                  "<p class=\"meta\">It stands in the history beside what you do.</p>"
                  "<label>Token <input name=\"token\" type=\"password\" required "
                  "autocomplete=\"current-password\"></label>"
                  "<p class=\"meta\">monitoring.actions_token of the configuration.</p>"
                  "<button class=\"primary\">Sign in</button></form>\n",
                  escape(name)));
}

std::string message_html(const Frame& frame, const std::string& title) {
  return in_frame(frame, title, "<p><a href=\"/\">To the partitions</a></p>");
}

}  // namespace pawl::dashboard
