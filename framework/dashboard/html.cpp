#include "dashboard/html.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "console/printable.hpp"

namespace pawl::dashboard {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
      continue;
    }
    if (text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
        digit_of(text[i + 2]) >= 0) {
      out += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : cli::printable_lines(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string url_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Fields parse_fields(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const auto end = text.find('&');
    const auto pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (pair.empty())
      continue;
    const auto equals = pair.find('=');
    fields[decode(pair.substr(0, equals))] =
        equals == std::string_view::npos ? std::string{} : decode(pair.substr(equals + 1));
  }
  return fields;
}

bool are_text(const Fields& fields) {
  return std::ranges::all_of(fields, [](const auto& field) {
    const auto& [name, value] = field;
    return value.find('\0') == std::string::npos &&
           simdjson::validate_utf8(value.data(), value.size());
  });
}

std::string field(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string{} : found->second;
}

std::optional<std::int64_t> number_field(const Fields& fields, const std::string& name) {
  const auto text = field(fields, name);
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end)
    return std::nullopt;
  return number;
}

std::optional<std::int32_t> partition_field(const Fields& fields, const std::string& name) {
  const auto number = number_field(fields, name);
  if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max())
    return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

std::string to_query(const Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    if (!value.empty())
      out += fmt::format("{}{}={}", out.empty() ? "?" : "&", url_encode(name), url_encode(value));
  }
  return out;
}

std::string grouped(std::int64_t number) {
  const auto digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0)
      out += "\u202f";
    out += digits[i];
  }
  return out;
}

std::string grouped_or_unknown(const std::optional<std::int64_t>& number) {
  return number ? grouped(*number) : "<span class=\"unknown\">unknown</span>";
}

}  // namespace pawl::dashboard
