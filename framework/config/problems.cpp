#include "config/problems.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace pawl {

ConfigErrors::ConfigErrors(std::vector<std::string> problems)
    : std::runtime_error(fmt::format("{}", fmt::join(problems, "\n"))),
      problems_(std::move(problems)) {}

}  // namespace pawl

namespace pawl::config {

namespace {

constexpr std::size_t kShownBytes = 80;

/// Edit distance with transpositions of neighbours (optimal string alignment).
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> above(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t change = from[i - 1] == to[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[to.size()];
}

}  // namespace

std::string Problem::text() const {
  std::string out;
  // "--set kafka.group" names the option already.
  const bool is_named = where.starts_with("--") && where.ends_with(" " + option);
  if (is_named) {
    out = where + (shown.empty() ? "" : "=" + shown) + ": ";
  } else {
    out = where.empty() ? "" : where + ": ";
    if (!option.empty())
      out += option + (shown.empty() ? "" : " = " + shown) + ": ";
  }
  if (place && place->line > 1)
    out += fmt::format("line {}, ", place->line);
  if (place)
    out += fmt::format("column {}: ", place->column);
  out += what;
  if (!fix.empty())
    out += ". " + fix;
  return out;
}

ConfigErrors errors_of(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  lines.reserve(problems.size());
  for (const Problem& problem : problems)
    lines.push_back(problem.text());
  return ConfigErrors{std::move(lines)};
}

std::string dotted(std::string_view section, std::string_view key) {
  return section.empty() ? std::string{key} : fmt::format("{}.{}", section, key);
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytes)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  out += text.size() > kShownBytes ? "...\"" : "\"";
  return out;
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  return nearest(name, candidates, std::max<std::size_t>(2, name.size() / 3));
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates, std::size_t most) {
  std::optional<std::string> best;
  std::size_t best_distance = most + 1;
  for (const std::string& candidate : candidates) {
    // A short name is near to every other: what is left must still be recognizable.
    const std::size_t d = distance(name, candidate);
    if (d < best_distance && d < candidate.size()) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

std::string any_of(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      text += i + 1 < names.size() ? ", " : names.size() == 2 ? " or " : ", or ";
    text += fmt::format("\"{}\"", names[i]);
  }
  return text;
}

}  // namespace pawl::config
