#include "config/redact.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "config/shell_word.hpp"
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

/// "a,b" without blanks; one empty text of an empty list.
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream from(list);
  for (std::string part; std::getline(from, part, ',');)
    parts.push_back(part);
  if (parts.empty())
    parts.emplace_back();
  return parts;
}

/// The name of the role, or what only this role connects with.
bool is_of_role(std::string_view keyword) {
  return keyword == "user" || keyword == "passfile" || keyword == "sslcert" || keyword == "sslkey";
}

enum class Purpose {
  kLog,       ///< a value that may be secret is ***
  kOtherRole  ///< such a value is omitted, as are the role and its credentials
};

/// "user=app dbname=payments". Nullopt: no connection string.
std::optional<std::string> keywords_of(const std::string& url, Purpose purpose) {
  if (postgres::problem_of(url))
    return std::nullopt;
  const postgres::ConnectionOptions options(PQconninfoParse(url.c_str(), nullptr));
  if (!options)
    return std::nullopt;
  std::string out;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr)
      continue;
    const bool shown = postgres::may_show_value(option->keyword) && is_line(option->val);
    if (purpose == Purpose::kOtherRole && (!shown || is_of_role(option->keyword)))
      continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", option->keyword,
                       shown ? quoted(option->val) : kHidden);
  }
  return out;
}

}  // namespace

std::string redact_url(const std::string& url) {
  return keywords_of(url, Purpose::kLog).value_or(std::string(kUnreadable));
}

std::string short_url(const std::string& url) {
  if (postgres::problem_of(url))
    return std::string(kUnreadable);
  const postgres::ConnectionOptions options(PQconninfoParse(url.c_str(), nullptr));
  if (!options)
    return std::string(kUnreadable);
  const auto value_of = [&](std::string_view keyword) -> std::string {
    for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
      if (option->keyword == keyword && option->val != nullptr && is_line(option->val))
        return postgres::may_show_value(keyword) ? option->val : std::string(kHidden);
    }
    return {};
  };
  const auto user = value_of("user");
  const auto database = value_of("dbname");
  const auto hosts = parts_of(value_of("host").empty() ? value_of("hostaddr") : value_of("host"));
  const auto ports = parts_of(value_of("port"));
  std::string out = user.empty() ? "" : user + "@";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto& port = ports.size() == 1 ? ports[0] : i < ports.size() ? ports[i] : std::string();
    out += fmt::format("{}{}{}{}", i == 0 ? "" : ",", hosts[i], port.empty() ? "" : ":", port);
  }
  return database.empty() ? out : out + "/" + database;
}

std::string psql_text(const std::string& url, std::string_view sql) {
  const auto keywords = keywords_of(url, Purpose::kOtherRole).value_or("");
  return fmt::format("psql {}-U postgres -c {}",
                     keywords.empty() ? "" : fmt::format("-d {} ", shell_word(keywords)),
                     shell_word(std::string(sql)));
}

}  // namespace pawl::config
