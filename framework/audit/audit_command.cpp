// `audit`: verifies stored offsets, keys, and records against Kafka and each other. Changes
// nothing.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <utility>

#include "audit/audit.hpp"
#include "audit/audit_command.hpp"
#include "audit/report.hpp"
#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/offset_target.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
#include "handlers/router.hpp"
#include "handlers/sql_text.hpp"
#include "ledger/register_view.hpp"

namespace pawl::cli {
namespace {

constexpr std::int64_t kDefaultFindings = 100;
constexpr std::size_t kShownRows = 5;

struct Arguments {
  std::string topic;
  std::optional<std::int32_t> partition;
  std::string from_timestamp;
  std::optional<std::int64_t> newest;
  std::int64_t max_findings = kDefaultFindings;
  bool fast = false;
  bool show_rows = false;
  bool verbose = false;
  bool json = false;
};

/// What the command line says, but for the topics where it names none.
engine::AuditRequest request_of(const handlers::Router& router, const Arguments& arguments) {
  engine::AuditRequest request;
  request.filter.partition = arguments.partition;
  if (!arguments.topic.empty()) {
    if (router.entries().entry_of(arguments.topic).empty()) {
      throw BadCall(fmt::format("--topic {}: no handler of the configuration has this topic",
                                arguments.topic));
    }
    request.filter.topics = {arguments.topic};
  }
  request.fast = arguments.fast;
  request.newest = arguments.newest;
  if (!arguments.from_timestamp.empty()) {
    request.from_timestamp =
        OffsetTarget::parse_time(arguments.from_timestamp, "--from-timestamp").time();
  }
  return request;
}

/// A line on stderr that overwrites itself. If stderr is no terminal, a line per minute.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }

  void show(const engine::AuditedPartition& partition, std::int64_t offset) {
    using Clock = std::chrono::steady_clock;
    if (Clock::now() < next_)
      return;
    next_ = Clock::now() + (terminal_ ? kOnTerminal : kInLog);
    const auto& range = partition.range;
    const auto text = fmt::format(
        "reading {}: {} left", name_of(range.partition, offset),
        counted(range.upto - offset, "offset of the partition", "offsets of the partition"));
    std::cerr << (terminal_ ? fmt::format("\r\x1b[K{}", text) : text + '\n') << std::flush;
    shown_ = terminal_;
  }
  void clear() {
    if (std::exchange(shown_, false))
      std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  static constexpr std::chrono::milliseconds kOnTerminal{200};
  static constexpr std::chrono::milliseconds kInLog{60000};

  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + (terminal_ ? kOnTerminal : kInLog);
};

CheckedQuery run_query(postgres::Session& session, const Options& options, std::size_t index,
                       engine::AuditFindings& findings) {
  const auto& check = options.audit.checks[index];
  CheckedQuery query;
  query.name = check.name.empty() ? fmt::format("#{}", index + 1) : check.name;
  try {
    query.answer = postgres::read_only_query(session, handlers::SqlText::parse(check.text).sql(),
                                             options.audit.timeout, kShownRows);
    if (query.answer.count > 0) {
      findings.add(
          {engine::audit_kind::kCheck, std::nullopt, std::nullopt, "",
           fmt::format("check {}: {}", query.name, counted(query.answer.count, "row", "rows")),
           "each row is an inconsistency; --show-rows shows the first ones"});
    }
  } catch (const postgres::Error& error) {
    if (!session.alive())
      throw;
    query.problem = fmt::format("{} (SQLSTATE {})", error.what(), error.sqlstate());
    findings.add({engine::audit_kind::kCheckFailed, std::nullopt, std::nullopt, "",
                  fmt::format("check {} could not run: {}", query.name, query.problem),
                  "fix it (audit.sql: a SELECT), its privileges, or audit.timeout"});
  }
  return query;
}

int audit(const Options& options, const Registry& registry, const Arguments& arguments) {
  const handlers::Router router(options, registry);
  auto request = request_of(router, arguments);
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  if (arguments.topic.empty()) {
    // Those of patterns are among those that have offsets.
    std::vector<std::string> stored;
    for (const auto& row :
         ledger::read_register(*session, options.postgres.schema, consumer.id, ""))
      stored.push_back(row.partition.topic);
    request.filter.topics = topics_of(options, stored);
  }
  // Partitions are read one after another, and a fetch after the last record of one delays the next
  // partition.
  auto reading = options;
  reading.kafka.librdkafka.try_emplace("fetch.wait.max.ms", "5");
  const auto client = make_client(reading);
  require_same_cluster(options, consumer.kafka_cluster_id, client->cluster_id(kKafkaTimeout));

  AuditReport report;
  report.fast = arguments.fast;
  report.show_rows = arguments.show_rows;
  report.verbose = arguments.verbose;
  ProgressLine progress;
  engine::AuditFindings findings(arguments.max_findings, [&](const auto& finding) {
    report.findings.push_back(finding);
    if (arguments.json)
      return;
    progress.clear();
    std::cout << line_of(finding) << std::endl;
  });
  engine::Audit books(options, router, *session, *client, consumer.id, findings);
  report.partitions = books.run(request, [&](const auto& partition, std::int64_t offset) {
    progress.show(partition, offset);
  });
  progress.clear();
  if (arguments.partition && report.partitions.empty() && findings.total() == 0) {
    throw BadCall(fmt::format("--partition {}: no offset is stored for it. Stored offsets:\n  {}",
                              *arguments.partition,
                              command_text(options.invocation, "offsets show")));
  }
  for (std::size_t i = 0; i < options.audit.checks.size(); ++i)
    report.queries.push_back(run_query(*session, options, i, findings));

  std::cout << (arguments.json ? audit_json(options, report, findings)
                               : audit_text(report, findings, terminal_of(STDOUT_FILENO)));
  return audit_exit_code(findings);
}

}  // namespace

void add_audit(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "audit", "Verify offsets, keys, and dead letters against Kafka (read-only)");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  auto* topic =
      command->add_option("-t,--topic", arguments->topic, "Only this topic")->type_name("TOPIC");
  command->add_option("-p,--partition", arguments->partition, "Only this partition of the topic")
      ->not_negative()
      ->needs(topic)
      ->type_name("P");
  command
      ->add_option("--from-timestamp", arguments->from_timestamp,
                   "Only records at or after this time: 2026-01-31T00:00:00Z")
      ->type_name("TIMESTAMP");
  command
      ->add_option("--limit", arguments->newest,
                   "Only the newest N processed offsets of each partition")
      ->within(1, std::int64_t{1} << 62U)
      ->type_name("N");
  command->add_flag("--fast", arguments->fast,
                    "Compare offsets and counters only, without reading records");
  command
      ->add_option("--max-findings", arguments->max_findings,
                   "Limit of printed findings; all are counted")
      ->within(0, 1000000)
      ->type_name("N")
      ->shows_default();
  command->add_flag("--show-rows", arguments->show_rows,
                    "Print the first rows that the queries in [audit] return");
  command->add_flag("--verbose", arguments->verbose, "Also print columns that are 0 in each row");
  command->add_json_flag(arguments->json);
  command->exit_status({{"0", "consistent; no findings"},
                        {"1", "audit incomplete, without other findings; the reason is on stderr"},
                        {"2", "usage or configuration error; nothing was changed"},
                        {"3", "attention required: findings"}});
  commands.set_action(command, [config, arguments, &commands] {
    return audit(config->load(), commands.program().registry, *arguments);
  });
}

}  // namespace pawl::cli
