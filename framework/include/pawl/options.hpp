#pragma once

// The options of a consumer without a configuration file.
//
//   #include <pawl/options.hpp>
//
//   pawl::Options payments() {
//     pawl::Options options;
//     options.kafka.bootstrap_servers = "127.0.0.1:9092";
//     options.kafka.group = "payments";
//     options.postgres.url = "postgresql://localhost/payments";
//     options.idempotency.key = "{header:event-id}";
//     pawl::HandlerOptions& handler = options.handlers.emplace_back();
//     handler.name = "payment";  // as the Registry has it
//     handler.topics = {"payments"};
//     return options;
//   }
//
// load_config() (pawl/config.hpp) reads the same from a file. A field is the option of the same
// name in docs/reference, unless its comment names another option. Sizes are in bytes. The
// constructor of Consumer checks all ranges, and throws ConfigErrors.

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

/// The location of an option, for error texts: "conf/payments.toml:12".
using SourceLocation = std::string;

/// The initial offset of a partition that has no stored offset (first assignment). pawl applies it
/// once, to all partitions of the topic together.
enum class Start {
  kCommitted,  ///< the offset that the group committed to Kafka; without one, kEarliest
  kEarliest,   ///< the start of the log
  kLatest,     ///< the end of the log at the first assignment
  kTimestamp,  ///< the first record at or after `start_timestamp`
  kHalt,       ///< the partition halts until `pawl offsets set` sets an offset
};

/// How a process gets its partitions.
enum class Assignment {
  kGroup,   ///< Kafka assigns partitions to the processes of the group
  kManual,  ///< exactly `manual_partitions` of every topic, without coordination
};

/// How Kafka assigns partitions to the processes of a group.
enum class GroupProtocol {
  kClassic,   ///< the clients assign them, by `assignor`
  kConsumer,  ///< the brokers assign them (KIP-848, Kafka 4.0 and later)
};

/// The section [kafka].
struct KafkaOptions {
  /// Brokers to connect to first, "host:port", separated by commas. Required.
  std::string bootstrap_servers;
  /// The consumer group, at most 255 bytes. Required.
  std::string group;
  /// A name for the Kafka cluster, at most 255 bytes. With the group, it identifies the consumer in
  /// PostgreSQL.
  std::string cluster = "default";
  /// Static membership (KIP-345): a stable name of this process in the group, at most 249 bytes.
  /// Empty: dynamic membership.
  std::string group_instance_id;
  GroupProtocol group_protocol = GroupProtocol::kClassic;
  /// "cooperative-sticky" (KIP-429), "range", or "roundrobin". No effect with kConsumer.
  std::string assignor = "cooperative-sticky";
  /// A process without a heartbeat for this long loses its partitions; 1 s..1 h. No effect with
  /// kConsumer.
  milliseconds session_timeout{45000};
  Start start = Start::kCommitted;
  /// Of Start::kTimestamp, UTC; the option `start` (RFC 3339).
  std::chrono::sys_time<milliseconds> start_timestamp{};
  /// Other consumers that apply the same topics to this database, each with its own effects:
  /// "group" or "cluster/group". If a consumer that is not listed has processed a topic, the first
  /// assignment of that topic halts, except with Start::kLatest.
  std::vector<std::string> known_consumers;
  /// Memory for records of all partitions that are fetched but not processed, 1 MiB..64 GiB. One
  /// larger record is still accepted.
  std::size_t buffer = std::size_t{32} << 20U;
  /// Interval of the checks for recreated topics (KIP-516) and new partitions; 100 ms..1 h.
  milliseconds topic_check_interval{1000};
  /// Interval at which processed offsets are committed to Kafka, for lag tools; 100 ms..1 h. pawl
  /// reads them only for Start::kCommitted.
  milliseconds commit_interval{5000};
  Assignment assignment = Assignment::kGroup;
  /// Of Assignment::kManual, from 0; the option `partitions`.
  std::vector<std::int32_t> manual_partitions;
  /// A program that prints an OAuth token for SASL/OAUTHBEARER (RFC 7628, KIP-255): its absolute
  /// path and arguments, without a shell. Empty: none.
  std::vector<std::string> oauth_token_command;
  /// Properties of librdkafka. Validation rejects those that would break a guarantee.
  std::map<std::string, std::string> librdkafka;

  friend bool operator==(const KafkaOptions&, const KafkaOptions&) = default;
};

/// How a connection string is read again at each connect. Not compared. Internal: load_config()
/// fills it.
struct UrlRenewal {
  /// Returns the current connection string for `url`. A `url` that load_config() has not read stays
  /// as it is. Any thread. Throws std::runtime_error, whose text contains no secret. Empty: the
  /// connection string never changes.
  std::function<std::string(const std::string& url)> now;
  /// The connection string that load_config() has read.
  std::string read;
  /// The same with "1" for the content of files, so that it can be checked. Empty if a file has the
  /// start of the string.
  std::string literal;
  /// The files, as a text for people.
  std::string files;

  friend bool operator==(const UrlRenewal&, const UrlRenewal&) { return true; }
};

/// The section [postgres].
struct PostgresOptions {
  /// A connection string or URI (PostgreSQL, "Connection Strings"). Omitted parts come from libpq's
  /// environment variables, service file, and password file.
  std::string url;
  /// Set by load_config() if `url` contains ${file:PATH}: the file is read again at each connect.
  UrlRenewal renewal;
  /// A program whose first line of output is the password: its absolute path and arguments, without
  /// a shell. It runs at each connect, for at most 10 s. Empty: none.
  std::vector<std::string> password_command;
  /// The schema of pawl's tables, at most 63 bytes of a-z, 0-9, and _.
  std::string schema = "pawl";
  /// Connections go through a pooler in transaction mode (PgBouncer): nothing is set or kept per
  /// session.
  bool pooled = false;
  /// "on", "off", "local", "remote_write", or "remote_apply" (PostgreSQL, "Write Ahead Log").
  /// Empty: the setting of the database.
  std::string synchronous_commit;
  /// Limit of one attempt to connect to one host, 100 ms..10 min.
  milliseconds connect_timeout{5000};
  /// Limit of one wait for a lock, 10 ms..1 h. pawl retries afterwards, and counts no attempt.
  milliseconds lock_timeout{5000};
  /// First delay before the next attempt while PostgreSQL is unreachable, 1 ms..1 h. It doubles up
  /// to `retry_max`, with jitter.
  milliseconds retry_initial{50};
  milliseconds retry_max{1000};  ///< the longest such delay, 1 ms..1 h
  /// pawl terminates a previous owner's session that blocks a partition, and that has been idle in
  /// transaction for this long; 100 ms..1 h.
  milliseconds stalled_owner_after{10000};
  /// Interval of the checks for operators' commands (pause, resume, offsets set), 10 ms..1 h.
  milliseconds poll_interval{1000};
  /// The statements of a handler end with a comment that has the record's W3C trace context:
  /// /*traceparent='00-...'*/.
  bool trace_comment = false;

  friend bool operator==(const PostgresOptions&, const PostgresOptions&) = default;
};

/// Handling of a message without an idempotency key.
enum class MissingKey {
  kFail,     ///< the failure policy applies
  kProcess,  ///< the message is applied without a duplicate check, and counted
  kSkip,     ///< the message is skipped and recorded
};

/// Handling of a message whose key exists with another payload.
enum class Conflict {
  kFail,    ///< the failure policy applies
  kIgnore,  ///< the message is a duplicate
};

/// The section [idempotency].
struct IdempotencyOptions {
  /// A template, such as "{header:event-id}". Empty: the KeyFunction of the handler, or no key.
  std::string key;
  /// Keys are unique within a scope, a name of at most 255 bytes. Empty: one scope per consumer and
  /// topic.
  std::string scope;
  MissingKey missing_key = MissingKey::kFail;
  Conflict conflict = Conflict::kFail;
  /// Largest response that is stored with a key, 1 KiB..16 MiB. A larger response fails its
  /// message.
  std::size_t max_response = std::size_t{64} << 10U;
  /// A person has checked that no two events have the same key, so pawl does not warn about it.
  bool key_checked = false;

  friend bool operator==(const IdempotencyOptions&, const IdempotencyOptions&) = default;
};

/// Handling of a message that cannot be applied (docs/failures.md).
enum class FailurePolicy {
  kHalt,        ///< its partition halts; other partitions continue
  kDeadLetter,  ///< the message is stored in pawl.dead_letters, and its partition continues
  kPark,        ///< the same, and later messages of its record key are parked, in order
  kRetryLater,  ///< as kPark, and the message is retried automatically after each retry_later
  kSkip,        ///< the message is skipped, and stored in pawl.skipped_messages
};

/// Handling of a message whose topic has handlers, if no `when` condition matches.
enum class Unmatched {
  kFail,  ///< the failure policy applies
  kSkip,  ///< the message is skipped and recorded
};

/// The section [failures].
struct FailureOptions {
  FailurePolicy on_failure = FailurePolicy::kHalt;
  /// That of Options::failures applies, because such a message has no handler.
  Unmatched unmatched = Unmatched::kFail;
  /// How long a failed message is retried before the policy applies, 0..7 days: the sum of the
  /// delays between its attempts. Attempts are counted in PostgreSQL, so a restart does not reset
  /// them. Time during which no process runs does not count.
  milliseconds retry_for{std::chrono::minutes(5)};
  /// Attempts of one message before the policy applies, whatever retry_for is; 0..1000, 0: no
  /// limit.
  std::uint32_t max_attempts = 0;
  /// Processes that may crash while they process a message alone (probation) before the policy
  /// applies, 1..100. A partition halts after the same number of crashes while its next message is
  /// fetched.
  std::uint32_t max_crashes = 3;
  /// First delay before the next attempt, 1 ms..24 h. It doubles up to `retry_max`, with jitter.
  milliseconds retry_initial{100};
  milliseconds retry_max{30000};  ///< the longest such delay, 1 ms..24 h
  /// Of kRetryLater: the delays before the retries of a message, 1 to 20 of 1 s to 30 days each, by
  /// the clock of the database. After the last one, the message is a dead letter.
  std::vector<milliseconds> retry_later{std::chrono::minutes(1), std::chrono::minutes(10),
                                        std::chrono::hours(1), std::chrono::hours(6)};
  /// Delay between attempts while a partition is halted by a program error (a missing table or
  /// privilege) or by the circuit breaker; 10 ms..24 h.
  milliseconds program_error_retry{10000};
  /// Consecutive messages of a handler that fail the same way before its circuit breaker opens: its
  /// partitions halt, and no further dead letters are stored. 0..1,000,000; 0: never.
  std::uint32_t circuit_breaker = 50;

  friend bool operator==(const FailureOptions&, const FailureOptions&) = default;
};

/// The section [dead_letters]: the content of a dead letter.
struct DeadLetterOptions {
  /// False: a dead letter contains only its position in Kafka, its keys, and its error.
  bool store_payload = true;
  /// Largest value that is stored in full, 0..512 MiB. A larger value is truncated, and a replay
  /// reads the message from Kafka.
  std::size_t max_payload = std::size_t{1} << 20U;
  /// A Kafka topic to which dead letters are published at least once. Empty: none.
  std::string topic;

  friend bool operator==(const DeadLetterOptions&, const DeadLetterOptions&) = default;
};

/// Whether the consumer publishes the messages of the outbox.
enum class RelayOutbox {
  kAuto,  ///< if SQL of a handler publishes; otherwise as soon as unpublished messages wait
  kOn,    ///< always
  kOff,   ///< never
};

/// Where leases are stored. Outcomes are stored in PostgreSQL in either case.
enum class LeaseStore {
  kPostgres,  ///< rows of pawl.leases
  kRedis,     ///< keys in Redis, with weaker guarantees (docs/external-calls-redis.md)
};

/// The section [calls]: handlers that call a remote service (docs/external-calls.md).
struct CallOptions {
  /// With kRedis, RedisOptions are required.
  LeaseStore lease_store = LeaseStore::kPostgres;
  /// How long the lease of a crashed or frozen process prevents other processes from calling for
  /// its key, 2 s..1 h. A running process extends its leases.
  milliseconds lease_time{30000};
  /// External calls that this process makes concurrently, each on a thread; 1..4096.
  std::uint32_t max_in_flight = 256;

  friend bool operator==(const CallOptions&, const CallOptions&) = default;
};

/// The section [redis]: the server of LeaseStore::kRedis.
struct RedisOptions {
  /// The Redis server, a master: "host:port". Empty: `sentinels` and `master` are required.
  std::string address;
  std::vector<std::string> sentinels;  ///< "host:port" of each, queried one after the other
  std::string master;                  ///< its name in Sentinel, at most 255 bytes
  std::string user;                    ///< ACL user; empty: "default"
  std::string password;                ///< empty: no password
  std::string sentinel_user;           ///< ACL user for Sentinel; empty: "default"
  std::string sentinel_password;       ///< empty: no password
  std::uint32_t database = 0;          ///< number of the database (SELECT), 0..9999
  /// Connects with TLS, also to Sentinel. The certificate and the name in it are verified.
  bool tls = false;
  /// Host name that the certificate must contain. Empty: the host of the connection.
  std::string server_name;
  std::string ca_file;      ///< PEM file of authorities; empty: those of the system
  std::string certificate;  ///< PEM file of the client certificate; empty: none
  std::string private_key;  ///< PEM file of its key, without a passphrase
  /// Limit of one attempt to connect, and of one response; 10 ms..1 min, at most a third of
  /// CallOptions::lease_time.
  milliseconds timeout{1000};
  /// Prefix of every key, at most 255 bytes, without { and }.
  std::string prefix = "pawl:";

  friend bool operator==(const RedisOptions&, const RedisOptions&) = default;
};

/// Handling of a message if an earlier call may or may not have succeeded.
enum class OnUnknown {
  kCall,       ///< pawl calls again with the same key, by which the service detects duplicates
  kReconcile,  ///< LeasedHandler::reconcile checks with the remote service first
  kHalt,       ///< the partition halts until `pawl calls resolve` records the outcome
};

/// The section [outbox]: messages that pawl.publish() has stored (docs/outbox.md).
struct OutboxOptions {
  RelayOutbox relay = RelayOutbox::kAuto;
  /// False: pawl publishes at least once, without Kafka transactions (KIP-98).
  bool transactions = true;
  /// A topic with one partition that stays empty. Kafka commits the numbers of the batches for it.
  std::string state_topic = "pawl-outbox-state";
  /// Largest size of the key, value, and headers of a message together, 1 KiB..100 MiB.
  std::size_t max_message = 1'000'000;
  /// A message that waits longer raises an alert; 1 s..3650 days, 0: never.
  milliseconds alert_age{std::chrono::minutes(5)};

  friend bool operator==(const OutboxOptions&, const OutboxOptions&) = default;
};

/// A query of the application that `pawl audit` runs. It returns one row per finding.
struct AuditCheck {
  std::string name;  ///< empty: its number
  std::string text;  ///< one query
  SourceLocation where = {};

  /// Ignores `where`.
  friend bool operator==(const AuditCheck& one, const AuditCheck& other) {
    return one.name == other.name && one.text == other.text;
  }
};

/// The section [audit].
struct AuditOptions {
  std::vector<AuditCheck> checks;  ///< the option `sql`
  /// Limit of one check, 1 ms..24 h.
  milliseconds timeout{60000};

  friend bool operator==(const AuditOptions&, const AuditOptions&) = default;
};

/// The section [retention]: when rows are removed (docs/retention.md). The times are 1 s..3650
/// days; 0: never.
struct RetentionOptions {
  /// How long keys are kept. A producer's duplicate that arrives later is not detected.
  milliseconds keys{std::chrono::hours(7 * 24)};
  /// How long a dead letter is kept after it was replayed or discarded. Others are never removed.
  milliseconds dead_letters{std::chrono::hours(30 * 24)};
  /// How long the record of a skipped message is kept.
  milliseconds skipped{std::chrono::hours(90 * 24)};
  /// How long a message of the outbox is kept after it was discarded. Others are never removed.
  milliseconds outbox{std::chrono::hours(30 * 24)};
  /// Interval at which a consumer checks for rows to remove, 100 ms..24 h; 0: it never checks.
  milliseconds interval{std::chrono::minutes(10)};
  /// Percentage of the time during which a removal works, 1..100. It pauses during the rest.
  std::uint32_t load = 10;

  friend bool operator==(const RetentionOptions&, const RetentionOptions&) = default;
};

/// The section [batch]: messages of a partition that share a transaction (docs/batches.md).
struct BatchOptions {
  /// Messages of a batch, 1..10000; 1: each message alone.
  std::uint32_t max_messages = 500;
  /// Limit of the keys and values of a batch, 1 KiB..256 MiB. One larger message is a batch of its
  /// own.
  std::size_t max_bytes = std::size_t{1} << 20U;
  /// How long a batch that is not full waits for more messages, 0..1 min.
  milliseconds linger{0};

  friend bool operator==(const BatchOptions&, const BatchOptions&) = default;
};

/// A statement of an SQL handler.
struct SqlStatement {
  std::string text;  ///< with placeholders, such as {header:event-id} (docs/reference/templates.md)
  /// Rows that the statement must affect or return; any other number fails the message.
  std::optional<std::uint64_t> expect_rows = {};
  SourceLocation where = {};
  /// A name for SqlResponse::statement; empty: none.
  std::string name = {};

  /// Ignores `where`.
  friend bool operator==(const SqlStatement& one, const SqlStatement& other) {
    return one.text == other.text && one.expect_rows == other.expect_rows && one.name == other.name;
  }
};

/// The statement of an SQL handler that returns the response of a message: one row with one column.
/// For batches, it returns two columns: the number of the message, from 1, and its response.
struct SqlResponse {
  std::string text;       ///< a statement that runs after the others
  std::string statement;  ///< or the name of one of the others
  SourceLocation where = {};

  /// Whether the handler stores no response.
  [[nodiscard]] bool empty() const { return text.empty() && statement.empty(); }

  /// Ignores `where`.
  friend bool operator==(const SqlResponse& one, const SqlResponse& other) {
    return one.text == other.text && one.statement == other.statement;
  }
};

/// A template for an HTTP request. pawl substitutes ${NAME} and ${file:PATH} for each request.
struct HttpText {
  std::string written;
  std::string folder;  ///< the folder of a relative PATH

  [[nodiscard]] bool empty() const { return written.empty(); }
  friend bool operator==(const HttpText&, const HttpText&) = default;
};

/// An HTTP request per message, under a lease (docs/external-calls-http.md); the option `http` of a
/// handler.
struct HttpOptions {
  std::string method = "POST";              ///< or PUT, PATCH, DELETE, GET (RFC 9110)
  HttpText url;                             ///< empty: the handler has no request
  std::map<std::string, HttpText> headers;  ///< by name
  HttpText body;
  /// JSON whose strings are templates, instead of `body`.
  HttpText json;
  /// The request header that contains Lease::key(). Empty: none.
  std::string key_header = "Idempotency-Key";
  /// Statuses of a successful call, such as "200,201" or "2xx". The first list that names a status
  /// applies: success, not_done, retry, permanent. Otherwise the first list with its class applies.
  std::string success = "2xx";
  /// Statuses after which the outcome is unknown, and the message is retried.
  std::string retry = "408,409,425,429,5xx";
  /// Statuses after which no attempt can help. A status in no list is permanent, too.
  std::string permanent;
  /// Statuses which mean that nothing was done (RFC 8470, RFC 6585): the message is retried. 503 is
  /// not one of them, because a proxy may return it for a request that it has forwarded.
  std::string not_done = "425,429";
  /// Statuses of not_done which mean that the endpoint is unreachable: its messages wait, and no
  /// attempt is counted. Empty: none.
  std::string outage;
  /// Requests of this process to one host at a time; 0: no separate limit.
  std::uint32_t max_in_flight = 0;
  /// A connection stays open for the next request. False: one connection per request.
  bool keep_alive = true;
  std::string ca_file;      ///< PEM file of authorities; empty: those of the system
  std::string certificate;  ///< PEM file of the client certificate; empty: none
  std::string private_key;  ///< PEM file of its key, without a passphrase
  SourceLocation where = {};

  [[nodiscard]] bool empty() const { return url.empty(); }

  /// Ignores `where`.
  friend bool operator==(const HttpOptions& one, const HttpOptions& other) {
    const auto all = [](const HttpOptions& of) {
      return std::tie(of.method, of.url, of.headers, of.body, of.json, of.key_header, of.success,
                      of.retry, of.permanent, of.not_done, of.outage, of.max_in_flight,
                      of.keep_alive, of.ca_file, of.certificate, of.private_key);
    };
    return all(one) == all(other);
  }
};

/// A [[handler]].
struct HandlerOptions {
  /// The name under which C++ code registered the handler. For other handlers, a name for logs and
  /// metrics. At most 255 bytes.
  std::string name;
  /// Names of topics. A name that starts with ^ is a POSIX extended regular expression.
  std::vector<std::string> topics;
  /// A condition on the message, such as `{header:type} == "refund"`. Empty: all messages match.
  std::string when;
  std::vector<SqlStatement> sql;
  SqlResponse response;
  /// A database function that is called with the message, such as "app.apply_payment".
  std::string function;
  HttpOptions http;
  /// `sql` applies many messages at once: each placeholder is an array with one element per
  /// message.
  bool batch = false;
  // If set, instead of the same option in Options::idempotency:
  std::optional<std::string> key;
  std::optional<bool> key_checked;
  std::optional<std::string> scope;
  std::optional<MissingKey> missing_key;
  std::optional<Conflict> conflict;
  std::optional<std::size_t> max_response;
  /// How long its keys are kept, instead of RetentionOptions::keys; 1 s..3650 days, 0: forever.
  /// The longest retention of a scope applies to all keys of the scope.
  std::optional<milliseconds> retention;
  /// Messages of one partition that are processed concurrently, 1..1000 (docs/concurrency.md).
  std::uint32_t concurrency = 1;
  /// Messages for which this template has the same result are processed in the order of the log.
  /// Messages without a result are processed in any order. It applies to topics with concurrency.
  std::string order_by = "{key}";
  /// Messages that may start before the oldest unfinished message completes, 1..100000.
  std::uint32_t concurrency_window = 1000;
  /// For external calls, as is `remote_dedup_window`.
  OnUnknown on_unknown = OnUnknown::kCall;
  /// How long the remote service detects duplicates, 1 s..3650 days; 0: no limit. An older call
  /// with an unknown outcome is handled as with OnUnknown::kHalt.
  milliseconds remote_dedup_window{0};
  /// Limit of one attempt, 1 ms..24 h.
  milliseconds timeout{30000};
  /// Replaces Options::failures for this handler as a whole. load_config() fills it with [failures]
  /// and the handler's own options.
  std::optional<FailureOptions> failures;
  /// "read committed", "repeatable read", or "serializable" (PostgreSQL, "Transaction Isolation").
  /// Empty: read committed.
  std::string isolation;
  /// Tables on other servers ("schema.table", or "dblink_exec") that its SQL may change, although
  /// they commit separately.
  std::vector<std::string> not_atomic;
  SourceLocation where;

  friend bool operator==(const HandlerOptions&, const HandlerOptions&) = default;
};

/// Whether COMMIT waits for the disk (docs/guarantees.md; PostgreSQL, "Asynchronous Commit").
enum class Durability {
  kSynchronous,  ///< COMMIT waits, as postgres.synchronous_commit specifies
  kReplayable,   ///< it does not. After a crash of the database, lost messages are applied again
};

/// The section [consumer].
struct EngineOptions {
  /// Worker threads, each with one PostgreSQL connection; 1..256.
  std::uint32_t workers = 8;
  /// Transactions that a worker sends before it waits for a response, 1..1000 (PostgreSQL,
  /// "Pipeline Mode").
  std::uint32_t pipeline = 64;
  /// Messages that this process processes concurrently for handlers with concurrency, 1..1000. Each
  /// needs a thread and a PostgreSQL connection, which are created on demand.
  std::uint32_t concurrency = 16;
  Durability durability = Durability::kSynchronous;
  /// With kReplayable: the longest time until a commit is on disk, 10 ms..1 min.
  milliseconds durability_interval{1000};
  /// Time for messages in flight to finish after Consumer::stop(), 100 ms..1 h.
  milliseconds shutdown_timeout{30000};
  /// Consumer::run() returns when every partition has reached the end that it had at the start.
  bool drain = false;

  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

/// The format of log lines: for people, or for log collectors.
enum class LogFormat { kText, kJson };

/// The section [log]. Consumer itself logs nothing: `run` and `relay` use these options.
struct LogOptions {
  LogFormat format = LogFormat::kText;
  /// "trace", "debug", "info", "warn", or "error".
  std::string level = "info";
  /// Interval of the log line with rate and lag, 100 ms..24 h; 0: never.
  milliseconds progress_interval{10000};
  /// Log lines of failed attempts contain PostgreSQL's DETAIL, which may quote row values.
  bool error_details = false;

  friend bool operator==(const LogOptions&, const LogOptions&) = default;
};

/// The section [alerts]. `run` and `relay` use it. No alerts are sent if `command` and
/// `notify_channel` are empty.
struct AlertOptions {
  /// A program that runs for each alert, with the alert as JSON on stdin: its absolute path and
  /// arguments, without a shell.
  std::vector<std::string> command;
  /// Limit of one run of the program, 100 ms..1 h.
  milliseconds timeout{10000};
  /// A channel for NOTIFY with the same JSON, at most 63 bytes (PostgreSQL, "NOTIFY").
  std::string notify_channel;
  /// Minimum time between two alerts of one kind about one partition, handler, or remote service;
  /// 0..24 h.
  milliseconds min_interval{60000};
  /// How long PostgreSQL, Kafka, Redis, or a remote service is unreachable before an alert is sent;
  /// 100 ms..24 h.
  milliseconds unreachable_after{60000};

  friend bool operator==(const AlertOptions&, const AlertOptions&) = default;
};

/// The section [monitoring]: metrics, probes, and the dashboard, which `run` and `relay` serve over
/// HTTP (docs/observe.md).
struct MonitoringOptions {
  /// A numeric address and a port: "127.0.0.1:9464", "[::1]:9464". Empty: nothing is served.
  std::string listen;
  /// Host names under which the dashboard and `/status` are served, in addition to numeric
  /// addresses, localhost, and the name of the machine.
  std::vector<std::string> hosts;
  /// Operators who sign in with this token may act on the dashboard; at least 16 characters. Empty:
  /// no operator may sign in.
  std::string actions_token;
  /// The numeric address of the proxy that names the operator in `actor_header`. Empty: none.
  std::string trusted_proxy;
  /// The request header in which the trusted proxy names the operator.
  std::string actor_header = "X-Forwarded-User";

  friend bool operator==(const MonitoringOptions&, const MonitoringOptions&) = default;
};

/// How an operator calls this program. The commands in its texts start with it.
struct InvocationOptions {
  std::string program = "pawl";
  /// The configuration file in use. Empty: unknown, the texts have FILE.
  std::string config_file;
  /// The --set options that a command needs to reach the same servers and consumer:
  /// "kafka.group=other". Values that may be secret are ***.
  std::vector<std::string> overrides = {};
  /// The environment variable PAWL_CONFIG names `config_file` for readers of the texts, so that the
  /// commands omit --config.
  bool config_in_environment = false;

  friend bool operator==(const InvocationOptions&, const InvocationOptions&) = default;
};

/// All options of a consumer. load_config() reads them from TOML.
struct Options {
  KafkaOptions kafka;
  PostgresOptions postgres;
  IdempotencyOptions idempotency;
  FailureOptions failures;
  DeadLetterOptions dead_letters;
  OutboxOptions outbox;
  CallOptions calls;
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
