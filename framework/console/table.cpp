#include "console/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "console/printable.hpp"
#include "console/terminal.hpp"

namespace pawl::cli {

void Table::add(const std::vector<std::string>& cells) {
  auto& row = rows_.emplace_back();
  row.reserve(cells.size());
  for (const auto& cell : cells)
    row.push_back(printable(cell));
}

std::vector<std::string> Table::lines(std::size_t columns) const {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& column : columns_)
    rows.front().push_back(column.heading);
  rows.insert(rows.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::vector<std::string> result;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0)
        line += "  ";
      const bool last = i + 1 == columns_.size();
      if (columns_[i].align == Align::kRight)
        line += std::string(widths[i] - width_of(row[i]), ' ') + row[i];
      else
        line += last ? wrapped(row[i], columns, width_of(line)) : padded(row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result.push_back(line + '\n');
  }
  return result;
}

std::string Table::text(std::size_t columns) const {
  return fmt::format("{}", fmt::join(lines(columns), ""));
}

}  // namespace pawl::cli
