#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pawl::cli {

/// A table for people: a heading, aligned columns, two blanks between them.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string heading;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell a column. They may come from elsewhere: shown as printable() does.
  void add(const std::vector<std::string>& cells);

  /// The heading, then the rows, each with its line feed. If they are wider than `columns` (0: no
  /// limit), the last cell of a row is wrapped below itself.
  [[nodiscard]] std::vector<std::string> lines(std::size_t columns = 0) const;
  /// The same as one text.
  [[nodiscard]] std::string text(std::size_t columns = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pawl::cli
