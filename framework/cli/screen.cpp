#include "cli/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace pawl::cli {
namespace {

// ECMA-48: cursor to the top left, erase to the end of the line, and to the end of the screen.
constexpr const char* kHome = "\033[H";
constexpr const char* kClearAll = "\033[2J";
constexpr const char* kClearLine = "\033[K";
constexpr const char* kClearBelow = "\033[J";

}  // namespace

Screen::Screen(int output) : output_(output), terminal_(::isatty(output) == 1) {}

void Screen::show(const std::string& text) {
  if (!terminal_) {
    std::cout << (first_ ? "" : "\n") << text << std::flush;
    first_ = false;
    return;
  }
  winsize size{};
  const bool known = ::ioctl(output_, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  std::string in_place = first_ ? kClearAll : "";
  in_place += kHome;
  for (const char c : known ? fit(text, size.ws_row - 1U, size.ws_col) : text) {
    if (c == '\n')
      in_place += kClearLine;
    in_place += c;
  }
  std::cout << in_place << kClearBelow << std::flush;
  first_ = false;
}

std::string fit(const std::string& text, std::size_t rows, std::size_t columns) {
  std::size_t used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size() - 1);
    used += std::max<std::size_t>(1, (end - at + columns - 1) / columns);
    if (used > rows)
      break;
    at = end + 1;
  }
  return text.substr(0, at);
}

}  // namespace pawl::cli
