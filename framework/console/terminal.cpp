#include "console/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace pawl::cli {
namespace {

/// Narrower than this, a line that is wrapped has no room for words.
constexpr std::size_t kNarrowest = 20;

bool is_utf8(std::string locale) {
  std::ranges::transform(locale, locale.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const char* code_of(Color color) {
  switch (color) {
    case Color::kRed:
      return "31";
    case Color::kYellow:
      return "33";
    case Color::kGreen:
      return "32";
    case Color::kBold:
      break;
  }
  return "1";
}

std::string wrapped_line(std::string_view line, std::size_t columns, std::size_t indent) {
  const auto room = std::max(kNarrowest, columns > indent ? columns - indent : 0);
  // Blanks before the first word are part of the line.
  const auto first = std::min(line.find_first_not_of(' '), line.size());
  std::string result(line.substr(0, first));
  auto used = first;
  line.remove_prefix(first);
  for (bool starts = true; !line.empty(); starts = false) {
    const auto word = line.substr(0, line.find(' '));
    const auto width = width_of(word);
    if (!starts && used + 1 + width > room) {
      result += '\n' + std::string(indent, ' ');
      used = 0;
    } else if (!starts) {
      result += ' ';
      ++used;
    }
    result += word;
    used += width;
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return result;
}

}  // namespace

Terminal terminal_of(const OutputFacts& facts) {
  if (!facts.is_terminal)
    return {};
  return {facts.columns, facts.rows, facts.no_color.empty() && facts.term != "dumb",
          is_utf8(facts.locale)};
}

Terminal terminal_of(int descriptor) {
  OutputFacts facts;
  facts.is_terminal = ::isatty(descriptor) == 1;
  winsize size{};
  if (facts.is_terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    facts.columns = size.ws_col;
    facts.rows = size.ws_row;
  }
  facts.no_color = variable("NO_COLOR");
  facts.term = variable("TERM");
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (facts.locale.empty())
      facts.locale = variable(name);
  }
  return terminal_of(facts);
}

std::string painted(const Terminal& terminal, Color color, std::string_view text) {
  return terminal.colors ? fmt::format("\033[{}m{}\033[0m", code_of(color), text)
                         : std::string(text);
}

std::string_view symbol(const Terminal& terminal, Symbol symbol) {
  switch (symbol) {
    case Symbol::kGood:
      return terminal.symbols ? "✔ " : "";
    case Symbol::kBad:
      return terminal.symbols ? "✖ " : "";
    case Symbol::kWait:
      return terminal.symbols ? "⏸ " : "";
    case Symbol::kNext:
      return terminal.symbols ? "→ " : "> ";
    case Symbol::kMore:
      break;
  }
  return terminal.symbols ? "… " : "... ";
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      ++width;
    }
  }
  return width;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string result;
  while (true) {
    const auto line = text.substr(0, text.find('\n'));
    result += columns == 0 ? std::string(line) : wrapped_line(line, columns, indent);
    if (line.size() == text.size())
      return result;
    text.remove_prefix(line.size() + 1);
    result += '\n';
    if (!text.empty() && text.front() != '\n')
      result += std::string(indent, ' ');
  }
}

std::string padded(std::string_view text, std::size_t columns) {
  const auto width = width_of(text);
  return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

}  // namespace pawl::cli
