#pragma once

#include <cstddef>
#include <string>

namespace pawl::cli {

/// Shows one text after another: in place on a terminal, cut to its size, else as blocks with an
/// empty line between them.
class Screen {
 public:
  /// `output`: the descriptor behind std::cout.
  explicit Screen(int output);

  void show(const std::string& text);

 private:
  int output_;
  bool terminal_;
  bool first_ = true;
};

/// The lines of the text that a terminal of this size shows without scrolling; long lines wrap.
[[nodiscard]] std::string fit(const std::string& text, std::size_t rows, std::size_t columns);

}  // namespace pawl::cli
