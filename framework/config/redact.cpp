#include "config/redact.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "postgres/connection_string.hpp"
#include "text/secret.hpp"

namespace pawl::config {
namespace {

using texts::kHidden;
constexpr std::string_view kUnreadable = "(connection string)";

/// What percent-encoding held back may be anything: it must neither break a line nor JSON.
bool is_line(std::string_view value) {
  const bool breaks =
      std::ranges::any_of(value, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return !breaks && simdjson::validate_utf8(value.data(), value.size());
}

/// As libpq reads it.
std::string quoted(std::string_view value) {
  if (!value.empty() && value.find_first_of(" '\\") == std::string_view::npos)
    return std::string(value);
  std::string out = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "'";
}

}  // namespace

std::string redact_url(const std::string& url) {
  if (postgres::problem_of(url))
    return std::string(kUnreadable);
  const postgres::ConnectionOptions options(PQconninfoParse(url.c_str(), nullptr));
  if (!options)
    return std::string(kUnreadable);
  std::string out;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr)
      continue;
    const bool shown = postgres::may_show_value(option->keyword) && is_line(option->val);
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", option->keyword,
                       shown ? quoted(option->val) : kHidden);
  }
  return out;
}

}  // namespace pawl::config
