// `check`: reports all that is missing or wrong, at once.
#include "cli/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <set>
#include <span>

#include "audit/store/checks.hpp"
#include "cli/commands.hpp"
#include "cli/connection_needs.hpp"
#include "cli/key_estimate.hpp"
#include "cli/programs.hpp"
#include "cli/rights_text.hpp"
#include "config/invocation.hpp"
#include "config/redact.hpp"
#include "config/redis_settings.hpp"
#include "config/shell_word.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/printable.hpp"
#include "handlers/atomicity.hpp"
#include "handlers/bytes_binding.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/response_sql.hpp"
#include "handlers/sequences.hpp"
#include "handlers/sql_text.hpp"
#include "leases/store/redis_lease_scripts.hpp"
#include "ledger/connection_limits.hpp"
#include "ledger/key_view.hpp"
#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "postgres/describe.hpp"
#include "process/program.hpp"
#include "redis/connector.hpp"
#include "redis/error.hpp"

namespace pawl::cli {
namespace {

/// PostgreSQL 13 brought xid8, which the frame needs.
constexpr int kOldestServer = 130000;
/// Of the outbox, if the role may not count them.
constexpr std::size_t kUsualLanes = 4;
/// Names of one group.
constexpr std::size_t kMostNames = 8;
/// Columns of the name of a section, and of a mark.
constexpr std::size_t kSection = 16;
constexpr std::size_t kMark = 6;

}  // namespace

std::string finding_text(const Finding& finding, const Terminal& terminal) {
  using Mark = Finding::Mark;
  const auto mark = [&] {
    switch (finding.mark) {
      case Mark::kOk:
        return painted(terminal, Color::kGreen, "ok");
      case Mark::kWarn:
        return painted(terminal, Color::kYellow, "WARN");
      case Mark::kFail:
        return painted(terminal, Color::kRed, "FAIL");
      case Mark::kInfo:
        break;
    }
    return std::string("info");
  }();
  return padded(finding.section, kSection) + padded(mark, kMark) +
         wrapped(printable_lines(finding.text), terminal.columns, kSection + kMark) + '\n';
}

std::string ending_text(const std::vector<Finding>& findings, const char* ready,
                        const Terminal& terminal) {
  std::string text = "\n";
  std::int64_t failures = 0;
  for (const auto& finding : findings) {
    if (finding.mark != Finding::Mark::kFail)
      continue;
    ++failures;
    text += finding_text(finding, terminal);
  }
  if (failures == 0)
    return text + ready;
  return fmt::format("{}\n{} failed.\n", text, counted(failures, "check", "checks"));
}

std::int64_t Findings::count() const {
  return std::ranges::count(all_, Finding::Mark::kFail, &Finding::mark);
}

int Check::run() {
  findings_.section("Configuration");
  findings_.good(fmt::format(
      "{}{}",
      options_.invocation.config_file.empty()
          ? ""
          : std::filesystem::path(options_.invocation.config_file).filename().string() + ": ",
      relays_only_
          ? std::string("neither kafka.group nor a [[handler]], so only `relay` is checked")
          : counted(std::ssize(options_.handlers), "handler", "handlers")));
  check_programs();
  if (!relays_only_) {
    make_router();
    findings_.section("External calls");
    check_remotes();
  }
  findings_.section("PostgreSQL");
  check_database();
  findings_.section("Redis");
  check_redis();
  findings_.section("Kafka");
  check_kafka();
  if (findings_.count() == 0)
    return kDone;
  return bad_config_ ? kBadCall : kFailed;
}

void Check::check_programs() {
  for (const auto& [option, what, command] : programs_of(options_)) {
    if (const auto problem = process::command_problem(option, command); !problem.empty()) {
      findings_.wrong(problem);
      bad_config_ = true;
    } else {
      findings_.good(fmt::format("{} {}", what, command.front()));
    }
  }
}

void Check::make_router() {
  findings_.section("Handlers");
  try {
    router_ = std::make_unique<handlers::Router>(options_, registry_);
  } catch (const ConfigErrors& errors) {
    for (const auto& problem : errors.problems())
      findings_.wrong(problem);
    bad_config_ = true;
    return;
  }
  for (const auto& warning : handlers::key_warnings(*router_))
    findings_.warn(warning);
  for (const auto& note : router_->plans().notes)
    findings_.note(note);
}

/// The services that the handlers call.
void Check::check_remotes() {
  if (!router_)
    return;
  findings_.section("External calls");
  std::set<std::string> not_contacted;
  for (const auto& binding : router_->bindings()) {
    if (binding->leased == nullptr || binding->leased->remote().empty())
      continue;
    const auto what = fmt::format("{} calls {}", handlers::handler_text(binding->label),
                                  binding->leased->remote());
    if (!probe_) {
      not_contacted.insert(binding->leased->remote());
      continue;
    }
    const auto problem = binding->leased->probe();
    if (problem && problem->empty()) {
      findings_.good(what);
    } else {
      findings_.wrong(fmt::format("{}: {}", what, problem.value_or("it cannot be probed")));
    }
  }
  if (!not_contacted.empty())
    findings_.note(fmt::format("{} not contacted (use --probe)", fmt::join(not_contacted, ", ")));
}

void Check::check_redis() {
  if (options_.calls.lease_store != LeaseStore::kRedis)
    return;
  findings_.section("Redis");
  try {
    const auto connection = redis::Connector(config::redis_settings(options_.redis)).connect();
    // A lease that no message can have.
    const ledger::RedisLeaseScripts scripts(options_.redis.prefix, "check");
    ledger::RedisLeaseRequest request;
    request.lease = {ledger::Scope{}, "", "check", 1};
    request.time = std::chrono::seconds(1);
    (void)scripts.acquire(*connection, request, request.time);
    (void)scripts.give_back(*connection, request.lease, ledger::GivenBack::kNotBegun, false,
                            request.time);
    findings_.good(
        fmt::format("{}: a master that evicts nothing; a lease was acquired and released",
                    connection->server()));
  } catch (const redis::Error& error) {
    findings_.wrong(error.what());
  }
}

void Check::check_database() {
  findings_.section("PostgreSQL");
  try {
    session_ = connect_bare(options_);
    auto* const session = session_.get();
    check_server(*session);
    if (check_schema(*session)) {
      if (!relays_only_) {
        consumer_ = ledger::find_consumer(*session, options_.postgres.schema,
                                          options_.kafka.cluster, options_.kafka.group);
      }
      database_id_ = ledger::database_id(*session, options_.postgres.schema);
      check_connections(*session);
      check_log_size(*session);
      check_statement_timeout(*session);
      rows_.emplace();
      if (consumer_) {
        rows_ = ledger::read_register(*session, options_.postgres.schema, consumer_->id, "");
        check_scopes(*session);
        check_dead_letters(*session);
        first_topics_ = ledger::met_patterns(*session, options_.postgres.schema, consumer_->id);
      }
    }
    if (!relays_only_) {
      findings_.section("PostgreSQL");
      check_sequences(*session);
    }
    check_statements(*session);
  } catch (const FatalError& error) {
    findings_.section("PostgreSQL");
    findings_.wrong(error.what());
  } catch (const postgres::Error& error) {
    findings_.section("PostgreSQL");
    findings_.wrong(
        fmt::format("{} (SQLSTATE {}); fix that and check again", error.what(), error.sqlstate()));
  }
}

void Check::check_server(postgres::Session& session) {
  auto* raw = session.raw();
  const auto parameter = [raw](const char* name) {
    const char* value = PQparameterStatus(raw, name);
    return std::string(value == nullptr ? "" : value);
  };
  findings_.good(fmt::format("{} at {}", parameter("server_version"),
                             config::redact_url(options_.postgres.url)));
  if (PQserverVersion(raw) < kOldestServer) {
    findings_.wrong(fmt::format("PostgreSQL {} is too old. pawl requires version 13 or later",
                                parameter("server_version")));
  }
  if (const auto encoding = parameter("server_encoding"); encoding != "UTF8") {
    findings_.wrong(
        fmt::format("the database's encoding is {}, keys and payloads need UTF8; create it "
                    "with `CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0`",
                    encoding));
  }
  if (parameter("in_hot_standby") == "on" || parameter("default_transaction_read_only") == "on") {
    findings_.wrong(
        "the server is read-only (a standby?); set postgres.url to the primary, with several "
        "hosts by target_session_attrs=read-write");
  }
  if (session.behind_pooler() && !options_.postgres.pooled) {
    findings_.warn(
        "connections go through a pooler; set postgres.pooled = true unless it pools whole "
        "sessions");
  }
}

bool Check::check_schema(postgres::Session& session) {
  const auto& schema = options_.postgres.schema;
  const ledger::RoleUse use{!relays_only_, relays_at_once(), options_.outbox.alert_age.count() > 0};
  const auto missing = ledger::missing_rights(session, schema, use);
  if (!missing.empty()) {
    const auto known = [](const char* text) { return std::string(text == nullptr ? "" : text); };
    auto* raw = session.raw();
    findings_.wrong(fmt::format(
        "the role {} lacks {} of the privileges that it needs: {}. This grants them:\n  {}",
        PQuser(raw), missing.size(), rights_text(missing),
        grants_command(options_.invocation.program, PQuser(raw), schema, relays_only_,
                       {known(PQhost(raw)), known(PQport(raw)), known(PQdb(raw)),
                        ledger::schema_owner(session, schema)})));
  }
  try {
    ledger::require_schema(session, schema, command_text(options_.invocation, "migrate up"));
  } catch (const FatalError& error) {
    findings_.wrong(error.what());
    return false;
  } catch (const postgres::Error& error) {
    // Missing privileges are a finding already.
    if (missing.empty() || error.failure() != postgres::FailureClass::kProgram)
      findings_.wrong(fmt::format(
          "the schema \"{}\" cannot be read: {} (SQLSTATE {}); see "
          "`{} migrate grants`",
          schema, error.what(), error.sqlstate(), shell_word(options_.invocation.program)));
    return false;
  }
  findings_.good(fmt::format("schema {}, version {}{}", schema,
                             ledger::schema_version(session, schema),
                             missing.empty() ? ", privileges complete" : ""));
  return true;
}

void Check::check_connections(postgres::Session& session) {
  if (!router_ && !relays_only_)
    return;
  const auto needs =
      connection_needs(options_, router_ ? &router_->plans() : nullptr, outbox_shards(session));
  // The pooler limits its clients, and reports no limit.
  const bool pooled = session.behind_pooler() || options_.postgres.pooled;
  const auto limits = pooled ? std::nullopt : std::optional(ledger::connection_limits(session));
  const auto [enough, text] = connection_finding(needs, limits ? &*limits : nullptr);
  if (enough)
    findings_.note(text);
  else
    findings_.wrong(text);
}

std::size_t Check::outbox_shards(postgres::Session& session) const {
  try {
    const postgres::Statement count{
        "", ledger::in_schema("SELECT count(*) FROM pawl.outbox_shards", options_.postgres.schema)};
    return static_cast<std::size_t>(ledger::integer(session.exec(count).get(), 0, 0));
  } catch (const postgres::Error&) {
    return kUsualLanes;
  }
}

void Check::check_log_size(postgres::Session& session) {
  static const postgres::Statement ask{"", "SELECT pg_size_bytes(current_setting('max_wal_size'))"};
  const auto size = ledger::integer(session.exec(ask).get(), 0, 0);
  const auto keys = ledger::key_table_size(session, options_.postgres.schema);
  if (const auto advice = log_size_advice(keys, size))
    findings_.note(*advice);
}

void Check::check_scopes(postgres::Session& session) {
  const auto missing = ledger::missing_scopes(session, options_.postgres.schema);
  if (missing.empty())
    return;
  findings_.wrong(fmt::format(
      "{0}.idempotency_keys has keys of scopes that {0}.idempotency_scopes does not have (scope_id "
      "{1}): duplicates of their messages would be applied again. Stop the processes, and restore "
      "{0}.idempotency_scopes and {0}.scope_sources from the backup, with the same scope_id",
      options_.postgres.schema, fmt::join(missing, ", ")));
}

/// A session without a pooler sets its own limit.
void Check::check_statement_timeout(postgres::Session& session) {
  if (!session.pooled())
    return;
  static const postgres::Statement ask{
      "", "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'"};
  const std::chrono::milliseconds limit(ledger::integer(session.exec(ask).get(), 0, 0));
  const auto needed = options_.postgres.lock_timeout + postgres::kAnswerMargin;
  if (limit.count() == 0 || limit >= needed)
    return;
  findings_.warn(
      fmt::format("statement_timeout is {} ms for the role {} in this database. With "
                  "postgres.pooled it also ends pawl's own statements, which may wait for a lock "
                  "for {} ms. Set it to 0, or to {} ms at least, with `ALTER ROLE ... SET "
                  "statement_timeout` or `ALTER DATABASE ... SET statement_timeout`",
                  limit.count(), PQuser(session.raw()), options_.postgres.lock_timeout.count(),
                  needed.count()));
}

void Check::tell_prepared(const std::vector<std::string>& labels) {
  if (labels.empty())
    return;
  const auto shown = std::span(labels).first(std::min(labels.size(), kMostNames));
  findings_.good(fmt::format(
      "{} prepared: {}{}", counted(std::ssize(labels), "statement", "statements"),
      fmt::join(shown, ", "),
      shown.size() == labels.size() ? "" : fmt::format(", {} more", labels.size() - shown.size())));
}

void Check::check_statements(postgres::Session& session) {
  if (!router_)
    return;
  findings_.section("Handlers");
  std::vector<std::string> prepared;
  for (const auto& binding : router_->bindings()) {
    const auto statements = binding->handler->statements();
    if (statements.empty() && binding->leased == nullptr) {
      findings_.note(fmt::format("{} is C++ code: its SQL is checked when it runs",
                                 handlers::handler_text(binding->label)));
    }
    for (const auto& statement : statements) {
      if (check_statement(session, statement))
        prepared.push_back(statement.label);
    }
  }
  tell_prepared(prepared);
  const auto atomicity = handlers::check_atomicity(session, *router_, options_.handlers);
  for (const auto& problem : atomicity.problems)
    findings_.wrong(problem);
  for (const auto& warning : atomicity.warnings)
    findings_.warn(warning);
  findings_.section("Audit");
  prepared.clear();
  for (std::size_t i = 0; i < options_.audit.checks.size(); ++i) {
    const auto& check = options_.audit.checks[i];
    const handlers::DescribedStatement statement{
        fmt::format("audit.sql[{}]{}", i,
                    check.name.empty() ? "" : fmt::format(" ({})", check.name)),
        handlers::SqlText::parse(check.text).sql(), 0, check.where};
    if (check_statement(session, statement))
      prepared.push_back(statement.label);
  }
  tell_prepared(prepared);
}

void Check::check_dead_letters(postgres::Session& session) {
  ledger::AuditFilter all;
  for (const auto& row : *rows_)
    all.topics.push_back(row.partition.topic);
  const auto waiting =
      ledger::AuditChecks(session, options_.postgres.schema, consumer_->id, std::move(all))
          .waiting_for_nothing(1);
  if (waiting.rows.empty())
    return;
  findings_.section("Dead letters");
  findings_.wrong(fmt::format(
      "dead letters that wait for an earlier one of their record key, although there is none: {}; "
      "the first is {}. Their keys wait forever. Replay it:\n  {} {}",
      waiting.total, waiting.rows.front().name, command_text(options_.invocation, "dlq replay"),
      waiting.rows.front().name));
}

void Check::check_sequences(postgres::Session& session) {
  const auto found = handlers::check_sequences(session, options_.postgres.schema, router_.get());
  for (const auto& problem : found.problems)
    findings_.wrong(problem);
  if (found.unreadable > 0) {
    findings_.note(fmt::format(
        "the role may not read {} sequences of the schema {}, so it is unknown whether they are "
        "out of sync with their tables. `{} --role ROLE` prints the grants",
        found.unreadable, options_.postgres.schema,
        command_text(options_.invocation, "migrate grants")));
  }
}

bool Check::check_statement(postgres::Session& session,
                            const handlers::DescribedStatement& statement) {
  const auto described = postgres::describe(session, statement.sql, statement.parameters);
  auto problem = described.problem;
  if (!statement.response.empty()) {
    // PostgreSQL reports more about the statement as it was written.
    const auto own = postgres::describe(session, statement.response, statement.own_parameters);
    if (own.problem)
      problem = own.problem;
    else if (own.columns != statement.columns)
      problem = fmt::format(
          "it returns {}; {}", counted(own.columns, "column", "columns"),
          statement.columns == 1 ? handlers::kResponseColumns : handlers::kBatchResponseColumns);
  }
  const auto unbindable = handlers::binding_problem(statement, described.types);
  if (unbindable) {
    findings_.wrong(fmt::format("{}: {}", statement.place(), *unbindable));
  } else if (problem) {
    findings_.wrong(fmt::format("{}: {}; fix the statement, or create or grant what it needs",
                                statement.place(), *problem));
  } else if (described.not_planned) {
    findings_.note(
        fmt::format("{}: PostgreSQL accepts the statement but cannot plan it with NULL parameters: "
                    "{}. Its privileges are checked with the first message. No action needed",
                    statement.place(), *described.not_planned));
  } else {
    return true;
  }
  return false;
}

namespace {

struct Arguments {
  bool probe = false;
  bool json = false;
};

int check(const Options& options, const Registry& registry, const Arguments& arguments) {
  const auto terminal = terminal_of(STDOUT_FILENO);
  Check check(options, registry, arguments.probe, [&](const Finding& finding) {
    if (!arguments.json)
      std::cout << finding_text(finding, terminal) << std::flush;
  });
  const auto code = check.run();
  std::cout << (arguments.json ? check_json(check.findings())
                               : ending_text(check.findings(), check.ready_text(), terminal));
  return code;
}

int reject(const ConfigErrors& errors, bool json) {
  std::vector<Finding> findings;
  for (const auto& problem : errors.problems())
    findings.push_back({Finding::Mark::kFail, "Configuration", problem});
  if (json)
    std::cout << check_json(findings);
  else
    for (const auto& finding : findings)
      std::cout << finding_text(finding, terminal_of(STDOUT_FILENO));
  return kBadCall;
}

}  // namespace

void add_check(Command& parser, Commands& commands) {
  auto* command =
      parser.add_subcommand("check", "Validate the configuration, database, and Kafka (read-only)");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_flag("--probe", arguments->probe,
                    "Also connect to the hosts that http handlers call, without a request");
  command->add_json_flag(arguments->json);
  command->exit_status({{"0", "ready to run"},
                        {"1", "something failed"},
                        {"2", "usage or configuration error; nothing was changed"}});
  commands.set_action(command, [&commands, config, arguments] {
    try {
      return check(config->load_to_relay(), commands.program().registry, *arguments);
    } catch (const ConfigErrors& errors) {
      return reject(errors, arguments->json);
    }
  });
}

}  // namespace pawl::cli
