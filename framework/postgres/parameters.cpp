#include "postgres/parameters.hpp"

#include <charconv>
#include <limits>
#include <stdexcept>

namespace pawl::postgres {

void Parameters::clear() {
  arena_.clear();
  entries_.clear();
}

void Parameters::add(std::string_view bytes, int format) {
  // libpq counts in int, and the server refuses messages of 1 GB anyway.
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::invalid_argument("a parameter exceeds 2 GB; PostgreSQL cannot store it");
  }
  entries_.push_back({arena_.size(), static_cast<int>(bytes.size()), format});
  arena_.append(bytes);
  arena_.push_back('\0');
}

void Parameters::add_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw std::invalid_argument(
        "a text parameter contains a NUL byte, which PostgreSQL text cannot hold; "
        "store it as bytea or clean it in the producer");
  }
  add(text, 0);
}

void Parameters::add_optional_text(const std::optional<std::string>& text) {
  if (text) {
    add_text(*text);
  } else {
    add_null();
  }
}

void Parameters::add_text_or_null(std::string_view text) {
  if (text.empty()) {
    add_null();
  } else {
    add_text(text);
  }
}

void Parameters::add_optional_integer(const std::optional<std::int64_t>& number) {
  if (number) {
    add_integer(*number);
  } else {
    add_null();
  }
}

void Parameters::add_optional_bytes(const std::optional<std::string_view>& bytes) {
  if (bytes) {
    add_bytes(*bytes);
  } else {
    add_null();
  }
}

void Parameters::add_integer(std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  add({digits, static_cast<std::size_t>(end - digits)}, 0);
}

void Parameters::add_null() {
  entries_.push_back({kNull, 0, 0});
}

void Parameters::add_bytes(std::string_view bytes) {
  add(bytes, 1);
}

Parameters::View Parameters::view() {
  values_.clear();
  lengths_.clear();
  formats_.clear();
  for (const auto& entry : entries_) {
    values_.push_back(entry.position == kNull ? nullptr : arena_.data() + entry.position);
    lengths_.push_back(entry.length);
    formats_.push_back(entry.format);
  }
  return {values_.data(), lengths_.data(), formats_.data()};
}

}  // namespace pawl::postgres
