#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace pawl {

using std::chrono::milliseconds;

/// Where an option was written, for error texts: "conf/payments.toml:12".
using SourceLocation = std::string;

/// Where a partition starts that this consumer has never processed (first contact).
/// Resolved and stored for all partitions of the topic at once; never asked again.
enum class Start {
  kCommitted,  ///< adopt Kafka's committed offset of the group once; without one, earliest
  kEarliest,   ///< the log's start
  kLatest,     ///< the log's end at first contact
  kTimestamp,  ///< first record at or after `start_timestamp`
  kHalt,       ///< refuse: an operator sets the position with `pawl offsets set`
};

/// How the group agrees on who owns which partition.
enum class Assignment {
  kGroup,   ///< Kafka's group membership (subscribe)
  kManual,  ///< exactly `manual_partitions` of every topic, without coordination (KIP-less
            ///< "assign")
};

enum class GroupProtocol {
  kClassic,   ///< the client-side assignors
  kConsumer,  ///< KIP-848, brokers >= 4.0
};

struct KafkaOptions {
  std::string bootstrap_servers;
  std::string group;
  /// Our own name for the Kafka cluster; with the group it identifies the consumer in PostgreSQL.
  std::string cluster = "default";
  /// Static membership (KIP-345): a stable name of this process within the group; empty = dynamic.
  std::string group_instance_id;
  GroupProtocol group_protocol = GroupProtocol::kClassic;
  /// "cooperative-sticky", "range" or "roundrobin"; ignored under KIP-848.
  std::string assignor = "cooperative-sticky";
  milliseconds session_timeout{45000};
  Start start = Start::kCommitted;
  std::chrono::sys_time<milliseconds> start_timestamp{};
  /// Other consumers of the same database, "group" or "cluster/group", beside which this one may
  /// begin a topic that they process, because its effects are others than theirs.
  std::vector<std::string> start_beside;
  /// Upper bound of fetched but unprocessed bytes of all partitions together; each has what it
  /// needs of it. A larger single record still passes.
  std::size_t buffer = std::size_t{32} << 20U;
  /// How often topic ids (KIP-516) and new partitions are looked for.
  milliseconds topic_check_interval{1000};
  /// How often processed offsets are told to Kafka (for lag tools only; never read back but at
  /// first contact).
  milliseconds commit_interval{5000};
  Assignment assignment = Assignment::kGroup;
  std::vector<std::int32_t> manual_partitions;
  /// An absolute path and its arguments; run without a shell. Prints an OAuth token, for
  /// sasl.mechanism OAUTHBEARER (docs/security.md). Empty: none.
  std::vector<std::string> oauth_token_command;
  /// Any librdkafka property; those that would break the promise are refused by validation.
  std::map<std::string, std::string> librdkafka;

  friend bool operator==(const KafkaOptions&, const KafkaOptions&) = default;
};

/// How a connection string is renewed at each connect. Not compared.
struct UrlRenewal {
  /// What the connection string is now; another one than load_config() has read stays as it is. Any
  /// thread. Throws std::runtime_error, whose text holds no secret. Empty: it stays as it is.
  std::function<std::string(const std::string& url)> now;
  /// The connection string as load_config() has read it.
  std::string read;
  /// The same with "1" for what came from files, or empty if a file says how it begins: what is
  /// wrong with it stays wrong.
  std::string literal;
  /// The files, for people.
  std::string files;

  friend bool operator==(const UrlRenewal&, const UrlRenewal&) { return true; }
};

struct PostgresOptions {
  /// A libpq connection string or URI; parts that are absent come from libpq's environment,
  /// service and password files.
  std::string url;
  /// Set by load_config() if `url` holds ${file:PATH}: the file is read again at each connect.
  UrlRenewal renewal;
  /// An absolute path and its arguments; run without a shell at each connect, for at most 10 s. The
  /// first line that it prints is the password. Empty: none.
  std::vector<std::string> password_command;
  std::string schema = "pawl";
  /// Through a transaction-pooling proxy (PgBouncer): nothing is set or kept per session.
  bool pooled = false;
  /// "" keeps the database's own setting; else on, off, local, remote_write, remote_apply.
  std::string synchronous_commit;
  milliseconds connect_timeout{5000};
  /// Bound of one wait for a lock; waiting longer is retried and never held against a message.
  milliseconds lock_timeout{5000};
  /// Reconnect and retry delays: exponential from initial to max, with full jitter.
  milliseconds retry_initial{50};
  milliseconds retry_max{1000};
  /// A previous owner's session that blocks us and has been idle in transaction for longer is
  /// ended.
  milliseconds stalled_owner_after{10000};
  /// How often operators' changes (pause, resume, offsets set) are looked for.
  milliseconds poll_interval{1000};
  /// A handler's SQL ends in a comment with the record's trace context: /*traceparent='00-...'*/.
  bool trace_comment = false;

  friend bool operator==(const PostgresOptions&, const PostgresOptions&) = default;
};

/// What happens when no idempotency key can be derived from a message.
enum class MissingKey {
  kFail,     ///< the failure policy
  kProcess,  ///< applied without duplicate check, counted
  kSkip,     ///< recorded as skipped
};

/// What happens when a key arrives again with another payload.
enum class Conflict { kFail, kIgnore };

struct IdempotencyOptions {
  /// Key template, e.g. "{header:event-id}"; empty: the handler's C++ key function or none.
  std::string key;
  /// Keys are unique within a scope; empty: consumer + topic.
  std::string scope;
  MissingKey missing_key = MissingKey::kFail;
  Conflict conflict = Conflict::kFail;
  /// Bytes of a response that is stored with a key, 1 KiB..16 MiB; a larger one fails its message.
  std::size_t max_response = std::size_t{64} << 10U;
  /// A person has checked that no two events have the same key, so pawl does not warn about it.
  bool key_checked = false;

  friend bool operator==(const IdempotencyOptions&, const IdempotencyOptions&) = default;
};

/// What happens to a message that cannot be applied.
enum class FailurePolicy {
  kHalt,        ///< its partition stops at it, the others go on
  kDeadLetter,  ///< stored whole in pawl.dead_letters, and the partition goes on
  kPark,        ///< the same, and later messages of its record key wait behind it, in order
  kRetryLater,  ///< as kPark, and it is tried again by itself after each of retry_later
  kSkip,        ///< left out, and recorded whole in pawl.skipped_messages
};

/// What happens to a message whose topic has handlers but whose `when` conditions all say no.
enum class Unmatched { kFail, kSkip };

struct FailureOptions {
  FailurePolicy on_failure = FailurePolicy::kHalt;
  /// That of Options::failures counts, since such a message has no handler.
  Unmatched unmatched = Unmatched::kFail;
  /// How long a message that fails is tried before the policy applies: its waits between attempts,
  /// added up. Attempts are counted in PostgreSQL, so a restart does not begin anew, and the time
  /// in which no process ran does not count.
  milliseconds retry_for{std::chrono::minutes(5)};
  /// Attempts of one message before the policy applies, whatever retry_for says; 0: no such bound.
  std::uint32_t max_attempts = 0;
  /// How many processes may end while they run a message alone (probation), before the policy
  /// applies; also how many may end while they fetch the next message of a partition, before it
  /// halts. 1..100.
  std::uint32_t max_crashes = 3;
  milliseconds retry_initial{100};
  milliseconds retry_max{30000};
  /// Of kRetryLater: the delays before a message that was set aside is tried again, 1 to 20 of 1 s
  /// to 30 days each; after the last one it is a dead letter. By the database's clock.
  std::vector<milliseconds> retry_later{std::chrono::minutes(1), std::chrono::minutes(10),
                                        std::chrono::hours(1), std::chrono::hours(6)};
  /// Delay between tries while the program, not the message, is wrong (missing table, grant, ...).
  milliseconds program_error_retry{10000};
  /// Messages in a row that failed in one way before their handler's partitions halt instead of
  /// setting more aside; 0: never.
  std::uint32_t breaker = 50;

  friend bool operator==(const FailureOptions&, const FailureOptions&) = default;
};

/// What is kept of messages that were set aside.
struct DeadLetterOptions {
  /// False: only where the message stands in Kafka, why it failed and its keys are stored.
  bool store_payload = true;
  /// A larger value is stored up to here, and replay needs the record in Kafka.
  std::size_t max_payload = std::size_t{1} << 20U;
  /// A Kafka topic that is fed from the table, at least once; empty: none.
  std::string topic;

  friend bool operator==(const DeadLetterOptions&, const DeadLetterOptions&) = default;
};

/// Whether `run` publishes what stands in the outbox.
enum class RelayOutbox {
  kAuto,  ///< where a handler publishes; what code does shows when it does it
  kOn,
  kOff,
};

/// Where leases are kept. Outcomes are recorded in PostgreSQL in either case.
enum class LeaseStore { kPostgres, kRedis };

/// Leases of idempotency keys, for handlers whose effect is outside of the database
/// (docs/effects.md).
struct LeaseOptions {
  /// With kRedis, RedisOptions say where it is.
  LeaseStore store = LeaseStore::kPostgres;
  /// How long the lease of a process that died, or stands still, keeps others from calling,
  /// 2 s..1 h. One that lives extends it.
  milliseconds time{30000};
  /// Calls of this process at a time, each with a thread; 1..4096.
  std::uint32_t calls = 256;

  friend bool operator==(const LeaseOptions&, const LeaseOptions&) = default;
};

/// The Redis of LeaseStore::kRedis.
struct RedisOptions {
  /// "host:port". Empty: `sentinels` say where the master called `master` is.
  std::string address;
  std::vector<std::string> sentinels;
  std::string master;
  /// An ACL user; empty: "default", of whom an empty password means that none is asked for.
  std::string user;
  std::string password;
  // The same for Sentinel.
  std::string sentinel_user;
  std::string sentinel_password;
  std::uint32_t database = 0;
  /// Also to Sentinel. Certificates are verified, with the name that they are for.
  bool tls = false;
  /// Whom the certificates are for; empty: the host that was connected to.
  std::string server_name;
  /// PEM files; empty: the system's authorities, no client certificate.
  std::string ca_file;
  std::string certificate;
  std::string private_key;
  /// Of connecting, and of an answer, 10 ms..1 min.
  milliseconds timeout{1000};
  /// Begins the name of every key.
  std::string prefix = "pawl:";

  friend bool operator==(const RedisOptions&, const RedisOptions&) = default;
};

/// What is done about a message of which an earlier call may have had its effect.
enum class OnUnknown {
  kCall,       ///< the other side knows repetitions by the lease's key
  kReconcile,  ///< it is asked
  kHalt,       ///< until an operator says
};

/// Messages that pawl.publish() has written (docs/outbox.md).
struct OutboxOptions {
  RelayOutbox relay = RelayOutbox::kAuto;
  /// False: at least once, without Kafka's transactions.
  bool transactions = true;
  /// A topic with one partition that stays empty: it carries the numbers of the batches.
  std::string state_topic = "pawl-outbox-state";
  /// Bytes of key, value and headers together that pawl.publish() takes, 1 KiB..100 MiB.
  std::size_t max_message = 1'000'000;
  /// How long a message may wait before that is an alert, and late in `status`; zero: for ever.
  milliseconds alert_age{std::chrono::minutes(5)};

  friend bool operator==(const OutboxOptions&, const OutboxOptions&) = default;
};

/// A query of the application's: a row that it returns is something wrong.
struct AuditCheck {
  std::string name;  ///< empty: named by its place
  std::string text;
  SourceLocation where = {};

  /// Wherever they were written.
  friend bool operator==(const AuditCheck& one, const AuditCheck& other) {
    return one.name == other.name && one.text == other.text;
  }
};

/// `pawl audit`.
struct AuditOptions {
  std::vector<AuditCheck> checks;
  /// Bound of one check.
  milliseconds timeout{60000};

  friend bool operator==(const AuditOptions&, const AuditOptions&) = default;
};

/// When records that are no longer needed are removed (docs/retention.md). Zero: never.
struct RetentionOptions {
  /// How late a producer's duplicate may come and still be recognised.
  milliseconds keys{std::chrono::hours(7 * 24)};
  /// Since a dead letter was replayed or discarded; others are never removed.
  milliseconds dead_letters{std::chrono::hours(30 * 24)};
  /// Since a message was skipped.
  milliseconds skipped{std::chrono::hours(90 * 24)};
  /// Since a message of the outbox that Kafka refused was given up; others are never removed.
  milliseconds outbox{std::chrono::hours(30 * 24)};
  /// How often a running consumer looks whether something is to be removed; zero: it never does.
  milliseconds interval{std::chrono::minutes(10)};
  /// Share of the time in which a removal works, 1..100 percent; in the rest it pauses.
  std::uint32_t load = 10;

  friend bool operator==(const RetentionOptions&, const RetentionOptions&) = default;
};

/// One transaction for many messages of a partition, where a handler takes batches
/// (docs/batches.md).
struct BatchOptions {
  /// 1..10000; 1: each message alone.
  std::uint32_t max_messages = 500;
  /// Bound of its keys and values; one larger message is a batch of its own.
  std::size_t max_bytes = std::size_t{1} << 20U;
  /// How long a batch that is not full waits for more messages.
  milliseconds linger{0};

  friend bool operator==(const BatchOptions&, const BatchOptions&) = default;
};

struct SqlStatement {
  std::string text;
  /// Rows that the statement must affect or return; anything else fails the message.
  std::optional<std::uint64_t> expect_rows = {};
  SourceLocation where = {};
  /// For SqlResponse::statement; empty: it has none.
  std::string name = {};

  /// Wherever they were written.
  friend bool operator==(const SqlStatement& one, const SqlStatement& other) {
    return one.text == other.text && one.expect_rows == other.expect_rows && one.name == other.name;
  }
};

/// What an SQL handler stores as the response of a message: what a statement returns, one row of
/// one column; for batches two columns, the message's number from 1 and its response. None while
/// both are empty.
struct SqlResponse {
  std::string text;       ///< a statement that runs behind the others
  std::string statement;  ///< the name of one of them, instead
  SourceLocation where = {};

  [[nodiscard]] bool empty() const { return text.empty() && statement.empty(); }

  /// Wherever they were written.
  friend bool operator==(const SqlResponse& one, const SqlResponse& other) {
    return one.text == other.text && one.statement == other.statement;
  }
};

/// A text with placeholders for a message's parts, and ${NAME} or ${file:PATH} as they were
/// written: what they stand for is looked up when it is needed.
struct HttpText {
  std::string written;
  std::string folder;  ///< where a relative PATH begins

  [[nodiscard]] bool empty() const { return written.empty(); }
  friend bool operator==(const HttpText&, const HttpText&) = default;
};

/// A leased handler without code: one HTTP request for each message (docs/effects.md).
struct HttpOptions {
  std::string method = "POST";
  HttpText url;                             ///< empty: the handler has no request
  std::map<std::string, HttpText> headers;  ///< by name
  HttpText body;
  /// JSON whose strings are templates; empty: `body` counts.
  HttpText json;
  /// The header that carries Lease::key(); empty: none does.
  std::string key_header = "Idempotency-Key";
  /// Statuses, as "200,201" or "2xx". The first list that names one counts, in the order success,
  /// not_done, retry, permanent; else the first that has its class. What is in none is permanent.
  std::string success = "2xx";
  std::string retry = "408,409,425,429,5xx";
  std::string permanent;
  /// Those that say that nothing was done, and are tried again (RFC 8470, RFC 6585). Not 503, which
  /// proxies say of requests that they have passed on.
  std::string not_done = "425,429";
  /// Statuses of not_done that mean that the endpoint cannot be used now: its messages wait, and no
  /// attempt counts. Empty: none.
  std::string outage;
  /// Requests of this process to the host at a time; 0: as many as there are calls.
  std::uint32_t max_calls = 0;
  /// A connection stays open for the next request; false: each request has one of its own.
  bool keep_alive = true;
  /// PEM files; empty: the system's authorities, no client certificate.
  std::string ca_file;
  std::string certificate;
  std::string private_key;
  SourceLocation where = {};

  [[nodiscard]] bool empty() const { return url.empty(); }

  /// Wherever they were written.
  friend bool operator==(const HttpOptions& one, const HttpOptions& other) {
    const auto all = [](const HttpOptions& of) {
      return std::tie(of.method, of.url, of.headers, of.body, of.json, of.key_header, of.success,
                      of.retry, of.permanent, of.not_done, of.outage, of.max_calls, of.keep_alive,
                      of.ca_file, of.certificate, of.private_key);
    };
    return all(one) == all(other);
  }
};

struct HandlerOptions {
  /// Name under which C++ code registered the handler; for SQL and function handlers a label.
  std::string name;
  std::vector<std::string> topics;
  /// Condition on the message, e.g. `{header:type} == "refund"`; empty matches everything.
  std::string when;
  std::vector<SqlStatement> sql;
  SqlResponse response;
  /// A database function to call with the message, e.g. "app.apply_payment".
  std::string function;
  HttpOptions http;
  /// `sql` takes many messages at once: each placeholder is an array with one element a message.
  bool batch = false;
  // Set: instead of what Options::idempotency says for all handlers.
  std::optional<std::string> key;
  std::optional<bool> key_checked;
  std::optional<std::string> scope;
  std::optional<MissingKey> missing_key;
  std::optional<Conflict> conflict;
  std::optional<std::size_t> max_response;
  /// How late a producer's duplicate may come; instead of RetentionOptions::keys. Zero: its keys
  /// are never removed. The longest of a scope counts for all of its keys.
  std::optional<milliseconds> retention;
  /// Its messages of one partition that run side by side, 1..1000; 1: one after the other.
  std::uint32_t concurrency = 1;
  /// Messages for which this template gives the same text run in the log's order; those for which
  /// it gives none in any. Of a topic that has a handler with concurrency above 1.
  std::string order_by = "{key}";
  /// Messages that may be begun while an earlier one of the partition is not finished, 1..100000.
  std::uint32_t max_ahead = 1000;
  // Of leased handlers:
  OnUnknown on_unknown = OnUnknown::kCall;
  /// For how long the other side knows repetitions: a first attempt that is unknown for longer is
  /// treated as with OnUnknown::kHalt. Zero: for ever.
  milliseconds remote_memory{0};
  /// Bound of one run of the handler.
  milliseconds timeout{30000};
  /// The whole policy of its messages; without one that of Options::failures. From TOML: [failures]
  /// with what the handler itself says of it.
  std::optional<FailureOptions> failures;
  /// "", "read committed", "repeatable read" or "serializable".
  std::string isolation;
  /// Tables on other servers ("schema.table", or "dblink_exec") that its SQL may write to although
  /// they commit separately.
  std::vector<std::string> not_atomic;
  SourceLocation where;

  friend bool operator==(const HandlerOptions&, const HandlerOptions&) = default;
};

/// What a crash of the database may take back (docs/guarantees.md).
enum class Durability {
  kSynchronous,  ///< nothing that was committed, as far as postgres.synchronous_commit says so
  kReplayable,   ///< the last commits, with key, effects and offset; Kafka still has their messages
};

struct EngineOptions {
  /// Worker threads, each with one PostgreSQL connection, 1..256.
  std::uint32_t workers = 8;
  /// Transactions that a worker sends before it waits for an answer, 1..1000.
  std::uint32_t pipeline = 64;
  /// Messages that run side by side in this process where handlers have a concurrency above 1,
  /// each with a thread and a PostgreSQL connection, which are made when they are needed; 1..1000.
  std::uint32_t concurrency = 16;
  Durability durability = Durability::kSynchronous;
  /// With kReplayable: how long a commit may wait for the disk, 10 ms..1 min.
  milliseconds durability_interval{1000};
  milliseconds shutdown_timeout{30000};
  /// End once every partition has reached the end it had at start.
  bool drain = false;

  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

enum class LogFormat { kText, kJson };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  /// trace, debug, info, warn, error
  std::string level = "info";
  /// Progress line interval; zero turns it off.
  milliseconds progress_interval{10000};
  /// Failures are logged with PostgreSQL's DETAIL, which may quote values of rows.
  bool error_details = false;

  friend bool operator==(const LogOptions&, const LogOptions&) = default;
};

/// Who is told when something needs a person. Nobody while both ways are empty.
struct AlertOptions {
  /// An absolute path and its arguments; run without a shell, with the alert as JSON on stdin.
  std::vector<std::string> command;
  /// The command is ended when it runs for longer.
  milliseconds timeout{10000};
  /// A channel for NOTIFY, with the JSON as its payload; at most 63 bytes.
  std::string notify_channel;
  /// Between two alerts of one kind about the same partition, handler, or remote service.
  milliseconds min_interval{60000};
  /// How long PostgreSQL, Kafka, Redis, or a remote service is unreachable before that is an alert.
  milliseconds unreachable_after{60000};

  friend bool operator==(const AlertOptions&, const AlertOptions&) = default;
};

/// What `run` and `relay` tell about themselves over HTTP (docs/observe.md).
struct MonitoringOptions {
  /// A numeric address and a port: "127.0.0.1:9464", "[::1]:9464". Empty: nothing is told.
  std::string listen;
  /// Names by which the dashboard and `/status` are asked for, beside addresses, localhost and the
  /// machine's name.
  std::vector<std::string> hosts;
  /// Who presents this token may act on the dashboard; at least 16 characters. Empty: nobody may
  /// by a token.
  std::string actions_token;
  /// The numeric address of the proxy whose `actor_header` is believed. Empty: none is.
  std::string trusted_proxy;
  /// The request header in which the trusted proxy names the person.
  std::string actor_header = "X-Forwarded-User";

  friend bool operator==(const MonitoringOptions&, const MonitoringOptions&) = default;
};

/// How an operator calls this program: the commands in its texts begin with it.
struct InvocationOptions {
  std::string program = "pawl";
  /// The configuration file in use. Empty: unknown, the texts have FILE.
  std::string config_file;
  /// The --set options that a command needs to reach the same servers and consumer:
  /// "kafka.group=other". What may be secret is ***.
  std::vector<std::string> overrides = {};
  /// It is the file that PAWL_CONFIG names where the texts are read: they omit --config.
  bool config_in_environment = false;

  friend bool operator==(const InvocationOptions&, const InvocationOptions&) = default;
};

/// Everything a consumer needs to know, validated. load_config() fills it from TOML.
struct Options {
  KafkaOptions kafka;
  PostgresOptions postgres;
  IdempotencyOptions idempotency;
  FailureOptions failures;
  DeadLetterOptions dead_letters;
  OutboxOptions outbox;
  LeaseOptions leases;
  RedisOptions redis;
  AuditOptions audit;
  RetentionOptions retention;
  EngineOptions consumer;
  BatchOptions batch;
  LogOptions log;
  AlertOptions alerts;
  MonitoringOptions monitoring;
  std::vector<HandlerOptions> handlers;
  InvocationOptions invocation;

  friend bool operator==(const Options&, const Options&) = default;
};

}  // namespace pawl
