#include "message/json_pointer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace pawl::message {
namespace {

std::optional<std::size_t> array_index(std::string_view name) {
  const bool leading_zero = name.size() > 1 && name.front() == '0';
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (leading_zero || error != std::errc{} || end != name.data() + name.size())
    return std::nullopt;
  return index;
}

// `begin` is where the token stands in the pointer, for errors.
std::string unescape(std::string_view token, std::size_t begin) {
  std::string name;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      name += token[i];
      continue;
    }
    const char escaped = i + 1 < token.size() ? token[i + 1] : '\0';
    if (escaped != '0' && escaped != '1') {
      throw JsonPointerError(begin + i,
                             "a ~ in a JSON pointer must precede 0 or 1 (RFC 6901). Write ~0 for ~ "
                             "and ~1 for / within a name");
    }
    name += escaped == '0' ? '~' : '/';
    ++i;
  }
  return name;
}

}  // namespace

std::string JsonPointer::escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

JsonPointer JsonPointer::parse(std::string_view text) {
  JsonPointer pointer;
  if (text.empty())
    return pointer;
  if (text.front() != '/') {
    throw JsonPointerError(0, "a JSON pointer starts with / (RFC 6901). Write /name");
  }
  for (std::size_t begin = 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    std::string name = unescape(text.substr(begin, end - begin), begin);
    const std::optional<std::size_t> index = array_index(name);
    pointer.tokens_.push_back(Token{std::move(name), index});
    begin = end + 1;
  }
  return pointer;
}

}  // namespace pawl::message
