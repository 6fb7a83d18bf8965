#include "cli/screen.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "console/counted.hpp"

namespace pawl::cli {
namespace {

// ECMA-48, and xterm's alternate screen: enter it, leave it, hide and show the cursor; cursor to
// the top left, erase to the end of the line, and to the end of the screen.
constexpr const char* kEnter = "\033[?1049h\033[?25l";
constexpr const char* kLeave = "\033[?25h\033[?1049l";
constexpr const char* kHome = "\033[H";
constexpr const char* kClearLine = "\033[K";
constexpr const char* kClearBelow = "\033[J";

/// Rows that one line takes, with its line feed or without.
std::size_t rows_of(std::string_view line, std::size_t columns) {
  const auto width = width_of(line.substr(0, line.find('\n')));
  return columns == 0 ? 1 : std::max<std::size_t>(1, (width + columns - 1) / columns);
}

/// The first lines of a text that fit into so many rows; `rows` becomes what is left.
std::string first_lines(std::string_view text, std::size_t columns, std::size_t& rows) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const auto needed = rows_of(text.substr(at, end - at), columns);
    if (needed > rows)
      break;
    rows -= needed;
    at = end;
  }
  return std::string(text.substr(0, at));
}

struct Omitted {
  std::int64_t problems = 0;
  std::int64_t sections = 0;
  std::int64_t topics = 0;
  std::int64_t partitions = 0;

  void add(StatusBlock::Kind kind) {
    using Kind = StatusBlock::Kind;
    problems += kind == Kind::kProblem ? 1 : 0;
    sections += kind == Kind::kSection ? 1 : 0;
    topics += kind == Kind::kTopic ? 1 : 0;
    partitions += kind == Kind::kPartition ? 1 : 0;
  }
  /// Empty: nothing is omitted.
  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    const auto part = [&](std::int64_t number, const char* one, const char* many) {
      if (number > 0)
        parts.push_back(counted(number, one, many));
    };
    part(problems, "problem", "problems");
    part(sections, "section", "sections");
    part(topics, "topic", "topics");
    part(partitions, "partition", "partitions");
    return parts.empty() ? ""
                         : fmt::format("{} not shown (enlarge the window)", fmt::join(parts, ", "));
  }
};

}  // namespace

void Screen::show(const Terminal& terminal, const std::string& text) {
  if (::isatty(output_) != 1) {
    std::cout << (first_ ? "" : "\n") << text << std::flush;
    first_ = false;
    return;
  }
  std::string in_place = entered_ ? "" : kEnter;
  entered_ = true;
  in_place += kHome;
  // No line feed after the last row: it would scroll.
  const auto last = terminal.rows > 0 && text.ends_with('\n') ? text.size() - 1 : text.size();
  for (const char c : text.substr(0, last)) {
    if (c == '\n')
      in_place += kClearLine;
    in_place += c;
  }
  std::cout << in_place << kClearLine << kClearBelow << std::flush;
}

void Screen::leave() {
  if (entered_)
    std::cout << kLeave << std::flush;
  entered_ = false;
}

Keys::Keys() {
  termios settings{};
  // A change of the terminal's settings would stop a program in the background.
  if (::isatty(STDIN_FILENO) != 1 || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp() ||
      ::tcgetattr(STDIN_FILENO, &settings) != 0)
    return;
  const auto before = settings;
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  settings.c_cc[VMIN] = 0;
  settings.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &settings) == 0)
    before_ = before;
}

std::optional<char> Keys::wait(std::chrono::milliseconds longest) {
  if (!available()) {
    std::this_thread::sleep_for(longest);
    return std::nullopt;
  }
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char key = 0;
  if (::poll(&input, 1, static_cast<int>(longest.count())) <= 0)
    return std::nullopt;
  if (::read(STDIN_FILENO, &key, 1) == 1)
    return key;
  // The terminal is gone.
  restore();
  return std::nullopt;
}

void Keys::restore() {
  if (before_)
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  before_.reset();
}

std::string fitted(const std::vector<StatusBlock>& blocks, const Terminal& terminal,
                   const std::string& hint) {
  using Kind = StatusBlock::Kind;
  std::string text;
  // The last row is for the hint.
  auto rows = terminal.rows > 0 ? terminal.rows - 1 : std::string::npos;
  Omitted omitted;
  std::string heading;
  std::size_t heading_rows = 0;
  bool full = false;
  for (const auto& block : blocks) {
    if (full) {
      omitted.add(block.kind);
      continue;
    }
    if (block.kind == Kind::kHeading) {
      // Shown with what follows it.
      heading = block.text;
      heading_rows = 0;
      for (std::size_t at = 0; at < heading.size(); at = heading.find('\n', at) + 1)
        heading_rows += rows_of(std::string_view(heading).substr(at), terminal.columns);
      continue;
    }
    auto left = rows > heading_rows ? rows - heading_rows : 0;
    auto shown = first_lines(block.text, terminal.columns, left);
    full = shown.size() < block.text.size();
    if (full)
      omitted.add(block.kind);
    if (shown.empty())
      continue;
    text += heading + shown;
    rows = left;
    heading.clear();
    heading_rows = 0;
  }
  auto last = omitted.text();
  if (!last.empty())
    last = std::string(symbol(terminal, Symbol::kMore)) + last;
  const auto with_hint = last.empty() ? hint : last + "   " + hint;
  if (last.empty() || terminal.columns == 0 || width_of(with_hint) <= terminal.columns)
    last = with_hint;
  return last.empty() ? text : text + last + '\n';
}

}  // namespace pawl::cli
