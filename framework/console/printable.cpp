#include "console/printable.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace pawl::cli {
namespace {

/// The first character of UTF-8, or the one byte that begins none.
std::string_view first_character(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  const auto character = text.substr(0, length);
  const bool whole =
      character.size() == length && simdjson::validate_utf8(character.data(), character.size());
  return whole ? character : text.substr(0, 1);
}

/// Unicode Standard Annex 9, section 2: they show the text behind them in another order.
constexpr std::array<std::string_view, 12> kDirections{"\u061c", "\u200e", "\u200f", "\u202a",
                                                       "\u202b", "\u202c", "\u202d", "\u202e",
                                                       "\u2066", "\u2067", "\u2068", "\u2069"};

/// What a terminal may obey, in UTF-8 (the control characters of one byte, and U+0080 to U+009F) or
/// in another encoding, and what makes a text look like another one.
bool steers(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character.front());
  if (character.size() == 1)
    return byte < 0x20 || byte >= 0x7F;
  return (byte == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0) ||
         std::ranges::find(kDirections, character) != kDirections.end();
}

std::string without_steering(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_character(text);
    text.remove_prefix(character.size());
    if (!steers(character) || kept.find(character.front()) != std::string_view::npos) {
      result += character;
      continue;
    }
    for (const char byte : character)
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return without_steering(text, "");
}

std::string printable_lines(std::string_view text) {
  return without_steering(text, "\n\t");
}

std::string_view head(std::string_view text, std::size_t most) {
  if (text.size() <= most)
    return text;
  auto end = most;
  while (end > 0 && most - end < 4 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return text.substr(0, end);
}

}  // namespace pawl::cli
