#include "cli/init_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "config/values.hpp"
#include "console/json.hpp"
#include "message/json_pointer.hpp"

namespace pawl::cli {
namespace {

std::string in_toml(std::string text) {
  return config::toml_text(config::text_value(std::move(text)));
}

/// Letters and digits alone, small: eventId, event-id and EVENT_ID are one word.
std::string word_of(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

/// Names of what tells one event from another, the surest first. "id" alone is often that of a
/// thing which has many events.
constexpr std::array<std::string_view, 11> kEventWords{
    "idempotencykey", "eventid", "ceid", "messageid", "msgid",  "requestid",
    "transactionid",  "txid",    "uuid", "paymentid", "orderid"};

/// Of a JSON Pointer (RFC 6901) in a template; nullopt where a template cannot say it.
std::optional<std::string> placeholder(const std::string& name) {
  if (name.empty() || name.find_first_of("{}\"\\") != std::string::npos)
    return std::nullopt;
  return "{/" + message::JsonPointer::escaped(name) + "}";
}

std::optional<Json> object_of(const Message& sample) {
  auto json = Json::parse(sample.value(), nullptr, false);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

struct Column {
  std::string name;
  std::string type;
  std::string value;  ///< the placeholder, with its cast
};

/// Key words that are no names in SQL without quotation marks (PostgreSQL 18, Appendix C: reserved,
/// also those that may name functions or types).
constexpr std::string_view kReservedWords =
    " all analyse analyze and any array as asc asymmetric authorization binary both"
    " case cast check collate collation column concurrently constraint create cross"
    " current_catalog current_date current_role current_schema current_time"
    " current_timestamp current_user default deferrable desc distinct do else end"
    " except false fetch for foreign freeze from full grant group having ilike in"
    " initially inner intersect into is isnull join lateral leading left like limit"
    " localtime localtimestamp natural not notnull null offset on only or order outer"
    " overlaps placing primary references returning right select session_user similar"
    " some symmetric system_user table tablesample then to trailing true union unique"
    " user using variadic verbose when where window with"
    " ";

std::string column_name(const std::string& name) {
  std::string column;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !column.empty() && column.back() != '_')
      column += '_';
    const auto small = std::tolower(static_cast<unsigned char>(c));
    column += std::isalnum(small) != 0 ? static_cast<char>(small) : '_';
  }
  if (std::isdigit(static_cast<unsigned char>(column.front())) != 0)
    column.insert(column.begin(), '_');
  // As SQL has to name it; it is shorter than a name may be, and holds nothing to be doubled.
  const bool reserved = kReservedWords.find(' ' + column + ' ') != std::string_view::npos;
  return reserved ? '"' + column + '"' : column;
}

std::string type_of(const Json& value) {
  if (value.is_number_integer())
    return "bigint";
  if (value.is_number())
    return "numeric";
  if (value.is_boolean())
    return "boolean";
  return value.is_structured() ? "jsonb" : "text";
}

std::vector<Column> columns_of(const Message& sample) {
  std::vector<Column> columns;
  if (const auto object = object_of(sample)) {
    for (const auto& [name, value] : object->items()) {
      const auto place = placeholder(name);
      const auto column = name.empty() ? std::string() : column_name(name);
      const bool twice = std::any_of(columns.begin(), columns.end(),
                                     [&](const Column& known) { return known.name == column; });
      if (!place || twice)
        continue;
      const auto type = type_of(value);
      columns.push_back({column, type, type == "text" ? *place : *place + "::" + type});
    }
  }
  if (columns.empty())
    columns.push_back({"value", "bytea", "{value}"});
  return columns;
}

std::string table_name(std::string_view topic) {
  return column_name(std::string(topic).substr(0, 50));
}

std::string handler_text(const InitFacts& facts, const std::optional<Message>& sample) {
  if (!sample) {
    return fmt::format(
        "[[handler]]\ntopics = [{}]\n"
        "# The topic has no message to look at: say what each is to do. {{/name}} is a place in "
        "its "
        "JSON value,\n# {{header:name}} a header.\n"
        "sql = {}\n",
        in_toml(facts.topic),
        in_toml(fmt::format("INSERT INTO {} (value) VALUES ({{value}})", table_name(facts.topic))));
  }
  const auto columns = columns_of(*sample);
  std::vector<std::string> definitions;
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& column : columns) {
    definitions.push_back(fmt::format("{} {}", column.name, column.type));
    names.push_back(column.name);
    values.push_back(column.value);
  }
  const auto table = table_name(facts.topic);
  return fmt::format(
      "# Guessed from the message at {} [{}] offset {}: one row for each. Its table would be\n"
      "#   CREATE TABLE {} ({});\n"
      "# {{/name}} is a place in the JSON value, {{header:name}} a header; they are bound, and "
      "never "
      "become text of the\n# statement. expect_rows = 1 fails a message whose statement touches no "
      "row.\n"
      "[[handler]]\ntopics = [{}]\nsql = [\n  {{ text = {}, expect_rows = 1 }},\n]\n",
      sample->topic(), sample->partition(), sample->offset(), table, fmt::join(definitions, ", "),
      in_toml(facts.topic),
      in_toml(fmt::format("INSERT INTO {} ({}) VALUES ({})", table, fmt::join(names, ", "),
                          fmt::join(values, ", "))));
}

/// "[kafka]" with its lines: `first`, unless they were set to something else, and what was set.
std::string section_text(const InitSettings& settings, const std::string& section,
                         const std::vector<std::pair<std::string, std::string>>& first) {
  const auto found = settings.sections.find(section);
  auto set =
      found == settings.sections.end() ? std::map<std::string, std::string>() : found->second;
  auto text = fmt::format("[{}]\n", section);
  for (const auto& [name, value] : first) {
    const auto instead = set.extract(name);
    text += fmt::format("{} = {}\n", name, instead ? instead.mapped() : value);
  }
  for (const auto& [name, value] : set)
    text += fmt::format("{} = {}\n", config::toml_key(name), value);
  return text + "\n";
}

std::string servers_text(const InitFacts& facts) {
  const auto& settings = facts.settings;
  std::string text;
  if (!settings.variables.empty()) {
    text += fmt::format(
        "# Of the environment, as it may be secret: {}. As \"${{file:PATH}}\" it is safer in a "
        "file.\n",
        fmt::join(settings.variables, ", "));
  }
  text += section_text(
      settings, "kafka",
      {{"bootstrap_servers", in_toml(facts.bootstrap_servers)}, {"group", in_toml(facts.group)}});
  if (settings.sections.contains("kafka.librdkafka"))
    text += section_text(settings, "kafka.librdkafka", {});
  text += section_text(settings, "postgres", {{"url", in_toml(facts.url)}});
  for (const auto& [section, lines] : settings.sections) {
    if (section != "kafka" && section != "kafka.librdkafka" && section != "postgres" &&
        section != "idempotency")
      text += section_text(settings, section, {});
  }
  return text;
}

std::string key_text(const std::optional<Message>& sample, const InitSettings& settings) {
  if (settings.sections.contains("idempotency"))
    return section_text(settings, "idempotency", {});
  const auto candidates = sample ? key_candidates(*sample) : std::vector<std::string>();
  std::string text =
      "# What tells one event from another, also when its producer sends it twice. Not the id of a "
      "thing that has\n# many events: of those only the first would be applied.\n[idempotency]\n";
  if (candidates.empty()) {
    return text +
           "# Nothing in the message looks like one. Name a header or a place in the value; or, "
           "where each message counts\n# as often as it is in Kafka, write these two lines in the "
           "place of the one below:\n"
           "# key = \"\"\n# missing_key = \"process\"\nkey = \"{header:event-id}\"\n";
  }
  if (candidates.size() > 1) {
    text += fmt::format("# Also possible: {}\n",
                        fmt::join(std::vector(candidates.begin() + 1, candidates.end()), ", "));
  }
  return text + fmt::format("key = {}\n", in_toml(candidates.front()));
}

}  // namespace

std::vector<std::string> key_candidates(const Message& sample) {
  std::vector<std::pair<std::size_t, std::string>> found;
  const auto rank = [](std::string_view name) {
    return static_cast<std::size_t>(
        std::find(kEventWords.begin(), kEventWords.end(), word_of(name)) - kEventWords.begin());
  };
  for (const auto& header : sample.headers()) {
    const bool sayable = header.name.find_first_of("{}\"\\") == std::string_view::npos;
    if (sayable && header.value && rank(header.name) < kEventWords.size())
      found.emplace_back(2 * rank(header.name), fmt::format("{{header:{}}}", header.name));
  }
  if (const auto object = object_of(sample)) {
    for (const auto& [name, value] : object->items()) {
      const auto place = placeholder(name);
      if (place && (value.is_string() || value.is_number_integer()) &&
          rank(name) < kEventWords.size())
        found.emplace_back(2 * rank(name) + 1, *place);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> candidates;
  for (const auto& [order, candidate] : found) {
    if (std::find(candidates.begin(), candidates.end(), candidate) == candidates.end())
      candidates.push_back(candidate);
  }
  return candidates;
}

std::string init_text(const InitFacts& facts, const std::optional<Message>& sample) {
  return fmt::format(
      "# A beginning for topic {}, which has {} partitions. Every other option stands in "
      "reference.toml.\n"
      "# Next, with this file as FILE: make the database (createdb) and the table below in it; "
      "pawl migrate up\n# --config FILE; pawl check --config FILE; pawl try --config FILE --topic "
      "{} --partition 0 --offset 0; pawl run --config FILE\n\n"
      "{}{}\n{}",
      facts.topic, facts.partitions, facts.topic, servers_text(facts),
      key_text(sample, facts.settings), handler_text(facts, sample));
}

}  // namespace pawl::cli
