// `check`: is everything in place? Says everything that is not, at once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

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
#include "config/validate.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "engine/commit_metadata.hpp"
#include "engine/first_positions.hpp"
#include "engine/topic_directory.hpp"
#include "handlers/atomicity.hpp"
#include "handlers/bytes_binding.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/published_topics.hpp"
#include "handlers/response_sql.hpp"
#include "handlers/router.hpp"
#include "handlers/sequences.hpp"
#include "handlers/sql_text.hpp"
#include "handlers/topic_entries.hpp"
#include "kafka/producer.hpp"
#include "leases/store/redis_lease_scripts.hpp"
#include "ledger/connection_limits.hpp"
#include "ledger/consumers.hpp"
#include "ledger/key_view.hpp"
#include "ledger/other_consumers.hpp"
#include "ledger/register_view.hpp"
#include "ledger/rows.hpp"
#include "ledger/topic_patterns.hpp"
#include "outbox/lane.hpp"
#include "outbox/task.hpp"
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
/// Of one topic; the rest is counted.
constexpr std::size_t kMostPositions = 64;

/// Prints each finding as it comes, and counts.
class Findings {
 public:
  void good(const std::string& text) const { std::cout << "ok      " << text << '\n'; }
  void note(const std::string& text) const { std::cout << "note    " << text << '\n'; }
  void wrong(const std::string& text) {
    std::cout << "WRONG   " << text << '\n';
    ++wrong_;
  }
  [[nodiscard]] int count() const { return wrong_; }

 private:
  int wrong_ = 0;
};

class Check {
 public:
  Check(const Options& options, const Registry& registry, bool probe)
      : options_(options),
        registry_(registry),
        relays_only_(config::only_relays(options)),
        probe_(probe) {}

  int run() {
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

 private:
  /// It is certain, without a message, that these options publish the outbox.
  [[nodiscard]] bool relays_at_once() const {
    return relays_only_ || engine::relays_outbox(options_) == engine::RelayBegins::kAtOnce;
  }
  /// The same of Kafka's transactions.
  [[nodiscard]] bool needs_transactions() const {
    return relays_at_once() && options_.outbox.transactions;
  }
  void check_programs();
  void check_redis();
  void make_router();
  void check_remotes();
  void check_database();
  void check_server(postgres::Session& session);
  bool check_schema(postgres::Session& session);
  void check_connections(postgres::Session& session);
  void check_log_size(postgres::Session& session);
  void check_scopes(postgres::Session& session);
  void check_statement_timeout(postgres::Session& session);
  [[nodiscard]] std::size_t outbox_lanes(postgres::Session& session) const;
  void check_dead_letters(postgres::Session& session);
  void check_statements(postgres::Session& session);
  void check_sequences(postgres::Session& session);
  void check_statement(postgres::Session& session, const handlers::DescribedStatement& statement);
  void check_kafka();
  void check_group_protocol(const kafka::Client& client);
  void check_topics(const kafka::Client& client);
  void check_dead_letter_topic(const kafka::Client& client);
  void check_outbox_topic(const kafka::Client& client);
  void check_outbox_transactions(const kafka::Client& client);
  void check_published_topics(const kafka::Client& client);
  void check_first_contacts(const kafka::Client& client, const std::string& cluster_id);
  bool check_committed(const kafka::Client& client, const std::string& topic,
                       const std::vector<TopicPartition>& partitions);
  bool check_beside(const std::string& topic, const std::string& cluster_id, bool stored);
  [[nodiscard]] KafkaOptions start_of(const std::string& topic) const;
  void tell_first_positions(const kafka::Client& client,
                            const std::vector<TopicPartition>& partitions);

  const Options& options_;
  const Registry& registry_;
  const bool relays_only_;  ///< they are for `relay`
  const bool probe_;        ///< whom the handlers call is connected to
  Findings findings_;
  bool bad_config_ = false;  ///< one of them is what `run` would refuse as a bad configuration
  std::unique_ptr<handlers::Router> router_;
  std::unique_ptr<postgres::Session> session_;
  std::optional<ledger::KnownConsumer> consumer_;
  std::optional<std::vector<ledger::RegisterRow>> rows_;  ///< nullopt: could not be read
  ledger::FirstTopics first_topics_;
  std::string database_id_;
  std::map<std::string, kafka::TopicDescription> topics_;  ///< those that exist
};

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
    findings_.wrong(fmt::format("PostgreSQL {} is too old; pawl needs 13 or newer",
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

void Check::check_kafka() {
  try {
    const auto client = make_client(options_);
    client->require_usable(kKafkaTimeout);
    const auto cluster = client->cluster_id(kKafkaTimeout);
    findings_.good(
        fmt::format("Kafka cluster {} at {}", cluster, options_.kafka.bootstrap_servers));
    if (consumer_)
      require_same_cluster(options_, consumer_->kafka_cluster_id, cluster);
    check_group_protocol(*client);
    check_topics(*client);
    check_dead_letter_topic(*client);
    check_outbox_topic(*client);
    check_outbox_transactions(*client);
    check_published_topics(*client);
    check_first_contacts(*client, cluster);
  } catch (const FatalError& error) {
    findings_.wrong(error.what());
  } catch (const postgres::Error& error) {
    findings_.wrong(fmt::format("PostgreSQL: {} (SQLSTATE {}); correct that and check again",
                                error.what(), error.sqlstate()));
  } catch (const kafka::KafkaError& error) {
    findings_.wrong(
        fmt::format("Kafka at {}: {}; if brokers do answer there, look at [kafka.librdkafka]",
                    options_.kafka.bootstrap_servers, error.what()));
  }
}

/// The default of a broker before 4.0 is without it (KIP-848), and it would assign nothing.
void Check::check_group_protocol(const kafka::Client& client) {
  if (options_.kafka.group_protocol != GroupProtocol::kConsumer)
    return;
  constexpr const char* kSetting = "group.coordinator.rebalance.protocols";
  try {
    const auto offered = client.broker_setting(kSetting, kKafkaTimeout);
    if (!offered) {
      findings_.note(fmt::format(
          "kafka.group_protocol = \"consumer\": whether these brokers share out partitions "
          "themselves could not be seen: they do not tell {}. Brokers before Kafka 4.0 do not by "
          "default; for them write kafka.group_protocol = \"classic\"",
          kSetting));
    } else if (offered->find("consumer") == std::string::npos) {
      findings_.wrong(fmt::format(
          "kafka.group_protocol = \"consumer\": these brokers do not share out partitions "
          "themselves ({} = {}); write kafka.group_protocol = \"classic\"",
          kSetting, *offered));
    }
  } catch (const kafka::KafkaError& error) {
    findings_.note(fmt::format(
        "whether the brokers share out partitions themselves, as kafka.group_protocol = "
        "\"consumer\" wants it, could not be seen: {}",
        error.what()));
  }
}

void Check::check_topics(const kafka::Client& client) {
  const auto entries = handlers::topic_entries(options_);
  const auto [topics, ambiguous] = choose_topics(options_, client);
  for (const auto& pattern : entries.patterns()) {
    const auto means = std::ranges::count_if(
        topics, [&](const auto& topic) { return entries.entry_of(topic) == pattern.text(); });
    findings_.note(fmt::format("{} means {} now; what is created later is followed", pattern.text(),
                               means == 1 ? "1 topic" : fmt::format("{} topics", means)));
  }
  for (const auto& [topic, patterns] : ambiguous)
    findings_.wrong(message::ambiguous_topic_text(topic, patterns));
  const auto answers = client.describe_each(topics, kKafkaTimeout);
  for (const auto& topic : topics) {
    if (const auto refused = answers.refused.find(topic); refused != answers.refused.end()) {
      findings_.wrong(engine::topic_refused_text(topic, refused->second.what()));
      continue;
    }
    const auto found = answers.described.find(topic);
    if (found == answers.described.end()) {
      findings_.wrong(
          fmt::format("topic {} does not exist in Kafka; create it, or correct the "
                      "handlers' topics",
                      topic));
      continue;
    }
    topics_[topic] = found->second;
    findings_.good(fmt::format(
        "topic {}, {} {}{}", topic, found->second.partitions,
        found->second.partitions == 1 ? "partition" : "partitions",
        found->second.id.empty() ? "; the broker has no topic ids, so a topic that is deleted and "
                                   "created again is noticed only by its offsets"
                                 : ""));
  }
}

void Check::check_dead_letter_topic(const kafka::Client& client) {
  const auto& topic = options_.dead_letters.topic;
  if (topic.empty())
    return;
  // Properties may suit a consumer and no producer.
  const kafka::Producer producer(options_.kafka, options_.dead_letters.max_payload, {});
  const auto described = client.describe({topic}, kKafkaTimeout);
  const auto found = described.find(topic);
  if (found == described.end()) {
    findings_.wrong(
        fmt::format("dead_letters.topic {} does not exist in Kafka; create it, without it the "
                    "letters stay in pawl.dead_letters alone",
                    topic));
  } else {
    findings_.good(
        fmt::format("dead_letters.topic {}, {} partitions", topic, found->second.partitions));
  }
}

void Check::check_outbox_topic(const kafka::Client& client) {
  const auto& topic = options_.outbox.state_topic;
  if (!needs_transactions())
    return;
  const auto described = client.describe({topic}, kKafkaTimeout);
  if (const auto found = described.find(topic); found != described.end()) {
    findings_.good(fmt::format("outbox.state_topic {}", topic));
    if (found->second.partitions != 1)
      findings_.note(
          fmt::format("outbox.state_topic {} has {} partitions, as if it were for messages; give "
                      "the outbox one of its own, with one partition",
                      topic, found->second.partitions));
  } else {
    findings_.note(fmt::format(
        "outbox.state_topic {} does not exist in Kafka: `{}` creates it where it may, "
        "else create it: kafka-topics.sh --bootstrap-server {} --create --topic {} "
        "--partitions 1",
        topic, relays_only_ ? "relay" : "run", options_.kafka.bootstrap_servers, topic));
  }
}

void Check::check_outbox_transactions(const kafka::Client& client) {
  if (!needs_transactions())
    return;
  constexpr const char* kSetting = "transaction.max.timeout.ms";
  const auto needed = engine::kTransactionTimeout.count();
  try {
    const auto allowed = client.broker_setting(kSetting, kKafkaTimeout);
    if (!allowed || std::stoll(*allowed) >= needed)
      return;
    findings_.wrong(
        fmt::format("the brokers allow transactions of {0} ms ({1}), and the outbox needs {2} ms: "
                    "set {1}={2} or more on the brokers, or outbox.transactions = false (at least "
                    "once)",
                    *allowed, kSetting, needed));
  } catch (const kafka::KafkaError& error) {
    findings_.note(
        fmt::format("whether the brokers allow the outbox's transactions of {} ms ({}) could not "
                    "be read: {}",
                    needed, kSetting, error.what()));
  }
}

/// What would be set apart, and what no transaction may publish. Only of topics that the
/// configuration writes out.
void Check::check_published_topics(const kafka::Client& client) {
  std::map<std::string, std::string> labels;  // by topic, of the first statement that names it
  const auto look = [&](const std::string& label, const std::string& sql,
                        const SourceLocation& where) {
    for (const auto& topic : handlers::published_topics(sql, options_.postgres.schema)) {
      const auto place = fmt::format("{}{}{}", where, where.empty() ? "" : ": ", label);
      if (handlers::is_topic_name(topic)) {
        labels.emplace(topic, place);
      } else {
        findings_.wrong(fmt::format(
            "{}: pawl.publish refuses \"{}\" as the name of a topic, which has 1 to 249 letters, "
            "digits, dots, underscores and hyphens; correct it",
            place, topic));
      }
    }
  };
  for (std::size_t i = 0; i < options_.handlers.size(); ++i) {
    const auto& handler = options_.handlers[i];
    for (const auto& [label, written, responds] :
         handlers::written_statements({i, handler.name}, handler))
      look(label, written.text, written.where);
  }
  if (labels.empty())
    return;
  std::vector<std::string> topics;
  for (const auto& [topic, label] : labels)
    topics.push_back(topic);
  const bool writes = options_.outbox.relay != RelayOutbox::kOff;
  const auto answers = client.describe_each(topics, kKafkaTimeout, writes);
  for (const auto& [topic, label] : labels) {
    const auto found = answers.described.find(topic);
    if (found != answers.described.end() && found->second.may_write) {
      findings_.good(fmt::format("topic {}, to which {} publishes", topic, label));
      continue;
    }
    const bool missing = found == answers.described.end() && !answers.refused.contains(topic);
    findings_.wrong(fmt::format(
        "{} publishes to topic {}, and its messages would be set apart: {}{}", label, topic,
        engine::why_not_written(answers, topic),
        missing ? fmt::format("; create it: kafka-topics.sh --bootstrap-server {} --create "
                              "--topic {}",
                              options_.kafka.bootstrap_servers, topic)
                : ""));
  }
}

void Check::check_first_contacts(const kafka::Client& client, const std::string& cluster_id) {
  if (!rows_)
    return;
  for (const auto& [topic, description] : topics_) {
    const bool stored = std::any_of(rows_->begin(), rows_->end(), [name = topic](const auto& row) {
      return row.partition.topic == name;
    });
    std::vector<TopicPartition> partitions;
    for (std::int32_t p = 0; p < description.partitions; ++p)
      partitions.push_back({topic, p});
    const bool well = stored || check_committed(client, topic, partitions);
    if (check_beside(topic, cluster_id, stored) && well && !stored)
      tell_first_positions(client, partitions);
  }
}

bool Check::check_committed(const kafka::Client& client, const std::string& topic,
                            const std::vector<TopicPartition>& partitions) {
  if (const auto committed = engine::committed_by_pawl(client, partitions, kKafkaTimeout)) {
    findings_.wrong(fmt::format(
        "group {} has processed {} into database {}, but this one ({}) has no offset of it: "
        "correct postgres.url, restore the database, or state positions with `offsets set`",
        options_.kafka.group, topic, committed->database_id, database_id_));
    return false;
  }
  return true;
}

/// Whether the consumer may begin, or go on with, a topic that others process.
bool Check::check_beside(const std::string& topic, const std::string& cluster_id, bool stored) {
  const auto others = ledger::other_consumers(
      *session_, options_.postgres.schema,
      {options_.kafka.cluster, options_.kafka.group, cluster_id, topic, topics_.at(topic).id});
  if (!stored) {
    if (const auto refused =
            engine::refuse_beside(start_of(topic), options_.invocation, topic, others)) {
      findings_.wrong(*refused);
      return false;
    }
  }
  for (const auto& other : others) {
    findings_.note(fmt::format("topic {}: another consumer of this database processes it too: {}",
                               topic, engine::describe(other)));
  }
  return true;
}

KafkaOptions Check::start_of(const std::string& topic) const {
  const auto entry = handlers::topic_entries(options_).entry_of(topic);
  return engine::first_start(options_.kafka, ledger::came_later(first_topics_, entry, topic));
}

void Check::tell_first_positions(const kafka::Client& client,
                                 const std::vector<TopicPartition>& partitions) {
  if (partitions.empty())
    return;
  if (options_.kafka.start == Start::kHalt) {
    findings_.note(
        fmt::format("topic {} is new to this consumer and would halt, by kafka.start = \"halt\": "
                    "state where to begin, for example: {} --topic {} --all --to earliest",
                    partitions.front().topic, command_text(options_.invocation, "offsets set"),
                    shell_word(partitions.front().topic)));
    return;
  }
  const auto positions = engine::first_positions(client, start_of(partitions.front().topic),
                                                 partitions, kKafkaTimeout);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto& [partition, next, reason] = positions[i];
    if (i == kMostPositions) {
      findings_.note(
          fmt::format("... and {} more partitions of {}", positions.size() - i, partition.topic));
      break;
    }
    findings_.note(fmt::format("{} [{}] would begin at {}: {}", partition.topic,
                               partition.partition, next, engine::to_string(reason)));
  }
}

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
