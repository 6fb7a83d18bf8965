#include "cli/init_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "config/values.hpp"
#include "console/decoded.hpp"
#include "console/json.hpp"
#include "message/confluent.hpp"
#include "message/entity_key.hpp"
#include "message/json.hpp"
#include "message/json_pointer.hpp"
#include "message/placeholder.hpp"
#include "message/template.hpp"

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

std::string placeholder(const std::string& source) {
  return "{" + message::Placeholder::escaped(source) + "}";
}

/// Of a member of the JSON value.
std::string member_placeholder(const std::string& name) {
  return placeholder("/" + message::JsonPointer::escaped(name));
}

/// Of the sample's value; none where it is no JSON object.
std::vector<message::JsonMember> members_of(const Message& sample, message::JsonReader& reader) {
  try {
    reader.read(sample.value());
    return reader.members();
  } catch (const message::JsonError&) {
    return {};
  }
}

bool is_storable(std::string_view text) {
  return text.find('\0') == std::string_view::npos;
}

/// What PostgreSQL can store of the member: neither its name nor its text holds NUL or a half of a
/// surrogate pair.
bool is_storable(const message::JsonMember& member) {
  std::string scratch;
  const auto text = member.value.text(scratch);
  return member.name && is_storable(*member.name) && text && is_storable(*text);
}

bool is_integer(const message::JsonValue& value) {
  const auto digits = value.raw();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return value.kind() == message::JsonKind::kNumber && error == std::errc{} &&
         end == digits.data() + digits.size();
}

/// More than these may not fit into a row, which has one page of 8 KB.
constexpr std::size_t kMostColumns = 400;

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

/// The word with a number behind it, if that is not 1; not longer than a name may be.
std::string numbered(const std::string& word, std::size_t number) {
  constexpr std::size_t kLongest = 63;  // NAMEDATALEN - 1
  const auto suffix = number == 1 ? std::string() : fmt::format("_{}", number);
  return word.substr(0, kLongest - suffix.size()) + suffix;
}

/// The first word that is not `used`, and is from now on.
std::string unused(const std::string& word, std::set<std::string>& used) {
  for (std::size_t number = 1;; ++number) {
    auto name = numbered(word, number);
    if (used.insert(name).second)
      return name;
  }
}

/// Small letters, digits and underscores, not a digit first.
std::string sql_word(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !word.empty() && word.back() != '_')
      word += '_';
    const auto small = std::tolower(static_cast<unsigned char>(c));
    word += std::isalnum(small) != 0 ? static_cast<char>(small) : '_';
  }
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word.front())) != 0)
    word.insert(word.begin(), '_');
  return word;
}

/// A word as SQL has to name it; it holds nothing to be doubled.
std::string sql_name(const std::string& word) {
  const bool reserved = kReservedWords.find(' ' + word + ' ') != std::string_view::npos;
  return reserved ? '"' + word + '"' : word;
}

std::string type_of(const message::JsonValue& value) {
  switch (value.kind()) {
    case message::JsonKind::kNumber:
      return is_integer(value) ? "bigint" : "numeric";
    case message::JsonKind::kTrue:
    case message::JsonKind::kFalse:
      return "boolean";
    case message::JsonKind::kArray:
    case message::JsonKind::kObject:
      // jsonb refuses NUL and half a surrogate pair in a string.
      return Json::accept(value.raw()) && value.raw().find("\\u0000") == std::string_view::npos
                 ? "jsonb"
                 : "json";
    case message::JsonKind::kNull:
    case message::JsonKind::kString:
      break;
  }
  return "text";
}

/// The table that is proposed for the sample.
struct Proposal {
  std::vector<Column> columns;
  std::string remark;  ///< a comment on what has no column of its own; empty: nothing
};

Proposal proposal_of(const Message& sample) {
  message::JsonReader reader;
  const auto members = members_of(sample, reader);
  Proposal proposal;
  std::vector<std::string> omitted;
  std::set<std::string> used{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"};
  for (const auto& member : members) {
    if (members.size() > kMostColumns)
      break;
    if (!is_storable(member)) {
      omitted.push_back(in_toml(member.name.value_or(std::string(member.written))));
      continue;
    }
    const auto type = type_of(member.value);
    const auto place = member_placeholder(*member.name);
    proposal.columns.push_back({sql_name(unused(sql_word(*member.name), used)), type,
                                type == "text" ? place : place + "::" + type});
  }
  if (proposal.columns.empty()) {
    proposal.columns.push_back({"value", "bytea", "{value}"});
    if (const auto schema = message::confluent_schema(sample.value()))
      proposal.remark = fmt::format("# {}. The value is stored as a whole.\n", *schema);
    else if (!members.empty())
      proposal.remark =
          "# Its members have no columns of their own. The value is stored as a whole.\n";
  } else if (!omitted.empty()) {
    proposal.remark = fmt::format(
        "# Omitted, because PostgreSQL's text cannot contain NUL or half of a surrogate pair: {}\n",
        fmt::join(omitted, ", "));
  }
  return proposal;
}

std::string table_name(std::string_view topic) {
  return sql_name(numbered(sql_word(topic), 1));
}

std::string handler_text(const InitFacts& facts, const std::optional<Message>& sample) {
  if (!sample) {
    return fmt::format(
        "[[handler]]\ntopics = [{}]\n"
        "# The topic has no message yet, so change this statement. {{/name}} is a field of the "
        "JSON "
        "value,\n# {{header:name}} is a header.\n"
        "sql = {}\n",
        in_toml(facts.topic),
        in_toml(fmt::format("INSERT INTO {} (value) VALUES ({{value}})", table_name(facts.topic))));
  }
  const auto [columns, remark] = proposal_of(*sample);
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
      "# Derived from the message {}[{}]@{}: one row per message, in this table:\n"
      "#   CREATE TABLE {} ({});\n{}"
      "# {{/name}} is a field of the JSON value, {{header:name}} is a header. They become bind "
      "parameters, never text\n# of the statement. With expect_rows = 1, a message fails if its "
      "statement affects no row.\n"
      "[[handler]]\ntopics = [{}]\nsql = [\n  {{ text = {}, expect_rows = 1 }},\n]\n",
      sample->topic(), sample->partition(), sample->offset(), table, fmt::join(definitions, ", "),
      remark, in_toml(facts.topic),
      in_toml(fmt::format("INSERT INTO {} ({}) VALUES ({})", table, fmt::join(names, ", "),
                          fmt::join(values, ", "))));
}

/// "[kafka]" with its lines: `first`, unless they were set to something else, and what was set;
/// then `remark`.
std::string section_text(const InitSettings& settings, const std::string& section,
                         const std::vector<std::pair<std::string, std::string>>& first,
                         const std::string& remark = {}) {
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
  return text + remark + "\n";
}

std::string static_membership_text(const InitFacts& facts) {
  return fmt::format(
      "# A name of this process: after a crash and a restart, it continues within seconds.\n"
      "# Each process of the group needs its own (pawl@.service passes HOST-CONFIGURATION). The "
      "disadvantage: if a process\n# does not restart, its partitions wait for "
      "session_timeout.\n# group_instance_id = {}\n",
      in_toml(facts.group + "-1"));
}

std::string servers_text(const InitFacts& facts) {
  const auto& settings = facts.settings;
  std::string text;
  if (!settings.variables.empty()) {
    text += fmt::format(
        "# Read from the environment, because the value may be secret: {}. A file is safer: "
        "\"${{file:PATH}}\".\n",
        fmt::join(settings.variables, ", "));
  }
  text += section_text(
      settings, "kafka",
      {{"bootstrap_servers", in_toml(facts.bootstrap_servers)}, {"group", in_toml(facts.group)}},
      static_membership_text(facts));
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
      "# The key identifies an event, also if its producer sends the event twice. Do not use the "
      "ID of an entity\n# that has many events: pawl would apply only the first of them.\n"
      "[idempotency]\n";
  if (candidates.empty()) {
    return text +
           "# The message has no field that looks like a key. Use a header or a field of the "
           "value. "
           "If each message must\n# be applied as often as it is in Kafka, replace the line below "
           "with these two:\n"
           "# key = \"\"\n# missing_key = \"process\"\nkey = \"{header:event-id}\"\n";
  }
  std::vector<std::string> written;
  for (const auto& candidate : candidates)
    written.push_back(in_toml(candidate));
  if (written.size() > 1)
    text +=
        fmt::format("# Alternatives: {}\n", fmt::join(written.begin() + 1, written.end(), ", "));
  text += fmt::format("key = {}\n", written.front());
  if (message::entity_in_key(message::Template::parse_key(candidates.front())))
    text +=
        "# The key looks like the ID of an entity, so pawl warns about it. If no two events have "
        "the same key, add:\n# key_checked = true\n";
  return text;
}

}  // namespace

std::vector<std::string> key_candidates(const Message& sample) {
  std::vector<std::pair<std::size_t, std::string>> found;
  const auto rank = [](std::string_view name) {
    return static_cast<std::size_t>(
        std::find(kEventWords.begin(), kEventWords.end(), word_of(name)) - kEventWords.begin());
  };
  for (const auto& header : sample.headers()) {
    const bool readable = decode(header.name, std::string_view::npos).form != "hex";
    if (readable && header.value && rank(header.name) < kEventWords.size())
      found.emplace_back(2 * rank(header.name), placeholder(fmt::format("header:{}", header.name)));
  }
  message::JsonReader reader;
  for (const auto& member : members_of(sample, reader)) {
    const auto kind = member.value.kind();
    const bool identifies =
        kind == message::JsonKind::kString || kind == message::JsonKind::kNumber;
    if (identifies && is_storable(member) && rank(*member.name) < kEventWords.size())
      found.emplace_back(2 * rank(*member.name) + 1, member_placeholder(*member.name));
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
      "# Configuration for topic {}, which has {} partitions. reference.toml contains all "
      "options.\n"
      "# Next steps (FILE is this file, OWNER-URL the database's URL for its owner):\n"
      "#   create the database (`createdb`), and the table below in it\n"
      "#   pawl migrate up --database OWNER-URL\n"
      "#   pawl migrate grants --role ROLE | psql OWNER-URL    # only if postgres.url has another "
      "ROLE, which also needs privileges on the table\n"
      "#   pawl check --config FILE\n"
      "#   pawl try --config FILE --topic {} --partition 0 --offset 0\n"
      "#   pawl run --config FILE\n\n"
      "{}{}\n{}",
      facts.topic, facts.partitions, facts.topic, servers_text(facts),
      key_text(sample, facts.settings), handler_text(facts, sample));
}

}  // namespace pawl::cli
