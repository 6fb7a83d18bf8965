#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/status.hpp"
#include "console/terminal.hpp"

namespace pawl::cli {

/// Shows one text after another: on a terminal in place, on its alternate screen, so that what the
/// shell showed before stays; otherwise as blocks with an empty line between them.
class Screen {
 public:
  /// `output`: the descriptor behind std::cout.
  explicit Screen(int output) : output_(output) {}
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// As it is now: the window may have changed.
  [[nodiscard]] Terminal terminal() const { return terminal_of(output_); }
  void show(const Terminal& terminal, const std::string& text);
  /// Back to the screen of the shell.
  void leave();

 private:
  int output_;
  bool first_ = true;
  bool entered_ = false;
};

/// Single keys from the terminal that the program runs in; none if there is no terminal, or another
/// program of the shell owns it.
class Keys {
 public:
  Keys();
  ~Keys() { restore(); }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  [[nodiscard]] bool available() const { return before_.has_value(); }
  /// Waits for a key for that long.
  [[nodiscard]] std::optional<char> wait(std::chrono::milliseconds longest);
  /// The terminal as it was.
  void restore();

 private:
  std::optional<termios> before_;
};

/// The blocks that a window shows without scrolling, in their order. The last line says how much is
/// omitted, and contains `hint`.
[[nodiscard]] std::string fitted(const std::vector<StatusBlock>& blocks, const Terminal& terminal,
                                 const std::string& hint);

}  // namespace pawl::cli
