#include "config/document.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace pawl::config {

namespace {

using SourcePtr = std::shared_ptr<const Source>;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::optional<std::int64_t> to_milliseconds(const toml::date_time& time) {
  if (!time.offset)
    return std::nullopt;
  namespace chrono = std::chrono;
  const chrono::sys_days day{chrono::year{static_cast<int>(time.date.year)} /
                             static_cast<int>(time.date.month) / static_cast<int>(time.date.day)};
  // In 64 bits, nanoseconds since 1970 end in the year 2262.
  const chrono::sys_time<chrono::milliseconds> instant =
      day + chrono::hours{time.time.hour} + chrono::minutes{time.time.minute} +
      chrono::seconds{time.time.second} +
      chrono::floor<chrono::milliseconds>(chrono::nanoseconds{time.time.nanosecond}) -
      chrono::minutes{time.offset->minutes};
  return instant.time_since_epoch().count();
}

Node convert(const toml::node& from, const SourcePtr& source);

Node convert_table(const toml::table& table, const SourcePtr& source) {
  Node node;
  node.kind = Node::Kind::kTable;
  for (auto&& [key, value] : table) {
    Node member = convert(value, source);
    // A problem with an option is reported where its key stands, also when an array of tables or a
    // table by dotted keys has no place of its own.
    if (member.line == 0) {
      member.line = key.source().begin.line;
      member.column = key.source().begin.column;
    }
    node.members.emplace(std::string{key.str()}, std::move(member));
  }
  return node;
}

/// With a point or an exponent: without them TOML and JSON would read an integer.
std::string float_text(double number) {
  auto text = fmt::format("{}", number);
  if (text.find_first_of(".en") == std::string::npos)  // "n" is of "inf" and "nan"
    text += ".0";
  return text;
}

Node convert_scalar(const toml::node& from) {
  Node node;
  if (const auto* text = from.as_string()) {
    node.kind = Node::Kind::kString;
    node.written = node.value = text->get();
  } else if (const auto* integer = from.as_integer()) {
    node.kind = Node::Kind::kInteger;
    node.integer = integer->get();
    node.written = std::to_string(node.integer);
  } else if (const auto* number = from.as_floating_point()) {
    node.kind = Node::Kind::kFloat;
    node.written = float_text(number->get());
  } else if (const auto* boolean = from.as_boolean()) {
    node.kind = Node::Kind::kBoolean;
    node.boolean = boolean->get();
    node.written = node.boolean ? "true" : "false";
  } else {
    const auto* const time = from.as_date_time();
    const auto instant = time != nullptr ? to_milliseconds(time->get()) : std::nullopt;
    node.kind = instant ? Node::Kind::kTime : Node::Kind::kLocalTime;
    node.time_ms = instant.value_or(0);
  }
  return node;
}

Node convert(const toml::node& from, const SourcePtr& source) {
  Node node;
  if (const auto* table = from.as_table()) {
    node = convert_table(*table, source);
  } else if (const auto* array = from.as_array()) {
    node.kind = Node::Kind::kArray;
    for (auto&& item : *array)
      node.items.push_back(convert(item, source));
  } else {
    node = convert_scalar(from);
  }
  node.source = source;
  if (source->command_line) {
    node.line = node.column = 0;
  } else {
    node.line = from.source().begin.line;
    node.column = from.source().begin.column;
  }
  return node;
}

std::optional<toml::table> try_parse(const std::string& text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

std::size_t character_length(unsigned char lead) {
  if (lead < 0x80)
    return 1;
  if (lead < 0xe0)
    return 2;
  return lead < 0xf0 ? 3 : 4;
}

/// Byte of line and column (both from 1, columns in characters) in a text; npos beyond its end.
std::size_t byte_of(std::string_view text, std::size_t line, std::size_t column) {
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (; line > 1; --line) {
    at = text.find('\n', at);
    if (at == std::string_view::npos)
      return at;
    ++at;
  }
  for (; column > 1 && at < text.size(); --column) {
    at += character_length(static_cast<unsigned char>(text[at]));
  }
  return at < text.size() ? at : std::string_view::npos;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

/// Where a string's content begins behind its opening quotes (TOML 1.0, "String").
std::size_t content_start(std::string_view text, std::size_t at) {
  for (const std::string_view quotes : {"\"\"\"", "'''"}) {
    if (!text.substr(at).starts_with(quotes))
      continue;
    at += quotes.size();
    if (text.substr(at).starts_with("\r\n"))
      return at + 2;
    return text.substr(at).starts_with("\n") ? at + 1 : at;
  }
  return at + 1;
}

}  // namespace

std::string Node::where() const {
  if (!source)
    return "";
  return source->command_line ? source->name : fmt::format("{}:{}", source->name, line);
}

std::optional<std::string> Node::where_at(const TextPlace& place) const {
  if (kind != Kind::kString || substituted || !source || source->command_line || line == 0) {
    return std::nullopt;
  }
  const std::string_view text = source->text;
  std::size_t start = byte_of(text, line, column);
  if (start == std::string_view::npos)
    return std::nullopt;
  start = content_start(text, start);
  if (text.substr(start, value.size()) != value)
    return std::nullopt;
  const std::string_view before = text.substr(0, start);
  const auto first_line = std::count(before.begin(), before.end(), '\n');
  std::size_t at_column = place.column;
  if (place.line == 1) {
    std::string_view in_line = before.substr(before.rfind('\n') + 1);
    if (in_line.starts_with(kByteOrderMark))
      in_line.remove_prefix(kByteOrderMark.size());
    at_column += characters(in_line);
  }
  return fmt::format("{}:{}:{}", source->name, static_cast<std::size_t>(first_line) + place.line,
                     at_column);
}

std::string Node::describe() const {
  switch (kind) {
    case Kind::kString:
      return "the string " + in_quotes(written);
    case Kind::kInteger:
      return "the integer " + written;
    case Kind::kFloat:
      return "the number " + written;
    case Kind::kBoolean:
      return written;
    case Kind::kTime:
      return "a TIMESTAMP";
    case Kind::kLocalTime:
      return "a date or time without time zone";
    case Kind::kArray:
      return "an array";
    case Kind::kTable:
      return "a table";
  }
  return "";
}

const Node* Node::member(const std::string& name) const {
  const auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}

Problem problem_at(const Node& node, std::string option, std::string what, std::string fix) {
  Problem problem;
  problem.option = std::move(option);
  problem.what = std::move(what);
  problem.fix = std::move(fix);
  problem.line = node.line;
  problem.where = node.where();
  return problem;
}

std::optional<Node> parse_document(const SourcePtr& source, std::vector<Problem>& problems) {
  try {
    return convert(toml::parse(source->text), source);
  } catch (const toml::parse_error& error) {
    Problem problem;
    problem.line = error.source().begin.line;
    problem.where = fmt::format("{}:{}:{}", source->name, error.source().begin.line,
                                error.source().begin.column);
    problem.what = fmt::format("invalid TOML: {}", error.description());
    problem.fix = "Fix the syntax (https://toml.io). The rest of the file was not read";
    // As in a pattern: "^orders\..*".
    if (error.description().find("escape sequence") != std::string_view::npos)
      problem.fix += ". Between single quotes, a backslash needs no escape";
    problems.push_back(std::move(problem));
    return std::nullopt;
  }
}

Node parse_override_value(const SourcePtr& source, std::string_view text) {
  Node node;
  const std::optional<toml::table> table = try_parse(fmt::format("value = {}", text));
  if (table && table->size() == 1) {
    node = convert(*table->get("value"), source);
  } else {
    // `--set kafka.group=payments` is a bare string.
    node.kind = Node::Kind::kString;
    node.value = text;
  }
  node.source = source;
  node.typed = true;
  node.written = node.kind == Node::Kind::kString ? node.value : std::string{text};
  return node;
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  if (text.find_first_not_of("0123456789-+:.TtZz ") != std::string_view::npos)
    return std::nullopt;
  const std::optional<toml::table> table = try_parse(fmt::format("value = {}", text));
  const auto* const time = table ? table->get("value")->as_date_time() : nullptr;
  return time != nullptr ? to_milliseconds(time->get()) : std::nullopt;
}

void merge(Node& base, const Node& over) {
  if (base.kind != Node::Kind::kTable || over.kind != Node::Kind::kTable) {
    base = over;
    return;
  }
  for (const auto& [name, node] : over.members) {
    const auto [found, added] = base.members.try_emplace(name, node);
    if (!added)
      merge(found->second, node);
  }
}

}  // namespace pawl::config
