#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dashboard/data.hpp"
#include "dashboard/html.hpp"

namespace pawl::dashboard {

// What pages are put together from.

/// Bytes of a value on a page.
inline constexpr std::size_t kMostShown = 65536;

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

/// Names with what is known of each, which is HTML.
class Facts {
 public:
  void add(const std::string& name, const std::string& html) {
    text_ += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html);
  }
  [[nodiscard]] std::string text() const { return "<dl class=\"facts\">" + text_ + "</dl>\n"; }

 private:
  std::string text_;
};

/// `text` is HTML.
[[nodiscard]] std::string link(const std::string& path, const Fields& query,
                               const std::string& text, const std::string& kind = "");
[[nodiscard]] std::string hidden(const std::string& name, const std::string& value);
/// Its first line, as far as a table bears it.
[[nodiscard]] std::string short_text(const std::string& text);
/// An instant of RFC 3339 as "2026-01-31 12:00:00 UTC"; "–" if it is empty.
[[nodiscard]] std::string time_html(const std::string& rfc3339);
[[nodiscard]] std::string instant_html(const std::optional<ledger::Instant>& time);
[[nodiscard]] std::string dash_if_empty(const std::string& text);
/// `kind`: good, warn, bad.
[[nodiscard]] std::string badge(const std::string& kind, const std::string& text);
/// The whole page. It shows how old it is, and is refreshed if `changes` and a GET asked for it.
[[nodiscard]] std::string in_frame(const Frame& frame, const std::string& title,
                                   const std::string& content, bool changes = true);
/// A figure that stands out, with `more` below it.
[[nodiscard]] std::string tile(const std::string& name, const std::string& value,
                               const std::string& kind = "", const std::string& more = "");
[[nodiscard]] std::string option_html(const std::string& value, const std::string& text,
                                      const std::string& chosen);
[[nodiscard]] std::string input_html(const std::string& label, const std::string& name,
                                     const std::string& value, const std::string& more = "");
/// The form that confirms an action. `inputs`: hidden fields, and further ones of this action.
[[nodiscard]] std::string confirm_html(const Frame& frame, const std::string& path,
                                       const std::string& title, const std::string& what,
                                       const std::string& inputs, const std::string& reason,
                                       const std::string& button, const std::string& back);
/// Who acted, and why they say, is for who may act themselves.
[[nodiscard]] std::string history_table(const Frame& frame,
                                        const std::vector<ledger::HistoryRow>& rows,
                                        bool with_place);
/// A paragraph in place of what this person does not see. `what`: "Keys are shown".
[[nodiscard]] std::string for_actors_html(const Frame& frame, const std::string& what);
[[nodiscard]] Fields of_partition(const TopicPartition& partition);
/// "orders[3]", and a message "orders[3]@341".
[[nodiscard]] std::string place_text(const TopicPartition& partition);
[[nodiscard]] std::string place_text(const TopicPartition& partition, std::int64_t offset);
/// A key is content of a message.
[[nodiscard]] std::string key_html(const Frame& frame, const std::string& key);

}  // namespace pawl::dashboard
