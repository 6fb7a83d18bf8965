// `check`: is everything in place? Says everything that is not, at once.
#include "cli/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
/// Of the outbox, where the role may not count them.
constexpr std::size_t kUsualLanes = 4;

}  // namespace

int Check::run() {
  findings_.good("configuration");
  check_programs();
  if (relays_only_) {
    findings_.note(
        "there is neither kafka.group nor a [[handler]]: looking at what `relay` needs, and not "
        "at what `run` does");
  } else {
    make_router();
    check_remotes();
  }
  check_database();
  check_redis();
  check_kafka();
  if (findings_.count() == 0) {
    std::cout << "Everything is in place.\n";
    return kDone;
  }
  std::cout << fmt::format("{} {} wrong.\n", findings_.count(),
                           findings_.count() == 1 ? "thing is" : "things are");
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
  try {
    router_ = std::make_unique<handlers::Router>(options_, registry_);
  } catch (const ConfigErrors& errors) {
    for (const auto& problem : errors.problems())
      findings_.wrong(problem);
    bad_config_ = true;
    return;
  }
  for (const auto& warning : handlers::key_warnings(*router_))
    findings_.note(warning);
  for (const auto& note : router_->plans().notes)
    findings_.note(note);
}

/// Whom the handlers call.
void Check::check_remotes() {
  if (!router_)
    return;
  for (const auto& binding : router_->bindings()) {
    if (binding->leased == nullptr || binding->leased->remote().empty())
      continue;
    const auto what = fmt::format("{} calls {}", handlers::handler_text(binding->label),
                                  binding->leased->remote());
    if (!probe_) {
      findings_.note(what + ", which was not asked; check --probe connects to it");
      continue;
    }
    const auto problem = binding->leased->probe();
    if (problem && problem->empty()) {
      findings_.good(what);
    } else {
      findings_.wrong(fmt::format("{}: {}", what, problem.value_or("it cannot be tried")));
    }
  }
}

void Check::check_redis() {
  if (options_.leases.store != LeaseStore::kRedis)
    return;
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
        fmt::format("{}: a master that evicts nothing; a lease was taken there and given back",
                    connection->server()));
  } catch (const redis::Error& error) {
    findings_.wrong(error.what());
  }
}

void Check::check_database() {
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
        check_dead_letters(*session);
        first_topics_ = ledger::met_patterns(*session, options_.postgres.schema, consumer_->id);
        check_scopes(*session);
      }
    }
    check_statements(*session);
    if (!relays_only_)
      check_sequences(*session);
  } catch (const FatalError& error) {
    findings_.wrong(error.what());
  } catch (const postgres::Error& error) {
    findings_.wrong(fmt::format("PostgreSQL: {} (SQLSTATE {}); correct that and check again",
                                error.what(), error.sqlstate()));
  }
}

void Check::check_server(postgres::Session& session) {
  auto* raw = session.raw();
  const auto parameter = [raw](const char* name) {
    const char* value = PQparameterStatus(raw, name);
    return std::string(value == nullptr ? "" : value);
  };
  findings_.good(fmt::format("PostgreSQL {} at {}", parameter("server_version"),
                             config::redact_url(options_.postgres.url)));
  if (PQserverVersion(raw) < kOldestServer) {
    findings_.wrong(fmt::format("PostgreSQL {} is too old. pawl requires version 13 or later",
                                parameter("server_version")));
  }
  if (const auto encoding = parameter("server_encoding"); encoding != "UTF8") {
    findings_.wrong(
        fmt::format("the database's encoding is {}, keys and payloads need UTF8; make it "
                    "with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
                    encoding));
  }
  if (parameter("in_hot_standby") == "on" || parameter("default_transaction_read_only") == "on") {
    findings_.wrong(
        "the server is read-only (a standby?); lead postgres.url to the primary, with "
        "several hosts by target_session_attrs=read-write");
  }
  if (session.behind_pooler() && !options_.postgres.pooled) {
    findings_.note(
        "there is a pooler in between; set postgres.pooled = true unless it pools whole "
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
    findings_.wrong(
        fmt::format("the role {} lacks {} of the rights that it needs: {}. This gives them: {}",
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
    // Rights that are missing are told already.
    if (missing.empty() || error.failure() != postgres::FailureClass::kProgram)
      findings_.wrong(fmt::format(
          "the schema \"{}\" cannot be looked at: {} (SQLSTATE {}); see: "
          "{} migrate grants",
          schema, error.what(), error.sqlstate(), shell_word(options_.invocation.program)));
    return false;
  }
  findings_.good(
      fmt::format("schema {}, version {}", schema, ledger::schema_version(session, schema)));
  return true;
}

void Check::check_connections(postgres::Session& session) {
  if (!router_ && !relays_only_)
    return;
  const auto needs =
      connection_needs(options_, router_ ? &router_->plans() : nullptr, outbox_lanes(session));
  // A pooler's clients are limited by the pooler, which says nothing of it.
  const bool pooled = session.behind_pooler() || options_.postgres.pooled;
  const auto limits = pooled ? std::nullopt : std::optional(ledger::connection_limits(session));
  const auto [enough, text] = connection_finding(needs, limits ? &*limits : nullptr);
  if (enough)
    findings_.note(text);
  else
    findings_.wrong(text);
}

std::size_t Check::outbox_lanes(postgres::Session& session) const {
  try {
    const postgres::Statement count{
        "", ledger::in_schema("SELECT count(*) FROM pawl.outbox_lanes", options_.postgres.schema)};
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

/// A session without a pooler sets its own.
void Check::check_statement_timeout(postgres::Session& session) {
  if (!session.pooled())
    return;
  static const postgres::Statement ask{
      "", "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'"};
  const std::chrono::milliseconds limit(ledger::integer(session.exec(ask).get(), 0, 0));
  const auto needed = options_.postgres.lock_timeout + postgres::kAnswerMargin;
  if (limit.count() == 0 || limit >= needed)
    return;
  findings_.note(
      fmt::format("statement_timeout is {} ms for the role {} in this database. With "
                  "postgres.pooled it also ends pawl's own statements, which may wait for a lock "
                  "for {} ms. Set it to 0, or to {} ms at least (ALTER ROLE or ALTER DATABASE ... "
                  "SET statement_timeout)",
                  limit.count(), PQuser(session.raw()), options_.postgres.lock_timeout.count(),
                  needed.count()));
}

void Check::check_statements(postgres::Session& session) {
  if (!router_)
    return;
  for (const auto& binding : router_->bindings()) {
    const auto statements = binding->handler->statements();
    if (statements.empty() && binding->leased == nullptr) {
      findings_.note(fmt::format("{} is code: its SQL shows when it runs",
                                 handlers::handler_text(binding->label)));
    }
    for (const auto& statement : statements) {
      check_statement(session, statement);
    }
  }
  const auto atomicity = handlers::check_atomicity(session, *router_, options_.handlers);
  for (const auto& problem : atomicity.problems)
    findings_.wrong(problem);
  for (const auto& warning : atomicity.warnings)
    findings_.note(warning);
  for (std::size_t i = 0; i < options_.audit.checks.size(); ++i) {
    const auto& check = options_.audit.checks[i];
    check_statement(session,
                    {fmt::format("audit.sql[{}]{}", i,
                                 check.name.empty() ? "" : fmt::format(" ({})", check.name)),
                     handlers::SqlText::parse(check.text).sql(), 0, check.where});
  }
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
  findings_.wrong(fmt::format(
      "dead letters that wait for their turn although none of their record key is before them: {}; "
      "the first is {}. Their keys wait forever: {} {}",
      waiting.total, waiting.rows.front().name, command_text(options_.invocation, "dlq replay"),
      waiting.rows.front().name));
}

void Check::check_sequences(postgres::Session& session) {
  const auto found = handlers::check_sequences(session, options_.postgres.schema, router_.get());
  for (const auto& problem : found.problems)
    findings_.wrong(problem);
  if (found.unreadable > 0) {
    findings_.note(fmt::format(
        "the role may not read {} sequences of the schema {}, so whether they are behind their "
        "tables is not known. {} --role ROLE prints the grants",
        found.unreadable, options_.postgres.schema,
        command_text(options_.invocation, "migrate grants")));
  }
}

void Check::check_statement(postgres::Session& session,
                            const handlers::DescribedStatement& statement) {
  const auto described = postgres::describe(session, statement.sql, statement.parameters);
  auto problem = described.problem;
  if (!statement.response.empty()) {
    // Of the statement as it was written PostgreSQL tells more.
    const auto own = postgres::describe(session, statement.response, statement.own_parameters);
    if (own.problem)
      problem = own.problem;
    else if (own.columns != statement.columns)
      problem = fmt::format(
          "it returns {} columns; {}", own.columns,
          statement.columns == 1 ? handlers::kResponseColumns : handlers::kBatchResponseColumns);
  }
  const auto unbindable = handlers::binding_problem(statement, described.types);
  if (unbindable) {
    findings_.wrong(fmt::format("{}: {}", statement.place(), *unbindable));
  } else if (problem) {
    findings_.wrong(fmt::format("{}: {}; correct the statement, or create or grant what it needs",
                                statement.place(), *problem));
  } else if (described.not_planned) {
    findings_.note(
        fmt::format("{}: PostgreSQL accepts the statement but cannot plan it with NULL parameters: "
                    "{}. Its privileges are checked with the first message. No action needed",
                    statement.place(), *described.not_planned));
  } else {
    findings_.good(statement.label);
  }
}

namespace {

int check(const Options& options, const Registry& registry, bool probe) {
  return Check(options, registry, probe).run();
}

}  // namespace

void add_check(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "check", "Look at the configuration, the database and Kafka; change nothing");
  const auto config = add_config_arguments(*command);
  const auto probe = std::make_shared<bool>(false);
  command->add_flag("--probe", *probe,
                    "Also connect to the hosts that http handlers call; nothing is requested");
  commands.set_action(command, [&commands, config, probe] {
    try {
      return check(config->load_to_relay(), commands.program().registry, *probe);
    } catch (const ConfigErrors& errors) {
      for (const auto& problem : errors.problems())
        std::cout << "WRONG   " << problem << '\n';
      return static_cast<int>(kBadCall);
    }
  });
}

}  // namespace pawl::cli
