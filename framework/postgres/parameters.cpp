#include "postgres/parameters.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>

namespace pawl::postgres {
namespace {

/// Of values and bytes: what the statements that run for every message need at most, so that they
/// grow nothing step by step.
constexpr std::size_t kUsualCount = 12;
constexpr std::size_t kUsualBytes = 256;

}  // namespace

void Parameters::clear() {
  arena_.clear();
  positions_.clear();
  lengths_.clear();
  formats_.clear();
}

void Parameters::add(std::string_view bytes, int format) {
  // libpq counts in int, and the server refuses messages of 1 GB anyway.
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::invalid_argument("a parameter exceeds 2 GB, the limit of PostgreSQL");
  }
  add_entry(arena_.size(), static_cast<int>(bytes.size()), format);
  if (arena_.empty())
    arena_.reserve(std::max(kUsualBytes, bytes.size() + 1));
  arena_.append(bytes);
  arena_.push_back('\0');
}

void Parameters::add_entry(std::size_t position, int length, int format) {
  if (positions_.empty()) {
    positions_.reserve(kUsualCount);
    lengths_.reserve(kUsualCount);
    formats_.reserve(kUsualCount);
  }
  // One more stands there since view_with().
  lengths_.resize(positions_.size());
  formats_.resize(positions_.size());
  positions_.push_back(position);
  lengths_.push_back(length);
  formats_.push_back(format);
}

void Parameters::add_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw std::invalid_argument(
        "a text parameter contains a NUL byte, which PostgreSQL text cannot contain. Store it as "
        "bytea, or remove the byte in the producer");
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
  add_entry(kNull, 0, 0);
}

void Parameters::add_bytes(std::string_view bytes) {
  add(bytes, 1);
}

Parameters::View Parameters::view() {
  // The arena may have moved since the values were added.
  values_.resize(positions_.size());
  for (std::size_t i = 0; i < positions_.size(); ++i)
    values_[i] = positions_[i] == kNull ? nullptr : arena_.data() + positions_[i];
  return {values_.data(), lengths_.data(), formats_.data()};
}

Parameters::View Parameters::view_with(const std::string& last) {
  (void)view();
  values_.push_back(last.empty() ? nullptr : last.c_str());
  lengths_.resize(positions_.size());
  formats_.resize(positions_.size());
  lengths_.push_back(static_cast<int>(last.size()));
  formats_.push_back(0);
  return {values_.data(), lengths_.data(), formats_.data()};
}

}  // namespace pawl::postgres
