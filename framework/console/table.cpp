#include "console/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "console/printable.hpp"

namespace pawl::cli {

void Table::add(const std::vector<std::string>& cells) {
  auto& row = rows_.emplace_back();
  row.reserve(cells.size());
  for (const auto& cell : cells)
    row.push_back(printable(cell));
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> headings;
  for (const auto& column : columns_)
    headings.push_back(column.heading);
  lines.push_back(std::move(headings));
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  }
  std::string result;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0)
        text += "  ";
      text += columns_[i].align == Align::kRight ? fmt::format("{:>{}}", line[i], widths[i])
                                                 : fmt::format("{:<{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    result += text + '\n';
  }
  return result;
}

}  // namespace pawl::cli
