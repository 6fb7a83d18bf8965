#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include "dashboard/pages/parts.hpp"

namespace pawl::dashboard {

std::string history_html(const Frame& frame, const HistoryPage& page) {
  auto content = history_table(frame, page.rows, true);
  if (page.more)
    content +=
        "<p class=\"pages\">" +
        link("/history", {{"before", std::to_string(page.rows.back().id)}}, "Older", "button") +
        "</p>";
  return in_frame(frame, "History", content);
}

}  // namespace pawl::dashboard
