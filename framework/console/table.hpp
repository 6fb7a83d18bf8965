#pragma once

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
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pawl::cli
