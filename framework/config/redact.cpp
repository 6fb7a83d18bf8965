#include "config/redact.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "postgres/connection_string.hpp"

namespace pawl::config {

namespace {

constexpr std::string_view kHidden = "***";
constexpr std::string_view kUnreadable = "(connection string)";

bool is_secret(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !postgres::may_show_value(name);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// libpq decodes parameter names too, so "pass%77ord" is a password.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string redact_query(std::string_view query) {
  std::string out;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    const std::size_t equals = parameter.find('=');
    const std::string_view name = parameter.substr(0, equals);
    if (equals != std::string_view::npos && is_secret(percent_decoded(name))) {
      out += std::string{name} + "=" + std::string{kHidden};
    } else {
      out += parameter;
    }
    query.remove_prefix(end);
    if (!query.empty()) {
      out += '&';
      query.remove_prefix(1);
    }
  }
  return out;
}

/// A raw '?' or a second '@' makes it unclear where a password ends: then nothing is shown.
std::string redact_uri(std::string_view uri) {
  const std::size_t start = uri.find("://") + 3;
  std::string out{uri.substr(0, start)};
  std::string_view rest = uri.substr(start);
  const std::size_t at = rest.find('@');
  if (at != std::string_view::npos) {
    if (rest.rfind('@') != at || rest.find('?') < at)
      return out + std::string{kHidden};
    const std::string_view userinfo = rest.substr(0, at);
    const std::size_t colon = userinfo.find(':');
    out += userinfo.substr(0, colon);
    if (colon != std::string_view::npos)
      out += ":" + std::string{kHidden};
    out += '@';
    rest.remove_prefix(at + 1);
  }
  const std::size_t query = rest.find('?');
  out += rest.substr(0, query);
  if (query != std::string_view::npos)
    out += "?" + redact_query(rest.substr(query + 1));
  return out;
}

/// Reads `keyword = value` pairs as libpq's conninfo_parse does: values may be quoted with ', and a
/// backslash takes the next character as it stands.
class ConnectionString {
 public:
  explicit ConnectionString(std::string_view text) : text_(text) {}

  [[nodiscard]] std::optional<std::string> redacted() {
    std::string out;
    for (skip_space(); at_ < text_.size(); skip_space()) {
      const std::size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '=' && !space())
        ++at_;
      const std::string name{text_.substr(start, at_ - start)};
      skip_space();
      if (name.empty() || at_ == text_.size() || text_[at_] != '=')
        return std::nullopt;
      ++at_;
      skip_space();
      const std::size_t value = at_;
      if (!skip_value())
        return std::nullopt;
      if (!out.empty())
        out += ' ';
      out += name + "=";
      out += is_secret(name) ? kHidden : text_.substr(value, at_ - value);
    }
    return out;
  }

 private:
  [[nodiscard]] bool space() const {
    return std::isspace(static_cast<unsigned char>(text_[at_])) != 0;
  }
  void skip_space() {
    while (at_ < text_.size() && space())
      ++at_;
  }
  bool skip_value() {
    const bool in_quotes = at_ < text_.size() && text_[at_] == '\'';
    if (in_quotes)
      ++at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        at_ += at_ + 1 < text_.size() ? 1 : 0;
      } else if (in_quotes && text_[at_] == '\'') {
        ++at_;
        return true;
      } else if (!in_quotes && space()) {
        return true;
      }
    }
    return !in_quotes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string redact_url(std::string_view url) {
  if (url.starts_with("postgresql://") || url.starts_with("postgres://"))
    return redact_uri(url);
  return ConnectionString{url}.redacted().value_or(std::string{kUnreadable});
}

}  // namespace pawl::config
