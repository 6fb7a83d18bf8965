#pragma once

/// The options of a consumer. docs/reference describes each option of the configuration file; the
/// structs below have the same sections and names.
///
///   pawl::Options options;
///   options.kafka.bootstrap_servers = "127.0.0.1:9092";
///   options.kafka.group = "payments";
///   options.postgres.url = "postgresql://localhost/payments";
///   options.idempotency.key = "{header:event-id}";
///   auto& handler = options.handlers.emplace_back();
///   handler.name = "payment";  // the name under which the program registers it
///   handler.topics = {"payments"};
///
/// load_config() (pawl/config.hpp) reads the same from a file. pawl::Consumer checks both.
/// Stable from 1.0: members are only added; before 1.0, a minor version may rename them.

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

/// The place of an option in the configuration, for error texts: "conf/payments.toml:12".
using SourceLocation = std::string;

/// The initial offset of a partition that has no stored offset. pawl determines and stores it once,
/// for all partitions of the topic.
enum class Start {
  kCommitted,  ///< the offset that the group committed to Kafka; without one, kEarliest
  kEarliest,   ///< the start of the log
  kLatest,     ///< the end of the log at the first assignment
  kTimestamp,  ///< the first record at or after `start_timestamp`
  kHalt,       ///< the partition halts until `pawl offsets set` sets an offset
};

/// How a process gets its partitions.
enum class Assignment {
  kGroup,   ///< Kafka assigns them to the processes of the group
  kManual,  ///< exactly `manual_partitions` of every topic, without coordination
};

enum class GroupProtocol {
  kClassic,   ///< the clients assign partitions, by `assignor`
  kConsumer,  ///< the brokers assign partitions (KIP-848, Kafka 4.0 and later)
};

struct KafkaOptions {
  std::string bootstrap_servers;
  std::string group;
  /// Your name for the Kafka cluster. Cluster and group identify the consumer in PostgreSQL.
  std::string cluster = "default";
  /// Static membership (KIP-345): a stable name of this process in the group. Empty: dynamic.
  std::string group_instance_id;
  GroupProtocol group_protocol = GroupProtocol::kClassic;
  /// "cooperative-sticky", "range", or "roundrobin". No effect with kConsumer.
  std::string assignor = "cooperative-sticky";
  milliseconds session_timeout{45000};
  Start start = Start::kCommitted;
  std::chrono::sys_time<milliseconds> start_timestamp{};
  /// Other consumers of the same database, "group" or "cluster/group", with effects of their own. A
  /// topic that another consumer has processed halts at its first assignment.
  std::vector<std::string> known_consumers;
  /// Bytes that are fetched but not processed, of all partitions together, 1 MiB..64 GiB. A larger
  /// record is still accepted.
  std::size_t buffer = std::size_t{32} << 20U;
  /// Interval of the checks for recreated topics (KIP-516) and new partitions, 100 ms..1 h.
  milliseconds topic_check_interval{1000};
  /// Interval of commits of processed offsets to Kafka, 100 ms..1 h. pawl reads them only for
  /// Start::kCommitted.
  milliseconds commit_interval{5000};
  Assignment assignment = Assignment::kGroup;
  std::vector<std::int32_t> manual_partitions;
  /// An absolute path and its arguments, run without a shell. The program prints an OAuth token for
  /// sasl.mechanism OAUTHBEARER. Empty: none.
  std::vector<std::string> oauth_token_command;
  /// Properties of librdkafka. Validation rejects those that would break the guarantees.
  std::map<std::string, std::string> librdkafka;

  friend bool operator==(const KafkaOptions&, const KafkaOptions&) = default;
};

/// How pawl renews a connection string at each connect, if the string contains ${file:PATH}. Not
/// compared.
struct UrlRenewal {
  /// Returns the current connection string. A `url` that load_config() did not read is returned as
  /// it is. May be called by any thread. Throws std::runtime_error without secrets in its text.
  /// Empty: the string is not renewed.
  std::function<std::string(const std::string& url)> now;
  /// The connection string that load_config() read.
  std::string read;
  /// The same, with "1" instead of the content of files, for validation. Empty if a file contains
  /// the start of the string.
  std::string literal;
  /// The paths of the files, for error texts.
  std::string files;

  friend bool operator==(const UrlRenewal&, const UrlRenewal&) { return true; }
};

struct PostgresOptions {
  /// A libpq connection string or URI. Omitted parts come from libpq's environment, service file,
  /// and password file.
  std::string url;
  /// load_config() sets it if `url` contains ${file:PATH}: pawl reads the file at each connect.
  UrlRenewal renewal;
  /// An absolute path and its arguments, run without a shell at each connect, for at most 10 s. The
  /// first line of output is the password. Empty: none.
  std::vector<std::string> password_command;
  std::string schema = "pawl";
  /// Connections go through a pooler in transaction mode (PgBouncer): pawl sets and keeps nothing
  /// per session.
  bool pooled = false;
  /// "on", "off", "local", "remote_write", or "remote_apply". Empty: the setting of the database.
  std::string synchronous_commit;
  /// Limit of one attempt to connect to one host, 100 ms..10 min.
  milliseconds connect_timeout{5000};
  /// Limit of one wait for a lock, 10 ms..1 h. pawl then retries, without counting an attempt.
  milliseconds lock_timeout{5000};
  /// Delays before pawl reconnects or retries: exponential from initial to max, with full jitter,
  /// 1 ms..1 h.
  milliseconds retry_initial{50};
  milliseconds retry_max{1000};
  /// pawl terminates a previous owner's session that blocks a partition and is idle in transaction
  /// for this long, 100 ms..1 h.
  milliseconds stalled_owner_after{10000};
  /// Interval of the checks for operators' commands (pause, resume, offsets set), 10 ms..1 h.
  milliseconds poll_interval{1000};
  /// A handler's SQL ends with a comment with the trace context of its message:
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

struct IdempotencyOptions {
  /// Template of the key, such as "{header:event-id}". Empty: the handler's key function, or none.
  std::string key;
  /// Keys are unique within a scope. Empty: one scope per consumer and topic.
  std::string scope;
  MissingKey missing_key = MissingKey::kFail;
  Conflict conflict = Conflict::kFail;
  /// Largest response that is stored with a key, in bytes, 1 KiB..16 MiB. A larger response fails
  /// its message.
  std::size_t max_response = std::size_t{64} << 10U;
  /// An operator has checked that no two events have the same key, so pawl does not warn about it.
  bool key_checked = false;

  friend bool operator==(const IdempotencyOptions&, const IdempotencyOptions&) = default;
};

/// Handling of a message that cannot be applied.
enum class FailurePolicy {
  kHalt,        ///< its partition halts, other partitions continue
  kDeadLetter,  ///< it is stored in full in pawl.dead_letters, and the partition continues
  kPark,        ///< as kDeadLetter; later messages with its record key are parked, in order
  kRetryLater,  ///< as kPark; it is retried automatically after each delay of `retry_later`
  kSkip,        ///< it is skipped, and recorded in full in pawl.skipped_messages
};

/// Handling of a message whose topic has handlers, if no `when` condition matches.
enum class Unmatched {
  kFail,  ///< the failure policy applies
  kSkip,  ///< the message is skipped and recorded
};

struct FailureOptions {
  FailurePolicy on_failure = FailurePolicy::kHalt;
  /// Only Options::failures counts, because such a message has no handler.
  Unmatched unmatched = Unmatched::kFail;
  /// How long a failed message is retried before the policy applies, 0..7 days: the sum of the
  /// delays between its attempts. PostgreSQL stores the attempts, so a restart does not reset them.
  /// Time during which no process runs does not count.
  milliseconds retry_for{std::chrono::minutes(5)};
  /// Attempts of one message before the policy applies, whatever `retry_for` is, 0..1000. 0: no
  /// limit.
  std::uint32_t max_attempts = 0;
  /// Processes that may crash while they process a message alone (probation) before the policy
  /// applies, 1..100. A partition halts after the same number of crashes while its next message is
  /// fetched.
  std::uint32_t max_crashes = 3;
  /// Delays before the next attempt of a message: exponential from initial to max, with jitter,
  /// 1 ms..24 h.
  milliseconds retry_initial{100};
  milliseconds retry_max{30000};
  /// For kRetryLater: the delays before each delayed retry, by the clock of the database, 1 to 20
  /// of 1 s..30 days each. If the last one fails, the message is a dead letter.
  std::vector<milliseconds> retry_later{std::chrono::minutes(1), std::chrono::minutes(10),
                                        std::chrono::hours(1), std::chrono::hours(6)};
  /// Delay between attempts while a partition is halted by a schema or program error (a missing
  /// table or privilege), or by the circuit breaker, 10 ms..24 h.
  milliseconds program_error_retry{10000};
  /// Consecutive messages of a handler that fail the same way before its circuit breaker opens and
  /// its partitions halt, 0..1,000,000. 0: never.
  std::uint32_t circuit_breaker = 50;

  friend bool operator==(const FailureOptions&, const FailureOptions&) = default;
};

/// The content of dead letters.
struct DeadLetterOptions {
  /// False: only the position in Kafka, the keys, and the error are stored.
  bool store_payload = true;
  /// Largest value that is stored in full, in bytes, up to 512 MiB. A larger value is truncated,
  /// and a replay reads the message from Kafka.
  std::size_t max_payload = std::size_t{1} << 20U;
  /// A Kafka topic to which pawl publishes the dead letters of the table, at least once. Empty:
  /// none.
  std::string topic;

  friend bool operator==(const DeadLetterOptions&, const DeadLetterOptions&) = default;
};

/// Whether `run` publishes the messages of the outbox.
enum class RelayOutbox {
  kAuto,  ///< if a handler publishes: at once for SQL, after its first message for C++ code
  kOn,
  kOff,
};

/// Where leases are stored. PostgreSQL stores outcomes with both.
enum class LeaseStore { kPostgres, kRedis };

/// External calls: handlers with effects outside of the database, under leases of their idempotency
/// keys (docs/external-calls.md).
struct CallOptions {
  /// kRedis requires RedisOptions.
  LeaseStore lease_store = LeaseStore::kPostgres;
  /// How long the lease of a crashed or frozen process prevents other processes from calling,
  /// 2 s..1 h. A running process extends its leases.
  milliseconds lease_time{30000};
  /// Calls that this process makes concurrently, each on a thread, 1..4096.
  std::uint32_t max_in_flight = 256;

  friend bool operator==(const CallOptions&, const CallOptions&) = default;
};

/// The Redis of LeaseStore::kRedis.
struct RedisOptions {
  /// "host:port". Empty: `sentinels` return the address of `master`.
  std::string address;
  std::vector<std::string> sentinels;
  std::string master;
  /// ACL user. Empty: "default". An empty password: no password.
  std::string user;
  std::string password;
  // The same for Sentinel.
  std::string sentinel_user;
  std::string sentinel_password;
  std::uint32_t database = 0;
  /// Also to Sentinel. pawl verifies certificates and the names in them.
  bool tls = false;
  /// The host name that certificates must contain. Empty: the host that pawl connects to.
  std::string server_name;
  /// PEM files. Empty: the certificate authorities of the system, no client certificate.
  std::string ca_file;
  std::string certificate;
  std::string private_key;
  /// Limit of one attempt to connect, and of one response, 10 ms..1 min.
  milliseconds timeout{1000};
  /// Prefix of every key.
  std::string prefix = "pawl:";

  friend bool operator==(const RedisOptions&, const RedisOptions&) = default;
};

/// Handling of a message if an earlier call may or may not have succeeded.
enum class OnUnknown {
  kCall,       ///< pawl calls again; the remote service must detect duplicates by Lease::key()
  kReconcile,  ///< LeasedHandler::reconcile checks with the remote service
  kHalt,       ///< the partition halts until an operator records the outcome
};

/// The outbox: messages that pawl.publish() has written (docs/outbox.md).
struct OutboxOptions {
  RelayOutbox relay = RelayOutbox::kAuto;
  /// False: at least once, without Kafka transactions.
  bool transactions = true;
  /// A topic with one partition that stays empty. Kafka commits the numbers of batches for it.
  std::string state_topic = "pawl-outbox-state";
  /// Largest key, value, and headers of a message together, in bytes, 1 KiB..100 MiB.
  /// pawl.publish() rejects larger messages.
  std::size_t max_message = 1'000'000;
  /// How long a message may wait before pawl raises an alert, 1 s..3650 days. Zero: no limit.
  milliseconds alert_age{std::chrono::minutes(5)};

  friend bool operator==(const OutboxOptions&, const OutboxOptions&) = default;
};

/// A query of the application. Each row that it returns is an inconsistency.
struct AuditCheck {
  std::string name;  ///< empty: the place of the query
  std::string text;
  SourceLocation where = {};

  /// Ignores `where`.
  friend bool operator==(const AuditCheck& one, const AuditCheck& other) {
    return one.name == other.name && one.text == other.text;
  }
};

/// `pawl audit`.
struct AuditOptions {
  std::vector<AuditCheck> checks;
  /// Limit of one query, 1 ms..24 h.
  milliseconds timeout{60000};

  friend bool operator==(const AuditOptions&, const AuditOptions&) = default;
};

/// How long records are kept (docs/retention.md), 1 s..3650 days each. Zero: they are never
/// removed.
struct RetentionOptions {
  /// A producer's duplicate that arrives later is not detected.
  milliseconds keys{std::chrono::hours(7 * 24)};
  /// Counted from the replay or the discarding. Unresolved dead letters are never removed.
  milliseconds dead_letters{std::chrono::hours(30 * 24)};
  /// Counted from the time when the message was skipped.
  milliseconds skipped{std::chrono::hours(90 * 24)};
  /// Counted from the time when an operator discarded a rejected message of the outbox. Others are
  /// never removed.
  milliseconds outbox{std::chrono::hours(30 * 24)};
  /// Interval at which a consumer checks for data to remove, 100 ms..24 h. Zero: never.
  milliseconds interval{std::chrono::minutes(10)};
  /// Percentage of the time during which a removal works, 1..100. It pauses during the rest.
  std::uint32_t load = 10;

  friend bool operator==(const RetentionOptions&, const RetentionOptions&) = default;
};

/// One transaction for many messages of a partition, for handlers that apply batches
/// (docs/batches.md).
struct BatchOptions {
  /// Messages of a batch, 1..10000. 1: each message alone.
  std::uint32_t max_messages = 500;
  /// Limit of the keys and values of a batch, in bytes, 1 KiB..256 MiB. One larger message is a
  /// batch of its own.
  std::size_t max_bytes = std::size_t{1} << 20U;
  /// How long a batch that is not full waits for more messages, 0..1 min.
  milliseconds linger{0};

  friend bool operator==(const BatchOptions&, const BatchOptions&) = default;
};

struct SqlStatement {
  std::string text;
  /// Rows that the statement must affect or return. Any other number fails the message.
  std::optional<std::uint64_t> expect_rows = {};
  SourceLocation where = {};
  /// For SqlResponse::statement. Empty: no name.
  std::string name = {};

  /// Ignores `where`.
  friend bool operator==(const SqlStatement& one, const SqlStatement& other) {
    return one.text == other.text && one.expect_rows == other.expect_rows && one.name == other.name;
  }
};

/// The response that an SQL handler stores for a message: the result of a statement with one row
/// and one column. For batches, the result has two columns: the number of the message, from 1, and
/// its response. Both members empty: no response.
struct SqlResponse {
  std::string text;       ///< a statement that runs after the others
  std::string statement;  ///< alternatively, the name of one of the others
  SourceLocation where = {};

  [[nodiscard]] bool empty() const { return text.empty() && statement.empty(); }

  /// Ignores `where`.
  friend bool operator==(const SqlResponse& one, const SqlResponse& other) {
    return one.text == other.text && one.statement == other.statement;
  }
};

/// A text with placeholders for parts of the message, and with ${NAME} or ${file:PATH}, which pawl
/// replaces at each request.
struct HttpText {
  std::string written;
  std::string folder;  ///< the folder of a relative PATH

  [[nodiscard]] bool empty() const { return written.empty(); }
  friend bool operator==(const HttpText&, const HttpText&) = default;
};

/// A handler that sends one HTTP request per message, under a lease (docs/external-calls-http.md).
struct HttpOptions {
  std::string method = "POST";
  HttpText url;                             ///< empty: the handler has no request
  std::map<std::string, HttpText> headers;  ///< by name
  HttpText body;
  /// JSON whose strings are templates. Empty: `body` is sent.
  HttpText json;
  /// The header that contains Lease::key(). Empty: none.
  std::string key_header = "Idempotency-Key";
  /// Lists of HTTP statuses, such as "200,201" or "2xx". The first list that contains a status
  /// itself counts, in the order success, not_done, retry, permanent; otherwise the first list with
  /// its class. A status in no list is permanent.
  std::string success = "2xx";
  std::string retry = "408,409,425,429,5xx";
  std::string permanent;
  /// Statuses which mean that the call had no effect. pawl retries it (RFC 8470, RFC 6585). Not
  /// 503, because proxies return it also for requests that they have forwarded.
  std::string not_done = "425,429";
  /// Statuses of `not_done` which mean that the endpoint is unavailable: its messages wait, and no
  /// attempt counts. Empty: none.
  std::string outage;
  /// Concurrent requests of this process to the host. 0: only CallOptions::max_in_flight limits
  /// them.
  std::uint32_t max_in_flight = 0;
  /// A connection stays open for the next request. False: each request opens a connection.
  bool keep_alive = true;
  /// PEM files. Empty: the certificate authorities of the system, no client certificate.
  std::string ca_file;
  std::string certificate;
  std::string private_key;
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

struct HandlerOptions {
  /// The name under which C++ code registers the handler. For other handlers, a label.
  std::string name;
  /// Names of topics, and patterns, which start with ^.
  std::vector<std::string> topics;
  /// Condition on the message, such as `{header:type} == "refund"`. Empty: all messages.
  std::string when;
  std::vector<SqlStatement> sql;
  SqlResponse response;
  /// A database function that pawl calls with the message, such as "app.apply_payment".
  std::string function;
  HttpOptions http;
  /// `sql` applies many messages at once: each placeholder is an array with one element per
  /// message.
  bool batch = false;
  // If set, they replace the members of Options::idempotency for this handler.
  std::optional<std::string> key;
  std::optional<bool> key_checked;
  std::optional<std::string> scope;
  std::optional<MissingKey> missing_key;
  std::optional<Conflict> conflict;
  std::optional<std::size_t> max_response;
  /// Replaces RetentionOptions::keys for this handler. Zero: its keys are never removed. The
  /// longest retention of a scope applies to all of its keys.
  std::optional<milliseconds> retention;
  /// Messages of one partition that are processed concurrently, 1..1000. 1: one after the other.
  std::uint32_t concurrency = 1;
  /// Messages for which this template has the same result are processed in the order of the log.
  /// Messages without a result are processed in any order. Applies to topics that have a handler
  /// with `concurrency` above 1.
  std::string order_by = "{key}";
  /// Messages of a partition that may start before the oldest unfinished one completes, 1..100000.
  std::uint32_t concurrency_window = 1000;
  // For external calls:
  OnUnknown on_unknown = OnUnknown::kCall;
  /// How long the remote service detects duplicates. An older call with an unknown outcome is
  /// handled as with OnUnknown::kHalt. Zero: no limit.
  milliseconds remote_dedup_window{0};
  /// Limit of one attempt of the handler, 1 ms..24 h.
  milliseconds timeout{30000};
  /// Replaces Options::failures for this handler as a whole. load_config() fills it with [failures]
  /// and the handler's own options.
  std::optional<FailureOptions> failures;
  /// "", "read committed", "repeatable read", or "serializable".
  std::string isolation;
  /// Tables on other servers ("schema.table", or "dblink_exec") that its SQL may change, although
  /// these servers commit separately.
  std::vector<std::string> not_atomic;
  SourceLocation where;

  friend bool operator==(const HandlerOptions&, const HandlerOptions&) = default;
};

/// Whether COMMIT waits for the disk (docs/guarantees.md).
enum class Durability {
  kSynchronous,  ///< as postgres.synchronous_commit specifies
  kReplayable,  ///< no: a database crash may lose the last commits, and pawl applies their messages
                ///< again, because Kafka still has them
};

struct EngineOptions {
  /// Worker threads, each with one PostgreSQL connection, 1..256.
  std::uint32_t workers = 8;
  /// Transactions that a worker sends to PostgreSQL before it waits for a response, 1..1000.
  std::uint32_t pipeline = 64;
  /// Messages that this process processes concurrently if handlers have a concurrency above 1,
  /// 1..1000. Each needs a thread and a PostgreSQL connection, which are created on demand.
  std::uint32_t concurrency = 16;
  Durability durability = Durability::kSynchronous;
  /// With kReplayable: longest time until a commit is on disk, 10 ms..1 min.
  milliseconds durability_interval{1000};
  /// Time for in-flight messages to finish after a stop was requested, 100 ms..1 h.
  milliseconds shutdown_timeout{30000};
  /// The consumer stops once every partition reaches the end offset it had at startup.
  bool drain = false;

  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

enum class LogFormat { kText, kJson };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  /// trace, debug, info, warn, error
  std::string level = "info";
  /// Interval of the line about progress, 100 ms..24 h. Zero: none.
  milliseconds progress_interval{10000};
  /// Failures are logged with PostgreSQL's DETAIL, which may quote row values.
  bool error_details = false;

  friend bool operator==(const LogOptions&, const LogOptions&) = default;
};

/// Alerts about states that need an operator. No alerts are sent if `command` and `notify_channel`
/// are both empty.
struct AlertOptions {
  /// An absolute path and its arguments, run without a shell, with the alert as JSON on stdin.
  std::vector<std::string> command;
  /// Limit of one run of the command, 100 ms..1 h.
  milliseconds timeout{10000};
  /// A channel for NOTIFY with the same JSON, at most 63 bytes.
  std::string notify_channel;
  /// Minimum time between two alerts of one kind about the same partition, handler, or remote
  /// service, 0..24 h.
  milliseconds min_interval{60000};
  /// How long PostgreSQL, Kafka, Redis, or a remote service is unreachable before pawl sends an
  /// alert, 100 ms..24 h.
  milliseconds unreachable_after{60000};

  friend bool operator==(const AlertOptions&, const AlertOptions&) = default;
};

/// Metrics, probes, and the dashboard of `run` and `relay`, over HTTP (docs/observe.md).
struct MonitoringOptions {
  /// A numeric address and a port: "127.0.0.1:9464", "[::1]:9464". Empty: no HTTP server.
  std::string listen;
  /// Host names under which the dashboard and `/status` are served, in addition to numeric
  /// addresses, localhost, and the name of the machine.
  std::vector<std::string> hosts;
  /// Operators who sign in with this token may act on the dashboard. At least 16 characters. Empty:
  /// no operator may sign in.
  std::string actions_token;
  /// The numeric address of the proxy that names the operator in `actor_header`. Empty: none.
  std::string trusted_proxy;
  /// The request header in which the trusted proxy names the operator.
  std::string actor_header = "X-Forwarded-User";

  friend bool operator==(const MonitoringOptions&, const MonitoringOptions&) = default;
};

/// How an operator calls this program: the commands in its texts begin with it.
struct InvocationOptions {
  std::string program = "pawl";
  /// The configuration file in use. Empty: unknown, the texts say FILE.
  std::string config_file;
  /// What --set said of the servers and of whose work it is, as it would be said again:
  /// "kafka.group=other". What may be secret stands as ***.
  std::vector<std::string> overrides = {};

  friend bool operator==(const InvocationOptions&, const InvocationOptions&) = default;
};

/// All options of a consumer.
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
