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
constexpr std::size_t kLongestChannel = 63;  // NAMEDATALEN - 1: PostgreSQL refuses a longer one

constexpr std::array<Word, 2> kGroupProtocols{{{"classic"}, {"consumer"}}};
constexpr std::array<Word, 3> kAssignors{{{"cooperative-sticky"}, {"range"}, {"roundrobin"}}};
constexpr std::array<Word, 2> kAssignments{{{"group"}, {"manual"}}};
constexpr std::array<Word, 6> kSynchronousCommits{
    {{""}, {"on"}, {"off"}, {"local"}, {"remote_write"}, {"remote_apply"}}};
constexpr std::array<Word, 3> kMissingKeys{
    {{"fail", "the failure policy"},
     {"process", "applied without duplicate check, and counted"},
     {"skip", "skipped, and recorded"}}};
constexpr std::array<Word, 2> kConflicts{
    {{"fail", "the failure policy"},
     {"ignore",
      "a duplicate all the same (for producers that serialise one event in several ways)"}}};
constexpr std::array<Word, 5> kPolicies{
    {{"halt",
      "its partition stops at it, the others go on; `pawl partitions resume` or a restart tries "
      "again"},
     {"dead-letter",
      "it is stored whole in pawl.dead_letters and the partition goes on; `pawl dlq` shows, "
      "replays or discards it"},
     {"park", "the same, and later messages with its record key wait behind it, in order"},
     {"retry-later",
      "as `park`, and it is tried again by itself after each of `retry_later`, those behind it "
      "once "
      "it is their turn"},
     {"skip", "it is left out, and recorded whole in pawl.skipped_messages"}}};
constexpr std::array<Word, 2> kUnmatched{
    {{"fail", "the failure policy"}, {"skip", "skipped, and recorded"}}};
constexpr std::array<Word, 3> kOutboxRelays{
    {{"auto",
      "where the SQL of a handler calls `pawl.publish`; else from the first message on that C++ "
      "publishes, or as soon as messages wait that nobody publishes"},
     {"on", "always"},
     {"off", "never"}}};
constexpr std::array<Word, 2> kLeaseStores{
    {{"postgres", "rows of `pawl.leases`"},
     {"redis",
      "keys of a [Redis](effects.md#leases-in-redis), which takes them off PostgreSQL and promises "
      "less; only with `on_unknown = \"call\"`"}}};
constexpr std::array<Word, 3> kOnUnknown{
    {{"call", "called again, under the same key: the other side knows repetitions by it"},
     {"reconcile", "the other side is asked first, by the handler's `reconcile`"},
     {"halt", "its partition stops at it, until `pawl calls resolve` says whether it was done"}}};
constexpr std::array<Word, 2> kDurabilities{
    {{"synchronous", "COMMIT waits for the disk, as `postgres.synchronous_commit` says"},
     {"replayable",
      "it does not. A crash of the database may take the last commits back, with key, effects and "
      "offset together; they are made again, since Kafka still has the messages "
      "([guarantees.md](guarantees.md)). Who reads the tables meanwhile may see effects that "
      "vanish for a moment"}}};
constexpr std::array<Word, 2> kLogFormats{{{"text", "for people"}, {"json", "for machines"}}};
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

/// [handler_defaults] are fields of the handler at hand.
constexpr HandlersOwn kOwnDefault{[](Settings&) {}, [](Settings&) {}};

constexpr std::array<std::string_view, 1> kOnFailureOld{"then"};
constexpr std::array<std::string_view, 1> kUnmatchedOld{"consumer.unmatched"};

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
     .values = "`host:port`, several separated by commas",
     .meaning =
         "Brokers to find the cluster with, without a scheme such as `kafka://`. The default "
         "port is 9092. Required."},

    {.section = "kafka",
     .name = "group",
     .field = TextField{field<&Options::kafka, &KafkaOptions::group>, kLabelBytes},
     .values = "up to 255 bytes",
     .meaning = "The consumer group. With `cluster` it is the consumer's identity in PostgreSQL: "
                "another group starts anew. Required."},

    {.section = "kafka",
     .name = "cluster",
     .field = TextField{field<&Options::kafka, &KafkaOptions::cluster>, kLabelBytes},
     .values = "up to 255 bytes, without `/`",
     .meaning = "Your own name for this Kafka cluster. Two clusters that feed one database need "
                "two names. Another cluster under a known name halts."},

    {.section = "kafka",
     .name = "group_instance_id",
     .field = TextField{field<&Options::kafka, &KafkaOptions::group_instance_id>, kKafkaNameBytes},
     .values = "up to 249 bytes",
     .meaning =
         "Static membership (KIP-345): a name of this process that survives its restarts and that "
         "no other process of the group has, e.g. `\"${HOSTNAME}\"`. Empty: a dynamic member."},

    {.section = "kafka",
     .name = "group_protocol",
     .field = choice<&Options::kafka, &KafkaOptions::group_protocol>(kGroupProtocols),
     .meaning = "Who shares out the partitions: the clients, by `assignor`, or the brokers "
                "(KIP-848, brokers 4.0 and later). Under `\"consumer\"`, `assignor` and "
                "`session_timeout` are the broker's and ignored here."},

    {.section = "kafka",
     .name = "assignor",
     .field = WordField{field<&Options::kafka, &KafkaOptions::assignor>, kAssignors},
     .meaning =
         "Who gets which partition. `cooperative-sticky` moves only the partitions that must move; "
         "the others stop the whole group at every change. All members need the same."},

    {.section = "kafka",
     .name = "session_timeout",
     .field = DurationField{field<&Options::kafka, &KafkaOptions::session_timeout>, seconds{1},
                            hours{1}},
     .meaning =
         "A member that is silent for longer loses its partitions. The broker has limits of its "
         "own (`group.min.session.timeout.ms`, 6 s; `group.max.session.timeout.ms`, 30 min)."},

    {.section = "kafka",
     .name = "start",
     .field = OtherField{read_start, start_value},
     .values = "`\"committed\"`, `\"earliest\"`, `\"latest\"`, `\"halt\"`, or a time",
     .meaning = "Where a partition starts that this consumer has never processed. Asked once, for "
                "all partitions of the topic together; afterwards the offset in PostgreSQL alone "
                "counts. `\"committed\"`: the offset that the group has committed to Kafka (so an "
                "existing consumer moves over), without one `\"earliest\"`. `\"earliest\"`, "
                "`\"latest\"`: the log's start, the log's end. `2026-01-31T00:00:00Z`: the first "
                "record at or after this time (RFC 3339 with time zone, with or without quotes). "
                "`\"halt\"`: nowhere, until `pawl offsets set` says so."},

    {.section = "kafka",
     .name = "start_beside",
     .field = TextsField{field<&Options::kafka, &KafkaOptions::start_beside>},
     .values = "names: `\"group\"` or `\"cluster/group\"`",
     .meaning = "Other consumers that process the same topics into the same database, each with "
                "effects of its own. Beside one that is not named here a topic that is new to this "
                "consumer halts, unless `start` is `\"latest\"`, since a wrong name would do all "
                "effects again; see [First contact](deploy.md#first-contact)."},

    {.section = "kafka",
     .name = "buffer",
     .field = SizeField{field<&Options::kafka, &KafkaOptions::buffer>, kMiB, 64 * kGiB},
     .meaning = "Fetched but not yet processed data of all partitions together. Each partition has "
                "a reserved share, and beyond it takes what it needs. One larger record passes. "
                "Counted are keys, values, headers and 512 bytes for each message."},

    {.section = "kafka",
     .name = "topic_check_interval",
     .field = DurationField{field<&Options::kafka, &KafkaOptions::topic_check_interval>,
                            milliseconds{100}, hours{1}},
     .meaning = "How often topics are checked for new partitions, for having been deleted and "
                "created again, and for those that a pattern means."},

    {.section = "kafka",
     .name = "commit_interval",
     .field = DurationField{field<&Options::kafka, &KafkaOptions::commit_interval>,
                            milliseconds{100}, hours{1}},
     .meaning = "How often processed offsets are told to Kafka, for lag tools and autoscalers. "
                "pawl does not read them again."},

    {.section = "kafka",
     .name = "assignment",
     .field = choice<&Options::kafka, &KafkaOptions::assignment>(kAssignments),
     .meaning = "`group`: Kafka shares the partitions out among the group's processes. `manual`: "
                "this process takes exactly `partitions` of every topic, without coordination."},

    {.section = "kafka",
     .name = "partitions",
     .field = OtherField{read_partitions, partitions_value},
     .values = "numbers from 0",
     .meaning = "Only for `assignment = \"manual\"`."},

    {.section = "kafka",
     .name = "oauth_token_command",
     .field = TextsField{field<&Options::kafka, &KafkaOptions::oauth_token_command>},
     .values = "a path and arguments",
     .meaning = "For `sasl.mechanism = \"OAUTHBEARER\"`: a program that prints an [OAuth "
                "token](security.md#oauthbearer), an absolute path, no shell. Every connection to "
                "Kafka uses it; it is run again before the token ends, for at most 10 s. Empty: "
                "none.",
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
     .meaning =
         "Where the database is. Several hosts and `target_session_attrs` work. What it leaves out "
         "comes from libpq's "
         "environment (`PGHOST`, `PGUSER`, ...), service file and password file. What can never "
         "connect (a `%` in a password that is not `%25`, an unknown option, a port that is no "
         "number) is an error of the configuration. Percent-encode `@ / : % [ ]` in a password.",
     .shown = Shown::kConnection},

    {.section = "postgres",
     .name = "password_command",
     .field = TextsField{field<&Options::postgres, &PostgresOptions::password_command>},
     .values = "a path and arguments",
     .meaning = "A program whose first line of output [is the "
                "password](security.md#a-password-from-a-command), an absolute path, no shell. It "
                "is run at each connect, for at most 10 s, so that passwords may change and tokens "
                "end. Not beside a password in `url`. Empty: none.",
     .shown = Shown::kProgram},

    {.section = "postgres",
     .name = "schema",
     .field = TextField{field<&Options::postgres, &PostgresOptions::schema>},
     .values = "`a`-`z`, `0`-`9`, `_`, up to 63",
     .meaning = "Schema of pawl's own tables."},

    {.section = "postgres",
     .name = "pooled",
     .field = FlagField{field<&Options::postgres, &PostgresOptions::pooled>},
     .meaning = "Connections go through a pooler in transaction mode (PgBouncer): nothing is set "
                "or kept per session."},

    {.section = "postgres",
     .name = "synchronous_commit",
     .field = WordField{field<&Options::postgres, &PostgresOptions::synchronous_commit>,
                        kSynchronousCommits},
     .meaning = "For pawl's transactions. Empty: what the database says."},

    {.section = "postgres",
     .name = "connect_timeout",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::connect_timeout>,
                            milliseconds{100}, minutes{10}},
     .meaning = "One attempt to connect to one host. A connection that is silent later is given up "
                "after [other bounds](design.md#sessions-and-poolers)."},

    {.section = "postgres",
     .name = "lock_timeout",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::lock_timeout>,
                            milliseconds{10}, hours{1}},
     .meaning = "Bound of one wait for a lock. Waiting longer is tried again, and never held "
                "against the message."},

    {.section = "postgres",
     .name = "retry_initial",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::retry_initial>,
                            milliseconds{1}, hours{1}},
     .meaning = "First delay before the next attempt while PostgreSQL is away; doubled from "
                "attempt to attempt, with jitter, without limit."},

    {.section = "postgres",
     .name = "retry_max",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::retry_max>, milliseconds{1},
                            hours{1}},
     .meaning = "Longest such delay."},

    {.section = "postgres",
     .name = "stalled_owner_after",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::stalled_owner_after>,
                            milliseconds{100}, hours{1}},
     .meaning =
         "A previous owner's session that blocks a partition and has been idle in its transaction "
         "for longer is ended; so is one of this process' own that it has given up."},

    {.section = "postgres",
     .name = "poll_interval",
     .field = DurationField{field<&Options::postgres, &PostgresOptions::poll_interval>,
                            milliseconds{10}, hours{1}},
     .meaning = "How often operators' commands (pause, resume, offsets set) are looked for."},

    {.section = "postgres",
     .name = "trace_comment",
     .field = FlagField{field<&Options::postgres, &PostgresOptions::trace_comment>},
     .meaning =
         "A handler's statements end in a comment with the trace of their message, "
         "`/*traceparent='00-...'*/`, where it has one. They are then parsed and planned for "
         "each message, not prepared once."},

    // [idempotency]
    {.section = "idempotency",
     .name = "key",
     .field = TextField{field<&Options::idempotency, &IdempotencyOptions::key>},
     .values = "a template",
     .meaning = "The key under which a message is applied once, e.g. `{header:event-id}` or "
                "`payment:{/tenantId}:{/paymentId}`. Required, here or in each SQL or function "
                "handler, unless `missing_key = \"process\"`.",
     .example = R"("{header:event-id}")",
     .own = &kOwn<&IdempotencyOptions::key, &HandlerOptions::key>},

    {.section = "idempotency",
     .name = "key_checked",
     .field = FlagField{field<&Options::idempotency, &IdempotencyOptions::key_checked>},
     .meaning = "Set it to `true` once you have checked that no two events have the same `key`. "
                "pawl then no longer warns about a key that looks like the id of a thing, such as "
                "`{/order_id}`.",
     .own = &kOwn<&IdempotencyOptions::key_checked, &HandlerOptions::key_checked>},

    {.section = "idempotency",
     .name = "scope",
     .field = TextField{field<&Options::idempotency, &IdempotencyOptions::scope>},
     .values = "a name up to 255 bytes, without `/`",
     .meaning = "Keys are unique within a scope. Empty: one scope per consumer and topic. A name: "
                "one for all that use it.",
     .example = R"("payments")",
     .own = &kOwn<&IdempotencyOptions::scope, &HandlerOptions::scope>},

    {.section = "idempotency",
     .name = "missing_key",
     .field = choice<&Options::idempotency, &IdempotencyOptions::missing_key>(kMissingKeys),
     .meaning = "What becomes of a message without key.",
     .own = &kOwn<&IdempotencyOptions::missing_key, &HandlerOptions::missing_key>},

    {.section = "idempotency",
     .name = "conflict",
     .field = choice<&Options::idempotency, &IdempotencyOptions::conflict>(kConflicts),
     .meaning = "What becomes of a key that comes again with another payload.",
     .own = &kOwn<&IdempotencyOptions::conflict, &HandlerOptions::conflict>},

    {.section = "idempotency",
     .name = "max_response",
     .field = SizeField{field<&Options::idempotency, &IdempotencyOptions::max_response>, kKiB,
                        16 * kMiB},
     .meaning = "What a [response](responses.md) may have that is stored with a key. A larger one "
                "fails its message, and is not tried again.",
     .own = &kOwn<&IdempotencyOptions::max_response, &HandlerOptions::max_response>},

    // [failures]
    {.section = "failures",
     .name = "on_failure",
     .field = choice<&Options::failures, &FailureOptions::on_failure>(kPolicies),
     .meaning =
         "What happens to a message that cannot be applied: [policies](failures.md#policies).",
     .example = R"("park")",
     .own = &kOwnFailures,
     .deprecated = kOnFailureOld},

    {.section = "failures",
     .name = "unmatched",
     .field = choice<&Options::failures, &FailureOptions::unmatched>(kUnmatched),
     .meaning =
         "What becomes of a message whose topic has handlers, none of which takes it (`when`).",
     .deprecated = kUnmatchedOld},

    {.section = "failures",
     .name = "retry_for",
     .field = DurationField{field<&Options::failures, &FailureOptions::retry_for>, milliseconds{0},
                            hours{24 * 7}},
     .meaning =
         "How long a message that fails is tried before `on_failure`: its waits between attempts, "
         "added up. Attempts are counted in PostgreSQL, so a restart does not begin anew, "
         "and time in which no process ran does not count.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "max_attempts",
     .field = CountField{field<&Options::failures, &FailureOptions::max_attempts>, 0, 1000},
     .meaning =
         "Attempts of one message before `on_failure`, whatever `retry_for` says; counted in "
         "PostgreSQL, so also over restarts. 0: no such bound.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "max_crashes",
     .field = CountField{field<&Options::failures, &FailureOptions::max_crashes>, 1, 100},
     .meaning = "How many processes may end while they run a message alone (probation after a "
                "crash), before `on_failure` applies. Also how many may end while they fetch the "
                "next message of a partition, before it halts.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "retry_initial",
     .field = DurationField{field<&Options::failures, &FailureOptions::retry_initial>,
                            milliseconds{1}, hours{24}},
     .meaning = "First delay before the next attempt of a message; doubled from attempt to "
                "attempt, with jitter. Other partitions go on meanwhile.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "retry_max",
     .field = DurationField{field<&Options::failures, &FailureOptions::retry_max>, milliseconds{1},
                            hours{24}},
     .meaning = "Longest such delay.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "retry_later",
     .field = DurationsField{field<&Options::failures, &FailureOptions::retry_later>,
                             std::chrono::seconds{1}, hours{24 * 30}, 20},
     .values = "1 to 20 durations, 1s to 30d each",
     .meaning =
         "With `on_failure = \"retry-later\"`: the delays before a message that was set aside is "
         "tried again, by the database's clock; after the last one it is a dead letter. "
         "Together less than the retention of the handler's keys, and none of them holds "
         "its partition: give "
         "`retry_for` less than the first one.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "program_error_retry",
     .field = DurationField{field<&Options::failures, &FailureOptions::program_error_retry>,
                            milliseconds{10}, hours{24}},
     .meaning = "Delay between attempts while not the message but the program is wrong (a table or "
                "a grant is missing), or while the breaker is open.",
     .own = &kOwnFailures},

    {.section = "failures",
     .name = "breaker",
     .field = CountField{field<&Options::failures, &FailureOptions::breaker>, 0, 1'000'000},
     .meaning = "After so many messages of a handler that failed in a row and in the same way, its "
                "partitions halt instead of setting more aside, and their messages are tried again "
                "every `program_error_retry`. 0: never.",
     .own = &kOwnFailures},

    // [outbox]
    {.section = "outbox",
     .name = "relay",
     .field = choice<&Options::outbox, &OutboxOptions::relay>(kOutboxRelays),
     .meaning =
         "Whether `run` publishes to Kafka what `pawl.publish` has written, from any program. "
         "`pawl relay` does nothing else ([outbox.md](outbox.md))."},

    {.section = "outbox",
     .name = "transactions",
     .field = FlagField{field<&Options::outbox, &OutboxOptions::transactions>},
     .meaning = "`false` publishes without Kafka's transactions: at least once, copies under one "
                "`pawl-outbox-id`. For brokers that have none, or readers that are not to wait "
                "behind an open transaction. Give it the same everywhere."},

    {.section = "outbox",
     .name = "state_topic",
     .field = TextField{field<&Options::outbox, &OutboxOptions::state_topic>},
     .values = "the name of a topic",
     .meaning = "A topic with one partition that stays empty: Kafka commits the numbers of the "
                "outbox's batches for it. It is created where that is allowed."},

    {.section = "outbox",
     .name = "max_message",
     .field = SizeField{field<&Options::outbox, &OutboxOptions::max_message>, kKiB, 100 * kMiB},
     .meaning =
         "What key, value and headers of a message may have together; `pawl.publish` refuses "
         "more. Whoever relays tells the database, so give it the same everywhere. A topic has "
         "a limit of its own, `max.message.bytes`."},

    {.section = "outbox",
     .name = "alert_age",
     .field = DurationField{field<&Options::outbox, &OutboxOptions::alert_age>, seconds{1},
                            kLongestRetention, true},
     .meaning =
         "A message that waits for longer is an alert, and late in `pawl status`, also where no "
         "process publishes. One process tells it. `\"0s\"`: none is."},

    // [dead_letters]
    {.section = "dead_letters",
     .name = "store_payload",
     .field = FlagField{field<&Options::dead_letters, &DeadLetterOptions::store_payload>},
     .meaning = "`false` keeps only where the message stands in Kafka, its keys and why it failed; "
                "replay reads it from Kafka, as long as it is there."},

    {.section = "dead_letters",
     .name = "max_payload",
     .field =
         SizeField{field<&Options::dead_letters, &DeadLetterOptions::max_payload>, 0, 512 * kMiB},
     .meaning = "A larger value is stored up to this size; replay reads it from Kafka."},

    {.section = "dead_letters",
     .name = "topic",
     .field = TextField{field<&Options::dead_letters, &DeadLetterOptions::topic>},
     .values = "a topic that exists and that no handler consumes",
     .meaning = "A topic of Kafka's that is fed with the dead letters from the table, after they "
                "are stored, [at least "
                "once](failures.md#a-kafka-topic-of-dead-letters). Empty: none."},

    // [leases]
    {.section = "leases",
     .name = "store",
     .field = choice<&Options::leases, &LeaseOptions::store>(kLeaseStores),
     .meaning = "Where leases are kept. All processes of a group need the same."},

    {.section = "leases",
     .name = "time",
     .field = DurationField{field<&Options::leases, &LeaseOptions::time>, seconds{2}, hours{1}},
     .meaning = "How long the lease of a process that died or stands still keeps others from "
                "[calling for its key](effects.md). One that lives extends its leases."},

    {.section = "leases",
     .name = "calls",
     .field = CountField{field<&Options::leases, &LeaseOptions::calls>, 1, 4096},
     .meaning = "Calls of leased handlers that this process makes at a time, each on a thread."},

    // [redis]
    {.section = "redis",
     .name = "address",
     .field = TextField{field<&Options::redis, &RedisOptions::address>},
     .values = "`host:port`",
     .meaning = "The server, a master. Required, or else `sentinels` and `master`."},

    {.section = "redis",
     .name = "sentinels",
     .field = TextsField{field<&Options::redis, &RedisOptions::sentinels>},
     .values = "`host:port` of each",
     .meaning = "Sentinels, asked one after the other where the master is."},

    {.section = "redis",
     .name = "master",
     .field = TextField{field<&Options::redis, &RedisOptions::master>, kLabelBytes},
     .values = "up to 255 bytes",
     .meaning = "What Sentinel calls the master."},

    {.section = "redis",
     .name = "user",
     .field = TextField{field<&Options::redis, &RedisOptions::user>},
     .values = "a name",
     .meaning = "The ACL user. Empty: `default`."},

    {.section = "redis",
     .name = "password",
     .field = TextField{field<&Options::redis, &RedisOptions::password>},
     .values = "a text",
     .meaning = "Its password, as `${file:PATH}` or `${NAME}` best. Empty: none is asked for.",
     .shown = Shown::kSecret},

    {.section = "redis",
     .name = "sentinel_user",
     .field = TextField{field<&Options::redis, &RedisOptions::sentinel_user>},
     .values = "a name",
     .meaning = "The ACL user for Sentinel. Empty: `default`."},

    {.section = "redis",
     .name = "sentinel_password",
     .field = TextField{field<&Options::redis, &RedisOptions::sentinel_password>},
     .values = "a text",
     .meaning = "Its password. Empty: none is asked for.",
     .shown = Shown::kSecret},

    {.section = "redis",
     .name = "database",
     .field = CountField{field<&Options::redis, &RedisOptions::database>, 0, 9999},
     .meaning = "The number of the database (SELECT)."},

    {.section = "redis",
     .name = "tls",
     .field = FlagField{field<&Options::redis, &RedisOptions::tls>},
     .meaning = "Connects by TLS, also to Sentinel. The certificate is verified, with the name "
                "that it is for."},

    {.section = "redis",
     .name = "server_name",
     .field = TextField{field<&Options::redis, &RedisOptions::server_name>},
     .values = "a host",
     .meaning = "Whom the certificate is for. Empty: the host that is connected to, which with "
                "Sentinel is the one that it names."},

    {.section = "redis",
     .name = "ca_file",
     .field = PathField{field<&Options::redis, &RedisOptions::ca_file>},
     .values = "a PEM file",
     .meaning = "Authorities to trust. Empty: the system's. A relative path begins at the config "
                "file's folder, here and below."},

    {.section = "redis",
     .name = "certificate",
     .field = PathField{field<&Options::redis, &RedisOptions::certificate>},
     .values = "a PEM file",
     .meaning = "The client's own certificate, with its chain."},

    {.section = "redis",
     .name = "private_key",
     .field = PathField{field<&Options::redis, &RedisOptions::private_key>},
     .values = "a PEM file",
     .meaning = "Its key, without a passphrase."},

    {.section = "redis",
     .name = "timeout",
     .field = DurationField{field<&Options::redis, &RedisOptions::timeout>, milliseconds{10},
                            minutes{1}},
     .meaning = "Of one attempt to connect, and of one answer; at most a third of `leases.time`, "
                "so that an extension that fails is tried again in time."},

    {.section = "redis",
     .name = "prefix",
     .field = TextField{field<&Options::redis, &RedisOptions::prefix>, kLabelBytes},
     .values = "up to 255 bytes, without `{` and `}`",
     .meaning = "Begins the name of every key; the ACL user needs the keys behind it."},

    // [audit]
    {.section = "audit",
     .name = "sql",
     .field = OtherField{read_audit_sql, audit_sql_value},
     .values = "a query, or an array of them",
     .meaning = "What [`pawl audit`](audit.md) runs beside its own checks: each returns what is "
                "wrong, so no row when all is well. A text, or `{ name = \"...\", text = \"SELECT "
                "...\" }`. They run in READ ONLY transactions."},

    {.section = "audit",
     .name = "timeout",
     .field =
         DurationField{field<&Options::audit, &AuditOptions::timeout>, milliseconds{1}, hours{24}},
     .meaning = "Bound of one of them (`statement_timeout`)."},

    // [retention]
    {.section = "retention",
     .name = "keys",
     .field = DurationField{field<&Options::retention, &RetentionOptions::keys>, seconds{1},
                            kLongestRetention, true},
     .meaning =
         "How late a producer's duplicate may come and still be recognised: keys of messages that "
         "are older are removed. A handler may have a `retention` of its own. Counted from the "
         "oldest message that still waits, not from now, "
         "so that a consumer that was down forgets nothing. `\"0s\"`: keys are never removed."},

    {.section = "retention",
     .name = "dead_letters",
     .field = DurationField{field<&Options::retention, &RetentionOptions::dead_letters>, seconds{1},
                            kLongestRetention, true},
     .meaning = "Dead letters are removed so long after they were replayed or discarded; those "
                "that wait for somebody never. `\"0s\"`: none is."},

    {.section = "retention",
     .name = "skipped",
     .field = DurationField{field<&Options::retention, &RetentionOptions::skipped>, seconds{1},
                            kLongestRetention, true},
     .meaning = "Records of skipped messages are removed after this time. `\"0s\"`: never."},

    {.section = "retention",
     .name = "outbox",
     .field = DurationField{field<&Options::retention, &RetentionOptions::outbox>, seconds{1},
                            kLongestRetention, true},
     .meaning = "Messages of the outbox that Kafka refused are removed so long after they were "
                "given up (`pawl outbox discard`); others never. `\"0s\"`: none is."},

    {.section = "retention",
     .name = "interval",
     .field = DurationField{field<&Options::retention, &RetentionOptions::interval>,
                            milliseconds{100}, hours{24}, true},
     .meaning =
         "How often a running consumer looks whether something is to be removed; one process of "
         "the group does it. `\"0s\"`: none, for those who run `pawl prune` by a timer."},

    {.section = "retention",
     .name = "load",
     .field = CountField{field<&Options::retention, &RetentionOptions::load>, 1, 100},
     .meaning = "Percent of the time in which a removal works; it pauses in the rest, so that the "
                "consumer hardly notices."},

    // [consumer]
    {.section = "consumer",
     .name = "workers",
     .field = CountField{field<&Options::consumer, &EngineOptions::workers>, 1, 256},
     .meaning = "Threads, each with one PostgreSQL connection. More than the partitions that this "
                "process owns is of no use."},

    {.section = "consumer",
     .name = "pipeline",
     .field = CountField{field<&Options::consumer, &EngineOptions::pipeline>, 1, 1000},
     .meaning =
         "Transactions that a worker sends to PostgreSQL before it waits for an answer, where the "
         "handler is SQL, or C++ that says its statements ahead (`statement_handler`): as many as "
         "messages wait, up to this. Each message stays a transaction of its own, in order. 1: one "
         "at a time. Alone goes what has `expect_rows` at a statement with a WITH, or at one that "
         "is none of SELECT, INSERT, UPDATE and DELETE."},

    {.section = "consumer",
     .name = "concurrency",
     .field = CountField{field<&Options::consumer, &EngineOptions::concurrency>, 1, 1000},
     .meaning = "Limit of the messages that this process runs concurrently, if handlers have a "
                "[`concurrency`](concurrency.md). Each needs a thread and a PostgreSQL connection, "
                "which are created when they are needed. The same number of delayed retries can "
                "run at once, each with two connections."},

    {.section = "consumer",
     .name = "durability",
     .field = choice<&Options::consumer, &EngineOptions::durability>(kDurabilities),
     .meaning = "Whether COMMIT waits for the disk."},

    {.section = "consumer",
     .name = "durability_interval",
     .field = DurationField{field<&Options::consumer, &EngineOptions::durability_interval>,
                            milliseconds{10}, minutes{1}},
     .meaning = "With `\"replayable\"`: after this time at the latest a commit is on disk, and "
                "Kafka is told so."},

    {.section = "consumer",
     .name = "shutdown_timeout",
     .field = DurationField{field<&Options::consumer, &EngineOptions::shutdown_timeout>,
                            milliseconds{100}, hours{1}},
     .meaning = "Time for the messages in flight after SIGTERM or SIGINT."},

    // [batch]
    {.section = "batch",
     .name = "max_messages",
     .field = CountField{field<&Options::batch, &BatchOptions::max_messages>, 1, 10000},
     .meaning =
         "Messages of a partition in one transaction, if they are there. 1: each message alone."},

    {.section = "batch",
     .name = "max_bytes",
     .field = SizeField{field<&Options::batch, &BatchOptions::max_bytes>, kKiB, 256 * kMiB},
     .meaning = "Bound of their keys and values; one larger message passes alone."},

    {.section = "batch",
     .name = "linger",
     .field =
         DurationField{field<&Options::batch, &BatchOptions::linger>, milliseconds{0}, minutes{1}},
     .meaning = "How long a batch that is not full waits for more messages. It makes batches "
                "larger where little comes, and messages later."},

    // [log]
    {.section = "log",
     .name = "format",
     .field = choice<&Options::log, &LogOptions::format>(kLogFormats),
     .meaning = "How lines are written."},

    {.section = "log",
     .name = "level",
     .field = WordField{field<&Options::log, &LogOptions::level>, kLogLevels},
     .meaning = "What is less severe is not written."},

    {.section = "log",
     .name = "progress_interval",
     .field = DurationField{field<&Options::log, &LogOptions::progress_interval>, milliseconds{100},
                            hours{24}, true},
     .meaning =
         "A line with rate, lag and when that is gone, this often while something happens, while a "
         "partition is halted or paused, and before the first assignment; `\"0s\"` for none."},

    {.section = "log",
     .name = "error_details",
     .field = FlagField{field<&Options::log, &LogOptions::error_details>},
     .meaning = "Failed tries are logged with PostgreSQL's DETAIL, which may quote values of rows. "
                "It is stored with a dead letter in any case."},

    // [alerts]
    {.section = "alerts",
     .name = "command",
     .field = TextsField{field<&Options::alerts, &AlertOptions::command>},
     .values = "a path and arguments",
     .meaning =
         "A program that is run for each alert, such as `[\"/usr/local/bin/page\", \"--team\", "
         "\"payments\"]`; an absolute path, no shell. The alert is JSON on its stdin, the main "
         "fields are in its environment (`PAWL_ALERT_KIND`, ...). Empty: none.",
     .shown = Shown::kProgram},

    {.section = "alerts",
     .name = "timeout",
     .field = DurationField{field<&Options::alerts, &AlertOptions::timeout>, milliseconds{100},
                            hours{1}},
     .meaning = "The command is killed, with all that it started, when it runs for longer."},

    {.section = "alerts",
     .name = "notify_channel",
     .field = TextField{field<&Options::alerts, &AlertOptions::notify_channel>, kLongestChannel},
     .values = "up to 63 bytes",
     .meaning =
         "The channel of NOTIFY with the same JSON, over a connection of its own. Empty: none."},

    {.section = "alerts",
     .name = "min_interval",
     .field = DurationField{field<&Options::alerts, &AlertOptions::min_interval>, milliseconds{0},
                            hours{24}},
     .meaning = "Between two alerts of one kind about one partition, handler, or remote service. "
                "What was held back is counted, and told when the time is over."},

    {.section = "alerts",
     .name = "unreachable_after",
     .field = DurationField{field<&Options::alerts, &AlertOptions::unreachable_after>,
                            milliseconds{100}, hours{24}},
     .meaning = "How long PostgreSQL, Kafka, Redis, or the remote service of an `http` handler is "
                "unreachable before an alert reports it."},

    // [monitoring]
    {.section = "monitoring",
     .name = "listen",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::listen>},
     .values = "`address:port`, in numbers",
     .meaning =
         "Where `/metrics`, `/live`, `/ready` and `/status` are served, such as "
         "`\"127.0.0.1:9464\"` or `\"[::]:9464\"`; `pawl run` serves the dashboard there, too. "
         "Whoever reaches it may read them: no password is asked for. Empty: nowhere."},

    {.section = "monitoring",
     .name = "hosts",
     .field = TextsField{field<&Options::monitoring, &MonitoringOptions::hosts>},
     .values = "names, without a port",
     .meaning =
         "Under which the dashboard and `/status` are served, beside addresses in numbers, "
         "`localhost` and this machine's name. Other names may have been pointed here by "
         "another site in the browser, and are refused. `/metrics`, `/live` and `/ready` are "
         "served under every name.",
     .example = R"(["pawl.example.org"])"},

    {.section = "monitoring",
     .name = "actions_token",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::actions_token>},
     .values = "at least 16 characters",
     .meaning = "Who signs in with this token may act on the [dashboard](dashboard.md), and see "
                "values there. Empty: nobody may.",
     .shown = Shown::kSecret},

    {.section = "monitoring",
     .name = "trusted_proxy",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::trusted_proxy>},
     .values = "a numeric address",
     .meaning =
         "The proxy that names the person in `actor_header`, known by this address and by "
         "`Authorization: Bearer` with `actions_token`; whoever it names may act on the dashboard. "
         "The proxy must remove both headers from what others send. Empty: none is believed.",
     .example = R"("10.0.0.5")"},

    {.section = "monitoring",
     .name = "actor_header",
     .field = TextField{field<&Options::monitoring, &MonitoringOptions::actor_header>},
     .values = "a header's name",
     .meaning = "In which the trusted proxy names the person."},

    // [handler_defaults]
    {.section = "handler_defaults",
     .name = "timeout",
     .field = DurationField{handler_field<&HandlerOptions::timeout>, milliseconds{1}, hours{24}},
     .meaning = "Bound of one run of a handler; longer is a failure of the message.",
     .own = &kOwnDefault},

    {.section = "handler_defaults",
     .name = "isolation",
     .field = WordField{handler_field<&HandlerOptions::isolation>, kIsolations},
     .meaning =
         "Of the message's transaction. Empty: read committed, which is enough for pawl itself.",
     .example = R"("read committed")",
     .own = &kOwnDefault},

    // [[handler]]
    {.section = "handler",
     .name = "name",
     .field = TextField{handler_field<&HandlerOptions::name>, kLabelBytes},
     .values = "up to 255 bytes",
     .meaning = "A label for logs; for C++ handlers the registered name.",
     .example = R"("payment")"},

    {.section = "handler",
     .name = "topics",
     .field = TextsField{handler_field<&HandlerOptions::topics>},
     .values = "names of topics, and patterns",
     .meaning =
         "One handler may serve several. What begins with `^` is a pattern: a POSIX extended "
         "regular expression, for the topics whose names begin so: "
         "[Topics by pattern](configuration.md#topics-by-pattern). Required.",
     .example = R"(["payments"])"},

    {.section = "handler",
     .name = "when",
     .field = TextField{handler_field<&HandlerOptions::when>},
     .values = "a condition",
     .meaning = "Serves only messages for which it holds, e.g. `{header:type} == \"refund\"`. "
                "Empty: all; such a handler comes last.",
     .example = R"('{header:type} == "paid"')"},

    {.section = "handler",
     .name = "sql",
     .field = OtherField{read_statements, statements_value},
     .values = "a statement, or an array of them",
     .meaning = "A statement is a string, or `{ text = \"...\", expect_rows = 1 }`, which fails "
                "the message unless that many rows are affected or returned. (Of messages that "
                "travel together PostgreSQL counts what the statement would return: a view with "
                "rewrite rules may count otherwise, set `consumer.pipeline = 1` for one.) Values "
                "come from templates as bind parameters, never as text.",
     .example = R"toml([
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  { text = "UPDATE accounts SET balance = balance + {/amount}::bigint WHERE id = {/account}", expect_rows = 1 },
])toml"},

    {.section = "handler",
     .name = "response",
     .field = OtherField{read_response, response_value},
     .values = "a statement, or `{ statement = \"NAME\" }`",
     .meaning = "What is [stored with the key](responses.md), and given to whoever asks when a "
                "duplicate comes: the one value that a statement behind those of `sql` returns, "
                "or what the one of them returns that says `name = \"NAME\"`.",
     .example = R"("SELECT balance FROM accounts WHERE id = {/account}")"},

    {.section = "handler",
     .name = "function",
     .field = TextField{handler_field<&HandlerOptions::function>},
     .values = "`schema.function`",
     .meaning = "A database function that is called with the message, instead of `sql`.",
     .example = R"("app.apply_refund")"},

    {.section = "handler",
     .name = "http",
     .field = OtherField{read_http, http_value},
     .values = "a table",
     .meaning = "An HTTP request for each message, [under a lease](effects.md#http), instead of "
                "`sql`.",
     .example =
         R"({ url = "https://api.example/charges/{/account}", json = { amount = "{/amount}" } })"},

    {.section = "handler",
     .name = "retention",
     .field = OtherField{read_retention, retention_value},
     .values = R"(`"0s"`, `"1s"` to `"3650d"`)",
     .meaning = "Instead of `retention.keys`, for this handler's keys. Where several put keys into "
                "one scope, also of other topics and consumers, [the longest "
                "counts](retention.md#how-long).",
     .example = R"("30d")"},

    {.section = "handler",
     .name = "concurrency",
     .field = CountField{handler_field<&HandlerOptions::concurrency>, 1, 1000},
     .meaning = "Messages of one partition that run [side by side](concurrency.md): those with "
                "the same `order_by` one after the other, in the log's order."},

    {.section = "handler",
     .name = "order_by",
     .field = TextField{handler_field<&HandlerOptions::order_by>},
     .values = "a template",
     .meaning = "With `concurrency`: messages for which it gives the same text are processed in "
                "their order; those for which it gives none, in any.",
     .example = R"("{/account}")"},

    {.section = "handler",
     .name = "max_ahead",
     .field = CountField{handler_field<&HandlerOptions::max_ahead>, 1, 100000},
     .meaning = "With `concurrency`: messages of a partition that are begun at most while an "
                "earlier one is not finished."},

    {.section = "handler",
     .name = "on_unknown",
     .field = handler_choice<&HandlerOptions::on_unknown>(kOnUnknown),
     .meaning = "Of [leased handlers](effects.md): what is done about a message of which an "
                "earlier call may have had its effect."},

    {.section = "handler",
     .name = "remote_memory",
     .field = DurationField{handler_field<&HandlerOptions::remote_memory>, seconds{1},
                            kLongestRetention, true},
     .meaning = "With `on_unknown = \"call\"`: for how long the other side knows repetitions by "
                "their key. An earlier call that is unknown for longer is treated as with "
                "`\"halt\"`. `\"0s\"`: for ever."},

    {.section = "handler",
     .name = "not_atomic",
     .field = TextsField{handler_field<&HandlerOptions::not_atomic>},
     .values = "names as `schema.table`, or `dblink_exec`",
     .meaning =
         "Tables [on another server](guarantees.md#effects-on-another-server) that `sql` may "
         "write to, although that server commits separately and a crash can repeat the "
         "effect there."},

    {.section = "handler",
     .name = "batch",
     .field = FlagField{handler_field<&HandlerOptions::batch>},
     .meaning = "`sql` takes [many messages at once](batches.md): each placeholder is an array. "
                "Code takes them when it was registered by `batch_handler`."},
});

}  // namespace

OptionTable option_table() {
  return kTable;
}

}  // namespace pawl::config
