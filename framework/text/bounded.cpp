#include "text/bounded.hpp"

#include <fmt/format.h>

#include "text/count.hpp"

namespace pawl::texts {
namespace {

constexpr std::size_t kLongestCharacter = 4;

/// Where the character after the first `most` begins.
std::size_t end_of(std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  std::size_t end = 0;
  for (; end < text.size() && end < most * kLongestCharacter; ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins && ++characters > most)
      break;
  }
  return end;
}

}  // namespace

std::string bounded(std::string_view text, std::size_t most) {
  const auto end = end_of(text, most);
  if (end == text.size())
    return std::string(text);
  return fmt::format("{}... ({} omitted)", text.substr(0, end),
                     counted(static_cast<std::int64_t>(text.size() - end), "byte", "bytes"));
}

}  // namespace pawl::texts
