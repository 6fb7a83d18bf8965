// The configuration file: TOML, ${...}, options, and what is printed of them.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "config/load.hpp"
#include "config/redact.hpp"
#include "config/units.hpp"
#include "config/values.hpp"
#include "fuzz.hpp"
#include "postgres/connection_string.hpp"

using namespace pawl::config;
using pawl::fuzzing::require;

namespace {

/// What each variable stands for.
constexpr std::string_view kSecret = "Zq9-hunter2-Zq9";

/// RFC 3339 has years of four digits; a time zone may move a time out of them.
bool is_printable_time(std::int64_t milliseconds) {
  return milliseconds >= -62'167'219'200'000 && milliseconds < 253'402'300'800'000;
}

/// Of options none is a time without time zone, so it has no text.
bool has_unprintable_time(const Node& node) {
  if (node.kind == Node::Kind::kLocalTime ||
      (node.kind == Node::Kind::kTime && !is_printable_time(node.time_ms)))
    return true;
  for (const auto& item : node.items) {
    if (has_unprintable_time(item))
      return true;
  }
  for (const auto& [name, member] : node.members) {
    if (has_unprintable_time(member))
      return true;
  }
  return false;
}

bool same(const Node& one, const Node& other) {
  if (one.kind != other.kind || one.items.size() != other.items.size() ||
      one.members.size() != other.members.size() || one.value != other.value ||
      one.integer != other.integer || one.boolean != other.boolean || one.time_ms != other.time_ms)
    return false;
  if (one.kind == Node::Kind::kFloat && one.written != other.written)
    return false;
  for (std::size_t i = 0; i < one.items.size(); ++i) {
    if (!same(one.items[i], other.items[i]))
      return false;
  }
  for (const auto& [name, member] : one.members) {
    const auto* found = other.member(name);
    if (found == nullptr || !same(member, *found))
      return false;
  }
  return true;
}

void check_document(const std::string& text) {
  const auto source = std::make_shared<Source>(Source{"a.toml", text, "", false});
  std::vector<Problem> problems;
  const auto document = parse_document(source, problems);
  require(document.has_value() == problems.empty(), "a document is read, or has a problem");
  const auto lines = 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  for (const auto& problem : problems)
    require(problem.line >= 1 && problem.line <= lines + 1, "a problem is on a line of the file");
  if (!document)
    return;
  if (!has_unprintable_time(*document)) {
    const auto printed = toml_text(*document);
    const auto again = parse_override_value(source, printed);
    require(same(*document, again), "a printed document is the document", printed);
  }
  auto merged = *document;
  merge(merged, *document);
  require(same(merged, *document), "a document over itself is the document");
}

LoadRequest request_of(const std::string& text) {
  LoadRequest request;
  request.path = "a.toml";
  request.text = text;
  request.environment = [](const std::string&) { return std::optional{std::string(kSecret)}; };
  return request;
}

void check_lines(const std::string& errors, const std::string& text) {
  const auto lines = 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  std::string_view rest = errors;
  while (!rest.empty()) {
    const auto line = pawl::fuzzing::take_line(rest);
    require(!line.empty(), "an error has a text", errors);
    if (!line.starts_with("a.toml:"))
      continue;
    const auto number = std::strtoul(std::string(line.substr(7)).c_str(), nullptr, 10);
    require(number <= lines + 1, "an error is on a line of the file", errors);
  }
}

void check_load(const std::string& text) {
  // Files are not this target's.
  if (text.find("file") != std::string::npos || text.find("certificate") != std::string::npos ||
      text.find("key\"") != std::string::npos || text.find(kSecret) != std::string::npos)
    return;
  try {
    (void)load(request_of(text));
  } catch (const pawl::ConfigErrors& errors) {
    const std::string what = errors.what();
    require(what.find(kSecret) == std::string::npos, "an error shows no variable's value", what);
    check_lines(what, text);
    return;
  }
  for (const auto& option : load_in_force(request_of(text))) {
    const auto shown = toml_text(option.value);
    require(shown.find(kSecret) == std::string::npos, "an option shows no variable's value",
            option.option);
  }
}

std::map<std::string, std::string> values_of(const std::string& url) {
  const pawl::postgres::ConnectionOptions options(PQconninfoParse(url.c_str(), nullptr));
  std::map<std::string, std::string> values;
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr)
      values[option->keyword] = option->val;
  }
  return values;
}

/// What is shown of a connection string is one again, with the same values, or *** in their place.
void check_connection(const std::string& url) {
  const auto shown = redact_url(url);
  (void)short_url(url);
  (void)psql_text(url, "SELECT 1");
  const auto hides_all = shown == "(connection string)";
  if (hides_all)
    return;
  const auto before = values_of(url);
  const auto after = values_of(shown);
  require(before.size() == after.size(), "a shown connection string has its options", shown);
  for (const auto& [keyword, value] : after) {
    require(before.contains(keyword), "a shown option is one of the connection string", shown);
    require(value == "***" || (keyword != "password" && value == before.at(keyword)),
            "a shown value is the value", shown);
  }
}

void check_units(std::string_view text) {
  if (const auto duration = parse_duration(text))
    require(parse_duration(format_duration(*duration)) == duration, "a duration keeps its value",
            text);
  if (const auto size = parse_size(text))
    require(parse_size(format_size(*size)) == size, "a size keeps its value", text);
  if (const auto time = parse_time(text); time && is_printable_time(*time))
    require(parse_time(time_text(*time)) == time, "a time keeps its value", text);
}

}  // namespace

void fuzz(std::string_view input) {
  const std::string text(input);
  check_document(text);
  check_load(text);
  auto rest = input;
  const auto line = std::string(pawl::fuzzing::take_line(rest));
  check_units(line);
  check_connection(line);
}
