#include "postgres/connection_string.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace pawl::postgres {
namespace {

constexpr std::array kNumbers{"connect_timeout",     "keepalives",       "keepalives_idle",
                              "keepalives_interval", "keepalives_count", "tcp_user_timeout"};

/// What stands in these is no secret and tells an operator where the error is.
constexpr std::array kShown{"host",
                            "hostaddr",
                            "port",
                            "dbname",
                            "user",
                            "service",
                            "sslcert",
                            "sslkey",
                            "sslrootcert",
                            "sslcrl",
                            "sslcrldir",
                            "passfile",
                            "krbsrvname",
                            "requirepeer",
                            "application_name",
                            "fallback_application_name"};

struct Choice {
  std::string_view option;
  std::array<std::string_view, 6> values;
};
constexpr std::array kChoices{
    Choice{"sslmode", {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}},
    Choice{"target_session_attrs",
           {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"}}};

template <typename List>
bool contains(const List& list, std::string_view wanted) {
  return std::any_of(list.begin(), list.end(),
                     [wanted](const auto& item) { return std::string_view(item) == wanted; });
}

bool is_number(std::string_view text, int least, int most) {
  int number = 0;
  const auto* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc{} && end == last && number >= least && number <= most;
}

/// Several are separated by commas; an empty one is libpq's own default.
bool are_ports(std::string_view list) {
  while (true) {
    const auto comma = std::min(list.find(','), list.size());
    const auto port = list.substr(0, comma);
    if (!port.empty() && !is_number(port, 1, 65535))
      return false;
    if (comma == list.size())
      return true;
    list.remove_prefix(comma + 1);
  }
}

/// Behind the credentials, and before its parameters, a URI has no further "@": where there is one,
/// libpq takes a part of the password for a host, a port or a database.
bool splits_a_password(std::string_view url) {
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://"))
    return false;
  auto rest = url.substr(url.find("://") + 3);
  const auto end = rest.find_first_of("@/");
  if (end != std::string_view::npos && rest[end] == '@')
    rest.remove_prefix(end + 1);
  return rest.substr(0, rest.find('?')).find('@') != std::string_view::npos;
}

/// Of libpq's text only the kind of mistake is taken.
ConnectionStringProblem unreadable(std::string_view report) {
  const auto says = [report](std::string_view text) {
    return report.find(text) != std::string_view::npos;
  };
  if (says("percent-encoded") || says("%00")) {
    return {"contains a % that is not followed by two hexadecimal digits other than 00",
            "Write a literal % as %25"};
  }
  if (says("\"]\"") || says("IPv6"))
    return {"contains a [ or ] that does not enclose an IPv6 address",
            "Write [ as %5B and ] as %5D"};
  if (says("unterminated quoted string"))
    return {"a quote is not closed", "Write ' within a quoted value as \\'"};
  if (says("invalid connection option") || says("invalid URI query parameter"))
    return {"contains an option that libpq does not support",
            "See \"Parameter Key Words\" of libpq"};
  if (says("extra key/value separator"))
    return {"contains an unexpected =", "Write = within a value as %3D"};
  if (says("\"=\""))
    return {"contains a keyword without =", "Put values with spaces into single quotes"};
  return {"libpq cannot parse it", "Use a connection URI or string"};
}

/// What the value of one option has to be that can ever connect.
std::optional<ConnectionStringProblem> problem_of(const PQconninfoOption& option) {
  const std::string_view keyword(option.keyword);
  const std::string_view value(option.val);
  if (keyword == "port" && !are_ports(value)) {
    return ConnectionStringProblem{
        "the port is not a number from 1 to 65535",
        "If a password contains @, :, /, or spaces, percent-encode them"};
  }
  if (contains(kNumbers, keyword) && !value.empty() && !is_number(value, -1, 2147483647))
    return ConnectionStringProblem{option.keyword + std::string(" is not a number"),
                                   "Use a number"};
  for (const auto& choice : kChoices) {
    if (choice.option == keyword && !contains(choice.values, value)) {
      std::string fix = "Use ";
      for (const auto& allowed : choice.values)
        fix.append(&allowed == choice.values.begin() ? "" : ", ").append(allowed);
      return ConnectionStringProblem{option.keyword + std::string(" is not a value of libpq"), fix};
    }
  }
  return std::nullopt;
}

/// Whether a text that libpq or the server quotes may be shown.
bool may_show(std::string_view quoted, const PQconninfoOption* options) {
  if (quoted.empty())
    return true;
  bool secret = false;
  for (const auto* option = options; option != nullptr && option->keyword != nullptr; ++option) {
    if (quoted == option->keyword)
      return true;
    const std::string_view value(option->val == nullptr ? "" : option->val);
    const bool is_default = option->compiled != nullptr && value == option->compiled;
    if (value.empty() || is_default)
      continue;
    const bool holds = value.find(quoted) != std::string_view::npos;
    if (contains(kShown, option->keyword)) {
      if (holds && (std::string_view(option->keyword) != "port" || are_ports(value)))
        return true;
    } else if (holds || quoted.find(value) != std::string_view::npos) {
      secret = true;
    }
  }
  return !secret;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (line.ends_with(' '))
    line.pop_back();
  return line;
}

/// libpq asks "Is the server running on that host and accepting TCP/IP connections?" in the middle
/// of what becomes a sentence. Its cause stands before.
std::string without_questions(std::string line) {
  constexpr std::string_view kQuestion = " Is the server running ";
  for (auto at = line.find(kQuestion); at != std::string::npos; at = line.find(kQuestion)) {
    const auto end = std::min(line.find('?', at), line.size() - 1);
    line.erase(at, end + 1 - at);
  }
  return line;
}

}  // namespace

std::optional<ConnectionStringProblem> problem_of(const std::string& url) {
  const bool uri = url.starts_with("postgresql://") || url.starts_with("postgres://");
  const auto scheme = url.find("://");
  if (url.find('\0') != std::string::npos)
    return ConnectionStringProblem{"contains a NUL byte", "Use a connection URI or string"};
  if (!uri && scheme != std::string::npos && url.find('=') > scheme)
    return ConnectionStringProblem{"not a PostgreSQL URI", "Start it with postgresql://"};
  // libpq would take it for the name of a database.
  if (!uri && !url.empty() && url.find('=') == std::string::npos) {
    return ConnectionStringProblem{"neither a connection URI nor keywords and values",
                                   "Write postgresql://host/database or \"host=... dbname=...\""};
  }
  if (splits_a_password(url)) {
    return ConnectionStringProblem{
        "contains an unexpected @: a password with @ or / is not percent-encoded",
        "Write @ as %40, / as %2F, and : as %3A"};
  }
  char* report = nullptr;
  const ConnectionOptions options(PQconninfoParse(url.c_str(), &report));
  const std::unique_ptr<char, void (*)(void*)> owned(report, PQfreemem);
  if (!options)
    return unreadable(report == nullptr ? "" : report);
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr)
      continue;
    if (auto problem = problem_of(*option))
      return problem;
  }
  return std::nullopt;
}

bool names_password(const std::string& url) {
  const ConnectionOptions options(PQconninfoParse(url.c_str(), nullptr));
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    const std::string_view keyword(option->keyword);
    if (option->val != nullptr && (keyword == "password" || keyword == "passfile"))
      return true;
  }
  return false;
}

bool may_show_value(std::string_view keyword) {
  return contains(kShown, keyword) || contains(kNumbers, keyword) ||
         std::any_of(kChoices.begin(), kChoices.end(),
                     [keyword](const Choice& choice) { return choice.option == keyword; });
}

std::string connect_report(PGconn* connection) {
  const ConnectionOptions options(PQconninfo(connection));
  std::string shown;
  std::string_view rest(PQerrorMessage(connection));
  // A value that an option cannot have may be anything, a secret in the wrong place too.
  const bool refuses = rest.starts_with("invalid ");
  while (true) {
    const auto open = rest.find('"');
    const auto close = open == std::string_view::npos ? open : rest.find('"', open + 1);
    shown += rest.substr(0, close == std::string_view::npos ? close : open);
    if (close == std::string_view::npos)
      return without_questions(one_line(shown));
    const auto quoted = rest.substr(open + 1, close - open - 1);
    shown.append("\"")
        .append(!refuses && may_show(quoted, options.get()) ? quoted : "***")
        .append("\"");
    rest.remove_prefix(close + 1);
  }
}

}  // namespace pawl::postgres
