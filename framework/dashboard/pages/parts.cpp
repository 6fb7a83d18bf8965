#include "dashboard/pages/parts.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "ledger/rows.hpp"

namespace pawl::dashboard {
namespace {

constexpr std::size_t kShortText = 160;
constexpr std::size_t kDay = std::string_view("2026-01-31").size();
constexpr const char* kNotSignedIn = "<span class=\"unknown\">sign in</span>";

struct NavigationEntry {
  const char* path;
  const char* text;
};
constexpr NavigationEntry kNavigation[] = {{"/", "Partitions"}, {"/dead-letters", "Dead letters"},
                                           {"/keys", "Keys"},   {"/outbox", "Outbox"},
                                           {"/calls", "Calls"}, {"/history", "History"}};

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
  return frame.may_act ? "<span>read-only: the proxy sends no user name</span>"
                       : "<span>read-only</span>";
}

/// Whether a consumer takes this action, for a cause in a message or in Kafka.
bool is_own_action(const std::string& action) {
  return action == "halt" || action == "first assignment";
}

}  // namespace

std::string link(const std::string& path, const Fields& query, const std::string& text,
                 const std::string& kind) {
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
  auto shown = rfc3339;
  if (shown.size() > kDay && shown[kDay] == 'T' && shown.ends_with('Z'))
    shown = shown.substr(0, kDay) + ' ' + shown.substr(kDay + 1, shown.size() - kDay - 2) + " UTC";
  return fmt::format("<time datetime=\"{}\">{}</time>", escape(rfc3339), escape(shown));
}

std::string instant_html(const std::optional<ledger::Instant>& time) {
  return time ? time_html(ledger::to_string(*time)) : "–";
}

std::string dash_if_empty(const std::string& text) {
  return text.empty() ? "–" : escape(text);
}

std::string badge(const std::string& kind, const std::string& text) {
  return fmt::format("<span class=\"badge {}\">{}</span>", kind, text);
}

std::string in_frame(const Frame& frame, const std::string& title, const std::string& content,
                     bool changes) {
  std::string navigation;
  for (const auto& entry : kNavigation) {
    navigation += fmt::format("<a href=\"{}\"{}>{}</a>", entry.path,
                              frame.path == entry.path ? " aria-current=\"page\"" : "", entry.text);
  }
  std::string age;
  if (changes) {
    const auto now =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    age = fmt::format(
        "<p class=\"live\" data-live>Generated at {}. This page does not refresh "
        "automatically.</p>\n",
        instant_html(now));
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
      "<a class=\"skip\" href=\"#main\">Skip to content</a>"
      "<header><div class=\"brand\"><b>pawl</b> <span>{2}/{1}</span></div>"
      "<nav aria-label=\"Pages\">{3}</nav><div class=\"who\">{4}</div></header>\n"
      "{8}<main id=\"main\" tabindex=\"-1\"{5}><h1>{0}</h1>\n{6}{7}</main></body></html>\n",
      escape(title), escape(frame.group), escape(frame.cluster), navigation, who(frame),
      changes && frame.asked_by_get ? " data-refresh=\"10\"" : "", messages, content, age);
}

std::string tile(const std::string& name, const std::string& value, const std::string& kind,
                 const std::string& more) {
  return fmt::format("<div class=\"tile {}\"><span>{}</span><b>{}</b>{}</div>", kind, name, value,
                     more);
}

std::string option_html(const std::string& value, const std::string& text,
                        const std::string& chosen) {
  return fmt::format("<option value=\"{}\"{}>{}</option>", value,
                     value == chosen ? " selected" : "", text);
}

std::string input_html(const std::string& label, const std::string& name, const std::string& value,
                       const std::string& more) {
  return fmt::format("<label>{} <input name=\"{}\" value=\"{}\" {}></label>", label, name,
                     escape(value), more);
}

std::string confirm_html(const Frame& frame, const std::string& path, const std::string& title,
                         const std::string& what, const std::string& inputs,
                         const std::string& reason, const std::string& button,
                         const std::string& back) {
  return fmt::format(
      "<section class=\"confirm\" aria-labelledby=\"confirm\"><h2 id=\"confirm\">{}</h2><p>{}</p>"
      "<form method=\"post\" action=\"{}\" data-once>{}{}"
      "<label>Reason <input name=\"reason\" value=\"{}\" required maxlength=\"500\" autofocus "
      "autocomplete=\"off\"></label>"
      "<p class=\"meta\">The history records it with the name {}.</p>"
      "<p><button class=\"primary\">{}</button> <a class=\"button\" href=\"{}\">Cancel</a></p>"
      "</form></section>\n",
      title, what, path, hidden("form_key", frame.actor->form_key), inputs, escape(reason),
      escape(frame.actor->name), button, escape(back));
}

std::string history_table(const Frame& frame, const std::vector<ledger::HistoryRow>& rows,
                          bool with_place) {
  TableHtml table(with_place ? "Actions and halts" : "Actions and halts of this partition");
  table.column("Time");
  if (with_place)
    table.column("Partition");
  table.column("Action");
  table.column("From offset", "number");
  table.column("To offset", "number");
  table.column("Reason", "wide");
  if (frame.actor)
    table.column("Database role");
  for (const auto& row : rows) {
    std::vector<std::string> cells{time_html(row.happened_at)};
    if (with_place)
      cells.push_back(link("/partition", of_partition(row.partition), place_text(row.partition)));
    cells.push_back(escape(row.action));
    cells.push_back(row.from ? std::to_string(*row.from) : "–");
    cells.push_back(row.to ? std::to_string(*row.to) : "–");
    cells.push_back(frame.actor || is_own_action(row.action) ? dash_if_empty(row.reason)
                                                             : kNotSignedIn);
    if (frame.actor)
      cells.push_back(escape(row.actor));
    table.row(cells);
  }
  return table.text("The history is empty.");
}

std::string for_actors_html(const Frame& frame, const std::string& what) {
  return fmt::format("<p class=\"nothing\">{} only {}.</p>", what,
                     frame.may_sign_in ? "after you <a href=\"/sign-in\">sign in</a>"
                     : frame.may_act   ? "if the proxy sends your user name"
                                       : "if monitoring.actions_token is set");
}

Fields of_partition(const TopicPartition& partition) {
  return {{"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
}

std::string place_text(const TopicPartition& partition) {
  return escape(cli::name_of(partition));
}

std::string place_text(const TopicPartition& partition, std::int64_t offset) {
  return fmt::format("{}@{}", place_text(partition), offset);
}

std::string key_html(const Frame& frame, const std::string& key) {
  return frame.actor ? escape(std::string(cli::head(key, kShortText))) : kNotSignedIn;
}

}  // namespace pawl::dashboard
