#include "config/special_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "config/units.hpp"
#include "config/values.hpp"
#include "handlers/http/shown_request.hpp"

namespace pawl::config {

namespace {

constexpr std::array<std::pair<std::string_view, Start>, 4> kStarts{
    {{"committed", Start::kCommitted},
     {"earliest", Start::kEarliest},
     {"latest", Start::kLatest},
     {"halt", Start::kHalt}}};

/// `client.id = "x"` without quotes around the name is a table in TOML, but it is meant as it
/// reads.
void add_properties(const Node& node, const std::string& prefix, Findings& findings,
                    std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : node.members) {
    const std::string property = dotted(prefix, key);
    const std::string option = "kafka.librdkafka." + property;
    findings.nodes[option] = &value;
    switch (value.kind) {
      case Node::Kind::kTable:
        add_properties(value, property, findings, out);
        break;
      case Node::Kind::kString:
        out[property] = value.value;
        break;
      case Node::Kind::kInteger:
      case Node::Kind::kBoolean:
      case Node::Kind::kFloat:
        out[property] = value.written;
        break;
      default:
        findings.report(value, option,
                        "expected a string, number, or boolean, found " + value.describe(),
                        "Write the value as in CONFIGURATION.md of librdkafka");
    }
  }
}

/// What a list of SQL texts holds, for its error messages.
struct ItemWords {
  std::string_view name;  ///< with its article
  std::string_view example;
  std::span<const std::string_view> keys;  ///< of an item that is a table
};

constexpr std::array<std::string_view, 2> kCheckKeys{"text", "name"};
constexpr std::array<std::string_view, 3> kStatementKeys{"text", "expect_rows", "name"};

constexpr ItemWords kCheckWords{"a check", R"(Write { name = "...", text = "SELECT ..." })",
                                kCheckKeys};
constexpr ItemWords kStatementWords{"a statement", R"(Write { text = "...", expect_rows = 1 })",
                                    kStatementKeys};

void report_unknown_keys(const Node& node, const std::string& option,
                         std::span<const std::string_view> known, Findings& findings) {
  for (const auto& [key, value] : node.members) {
    if (std::ranges::find(known, key) != known.end())
      continue;
    const auto near = nearest(key, {known.begin(), known.end()});
    findings.report(value, dotted(option, key), "unknown option",
                    near ? fmt::format("Did you mean {}?", *near)
                         : fmt::format("Known options: {}", fmt::join(known, ", ")));
  }
}

/// An SQL text, or a table that holds it beside another option, which `read_rest` reads.
template <typename ReadRest>
void read_item(const Node& node, const std::string& option, const Reader& list,
               const ItemWords& words, Findings& findings, std::string& text,
               const ReadRest& read_rest) {
  findings.nodes[option] = &node;
  if (node.kind != Node::Kind::kTable) {
    (void)list.is_text(node, option, text);
    return;
  }
  const Reader reader{node, option, findings};
  if (reader.node("text") == nullptr)
    findings.report(node, option, fmt::format("{} without text", words.name),
                    std::string(words.example));
  reader.text("text", text);
  read_rest(reader);
  report_unknown_keys(node, option, words.keys, findings);
}

/// Calls `read(node, option)` for every item of `sql`, which may also be one item without [ ].
template <typename ReadItem>
void read_items(const Reader& reader, const ReadItem& read) {
  const Node* const node = reader.node("sql");
  if (node == nullptr)
    return;
  if (node->kind != Node::Kind::kArray) {
    read(*node, reader.option("sql[0]"));
    return;
  }
  for (std::size_t i = 0; i < node->items.size(); ++i)
    read(node->items[i], fmt::format("{}[{}]", reader.option("sql"), i));
}

/// `{ text = "...", KEY = ..., ... }`, or the text alone where there is nothing else.
Node item_value(const std::string& text, std::map<std::string, Node> rest) {
  if (rest.empty())
    return text_value(text);
  Node item;
  for (auto& [key, value] : rest)
    item.members.emplace(key, std::move(value));
  item.members.emplace("text", text_value(text));
  return item;
}

}  // namespace

/// A name, or a time as TOML writes it, with or without quotes.
void read_start(const Reader& kafka, Findings& findings, Settings& settings) {
  KafkaOptions& out = settings.options.kafka;
  const Node* const node = kafka.node("start");
  if (node == nullptr)
    return;
  auto time = node->kind == Node::Kind::kTime ? std::optional{node->time_ms} : std::nullopt;
  if (node->kind == Node::Kind::kString)
    time = parse_time(node->value);
  if (time) {
    out.start = Start::kTimestamp;
    out.start_timestamp =
        std::chrono::sys_time<std::chrono::milliseconds>{std::chrono::milliseconds{*time}};
    return;
  }
  if (node->kind == Node::Kind::kString) {
    for (const auto& [name, start] : kStarts) {
      if (name == node->value) {
        out.start = start;
        return;
      }
    }
  }
  const bool local = node->kind == Node::Kind::kLocalTime;
  findings.report(*node, kafka.option("start"),
                  fmt::format("expected a name or a TIMESTAMP, found {}", node->describe()),
                  local ? "Write date, time, and time zone, such as 2026-01-31T00:00:00Z"
                        : "Use \"committed\", \"earliest\", \"latest\", \"halt\", or a TIMESTAMP "
                          "such as 2026-01-31T00:00:00Z");
}

void read_partitions(const Reader& kafka, Findings& findings, Settings& settings) {
  auto& out = settings.options.kafka.manual_partitions;
  const Node* const node = kafka.node("partitions");
  if (node == nullptr)
    return;
  if (node->kind != Node::Kind::kArray) {
    findings.report(*node, kafka.option("partitions"),
                    "expected an array of numbers, found " + node->describe(),
                    "Write partition numbers between [ and ], such as [0, 1]");
    return;
  }
  out.clear();
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const std::string option = fmt::format("{}[{}]", kafka.option("partitions"), i);
    findings.nodes[option] = &node->items[i];
    std::uint64_t number = 0;
    if (kafka.is_count(node->items[i], option, std::numeric_limits<std::int32_t>::max(), number)) {
      out.push_back(static_cast<std::int32_t>(number));
    }
  }
}

void read_properties(const Reader& kafka, Findings& findings, Settings& settings) {
  if (const Node* const properties = kafka.node("librdkafka"))
    add_properties(*properties, "", findings, settings.options.kafka.librdkafka);
}

void read_audit_sql(const Reader& audit, Findings& findings, Settings& settings) {
  read_items(audit, [&](const Node& node, const std::string& option) {
    AuditCheck& check = settings.options.audit.checks.emplace_back();
    check.where = node.where();
    read_item(node, option, audit, kCheckWords, findings, check.text,
              [&](const Reader& reader) { reader.text("name", check.name); });
  });
}

void read_statements(const Reader& handler, Findings& findings, Settings& settings) {
  auto& out = settings.handler.sql;
  const Node* const list = handler.node("sql");
  if (list != nullptr && list->kind == Node::Kind::kArray && list->items.empty()) {
    findings.report(*list, handler.option("sql"), "an empty array", "Write at least one statement");
  }
  read_items(handler, [&](const Node& node, const std::string& option) {
    SqlStatement& statement = out.emplace_back();
    statement.where = node.where();
    read_item(node, option, handler, kStatementWords, findings, statement.text,
              [&](const Reader& reader) {
                reader.text("name", statement.name);
                if (reader.node("expect_rows") != nullptr) {
                  std::uint64_t rows = 0;
                  reader.count("expect_rows", rows);
                  statement.expect_rows = rows;
                }
              });
  });
}

void read_response(const Reader& handler, Findings& findings, Settings& settings) {
  const Node* const node = handler.node("response");
  if (node == nullptr)
    return;
  auto& out = settings.handler.response;
  out.where = node->where();
  const std::string option = handler.option("response");
  if (node->kind != Node::Kind::kTable) {
    (void)handler.is_text(*node, option, out.text);
    return;
  }
  static constexpr std::array<std::string_view, 1> kKeys{"statement"};
  const Reader reader{*node, option, findings};
  if (reader.node("statement") == nullptr)
    findings.report(*node, option, "no statement",
                    R"(Write "SELECT ...", or { statement = "NAME" })");
  reader.text("statement", out.statement);
  report_unknown_keys(*node, option, kKeys, findings);
}

namespace {

/// A text whose ${...} is looked up when it is needed.
void read_http_text(const Reader& reader, const std::string& key, HttpText& out) {
  const Node* const node = reader.node(key);
  std::string value;
  if (node == nullptr || !reader.is_text(*node, reader.option(key), value))
    return;
  out = {node->written, node->source->folder};
}

/// A TOML value as JSON; strings as they were written.
std::optional<nlohmann::json> json_of(const Node& node, const std::string& option,
                                      Findings& findings) {
  switch (node.kind) {
    case Node::Kind::kString:
      return node.written;
    case Node::Kind::kInteger:
      return node.integer;
    case Node::Kind::kBoolean:
      return node.boolean;
    case Node::Kind::kFloat: {
      // TOML has signs and underscores that JSON has not.
      auto written = node.written;
      std::erase(written, '_');
      if (written.starts_with('+'))
        written.erase(0, 1);
      auto number = nlohmann::json::parse(written, nullptr, false);
      if (number.is_number())
        return number;
      break;
    }
    case Node::Kind::kArray: {
      auto array = nlohmann::json::array();
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        auto item = json_of(node.items[i], fmt::format("{}[{}]", option, i), findings);
        if (!item)
          return std::nullopt;
        array.push_back(*std::move(item));
      }
      return array;
    }
    case Node::Kind::kTable: {
      auto object = nlohmann::json::object();
      for (const auto& [name, member] : node.members) {
        auto value = json_of(member, dotted(option, name), findings);
        if (!value)
          return std::nullopt;
        object[name] = *std::move(value);
      }
      return object;
    }
    default:
      break;
  }
  findings.report(node, option, "not a JSON value: " + node.describe(),
                  "Use a string, number, boolean, array, or table");
  return std::nullopt;
}

/// A relative one begins at the folder of the file in which it stands, as in ${file:PATH}.
void read_path(const Reader& reader, const std::string& key, std::string& out) {
  reader.text(key, out);
  const Node* const node = reader.node(key);
  if (node != nullptr && !out.empty())
    out = (std::filesystem::path(node->source->folder) / out).string();
}

constexpr std::array<std::string_view, 17> kHttpKeys{
    "method",        "url",        "headers",   "json",        "body",       "key_header",
    "success",       "retry",      "permanent", "not_done",    "outage",     "timeout",
    "max_in_flight", "keep_alive", "ca_file",   "certificate", "private_key"};

}  // namespace

void read_http(const Reader& handler, Findings& findings, Settings& settings) {
  const Node* const node = handler.node("http");
  if (node == nullptr)
    return;
  auto& out = settings.handler.http;
  const std::string option = handler.option("http");
  if (node->kind != Node::Kind::kTable) {
    findings.report(*node, option, "expected a table, found " + node->describe(),
                    R"(Write { url = "https://HOST/PATH", json = { id = "{/id}" } })");
    return;
  }
  // As `config show` has it.
  if (node->members.empty())
    return;
  out.where = node->where();
  const Reader reader{*node, option, findings};
  reader.text("method", out.method);
  read_http_text(reader, "url", out.url);
  if (reader.node("url") == nullptr)
    findings.report(*node, option, "no url", R"(Set url = "https://HOST/PATH")");
  if (const Node* const headers = reader.node("headers")) {
    const Reader each{*headers, reader.option("headers"), findings};
    if (headers->kind != Node::Kind::kTable) {
      findings.report(*headers, reader.option("headers"),
                      "expected a table, found " + headers->describe(),
                      R"(Write headers = { Authorization = "Bearer ${file:PATH}" })");
    }
    for (const auto& [name, value] : headers->members)
      read_http_text(each, name, out.headers[name]);
  }
  if (const Node* const json = reader.node("json")) {
    if (const auto value = json_of(*json, reader.option("json"), findings))
      out.json = {value->dump(), json->source->folder};
  }
  read_http_text(reader, "body", out.body);
  reader.text("key_header", out.key_header);
  reader.text("success", out.success);
  reader.text("retry", out.retry);
  reader.text("permanent", out.permanent);
  reader.text("not_done", out.not_done);
  reader.text("outage", out.outage);
  if (const Node* const timeout = reader.node("timeout");
      timeout != nullptr && handler.node("timeout") != nullptr) {
    findings.report(*timeout, reader.option("timeout"), "conflicts with the handler's timeout",
                    "Remove one of them, because both limit the whole call");
  }
  reader.duration("timeout", settings.handler.timeout);
  reader.count("max_in_flight", out.max_in_flight);
  reader.flag("keep_alive", out.keep_alive);
  read_path(reader, "ca_file", out.ca_file);
  read_path(reader, "certificate", out.certificate);
  read_path(reader, "private_key", out.private_key);
  report_unknown_keys(*node, option, kHttpKeys, findings);
}

Node http_value(Settings& settings) {
  Node table;
  if (settings.handler.http.empty())
    return table;
  const auto http = handlers::without_secrets(settings.handler.http);
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      table.members.emplace(name, text_value(value));
  };
  add("method", http.method);
  add("url", http.url.written);
  Node headers;
  for (const auto& [name, value] : http.headers)
    headers.members.emplace(name, text_value(value.written));
  if (!headers.members.empty())
    table.members.emplace("headers", std::move(headers));
  add("json", http.json.written);
  add("body", http.body.written);
  add("key_header", http.key_header);
  add("success", http.success);
  add("retry", http.retry);
  add("permanent", http.permanent);
  add("not_done", http.not_done);
  add("outage", http.outage);
  if (http.max_in_flight > 0)
    table.members.emplace("max_in_flight", integer_value(http.max_in_flight));
  if (!http.keep_alive)
    table.members.emplace("keep_alive", flag_value(false));
  add("ca_file", http.ca_file);
  add("certificate", http.certificate);
  add("private_key", http.private_key);
  return table;
}

void read_retention(const Reader& handler, Findings& /*findings*/, Settings& settings) {
  auto retention = settings.handler.retention.value_or(milliseconds{-1});
  handler.duration("retention", retention);
  if (retention.count() >= 0)
    settings.handler.retention = retention;
}

Node start_value(Settings& settings) {
  const KafkaOptions& kafka = settings.options.kafka;
  for (const auto& [name, start] : kStarts) {
    if (start == kafka.start)
      return text_value(std::string{name});
  }
  return time_value(kafka.start_timestamp.time_since_epoch().count());
}

Node partitions_value(Settings& settings) {
  Node array;
  array.kind = Node::Kind::kArray;
  for (const std::int32_t partition : settings.options.kafka.manual_partitions)
    array.items.push_back(integer_value(partition));
  return array;
}

Node properties_value(Settings& settings) {
  Node table;
  for (const auto& [name, value] : settings.options.kafka.librdkafka)
    table.members.emplace(name, text_value(value));
  return table;
}

Node audit_sql_value(Settings& settings) {
  Node array;
  array.kind = Node::Kind::kArray;
  for (const AuditCheck& check : settings.options.audit.checks) {
    std::map<std::string, Node> rest;
    if (!check.name.empty())
      rest.emplace("name", text_value(check.name));
    array.items.push_back(item_value(check.text, std::move(rest)));
  }
  return array;
}

Node statements_value(Settings& settings) {
  Node array;
  array.kind = Node::Kind::kArray;
  for (const SqlStatement& statement : settings.handler.sql) {
    std::map<std::string, Node> rest;
    if (statement.expect_rows)
      rest.emplace("expect_rows", integer_value(static_cast<std::int64_t>(*statement.expect_rows)));
    if (!statement.name.empty())
      rest.emplace("name", text_value(statement.name));
    array.items.push_back(item_value(statement.text, std::move(rest)));
  }
  return array;
}

Node retention_value(Settings& settings) {
  return text_value(
      format_duration(settings.handler.retention.value_or(settings.options.retention.keys)));
}

Node response_value(Settings& settings) {
  const SqlResponse& response = settings.handler.response;
  if (response.statement.empty())
    return text_value(response.text);
  Node named;
  named.members.emplace("statement", text_value(response.statement));
  return named;
}

}  // namespace pawl::config
