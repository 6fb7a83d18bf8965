#include "config/options_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace pawl::config {

namespace {

constexpr std::array<Choice<GroupProtocol>, 2> kGroupProtocols{
    {{"classic", GroupProtocol::kClassic}, {"consumer", GroupProtocol::kConsumer}}};
constexpr std::array<Choice<Assignment>, 2> kAssignments{
    {{"group", Assignment::kGroup}, {"manual", Assignment::kManual}}};
constexpr std::array<Choice<Start>, 4> kStarts{{{"committed", Start::kCommitted},
                                                {"earliest", Start::kEarliest},
                                                {"latest", Start::kLatest},
                                                {"halt", Start::kHalt}}};
constexpr std::array<Choice<MissingKey>, 3> kMissingKeys{
    {{"fail", MissingKey::kFail}, {"process", MissingKey::kProcess}, {"skip", MissingKey::kSkip}}};
constexpr std::array<Choice<Conflict>, 2> kConflicts{
    {{"fail", Conflict::kFail}, {"ignore", Conflict::kIgnore}}};
constexpr std::array<Choice<FailurePolicy>, 4> kPolicies{
    {{"halt", FailurePolicy::kHalt},
     {"dead-letter", FailurePolicy::kDeadLetter},
     {"park", FailurePolicy::kPark},
     {"skip", FailurePolicy::kSkip}}};
constexpr std::array<Choice<Unmatched>, 2> kUnmatched{
    {{"fail", Unmatched::kFail}, {"skip", Unmatched::kSkip}}};
constexpr std::array<Choice<Durability>, 2> kDurabilities{
    {{"synchronous", Durability::kSynchronous}, {"replayable", Durability::kReplayable}}};
constexpr std::array<Choice<LogFormat>, 2> kLogFormats{
    {{"text", LogFormat::kText}, {"json", LogFormat::kJson}}};

/// A name, or a time as TOML writes it, with or without quotes.
void read_start(const Reader& reader, Findings& findings, KafkaOptions& out) {
  const Node* const node = reader.node("start");
  if (node == nullptr)
    return;
  auto time = node->kind == Node::Kind::kTime ? std::optional{node->time_ms} : std::nullopt;
  if (node->kind == Node::Kind::kString)
    time = parse_time(node->value);
  if (time) {
    out.start = Start::kTimestamp;
    out.start_timestamp_ms = *time;
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
  findings.report(*node, reader.option("start"),
                  fmt::format("expected a name or a time, found {}", node->describe()),
                  local ? "write date, time and time zone, such as 2026-01-31T00:00:00Z"
                        : "write \"committed\", \"earliest\", \"latest\", \"halt\" or a time such "
                          "as 2026-01-31T00:00:00Z");
}

void read_partitions(const Reader& reader, Findings& findings, std::vector<std::int32_t>& out) {
  const Node* const node = reader.node("partitions");
  if (node == nullptr)
    return;
  if (node->kind != Node::Kind::kArray) {
    findings.report(*node, reader.option("partitions"),
                    "expected an array of numbers, found " + node->describe(),
                    "write partition numbers between [ and ], such as [0, 1]");
    return;
  }
  out.clear();
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const std::string option = fmt::format("{}[{}]", reader.option("partitions"), i);
    findings.nodes[option] = &node->items[i];
    std::uint64_t number = 0;
    if (reader.is_count(node->items[i], option, std::numeric_limits<std::int32_t>::max(), number)) {
      out.push_back(static_cast<std::int32_t>(number));
    }
  }
}

/// `client.id = "x"` without quotes around the name is a table in TOML, but it is meant as it
/// reads.
void read_properties(const Node& node, const std::string& prefix, Findings& findings,
                     std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : node.members) {
    const std::string property = dotted(prefix, key);
    const std::string option = "kafka.librdkafka." + property;
    findings.nodes[option] = &value;
    switch (value.kind) {
      case Node::Kind::kTable:
        read_properties(value, property, findings, out);
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
                        "expected a string, number or boolean, found " + value.describe(),
                        "write the value as CONFIGURATION.md of librdkafka has it");
    }
  }
}

void read_kafka(const Reader& reader, const Node& root, Findings& findings, KafkaOptions& out) {
  reader.text("bootstrap_servers", out.bootstrap_servers);
  reader.text("group", out.group);
  reader.text("cluster", out.cluster);
  reader.text("group_instance_id", out.group_instance_id);
  reader.choice("group_protocol", kGroupProtocols, out.group_protocol);
  reader.text("assignor", out.assignor);
  reader.duration("session_timeout", out.session_timeout);
  read_start(reader, findings, out);
  reader.texts("start_beside", out.start_beside);
  reader.size("buffer", out.buffer);
  reader.duration("topic_check_interval", out.topic_check_interval);
  reader.duration("commit_interval", out.commit_interval);
  reader.choice("assignment", kAssignments, out.assignment);
  read_partitions(reader, findings, out.manual_partitions);
  if (const Node* const kafka = root.member("kafka")) {
    if (const Node* const properties = kafka->member("librdkafka")) {
      read_properties(*properties, "", findings, out.librdkafka);
    }
  }
}

void read_postgres(const Reader& reader, PostgresOptions& out) {
  reader.text("url", out.url);
  reader.text("schema", out.schema);
  reader.flag("pooled", out.pooled);
  reader.text("synchronous_commit", out.synchronous_commit);
  reader.duration("connect_timeout", out.connect_timeout);
  reader.duration("lock_timeout", out.lock_timeout);
  reader.duration("retry_initial", out.retry_initial);
  reader.duration("retry_max", out.retry_max);
  reader.duration("stalled_owner_after", out.stalled_owner_after);
  reader.duration("poll_interval", out.poll_interval);
}

void read_idempotency(const Reader& reader, IdempotencyOptions& out) {
  reader.text("key", out.key);
  reader.text("scope", out.scope);
  reader.choice("missing_key", kMissingKeys, out.missing_key);
  reader.choice("conflict", kConflicts, out.conflict);
}

void read_failures(const Reader& reader, FailureOptions& out) {
  reader.choice("then", kPolicies, out.then);
  reader.duration("retry_for", out.retry_for);
  reader.count("max_attempts", out.max_attempts);
  reader.count("max_crashes", out.max_crashes);
  reader.duration("retry_initial", out.retry_initial);
  reader.duration("retry_max", out.retry_max);
  reader.duration("program_error_retry", out.program_error_retry);
  reader.count("breaker", out.breaker);
}

void read_dead_letters(const Reader& reader, DeadLetterOptions& out) {
  reader.flag("store_payload", out.store_payload);
  reader.size("max_payload", out.max_payload);
  reader.text("topic", out.topic);
}

void read_batch(const Reader& reader, BatchOptions& out) {
  reader.count("max_messages", out.max_messages);
  reader.size("max_bytes", out.max_bytes);
  reader.duration("linger", out.linger);
}

void read_alerts(const Reader& reader, AlertOptions& out) {
  reader.texts("command", out.command);
  reader.duration("timeout", out.timeout);
  reader.text("notify_channel", out.notify_channel);
  reader.duration("min_interval", out.min_interval);
  reader.duration("unreachable_after", out.unreachable_after);
}

/// What a list of SQL texts holds, for its error messages.
struct ItemWords {
  std::string_view name;  ///< with its article
  std::string_view example;
  std::array<std::string_view, 2> keys;  ///< of an item that is a table; the first holds its text
};

constexpr ItemWords kCheckWords{
    "a check", R"(write { name = "...", text = "SELECT ..." })", {"text", "name"}};
constexpr ItemWords kStatementWords{
    "a statement", R"(write { text = "...", expect_rows = 1 })", {"text", "expect_rows"}};

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
  for (const auto& [key, value] : node.members) {
    if (std::ranges::find(words.keys, key) != words.keys.end())
      continue;
    const auto near = nearest(key, {std::string(words.keys[0]), std::string(words.keys[1])});
    findings.report(value, dotted(option, key), "unknown option",
                    near ? fmt::format("did you mean {}?", *near)
                         : fmt::format("{} has {}", words.name, fmt::join(words.keys, " and ")));
  }
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

void read_audit(const Reader& audit, Findings& findings, AuditOptions& out) {
  audit.duration("timeout", out.timeout);
  read_items(audit, [&](const Node& node, const std::string& option) {
    AuditCheck& check = out.checks.emplace_back();
    check.where = node.where();
    read_item(node, option, audit, kCheckWords, findings, check.text,
              [&](const Reader& reader) { reader.text("name", check.name); });
  });
}

void read_retention(const Reader& reader, RetentionOptions& out) {
  reader.duration("keys", out.keys);
  reader.duration("dead_letters", out.dead_letters);
  reader.duration("skipped", out.skipped);
  reader.duration("interval", out.interval);
  reader.count("load", out.load);
}

void read_statements(const Reader& handler, Findings& findings, std::vector<SqlStatement>& out) {
  const Node* const list = handler.node("sql");
  if (list != nullptr && list->kind == Node::Kind::kArray && list->items.empty()) {
    findings.report(*list, handler.option("sql"), "an array without statements",
                    "write at least one statement");
  }
  read_items(handler, [&](const Node& node, const std::string& option) {
    SqlStatement& statement = out.emplace_back();
    statement.where = node.where();
    read_item(node, option, handler, kStatementWords, findings, statement.text,
              [&](const Reader& reader) {
                if (reader.node("expect_rows") != nullptr) {
                  std::uint64_t rows = 0;
                  reader.count("expect_rows", rows);
                  statement.expect_rows = rows;
                }
              });
  });
}

HandlerOptions read_handler(const Node& node, const std::string& name, const Reader& defaults,
                            const FailureOptions& failures, Findings& findings) {
  HandlerOptions out;
  out.where = node.where();
  findings.nodes[name] = &node;
  defaults.duration("timeout", out.timeout);
  defaults.text("isolation", out.isolation);
  const Reader reader{node, name, findings};
  reader.text("name", out.name);
  reader.texts("topics", out.topics);
  reader.text("when", out.when);
  read_statements(reader, findings, out.sql);
  reader.text("function", out.function);
  reader.flag("batch", out.batch);
  if (reader.node("key") != nullptr)
    reader.text("key", out.key.emplace());
  if (reader.node("scope") != nullptr)
    reader.text("scope", out.scope.emplace());
  if (reader.node("missing_key") != nullptr) {
    reader.choice("missing_key", kMissingKeys, out.missing_key.emplace());
  }
  if (reader.node("conflict") != nullptr) {
    reader.choice("conflict", kConflicts, out.conflict.emplace());
  }
  reader.duration("timeout", out.timeout);
  reader.text("isolation", out.isolation);
  out.failures = failures;
  read_failures(reader, out.failures);
  return out;
}

}  // namespace

Options read_options(const Node& root, Findings& findings) {
  Options options;
  const Reader top{root, "", findings};
  read_kafka(top.section("kafka"), root, findings, options.kafka);
  read_postgres(top.section("postgres"), options.postgres);
  read_idempotency(top.section("idempotency"), options.idempotency);
  read_failures(top.section("failures"), options.failures);
  read_dead_letters(top.section("dead_letters"), options.dead_letters);
  read_audit(top.section("audit"), findings, options.audit);
  read_retention(top.section("retention"), options.retention);
  const Reader consumer = top.section("consumer");
  consumer.count("workers", options.consumer.workers);
  consumer.count("pipeline", options.consumer.pipeline);
  consumer.choice("durability", kDurabilities, options.consumer.durability);
  consumer.duration("durability_interval", options.consumer.durability_interval);
  consumer.duration("shutdown_timeout", options.consumer.shutdown_timeout);
  consumer.choice("unmatched", kUnmatched, options.consumer.unmatched);
  read_batch(top.section("batch"), options.batch);
  const Reader log = top.section("log");
  log.choice("format", kLogFormats, options.log.format);
  log.text("level", options.log.level);
  log.duration("progress_interval", options.log.progress_interval);
  log.flag("error_details", options.log.error_details);
  read_alerts(top.section("alerts"), options.alerts);
  if (const Node* const handlers = root.member("handler")) {
    findings.nodes["handler"] = handlers;
    for (std::size_t i = 0; i < handlers->items.size(); ++i) {
      // Defaults are read for each handler; their problems are the same for all.
      Findings repeated;
      const Reader defaults{*root.member("handler_defaults"), "handler_defaults",
                            i == 0 ? findings : repeated};
      options.handlers.push_back(read_handler(handlers->items[i], fmt::format("handler[{}]", i),
                                              defaults, options.failures, findings));
    }
  }
  return options;
}

}  // namespace pawl::config
