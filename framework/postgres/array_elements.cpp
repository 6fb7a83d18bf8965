#include "postgres/array_elements.hpp"

#include <algorithm>
#include <charconv>

namespace pawl::postgres {

void ArrayElements::clear() {
  text_.clear();
  ends_.clear();
}

void ArrayElements::end_element() {
  text_.push_back(',');
  ends_.push_back(text_.size());
}

// Always in quotes, within which only these two characters mean something else: so neither braces,
// blanks and control characters nor the empty text and the word NULL need a second look.
void ArrayElements::add_text(std::string_view text) {
  const auto is_special = [](char c) { return c == '"' || c == '\\'; };
  text_.push_back('"');
  auto from = text.begin();
  for (auto at = std::find_if(from, text.end(), is_special); at != text.end();
       at = std::find_if(at + 1, text.end(), is_special)) {
    text_.append(from, at);
    text_.push_back('\\');
    from = at;
  }
  text_.append(from, text.end());
  text_.push_back('"');
  end_element();
}

// In bytea's hex format, whose backslash the array's quotes want twice.
void ArrayElements::add_bytes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text_ += R"("\\x)";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text_.push_back(kDigits[byte >> 4U]);
    text_.push_back(kDigits[byte & 0xFU]);
  }
  text_.push_back('"');
  end_element();
}

void ArrayElements::add_integer(std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  text_.append(digits, static_cast<std::size_t>(end - digits));
  end_element();
}

void ArrayElements::add_null() {
  text_.append("NULL");
  end_element();
}

void ArrayElements::truncate(std::size_t size) {
  if (size >= ends_.size())
    return;
  ends_.resize(size);
  text_.resize(size == 0 ? 0 : ends_.back());
}

std::string ArrayElements::array() const {
  std::string array;
  array.reserve(text_.size() + 2);
  array.push_back('{');
  array.append(text_);
  if (!ends_.empty())
    array.pop_back();
  array.push_back('}');
  return array;
}

std::string ArrayElements::array_of(std::span<const std::uint32_t> indexes) const {
  if (indexes.size() == ends_.size())
    return array();
  std::string array;
  array.reserve(text_.size() + 2);
  array.push_back('{');
  for (const auto index : indexes) {
    const auto begin = index == 0 ? 0 : ends_[index - 1];
    array.append(text_, begin, ends_[index] - begin);
  }
  if (!indexes.empty())
    array.pop_back();
  array.push_back('}');
  return array;
}

}  // namespace pawl::postgres
