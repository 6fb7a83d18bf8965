#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl::cli {

/// What the reader of an output can show. As it is by default, the output is a pipe or a file: no
/// limit, no colors, ASCII alone.
struct Terminal {
  std::size_t columns = 0;  ///< 0: no limit
  std::size_t rows = 0;     ///< 0: no limit
  bool colors = false;
  bool symbols = false;  ///< characters beyond ASCII
};

/// What the decision about an output depends on.
struct OutputFacts {
  bool is_terminal = false;
  std::size_t columns = 0;  ///< of the terminal; 0: unknown
  std::size_t rows = 0;
  std::string no_color;  ///< the variable NO_COLOR (https://no-color.org); empty: not set
  std::string term;      ///< TERM
  std::string locale;    ///< the first of LC_ALL, LC_CTYPE, and LANG that is not empty
};
[[nodiscard]] Terminal terminal_of(const OutputFacts& facts);
/// Of a descriptor, with the variables of this process.
[[nodiscard]] Terminal terminal_of(int descriptor);

enum class Color { kRed, kYellow, kGreen, kBold };
/// The text in a color, if the output has colors.
[[nodiscard]] std::string painted(const Terminal& terminal, Color color, std::string_view text);

enum class Symbol {
  kGood,  ///< "✔ "; in ASCII nothing, because the text beside it has the same meaning
  kBad,   ///< "✖ "
  kWait,  ///< "⏸ "
  kNext,  ///< "→ ": a command or a step follows
  kMore,  ///< "… ": something is omitted
};
[[nodiscard]] std::string_view symbol(const Terminal& terminal, Symbol symbol);

/// Columns that a text of one line takes: one per character, none for colors.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// A text whose first line starts at column `indent`, broken at blanks so that no line exceeds
/// `columns` (0: no limit). Each further line starts with `indent` blanks, also of a text that has
/// several lines. A word is never broken.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

/// The text and the blanks that fill it up to `columns`.
[[nodiscard]] std::string padded(std::string_view text, std::size_t columns);

}  // namespace pawl::cli
