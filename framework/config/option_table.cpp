#include "config/option_table.hpp"

#include <array>

#include "config/special_options.hpp"

namespace pawl::config {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kKiB = std::size_t{1} << 10U;
constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGiB = std::size_t{1} << 30U;

constexpr std::size_t kKafkaNameBytes = 249;  // Kafka's longest topic and instance name
constexpr std::size_t kLabelBytes = 255;
constexpr std::size_t kLongestChannel = 63;  // NAMEDATALEN - 1: PostgreSQL rejects a longer one

constexpr std::array<Word, 2> kGroupProtocols{
    {{"classic", "the clients assign them, by `assignor`"},
     {"consumer",
      "the brokers assign them (KIP-848, Kafka 4.0 and later). `assignor` and "
      "`session_timeout` have no effect"}}};
constexpr std::array<Word, 3> kAssignors{{{"cooperative-sticky"}, {"range"}, {"roundrobin"}}};
constexpr std::array<Word, 2> kAssignments{
    {{"group", "Kafka assigns partitions to the processes of the group"},
     {"manual", "the process consumes exactly `partitions` of every topic, without coordination"}}};
constexpr std::array<Word, 6> kSynchronousCommits{
    {{""}, {"on"}, {"off"}, {"local"}, {"remote_write"}, {"remote_apply"}}};
constexpr std::array<Word, 3> kMissingKeys{
    {{"fail", "the failure policy applies"},
     {"process", "the message is applied without a duplicate check, and counted"},
     {"skip", "the message is skipped and recorded"}}};
constexpr std::array<Word, 2> kConflicts{
    {{"fail", "the failure policy applies"},
     {"ignore",
      "the message is a duplicate (for producers that serialize one event in several "
      "ways)"}}};
constexpr std::array<Word, 5> kPolicies{
    {{"halt",
      "its partition halts, other partitions continue. `pawl partitions resume` or a "
      "restart retries the message"},
     {"dead-letter",
      "the message is stored in full in `pawl.dead_letters`, and the partition "
      "continues. `pawl dlq` shows, replays, or discards it"},
     {"park",
      "as `dead-letter`, and later messages with its record key are parked: they wait for "
      "it, in order"},
     {"retry-later",
      "as `park`, and the message is retried automatically after each delay of "
      "`retry_later`. Parked messages follow in order"},
     {"skip", "the message is skipped, and recorded in full in `pawl.skipped_messages`"}}};
constexpr std::array<Word, 2> kUnmatched{
    {{"fail", "the failure policy applies"}, {"skip", "the message is skipped and recorded"}}};
constexpr std::array<Word, 3> kOutboxRelays{
    {{"auto",
      "if the SQL of a handler calls `pawl.publish`. Otherwise, from the first message "
      "that C++ code publishes, or as soon as messages wait that no process publishes"},
     {"on", "always"},
     {"off", "never"}}};
constexpr std::array<Word, 2> kLeaseStores{
    {{"postgres", "rows of `pawl.leases`"},
     {"redis",
      "keys in [Redis](external-calls-redis.md). PostgreSQL has less load, but the "
      "guarantees are weaker. Requires `on_unknown = \"call\"`"}}};
constexpr std::array<Word, 3> kOnUnknown{
    {{"call",
      "pawl calls again with the same key. The remote service must detect duplicates by "
      "the key"},
     {"reconcile", "the handler's `reconcile` checks with the remote service first"},
     {"halt", "the partition halts until `pawl calls resolve` records the outcome"}}};
constexpr std::array<Word, 2> kDurabilities{
    {{"synchronous", "COMMIT waits, as `postgres.synchronous_commit` specifies"},
     {"replayable",
      "COMMIT does not wait. A crash of the database may lose the last commits, with key, effects, "
      "and offset together. pawl then applies the messages again, because Kafka still has them. "
      "Meanwhile, other sessions may see effects that disappear for a moment. See "
      "[Guarantees](guarantees.md)"}}};
constexpr std::array<Word, 2> kLogFormats{{{"text", "for people"}, {"json", "for log collectors"}}};
constexpr std::array<Word, 5> kLogLevels{{{"trace"}, {"debug"}, {"info"}, {"warn"}, {"error"}}};
constexpr std::array<Word, 4> kIsolations{
    {{""}, {"read committed"}, {"repeatable read"}, {"serializable"}}};

template <auto Section, auto Field>
auto& field(Settings& settings) {
  return settings.options.*Section.*Field;
}

template <auto Field>
auto& handler_field(Settings& settings) {
  return settings.handler.*Field;
}

template <auto Section, auto Field>
constexpr ChoiceField choice(std::span<const Word> words) {
  return {
      words,
      [](Settings& settings) { return static_cast<std::size_t>(field<Section, Field>(settings)); },
      [](Settings& settings, std::size_t index) {
        auto& out = field<Section, Field>(settings);
        out = static_cast<std::remove_reference_t<decltype(out)>>(index);
      }};
}

template <auto Field>
constexpr ChoiceField handler_choice(std::span<const Word> words) {
  return {
      words,
      [](Settings& settings) { return static_cast<std::size_t>(handler_field<Field>(settings)); },
      [](Settings& settings, std::size_t index) {
        auto& out = handler_field<Field>(settings);
        out = static_cast<std::remove_reference_t<decltype(out)>>(index);
      }};
}

/// The options of [handler_defaults] are fields of the current handler.
constexpr HandlersOwn kOwnDefault{[](Settings&) {}, [](Settings&) {}};

constexpr HandlersOwn kOwnFailures{
    [](Settings& settings) { settings.handler.failures = settings.options.failures; },
    [](Settings& settings) {
      if (settings.handler.failures)
        settings.options.failures = *settings.handler.failures;
    }};

template <auto Field, auto Own>
constexpr HandlersOwn kOwn{
    [](Settings& settings) { settings.handler.*Own = settings.options.idempotency.*Field; },
    [](Settings& settings) {
      if (settings.handler.*Own)
        settings.options.idempotency.*Field = *(settings.handler.*Own);
    }};

constexpr auto kTable = std::to_array<OptionDescriptor>({
    // [kafka]
    {.section = "kafka",
     .name = "bootstrap_servers",
     .field = TextField{field<&Options::kafka, &KafkaOptions::bootstrap_servers>},
     .values = "`host:port`, separated by commas",
     .meaning = "Kafka brokers to connect to first, without a scheme such as `kafka://`. The "
                "default port is 9092. Required."},

    {.section = "kafka",
     .name = "group",
     .field = TextField{field<&Options::kafka, &KafkaOptions::group>, kLabelBytes},
     .values = "up to 255 bytes",
     .meaning = "The consumer group. `cluster` and `group` identify the consumer in PostgreSQL, so "
                "another group is a new consumer without stored offsets. Required."},

    {.section = "kafka",
     .name = "cluster",
     .field = TextField{field<&Options::kafka, &KafkaOptions::cluster>, kLabelBytes},
     .values = "up to 255 bytes, without `/`",
     .meaning = "Your name for this Kafka cluster. Use a different name for each cluster that "
                "feeds the same database. Partitions halt if the name belongs to another cluster."},

    {.section = "kafka",
     .name = "group_instance_id",
     .field = TextField{field<&Options::kafka, &KafkaOptions::group_instance_id>, kKafkaNameBytes},
     .values = "up to 249 bytes",
     .meaning = "Static membership (KIP-345): a name of this process that survives restarts, such "
                "as `\"${HOSTNAME}\"`. Each process of the group needs its own. Set it if restarts "
                "must not cause rebalances. Empty: dynamic membership."},

    {.section = "kafka",
     .name = "group_protocol",
     .field = choice<&Options::kafka, &KafkaOptions::group_protocol>(kGroupProtocols),
     .meaning = "How Kafka assigns partitions to the processes of the group."},

    {.section = "kafka",
     .name = "assignor",
     .field = WordField{field<&Options::kafka, &KafkaOptions::assignor>, kAssignors},
     .meaning = "Assignment strategy. All processes of the group need the same. "
                "`cooperative-sticky` moves only the partitions that must move. `range` and "
                "`roundrobin` stop the whole group at every rebalance."},

    {.section = "kafka",
     .name = "session_timeout",
     .field = DurationField{field<&Options::kafka, &KafkaOptions::session_timeout>, seconds{1},
                            hours{1}},
     .meaning = "A process that sends no heartbeat for this long loses its partitions. A shorter "
                "time detects crashes sooner, a longer one tolerates longer pauses. The brokers "
                "limit the value (`group.min.session.timeout.ms`, 6 s; "
                "`group.max.session.timeout.ms`, 30 min)."},

    {.section = "kafka",
     .name = "start",
     .field = OtherField{read_start, start_value},
     .values = "`\"committed\"`, `\"earliest\"`, `\"latest\"`, `\"halt\"`, or a TIMESTAMP",
     .meaning = "Initial offset of a partition that has no stored offset. pawl applies it once, to "
                "all partitions of the topic together. Afterwards, only the offset in PostgreSQL "
                "counts. `\"committed\"`: the offset that the group committed to Kafka, so an "
                "existing consumer can move to pawl; without one, `\"earliest\"`. `\"earliest\"` "
                "and `\"latest\"`: the start and the end of the log. A TIMESTAMP such as "
                "`2026-01-31T00:00:00Z`: the first record at or after it (RFC 3339 with time zone, "
                "quotes optional). `\"halt\"`: the partition halts until `pawl offsets set` sets "
                "an offset."},

    {.section = "kafka",
     .name = "known_consumers",
     .field = TextsField{field<&Options::kafka, &KafkaOptions::known_consumers>},
     .values = "names: `\"group\"` or `\"cluster/group\"`",
     .meaning = "Other consumers that apply the same topics to this database, each with its own "
                "effects. If a consumer that is not listed has processed a topic, the topic halts "
                "at its [first assignment](architecture/offset-store.md). The halt prevents a "
                "wrong `group` from repeating all effects. With `start = \"latest\"`, the topic "
                "does not halt."},

    {.section = "kafka",
     .name = "buffer",
     .field = SizeField{field<&Options::kafka, &KafkaOptions::buffer>, kMiB, 64 * kGiB},
     .meaning = "Memory for records of all partitions that are fetched but not processed. Each "
                "partition has a reserved share. One larger record is still accepted. A message "
                "counts with its key, value, headers, and 512 bytes. Increase it for large "
                "messages or many partitions."},

    {.section = "kafka",
     .name = "topic_check_interval",
     .field = DurationField{field<&Options::kafka, &KafkaOptions::topic_check_interval>,
                            milliseconds{100}, hours{1}},
     .meaning = "Interval of the checks for new partitions, recreated topics, and new topics that "
                "match a pattern."},

    {.section = "kafka",
     .name = "commit_interval",
     .field = DurationField{field<&Options::kafka, &KafkaOptions::commit_interval>,
                            milliseconds{100}, hours{1}},
     .meaning = "Interval at which pawl commits processed offsets to Kafka, for lag tools and "
                "autoscalers. pawl reads them only for `start = \"committed\"`."},

    {.section = "kafka",
     .name = "assignment",
     .field = choice<&Options::kafka, &KafkaOptions::assignment>(kAssignments),
     .meaning = "How this process gets its partitions."},

    {.section = "kafka",
     .name = "partitions",
     .field = OtherField{read_partitions, partitions_value},
     .values = "numbers from 0",
     .meaning = "Partitions that this process consumes, of every topic. Only with `assignment = "
                "\"manual\"`."},

    {.section = "kafka",
     .name = "oauth_token_command",
     .field = TextsField{field<&Options::kafka, &KafkaOptions::oauth_token_command>},
     .values = "a path and arguments",
     .meaning = "Program that prints an OAuth token, for `sasl.mechanism = \"OAUTHBEARER\"`. The "
                "path is absolute, and no shell is used. Every connection to Kafka uses the token. "
                "pawl runs the program again before the token expires, for at most 10 s. Empty: "
                "none. See [Kafka security](security-kafka.md).",
     .shown = Shown::kProgram},

    {.section = "kafka",
     .name = "librdkafka",
     .field = OtherField{read_properties, properties_value},
     .free_table = true},

    // [postgres]
    {.section = "postgres",
     .name = "url",
     .field = TextField{field<&Options::postgres, &PostgresOptions::url>},
     .values = "a libpq connection URI or string",
     .meaning = "Connection to the database. Several hosts and `target_session_attrs` work. "
                "Omitted parts come from libpq's environment (`PGHOST`, `PGUSER`, ...), service "
                "file, and password file. Percent-encode `@ / : % [ ]` in a password. A value that "
                "can never connect is a configuration error, such as an unknown option or a port "
                "that is not a number.",
     .shown = Shown::kConnection},

    {.section = "postgres",
     .name = "password_command",
     .field = TextsField{field<&Options::postgres, &PostgresOptions::password_command>},
     .values = "a path and arguments",
     .meaning = "Program whose first line of output is the password. The path is absolute, and no "
                "shell is used. pawl runs the program at each connect, for at most 10 s, so "
                "passwords can rotate and tokens can expire. Not allowed if `url` contains a "
                "password. Empty: none. See [PostgreSQL security](security-postgresql.md).",
     .shown = Shown::kProgram},

    {.section = "postgres",
     .name = "schema",
     .field = TextField{field<&Options::postgres, &PostgresOptions::schema>},
     .values = "`a`-`z`, `0`-`9`, `_`, up to 63 bytes",
     .meaning = "Schema of pawl's own tables."},

    {.section = "postgres",
     .name = "pooled",
     .field = FlagField{field<&Options::postgres, &PostgresOptions::pooled>},
     .meaning = "Set it to `true` if connections go through a pooler in transaction mode, such as "
                "PgBouncer. pawl then sets and keeps nothing per session."},

    {.section = "postgres",
     .name = "synchronous_commit",
     .field = WordField{field<&Options::postgres, &PostgresOptions::synchronous_commit>,
                        kSynchronousCommits},
     .meaning = "`synchronous_commit` of pawl's transactions. Empty: the setting of the database."},

    {.section = "postgres",
     .name = "connect_timeout",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::connect_timeout>,
                            milliseconds{100}, minutes{10}},
     .meaning = "Limit of one attempt to connect to one host. A connection that stops responding "
                "later is closed after [other limits](architecture/sessions.md)."},

    {.section = "postgres",
     .name = "lock_timeout",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::lock_timeout>,
                            milliseconds{10}, hours{1}},
     .meaning = "Limit of one wait for a lock. pawl then retries, and never counts the wait as an "
                "attempt of the message."},

    {.section = "postgres",
     .name = "retry_initial",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::retry_initial>,
                            milliseconds{1}, hours{1}},
     .meaning = "First delay before pawl retries while PostgreSQL is unreachable. The delay "
                "doubles per attempt up to `retry_max`, with jitter. The number of attempts is not "
                "limited."},

    {.section = "postgres",
     .name = "retry_max",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::retry_max>, milliseconds{1},
                            hours{1}},
     .meaning = "Longest delay before pawl retries while PostgreSQL is unreachable."},

    {.section = "postgres",
     .name = "stalled_owner_after",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::stalled_owner_after>,
                            milliseconds{100}, hours{1}},
     .meaning = "If a previous owner's session blocks a partition and is idle in transaction for "
                "this long, pawl terminates it. The same applies to sessions that this process has "
                "abandoned."},

    {.section = "postgres",
     .name = "poll_interval",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::poll_interval>,
                            milliseconds{10}, hours{1}},
     .meaning = "Interval at which pawl checks for operators' commands: pause, resume, and "
                "`offsets set`."},

    {.section = "postgres",
     .name = "trace_comment",
     .field = FlagField{field<&Options::postgres, &PostgresOptions::trace_comment>},
     .meaning = "If `true`, the statements of a handler end with a comment that contains the "
                "[trace context](tracing.md) of the message: `/*traceparent='00-...'*/`. "
                "PostgreSQL then parses and plans them for each message, instead of preparing them "
                "once."},

    // [idempotency]
    {.section = "idempotency",
     .name = "key",
     .field = TextField{field<&Options::idempotency, &IdempotencyOptions::key>},
     .values = "a template",
     .meaning = "Idempotency key of a message, such as `{header:event-id}` or "
                "`payment:{/tenantId}:{/paymentId}`. pawl applies each key once. Required here or "
                "in each SQL, function, or HTTP handler, unless `missing_key = \"process\"`. See "
                "[Keys](keys.md).",
     .example = R"("{header:event-id}")",
     .own = &kOwn<&IdempotencyOptions::key, &HandlerOptions::key>},

    {.section = "idempotency",
     .name = "key_checked",
     .field = FlagField{field<&Options::idempotency, &IdempotencyOptions::key_checked>},
     .meaning = "Set it to `true` after you have checked that no two events have the same `key`. "
                "pawl then no longer warns about a key that looks like the ID of an entity, such "
                "as `{/order_id}`.",
     .own = &kOwn<&IdempotencyOptions::key_checked, &HandlerOptions::key_checked>},

    {.section = "idempotency",
     .name = "scope",
     .field = TextField{field<&Options::idempotency, &IdempotencyOptions::scope>},
     .values = "a name up to 255 bytes, without `/`",
     .meaning = "Keys are unique within a scope. Empty: one scope per consumer and topic. A name: "
                "one scope for all consumers and handlers that use the name.",
     .example = R"("payments")",
     .own = &kOwn<&IdempotencyOptions::scope, &HandlerOptions::scope>},

    {.section = "idempotency",
     .name = "missing_key",
     .field = choice<&Options::idempotency, &IdempotencyOptions::missing_key>(kMissingKeys),
     .meaning = "Handling of a message without a key.",
     .own = &kOwn<&IdempotencyOptions::missing_key, &HandlerOptions::missing_key>},

    {.section = "idempotency",
     .name = "conflict",
     .field = choice<&Options::idempotency, &IdempotencyOptions::conflict>(kConflicts),
     .meaning = "Handling of a message whose key exists with another payload.",
     .own = &kOwn<&IdempotencyOptions::conflict, &HandlerOptions::conflict>},

    {.section = "idempotency",
     .name = "max_response",
     .field = SizeField{field<&Options::idempotency, &IdempotencyOptions::max_response>, kKiB,
                        16 * kMiB},
     .meaning = "Largest [response](stored-responses.md) that is stored with a key. A larger "
                "response fails its message, without retries.",
     .own = &kOwn<&IdempotencyOptions::max_response, &HandlerOptions::max_response>},

    // [failures]
    {.section = "failures",
     .name = "on_failure",
     .field = choice<&Options::failures, &FailureOptions::on_failure>(kPolicies),
     .meaning = "Handling of a message that cannot be applied: its [failure "
                "policy](failures.md#failure-policies).",
     .example = R"("park")",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "unmatched",
     .field = choice<&Options::failures, &FailureOptions::unmatched>(kUnmatched),
     .meaning = "Handling of a message whose topic has handlers, if no `when` condition matches."},

    {.section = "failures",
     .name = "retry_for",
     .field = DurationField{field<&Options::failures, &FailureOptions::retry_for>, milliseconds{0},
                            hours{24 * 7}},
     .meaning = "How long a failed message is retried before `on_failure` applies: the sum of the "
                "delays between its attempts. Attempts are counted in PostgreSQL, so a restart "
                "does not reset them. Time during which no process runs does not count.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "max_attempts",
     .field = CountField{field<&Options::failures, &FailureOptions::max_attempts>, 0, 1000},
     .meaning = "Attempts of one message before `on_failure` applies, whatever `retry_for` is. "
                "Attempts are counted in PostgreSQL, so a restart does not reset them. 0: no "
                "limit.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "max_crashes",
     .field = CountField{field<&Options::failures, &FailureOptions::max_crashes>, 1, 100},
     .meaning = "Processes that may crash while they process a message alone, in "
                "[probation](crash-isolation.md#probation), before `on_failure` applies. A "
                "partition halts after the same number of crashes while its next message is "
                "fetched.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "retry_initial",
     .field = DurationField{field<&Options::failures, &FailureOptions::retry_initial>,
                            milliseconds{1}, hours{24}},
     .meaning = "First delay before the next attempt of a message. The delay doubles per attempt "
                "up to `retry_max`, with jitter. Other partitions continue.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "retry_max",
     .field = DurationField{field<&Options::failures, &FailureOptions::retry_max>, milliseconds{1},
                            hours{24}},
     .meaning = "Longest delay before the next attempt of a message.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "retry_later",
     .field = DurationsField{field<&Options::failures, &FailureOptions::retry_later>,
                             std::chrono::seconds{1}, hours{24 * 30}, 20},
     .values = "1 to 20 DURATIONs, 1s to 30d each",
     .meaning = "With `on_failure = \"retry-later\"`: the delay before each [delayed "
                "retry](delayed-retries.md), by the clock of the database. If the last one fails, "
                "the message is a dead letter. The sum must be less than the retention of the "
                "handler's keys. Set `retry_for` below the first delay, because the partition "
                "waits for `retry_for`.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "program_error_retry",
     .field = DurationField{field<&Options::failures, &FailureOptions::program_error_retry>,
                            milliseconds{10}, hours{24}},
     .meaning = "Delay between attempts while a partition is halted by a schema or program error "
                "(a missing table or privilege), or by the circuit breaker.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "circuit_breaker",
     .field = CountField{field<&Options::failures, &FailureOptions::circuit_breaker>, 0, 1'000'000},
     .meaning = "Consecutive messages of a handler that fail the same way before its [circuit "
                "breaker](failures.md#circuit-breaker) opens. The handler's partitions then halt "
                "instead of storing more dead letters. pawl retries their next messages every "
                "`program_error_retry`. 0: the circuit breaker never opens.",
     .own = &kOwnFailures},

    // [outbox]
    {.section = "outbox",
     .name = "relay",
     .field = choice<&Options::outbox, &OutboxOptions::relay>(kOutboxRelays),
     .meaning = "Whether `pawl run` publishes to Kafka the messages that any program has written "
                "with `pawl.publish`. `pawl relay` only publishes. See [Outbox](outbox.md)."},

    {.section = "outbox",
     .name = "transactions",
     .field = FlagField{field<&Options::outbox, &OutboxOptions::transactions>},
     .meaning = "If `false`, pawl publishes without Kafka transactions: at least once, copies with "
                "the same `pawl-outbox-id`. Use `false` for brokers without transactions, or if "
                "readers must not wait for open transactions. All processes that publish need the "
                "same value."},

    {.section = "outbox",
     .name = "state_topic",
     .field = TextField{field<&Options::outbox, &OutboxOptions::state_topic>},
     .values = "the name of a topic",
     .meaning = "A topic with one partition that stays empty. Kafka commits the numbers of the "
                "outbox's batches for it. pawl creates the topic if Kafka allows it."},

    {.section = "outbox",
     .name = "max_message",
     .field = SizeField{field<&Options::outbox, &OutboxOptions::max_message>, kKiB, 100 * kMiB},
     .meaning = "Largest size of the key, value, and headers of a message together. `pawl.publish` "
                "rejects larger messages. A process that publishes stores the limit in the "
                "database, so all need the same value. The topic has a limit of its own, "
                "`max.message.bytes`."},

    {.section = "outbox",
     .name = "alert_age",
     .field = DurationField{field<&Options::outbox, &OutboxOptions::alert_age>, seconds{1},
                            kLongestRetention, true},
     .meaning = "A message that waits longer raises an alert and is late in `pawl status`, even if "
                "no process publishes. One process reports it. `\"0s\"`: never."},

    // [dead_letters]
    {.section = "dead_letters",
     .name = "store_payload",
     .field = FlagField{field<&Options::dead_letters, &DeadLetterOptions::store_payload>},
     .meaning = "If `false`, a dead letter contains only its position in Kafka, its keys, and its "
                "error. A replay then reads the message from Kafka, if Kafka still has it."},

    {.section = "dead_letters",
     .name = "max_payload",
     .field =
         SizeField{field<&Options::dead_letters, &DeadLetterOptions::max_payload>, 0, 512 * kMiB},
     .meaning = "Largest value that is stored in full. A larger value is truncated, and a replay "
                "reads the message from Kafka."},

    {.section = "dead_letters",
     .name = "topic",
     .field = TextField{field<&Options::dead_letters, &DeadLetterOptions::topic>},
     .values = "a topic that exists and that no handler consumes",
     .meaning = "Kafka topic to which pawl [publishes dead "
                "letters](dead-letters.md#publish-dead-letters-to-a-kafka-topic) at least once, "
                "after they are stored in the table. Empty: none."},

    // [calls]
    {.section = "calls",
     .name = "lease_store",
     .field = choice<&Options::calls, &CallOptions::lease_store>(kLeaseStores),
     .meaning = "Where leases are stored. All processes of a group need the same."},

    {.section = "calls",
     .name = "lease_time",
     .field = DurationField{field<&Options::calls, &CallOptions::lease_time>, seconds{2}, hours{1}},
     .meaning = "How long the lease of a crashed or frozen process prevents other processes from "
                "[calling for its key](external-calls.md). A running process extends its leases. A "
                "shorter time shortens the wait after a crash, a longer one tolerates longer "
                "pauses."},

    {.section = "calls",
     .name = "max_in_flight",
     .field = CountField{field<&Options::calls, &CallOptions::max_in_flight>, 1, 4096},
     .meaning = "External calls that this process makes concurrently, each on a thread. Further "
                "calls wait."},

    // [redis]
    {.section = "redis",
     .name = "address",
     .field = TextField{field<&Options::redis, &RedisOptions::address>},
     .values = "`host:port`",
     .meaning = "Redis server, a master. Required, unless `sentinels` and `master` are set."},

    {.section = "redis",
     .name = "sentinels",
     .field = TextsField{field<&Options::redis, &RedisOptions::sentinels>},
     .values = "`host:port` of each",
     .meaning = "Sentinels, which pawl queries one after the other for the address of the master."},

    {.section = "redis",
     .name = "master",
     .field = TextField{field<&Options::redis, &RedisOptions::master>, kLabelBytes},
     .values = "up to 255 bytes",
     .meaning = "Name of the master in Sentinel."},

    {.section = "redis",
     .name = "user",
     .field = TextField{field<&Options::redis, &RedisOptions::user>},
     .values = "a name",
     .meaning = "ACL user. Empty: `default`."},

    {.section = "redis",
     .name = "password",
     .field = TextField{field<&Options::redis, &RedisOptions::password>},
     .values = "a text",
     .meaning = "Password of the ACL user, best as `${file:PATH}` or `${NAME}`. Empty: no "
                "password.",
     .shown = Shown::kSecret},

    {.section = "redis",
     .name = "sentinel_user",
     .field = TextField{field<&Options::redis, &RedisOptions::sentinel_user>},
     .values = "a name",
     .meaning = "ACL user for Sentinel. Empty: `default`."},

    {.section = "redis",
     .name = "sentinel_password",
     .field = TextField{field<&Options::redis, &RedisOptions::sentinel_password>},
     .values = "a text",
     .meaning = "Password of the ACL user for Sentinel. Empty: no password.",
     .shown = Shown::kSecret},

    {.section = "redis",
     .name = "database",
     .field = CountField{field<&Options::redis, &RedisOptions::database>, 0, 9999},
     .meaning = "Number of the Redis database (SELECT)."},

    {.section = "redis",
     .name = "tls",
     .field = FlagField{field<&Options::redis, &RedisOptions::tls>},
     .meaning = "If `true`, pawl connects with TLS, also to Sentinel. pawl verifies the "
                "certificate and the name in it."},

    {.section = "redis",
     .name = "server_name",
     .field = TextField{field<&Options::redis, &RedisOptions::server_name>},
     .values = "a host",
     .meaning = "Host name that the certificate must contain. Empty: the host that pawl connects "
                "to; with Sentinel, the host that Sentinel returns."},

    {.section = "redis",
     .name = "ca_file",
     .field = PathField{field<&Options::redis, &RedisOptions::ca_file>},
     .values = "a PEM file",
     .meaning = "Certificate authorities to trust. Empty: those of the system. A relative path "
                "here and in the next two options starts at the folder of the configuration file."},

    {.section = "redis",
     .name = "certificate",
     .field = PathField{field<&Options::redis, &RedisOptions::certificate>},
     .values = "a PEM file",
     .meaning = "Client certificate with its chain."},

    {.section = "redis",
     .name = "private_key",
     .field = PathField{field<&Options::redis, &RedisOptions::private_key>},
     .values = "a PEM file",
     .meaning = "Private key of the client certificate, without a passphrase."},

    {.section = "redis",
     .name = "timeout",
     .field = DurationField{field<&Options::redis, &RedisOptions::timeout>, milliseconds{10},
                            minutes{1}},
     .meaning = "Limit of one attempt to connect, and of one response. At most a third of "
                "`calls.lease_time`, so that a failed extension of a lease can be retried in "
                "time."},

    {.section = "redis",
     .name = "prefix",
     .field = TextField{field<&Options::redis, &RedisOptions::prefix>, kLabelBytes},
     .values = "up to 255 bytes, without `{` and `}`",
     .meaning = "Prefix of every key. The ACL user needs access to all keys with this prefix."},

    // [audit]
    {.section = "audit",
     .name = "sql",
     .field = OtherField{read_audit_sql, audit_sql_value},
     .values = "a query, or an array of queries",
     .meaning = "Queries that [`pawl audit`](audit.md#checks-of-your-own) runs in addition to its "
                "own checks, in READ ONLY transactions. Each query returns one row per finding, so "
                "none if all is consistent. An item is a string or `{ name = \"...\", text = "
                "\"SELECT ...\" }`."},

    {.section = "audit",
     .name = "timeout",
     .field =
         DurationField{field<&Options::audit, &AuditOptions::timeout>, milliseconds{1}, hours{24}},
     .meaning = "Limit of one query (`statement_timeout`)."},

    // [retention]
    {.section = "retention",
     .name = "keys",
     .field = DurationField{field<&Options::retention, &RetentionOptions::keys>, seconds{1},
                            kLongestRetention, true},
     .meaning = "How long idempotency keys are kept. A producer's duplicate that arrives later is "
                "not detected. Age counts back from the oldest message that waits, so no key "
                "expires while a consumer is stopped. A handler may set its own `retention`. "
                "`\"0s\"`: keys are never removed."},

    {.section = "retention",
     .name = "dead_letters",
     .field = DurationField{field<&Options::retention, &RetentionOptions::dead_letters>, seconds{1},
                            kLongestRetention, true},
     .meaning = "How long dead letters are kept after they were replayed or discarded. Unresolved "
                "dead letters are never removed. `\"0s\"`: none is removed."},

    {.section = "retention",
     .name = "skipped",
     .field = DurationField{field<&Options::retention, &RetentionOptions::skipped>, seconds{1},
                            kLongestRetention, true},
     .meaning = "How long records of skipped messages are kept. `\"0s\"`: they are never removed."},

    {.section = "retention",
     .name = "outbox",
     .field = DurationField{field<&Options::retention, &RetentionOptions::outbox>, seconds{1},
                            kLongestRetention, true},
     .meaning = "How long outbox messages are kept after an operator discarded them (`pawl outbox "
                "discard`). Others are never removed. `\"0s\"`: none is removed."},

    {.section = "retention",
     .name = "interval",
     .field = DurationField{field<&Options::retention, &RetentionOptions::interval>,
                            milliseconds{100}, hours{24}, true},
     .meaning = "Interval at which a consumer checks for data to remove. One process of the group "
                "removes it. `\"0s\"`: never; run `pawl prune` from a timer instead."},

    {.section = "retention",
     .name = "load",
     .field = CountField{field<&Options::retention, &RetentionOptions::load>, 1, 100},
     .meaning = "Percentage of the time during which a removal works. It pauses during the rest, "
                "so the consumer is hardly affected. Increase it if removal is too slow."},

    // [consumer]
    {.section = "consumer",
     .name = "workers",
     .field = CountField{field<&Options::consumer, &EngineOptions::workers>, 1, 256},
     .meaning = "Worker threads, each with one PostgreSQL connection. More workers than the "
                "process has partitions have no effect."},

    {.section = "consumer",
     .name = "pipeline",
     .field = CountField{field<&Options::consumer, &EngineOptions::pipeline>, 1, 1000},
     .meaning = "Transactions that a worker sends to PostgreSQL before it waits for a response, "
                "with SQL handlers or C++ handlers registered by `statement_handler`. Each message "
                "keeps its own transaction, in order. 1: no pipelining. A message is sent alone if "
                "`expect_rows` is set for a statement with WITH, or for one that is not SELECT, "
                "INSERT, UPDATE, or DELETE."},

    {.section = "consumer",
     .name = "concurrency",
     .field = CountField{field<&Options::consumer, &EngineOptions::concurrency>, 1, 1000},
     .meaning = "Messages that this process processes concurrently, if handlers set "
                "[`concurrency`](concurrency.md). Each needs a thread and a PostgreSQL connection, "
                "which are created on demand. The same number of delayed retries can run at once, "
                "each with two connections."},

    {.section = "consumer",
     .name = "durability",
     .field = choice<&Options::consumer, &EngineOptions::durability>(kDurabilities),
     .meaning = "Whether COMMIT waits for the disk."},

    {.section = "consumer",
     .name = "durability_interval",
     .field = DurationField{field<&Options::consumer, &EngineOptions::durability_interval>,
                            milliseconds{10}, minutes{1}},
     .meaning = "With `durability = \"replayable\"`: longest time until a commit is on disk. pawl "
                "then commits the offset to Kafka."},

    {.section = "consumer",
     .name = "shutdown_timeout",
     .field = DurationField{field<&Options::consumer, &EngineOptions::shutdown_timeout>,
                            milliseconds{100}, hours{1}},
     .meaning = "Time for in-flight messages to finish after SIGTERM or SIGINT. Messages that do "
                "not finish in time are processed again after the next start."},

    // [batch]
    {.section = "batch",
     .name = "max_messages",
     .field = CountField{field<&Options::batch, &BatchOptions::max_messages>, 1, 10000},
     .meaning = "Messages of a partition in one transaction, if that many wait. 1: each message "
                "alone."},

    {.section = "batch",
     .name = "max_bytes",
     .field = SizeField{field<&Options::batch, &BatchOptions::max_bytes>, kKiB, 256 * kMiB},
     .meaning = "Limit of the keys and values of a batch. One larger message is a batch of its "
                "own."},

    {.section = "batch",
     .name = "linger",
     .field =
         DurationField{field<&Options::batch, &BatchOptions::linger>, milliseconds{0}, minutes{1}},
     .meaning = "How long a batch that is not full waits for more messages. At a low rate, a "
                "longer time gives larger batches and more latency."},

    // [log]
    {.section = "log",
     .name = "format",
     .field = choice<&Options::log, &LogOptions::format>(kLogFormats),
     .meaning = "Format of log lines."},

    {.section = "log",
     .name = "level",
     .field = WordField{field<&Options::log, &LogOptions::level>, kLogLevels},
     .meaning = "Less severe lines are not logged."},

    {.section = "log",
     .name = "progress_interval",
     .field = DurationField{field<&Options::log, &LogOptions::progress_interval>, milliseconds{100},
                            hours{24}, true},
     .meaning = "Interval of the log line with rate, lag, and remaining time. pawl logs it if "
                "messages were processed, while a partition is halted or paused, and before the "
                "first assignment. `\"0s\"`: never."},

    {.section = "log",
     .name = "error_details",
     .field = FlagField{field<&Options::log, &LogOptions::error_details>},
     .meaning = "If `true`, log lines of failed attempts contain PostgreSQL's DETAIL, which may "
                "quote row values. Dead letters always store DETAIL."},

    // [alerts]
    {.section = "alerts",
     .name = "command",
     .field = TextsField{field<&Options::alerts, &AlertOptions::command>},
     .values = "a path and arguments",
     .meaning = "Program that runs for each alert, such as `[\"/usr/local/bin/page\", \"--team\", "
                "\"payments\"]`. The path is absolute, and no shell is used. The program receives "
                "the alert as JSON on stdin, and its main fields as environment variables "
                "(`PAWL_ALERT_KIND`, ...). Empty: none.",
     .shown = Shown::kProgram},

    {.section = "alerts",
     .name = "timeout",
     .field = DurationField{field<&Options::alerts, &AlertOptions::timeout>, milliseconds{100},
                            hours{1}},
     .meaning = "Limit of one run of the program. pawl then kills it and all processes that it "
                "started."},

    {.section = "alerts",
     .name = "notify_channel",
     .field = TextField{field<&Options::alerts, &AlertOptions::notify_channel>, kLongestChannel},
     .values = "up to 63 bytes",
     .meaning = "Channel to which pawl sends the same JSON with NOTIFY, over a connection of its "
                "own. Empty: none."},

    {.section = "alerts",
     .name = "min_interval",
     .field = DurationField{field<&Options::alerts, &AlertOptions::min_interval>, milliseconds{0},
                            hours{24}},
     .meaning = "Minimum time between two alerts of one kind about one partition, handler, or "
                "remote service. pawl counts the suppressed alerts, and reports their number when "
                "the time is over."},

    {.section = "alerts",
     .name = "unreachable_after",
     .field = DurationField{field<&Options::alerts, &AlertOptions::unreachable_after>,
                            milliseconds{100}, hours{24}},
     .meaning = "How long PostgreSQL, Kafka, Redis, or the remote service of an `http` handler is "
                "unreachable before pawl sends an alert."},

    // [monitoring]
    {.section = "monitoring",
     .name = "listen",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::listen>},
     .values = "`address:port`, numeric",
     .meaning = "Address at which pawl serves `/metrics`, `/live`, `/ready`, and `/status`, such "
                "as `\"127.0.0.1:9464\"` or `\"[::]:9464\"`. `pawl run` also serves the dashboard "
                "there. Every client that can connect can read them, because no password is "
                "required. Empty: none."},

    {.section = "monitoring",
     .name = "hosts",
     .field = TextsField{field<&Options::monitoring, &MonitoringOptions::hosts>},
     .values = "host names, without a port",
     .meaning = "Host names under which the dashboard and `/status` are served, in addition to "
                "numeric addresses, `localhost`, and the name of the machine. pawl rejects other "
                "names, because another website can point its name to this address. `/metrics`, "
                "`/live`, and `/ready` are served under every name.",
     .example = R"(["pawl.example.org"])"},

    {.section = "monitoring",
     .name = "actions_token",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::actions_token>},
     .values = "at least 16 characters",
     .meaning = "Operators who sign in with this token may act on the [dashboard](dashboard.md), "
                "and see values there. Empty: no operator may sign in.",
     .shown = Shown::kSecret},

    {.section = "monitoring",
     .name = "trusted_proxy",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::trusted_proxy>},
     .values = "a numeric address",
     .meaning = "Address of the proxy that names the operator in `actor_header`. pawl identifies "
                "the proxy by this address and by `Authorization: Bearer` with `actions_token`. "
                "Every operator that the proxy names may act on the dashboard. The proxy must "
                "remove both headers from requests of clients. Empty: none.",
     .example = R"("10.0.0.5")"},

    {.section = "monitoring",
     .name = "actor_header",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::actor_header>},
     .values = "the name of a header",
     .meaning = "Header in which the trusted proxy names the operator."},

    // [handler_defaults]
    {.section = "handler_defaults",
     .name = "timeout",
     .field = DurationField{handler_field<&HandlerOptions::timeout>, milliseconds{1}, hours{24}},
     .meaning = "Limit of one attempt of a handler. A longer attempt is a failed attempt of the "
                "message.",
     .own = &kOwnDefault},

    {.section = "handler_defaults",
     .name = "isolation",
     .field = WordField{handler_field<&HandlerOptions::isolation>, kIsolations},
     .meaning = "Isolation level of the message's transaction. Empty: read committed, which is "
                "sufficient for pawl itself.",
     .example = R"("read committed")",
     .own = &kOwnDefault},

    // [[handler]]
    {.section = "handler",
     .name = "name",
     .field = TextField{handler_field<&HandlerOptions::name>, kLabelBytes},
     .values = "up to 255 bytes",
     .meaning = "Name of the handler in logs, metrics, and dead letters. For a C++ handler, the "
                "registered name.",
     .example = R"("payment")"},

    {.section = "handler",
     .name = "topics",
     .field = TextsField{handler_field<&HandlerOptions::topics>},
     .values = "names of topics, and patterns",
     .meaning = "Topics of the handler. A name that starts with `^` is a "
                "[pattern](reference/configuration.md): a POSIX extended regular expression that "
                "matches from the start of a topic's name. Required.",
     .example = R"(["payments"])"},

    {.section = "handler",
     .name = "when",
     .field = TextField{handler_field<&HandlerOptions::when>},
     .values = "a condition",
     .meaning = "The handler applies only messages for which the condition is true, such as "
                "`{header:type} == \"refund\"`. Empty: all messages; place such a handler last.",
     .example = R"('{header:type} == "paid"')"},

    {.section = "handler",
     .name = "sql",
     .field = OtherField{read_statements, statements_value},
     .values = "a statement, or an array of statements",
     .meaning =
         "Statements that run in the message's transaction. A statement is a string, or "
         "`{ text = \"...\", expect_rows = 1 }`. With `expect_rows`, the message fails unless "
         "the statement affects or returns that many rows. Placeholders become bind "
         "parameters, never text of the statement. In a pipeline, a view with rewrite rules "
         "may count different rows; set `consumer.pipeline = 1` for such a view.",
     .example = R"toml([
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  { text = "UPDATE accounts SET balance = balance + {/amount}::bigint WHERE id = {/account}", expect_rows = 1 },
])toml"},

    {.section = "handler",
     .name = "response",
     .field = OtherField{read_response, response_value},
     .values = "a statement, or `{ statement = \"NAME\" }`",
     .meaning = "Value that pawl [stores with the key](stored-responses.md) and returns for "
                "duplicates. A statement after those of `sql` returns it, or the statement of "
                "`sql` with `name = \"NAME\"`.",
     .example = R"("SELECT balance FROM accounts WHERE id = {/account}")"},

    {.section = "handler",
     .name = "function",
     .field = TextField{handler_field<&HandlerOptions::function>},
     .values = "`schema.function`",
     .meaning = "Database function that pawl calls with the message, instead of `sql`.",
     .example = R"("app.apply_refund")"},

    {.section = "handler",
     .name = "http",
     .field = OtherField{read_http, http_value},
     .values = "a table",
     .meaning = "HTTP request that pawl sends for each message, [under a "
                "lease](external-calls-http.md), instead of `sql`.",
     .example =
         R"({ url = "https://api.example/charges/{/account}", json = { amount = "{/amount}" } })"},

    {.section = "handler",
     .name = "retention",
     .field = OtherField{read_retention, retention_value},
     .values = R"(`"0s"`, `"1s"` to `"3650d"`)",
     .meaning = "Retention of this handler's keys, instead of `retention.keys`. If several "
                "handlers share a scope, also of other topics and consumers, [the longest "
                "retention](retention.md#retention-times) applies.",
     .example = R"("30d")"},

    {.section = "handler",
     .name = "concurrency",
     .field = CountField{handler_field<&HandlerOptions::concurrency>, 1, 1000},
     .meaning = "Messages of one partition that are processed [concurrently](concurrency.md). "
                "Messages with the same `order_by` are processed one after the other, in the order "
                "of the log."},

    {.section = "handler",
     .name = "order_by",
     .field = TextField{handler_field<&HandlerOptions::order_by>},
     .values = "a template",
     .meaning = "With `concurrency`: messages for which the template has the same result are "
                "processed in order. Messages without a result are processed in any order.",
     .example = R"("{/account}")"},

    {.section = "handler",
     .name = "concurrency_window",
     .field = CountField{handler_field<&HandlerOptions::concurrency_window>, 1, 100000},
     .meaning = "With `concurrency`: messages of a partition that may start before the oldest "
                "unfinished message completes. Increase it if slow messages block others."},

    {.section = "handler",
     .name = "on_unknown",
     .field = handler_choice<&HandlerOptions::on_unknown>(kOnUnknown),
     .meaning = "For [external calls](external-calls.md): handling of a message if an earlier call "
                "may or may not have succeeded."},

    {.section = "handler",
     .name = "remote_dedup_window",
     .field = DurationField{handler_field<&HandlerOptions::remote_dedup_window>, seconds{1},
                            kLongestRetention, true},
     .meaning = "With `on_unknown = \"call\"`: how long the remote service detects duplicates by "
                "their key. An older call with an unknown outcome is handled as with `\"halt\"`. "
                "`\"0s\"`: no limit."},

    {.section = "handler",
     .name = "not_atomic",
     .field = TextsField{handler_field<&HandlerOptions::not_atomic>},
     .values = "names as `schema.table`, or `dblink_exec`",
     .meaning = "Tables [on another server](guarantees.md#effects-on-another-server) that `sql` "
                "may change, although that server commits separately. After a crash, the effect "
                "may occur there twice."},

    {.section = "handler",
     .name = "batch",
     .field = FlagField{handler_field<&HandlerOptions::batch>},
     .meaning = "If `true`, `sql` applies [many messages at once](batches.md): each placeholder is "
                "an array. A C++ handler applies batches if it is registered with "
                "`batch_handler`."},
});

}  // namespace

OptionTable option_table() {
  return kTable;
}

}  // namespace pawl::config
