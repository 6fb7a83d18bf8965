#include "engine/halt_rendering.hpp"

#include <map>
#include <set>

#include "config/invocation.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "engine/halt_texts.hpp"
#include "ledger/halt.hpp"
#include "prelude.hpp"

using namespace pawl::engine;
using pawl::ledger::Halt;
namespace code = pawl::ledger::halt_code;

namespace {

const TopicPartition kPartition{"orders", 3};

pawl::Options reader() {
  pawl::Options options;
  options.invocation = {"payments", "/etc/my file.toml", {}};
  options.kafka.cluster = "main";
  options.kafka.group = "shop";
  options.failures.program_error_retry = std::chrono::seconds(10);
  options.postgres.schema = "pawl";
  return options;
}

Halt halt(const char* halt_code, std::map<std::string, std::string> parameters = {},
          std::string cause = {}, std::optional<std::int64_t> offset = std::nullopt) {
  auto result = pawl::ledger::make_halt(halt_code);
  result.parameters = std::move(parameters);
  result.cause = std::move(cause);
  result.message_offset = offset;
  return result;
}

/// The commands without "payments ... --config '...'" and without their comments.
std::string commands_of(const RenderedHalt& halt) {
  const auto invocation = reader().invocation;
  std::string text;
  for (const auto& command : halt.commands) {
    const auto line = command_text(invocation, command, kPartition);
    const auto start = pawl::command_text(invocation, command.command);
    REQUIRE(line.starts_with(start));
    text += (text.empty() ? "" : "; ") + command.command + line.substr(start.size());
  }
  return text;
}

struct Row {
  Halt halt;
  std::string kind;
  std::string what;
  std::string effect;
  std::string action;
  std::string commands;
};

const std::string kOf = " --topic orders --partition 3";
const std::string kSet = "offsets set" + kOf + " --to ";
const std::string kFindLost = "Find out which messages were lost, then set the offset";

std::vector<Row> rows() {
  const std::string others = "Other partitions continue";
  const std::string skipped = "No message was skipped";
  const std::string retries = "pawl retries automatically every 10s";
  const std::string fix = "Fix the cause, then resume the partition, or skip the message";
  const auto resume_or_skip =
      "partitions resume" + kOf + "; partitions skip" + kOf + " --offset 41 --because TEXT";
  auto flooded = halt(code::kCircuitBreakerOpen, {{"messages", "50"}}, "HTTP status 401", 41);
  flooded.handler = "ship";
  return {
      {halt(code::kMessageFailed, {{"sqlstate", "22P02"}}, "invalid input", 41), "message",
       "invalid input (SQLSTATE 22P02)", others, fix, resume_or_skip},
      {halt(code::kMessageFailed, {{"statement", "sql[0]"}, {"sqlstate", "22P02"}}, "invalid input",
            41),
       "message", "sql[0]: invalid input (SQLSTATE 22P02)", others, fix, resume_or_skip},
      {halt(code::kMessageFailed, {{"has_detail", "true"}}, "violates a check", 41), "message",
       "violates a check", others,
       "See the whole error, fix the cause, then resume the partition, or skip the message",
       "try" + kOf + " --offset 41; " + resume_or_skip},
      {halt(code::kTransactionEnded, {}, "the handler sent COMMIT", 41), "message",
       "the handler sent COMMIT", others,
       "Check what the handler may have stored and fix the handler. Then resume the partition, or "
       "skip the message",
       resume_or_skip},
      {halt(code::kUnknownOutcome,
            {{"idempotency_key", "a 1"},
             {"remote_key", "f48"},
             {"unknown_since", "2026-11-26T17:01:08Z"}},
            "an earlier call may or may not have succeeded", 41),
       "unknown-outcome",
       "an earlier call may or may not have succeeded (unknown since 2026-11-26T17:01:08Z)", others,
       "Check the call f48 with the remote service, record its outcome, then resume the partition",
       "calls resolve --done -- 'a 1'; calls resolve --not-done -- 'a 1'; partitions resume" + kOf},
      {halt(code::kLeaseStoreChanged, {{"idempotency_key", "a"}}, "a lease in PostgreSQL", 41),
       "unknown-outcome", "a lease in PostgreSQL", others,
       "Set calls.lease_store to \"postgres\" until that attempt is finished. Change the lease "
       "store only while no process runs. Then resume the partition",
       "calls show -- a; partitions resume" + kOf},
      {halt(code::kLeaseUnreadable, {{"redis_key", "pawl:k"}}, "another value", 41),
       "unknown-outcome", "another value", others,
       "Check with `redis-cli TYPE pawl:k` which program uses that key. Remove the key, then "
       "resume "
       "the partition",
       "partitions resume" + kOf},
      {halt(code::kProgramError, {{"statement", "sql[1]"}, {"sqlstate", "42P01"}}, "no table", 41),
       "program", "the SQL of the handler cannot run: sql[1]: no table (SQLSTATE 42P01)", retries,
       "Fix the database or the handler. No other action needed", ""},
      {halt(code::kProgramError, {{"sqlstate", "42501"}}, "permission denied", 41), "program",
       "the SQL of the handler cannot run: permission denied (SQLSTATE 42501)", retries,
       "Fix the database or the handler. No other action needed", "check"},
      {halt(code::kLogEndNotStored, {{"offset", "60"}}, "a trigger"), "program",
       "the end of the log, offset 60, cannot be stored: a trigger",
       "No message is affected. " + retries,
       "Fix triggers, privileges, and constraints of pawl.processed_kafka_offsets. No other action "
       "needed",
       ""},
      {flooded, "circuit-breaker",
       "50 consecutive messages of handler ship failed the same way: HTTP status 401", retries,
       "Fix the cause. No other action needed", ""},
      {halt(code::kProcessCrashed, {}, "3 processes crashed", 41), "crash", "3 processes crashed",
       others, fix, resume_or_skip},
      {halt(code::kFetchCrashed, {{"crashes", "3"}}, "", 41), "crash-loop",
       "3 consecutive processes crashed while fetching offset 41, before a handler received "
       "the "
       "message. Its decompressed batch may need more memory than the process has",
       others,
       "Give the process more memory and resume the partition, or skip the message. If the batch "
       "contains more messages, find its end with `kafka-dump-log.sh` on the broker, then set the "
       "offset",
       "partitions resume" + kOf + "; partitions skip" + kOf +
           " --offset 41 --because \"too large\"; " + kSet + "OFFSET"},
      {halt(code::kLogStartMoved, {{"next_offset", "4"}, {"log_start", "5"}}), "position",
       "the next offset is 4, but Kafka's log starts at 5: Kafka's retention removed 1 offset "
       "that was not processed",
       skipped,
       "Restore the records and resume the partition, or accept the loss and set the offset",
       kSet + "earliest"},
      {halt(code::kLogTruncated, {{"next_offset", "11"}, {"log_end", "10"}}), "position",
       "the next offset is 11, but Kafka's log ends at 10: the log was truncated, or the topic was "
       "recreated with fewer records",
       skipped, kFindLost, kSet + "OFFSET"},
      {halt(code::kRecordReplaced, {{"next_offset", "5"}}, "epoch is fenced"), "position",
       "Kafka's log no longer has the last processed record before offset 5 (unknown leader "
       "epoch): "
       "epoch is fenced. The log lost its end and has other records there now. Records from the "
       "end "
       "that Kafka reports up to offset 5 were not applied",
       skipped, kFindLost, kSet + "OFFSET"},
      {halt(code::kCompletedRecordReplaced, {{"offset", "7"}}), "position",
       "the message at offset 7 was processed, but Kafka has another record at this offset now: "
       "the "
       "log was truncated",
       skipped, kFindLost, kSet + "OFFSET"},
      {halt(code::kLeaderEpochOlder, {{"offset", "7"},
                                      {"leader_epoch", "2"},
                                      {"next_offset", "7"},
                                      {"stored_leader_epoch", "3"}}),
       "position",
       "offset 7 has leader epoch 2, but the message before offset 7 was processed with leader "
       "epoch "
       "3: the log was truncated, or the topic was recreated",
       skipped, kFindLost, kSet + "OFFSET"},
      {halt(code::kTopicRecreated,
            {{"old_topic_id", "a"}, {"topic_id", "b"}, {"next_offset", "5"}}),
       "position",
       "the topic was deleted and created again (its ID was a and is b); the next offset 5 belongs "
       "to the deleted topic. It is not known how many offsets of the deleted topic were not "
       "processed. It is not known whether messages of the new topic were already applied. They "
       "arrive again, as duplicates if their keys are stored",
       "", "To process the new topic from its start, set the offset", kSet + "earliest"},
      {halt(code::kBatchUnreadable, {{"offset", "7"}}, "bad CRC"), "position",
       "offset 7 and the rest of its batch cannot be read: bad CRC. The broker's log is damaged "
       "there, or has a format that this program does not support",
       skipped,
       "Let a replica with an intact batch become leader, or upgrade pawl, then resume the "
       "partition. To continue without these records, find the end of the batch with "
       "`kafka-dump-log.sh` on the broker, then set the offset",
       "partitions resume" + kOf + "; " + kSet + "OFFSET"},
      {halt(code::kOffsetRowMissing, {{"partitions", "12"}}), "position",
       "the stored offset was deleted, although the offsets of 12 partitions were stored when the "
       "topic was first assigned",
       skipped, "Restore the row, or set the offset", kSet + "OFFSET"},
      {halt(code::kOtherDatabase, {{"other_database_id", "x"},
                                   {"committed_partition", "3"},
                                   {"committed_offset", "9"},
                                   {"database_id", "y"}}),
       "position",
       "the group has processed the topic with database x (partition 3 up to next offset 9), but "
       "this database (y) has no offset of it: it is another database, or it lost rows",
       skipped,
       "Fix postgres.url, or restore the database. To continue from the offsets that the group "
       "committed, set them",
       "offsets set --topic orders --all --to committed"},
      {halt(code::kConsumerLost), "position",
       "the database has lost the consumer main/shop: it was restored to a state before the "
       "consumer's first start",
       skipped,
       "Restart this process to start as kafka.start specifies, or restore a later state of the "
       "database",
       ""},
      {halt(code::kStartUndecided), "position",
       "the topic is new to this consumer, and kafka.start = \"halt\"", skipped,
       "Set where to start, for example at the first offset",
       "offsets set --topic orders --all --to earliest"},
      {halt(code::kTopicOfOtherConsumer,
            {{"consumers", "main/a ([0] nothing yet)"}, {"consumer_names", "\"main/a\""}}),
       "position",
       "the topic is new to consumer main/shop, but another consumer of this database processes "
       "it: "
       "main/a ([0] nothing yet). With this kafka.start, both would apply the same messages",
       skipped,
       "If a name is wrong, fix kafka.group or kafka.cluster. If each consumer has effects of "
       "its own, set kafka.known_consumers = [\"main/a\"]. If this consumer takes over, stop the "
       "other one, then set each offset",
       kSet + "OFFSET"},
  };
}

}  // namespace

TEST_CASE("each code of a halt has a kind, a cause, an effect, an action, and commands") {
  const auto options = reader();
  std::set<std::string> codes;
  for (const auto& row : rows()) {
    CAPTURE(row.halt.code);
    codes.insert(row.halt.code);
    CHECK(row.halt.kind == row.kind);
    const auto shown = rendered(row.halt, options, kPartition);
    CHECK(shown.what == row.what);
    CHECK(shown.effect == row.effect);
    CHECK(shown.action == row.action);
    CHECK(commands_of(shown) == row.commands);
    // The location is a field, and each part is a text without its period.
    CHECK(shown.what.find("orders") == std::string::npos);
    for (const auto& part : {shown.what, shown.effect, shown.action})
      CHECK_FALSE(part.ends_with('.'));
  }
  CHECK(codes.size() == 22);
}

TEST_CASE("what is known of a recreated topic is rendered from its parameters") {
  const auto options = reader();
  const auto what = [&](std::map<std::string, std::string> parameters) {
    parameters.insert({{"old_topic_id", "a"}, {"topic_id", "b"}, {"next_offset", "5"}});
    return rendered(halt(code::kTopicRecreated, std::move(parameters)), options, kPartition).what;
  };
  CHECK_THAT(what({{"log_end", "5"}}),
             ContainsSubstring("The deleted topic was processed up to 5, the end that Kafka last"));
  CHECK_THAT(what({{"log_end", "10"}, {"unprocessed", "3"}}),
             ContainsSubstring("At least 3 offsets of the deleted topic, from 5 on, were never"));
  CHECK_THAT(what({{"log_end", "6"}, {"unprocessed", "1"}}),
             ContainsSubstring("At least 1 offset of the deleted topic, from 5 on, was never"));
  CHECK_THAT(what({{"log_end", "10"}, {"uncertain_from", "3"}}),
             ContainsSubstring("whether offsets 3 to 9 of the deleted topic were processed"));
  CHECK_THAT(what({{"applied_from", "5"}}),
             ContainsSubstring("No message of the new topic was applied"));
  CHECK_THAT(what({{"applied_from", "3"}}),
             ContainsSubstring("Offsets 3 to 4 were applied after Kafka last reported"));
}

TEST_CASE("a halt that replaced another one names that one") {
  const auto shown = rendered(halt(code::kLogTruncated, {{"next_offset", "5"},
                                                         {"log_end", "3"},
                                                         {"earlier_halt", "message_failed"},
                                                         {"earlier_cause", "no number"}}),
                              reader(), kPartition);
  CHECK_THAT(shown.what, EndsWith("fewer records. Before that, the partition was halted with "
                                  "message_failed: no number"));
}

TEST_CASE("a halt's text has the reader's program, configuration and pause, not the writer's") {
  auto options = reader();
  const auto failed = halt(code::kMessageFailed, {{"sqlstate", "22P02"}}, "invalid input", 41);
  CHECK(halt_text(failed, options, kPartition) ==
        "invalid input (SQLSTATE 22P02). Other partitions continue. Fix the cause, then resume the "
        "partition, or skip the message:\n"
        "  payments partitions resume --config '/etc/my file.toml' --topic orders --partition 3\n"
        "  payments partitions skip --config '/etc/my file.toml' --topic orders --partition 3 "
        "--offset 41 --because TEXT");

  auto program = halt(code::kProgramError, {}, "no table", 41);
  program.handler = "ship";
  pawl::HandlerOptions ship;
  ship.name = "ship";
  ship.failures = options.failures;
  ship.failures->program_error_retry = std::chrono::milliseconds(200);
  options.handlers.push_back(ship);
  CHECK(halt_text(program, options, kPartition) ==
        "the SQL of the handler cannot run: no table. pawl retries automatically every 200ms. Fix "
        "the database or the handler. No other action needed");
}

TEST_CASE("a message that pawl rejected halts with the fix of its reason") {
  for (const auto* reason : pawl::ledger::dead_reason::kAll) {
    CAPTURE(reason);
    const auto shown =
        rendered(halt(code::kMessageFailed, {{"reason", reason}}, "why", 41), reader(), kPartition);
    CHECK_THAT(shown.action, StartsWith(std::string(fix_of(reason))));
    CHECK_THAT(shown.action, EndsWith("hen resume the partition, or skip the message"));
  }
  CHECK(fix_of("crash") == "Fix the cause");
  CHECK_THAT(std::string(fix_of("conflict")), ContainsSubstring("idempotency.conflict"));
  CHECK_THAT(std::string(fix_of("missing-key")), ContainsSubstring("idempotency.missing_key"));
  CHECK_THAT(std::string(fix_of("unmatched")), ContainsSubstring("failures.unmatched"));
}

TEST_CASE("a code that this program does not know is shown with its cause") {
  Halt newer;
  newer.kind = "message";
  newer.code = "of_a_newer_program";
  newer.cause = "something";
  CHECK(rendered(newer, reader(), kPartition).what == "of_a_newer_program: something");
  CHECK_THROWS(pawl::ledger::make_halt("of_a_newer_program"));
}

TEST_CASE("each code is rendered although its parameters are missing") {
  for (const auto& row : rows()) {
    auto without = row.halt;
    without.parameters.clear();
    CHECK_FALSE(rendered(without, reader(), kPartition).what.empty());
  }
}

TEST_CASE("fields of a halt are its kind, its code, and what it knows of the message") {
  const auto fields = halt_fields(
      halt(code::kMessageFailed,
           {{"attempts", "7"}, {"sqlstate", "22P02"}, {"idempotency_key", "a"}, {"other", "x"}},
           "invalid input", 41));
  CHECK(fields == std::vector<HaltField>{{"halt_kind", "message"},
                                         {"halt_code", "message_failed"},
                                         {"idempotency_key", "a"},
                                         {"sqlstate", "22P02"},
                                         {"attempts", 7}});
}

TEST_CASE("parameters of a halt survive their JSON, whatever bytes they have") {
  auto stored =
      halt(code::kMessageFailed, {{"idempotency_key", "a\"b\n\xc3\xa9"}, {"attempts", "7"}});
  CHECK(pawl::ledger::parse_parameters_json(pawl::ledger::parameters_json(stored)) ==
        stored.parameters);
  CHECK(pawl::ledger::parameters_json(halt(code::kConsumerLost)).empty());
  CHECK(pawl::ledger::parse_parameters_json("").empty());
  // The name decides: a key and an SQLSTATE may consist of digits.
  stored.parameters = {{"attempts", "7"},          {"has_detail", "true"},
                       {"idempotency_key", "17"},  {"leader_epoch", "-1"},
                       {"offset", "unknown"},      {"sqlstate", "22012"},
                       {"of_a_newer_program", "7"}};
  CHECK(pawl::ledger::parameters_json(stored) ==
        R"({"attempts":7,"has_detail":true,"idempotency_key":"17","leader_epoch":-1,)"
        R"("of_a_newer_program":"7","offset":"unknown","sqlstate":"22012"})");
  CHECK(pawl::ledger::parse_parameters_json(pawl::ledger::parameters_json(stored)) ==
        stored.parameters);
  // PostgreSQL's jsonb has neither NUL nor broken UTF-8.
  stored.parameters = {{"idempotency_key", std::string("a\0b\xff", 4)}};
  CHECK(pawl::ledger::parameters_json(stored) == "{\"idempotency_key\":\"a?b\xef\xbf\xbd\"}");
}

TEST_CASE("an attempt halts with what is known of it, and without DETAIL or relative times") {
  pawl::FailureOptions failures;
  failures.circuit_breaker = 50;
  failures.program_error_retry = std::chrono::seconds(10);
  Attempt attempt;
  attempt.offset = 41;
  attempt.subject.key = "a";
  attempt.failure.statement = "sql[0]";
  attempt.failure.text = "violates a check";
  attempt.failure.sqlstate = "23514";
  attempt.failure.detail = "Failing row contains (secret)";
  attempt.failure.reason = pawl::ledger::dead_reason::kError;
  const auto of = [&](Action::What what) { return halt_of(failures, attempt, what, 7); };

  const auto failed = of(Action::What::kHaltAtMessage);
  CHECK_FALSE(failed.retry_after);
  CHECK(failed.halt == halt(code::kMessageFailed,
                            {{"idempotency_key", "a"},
                             {"statement", "sql[0]"},
                             {"sqlstate", "23514"},
                             {"attempts", "7"},
                             {"has_detail", "true"}},
                            "violates a check", 41));

  const auto flooded = of(Action::What::kHaltFlood);
  CHECK(flooded.retry_after == std::chrono::seconds(10));
  CHECK(flooded.halt == halt(code::kCircuitBreakerOpen,
                             {{"statement", "sql[0]"}, {"sqlstate", "23514"}, {"messages", "50"}},
                             "violates a check", 41));
  CHECK(of(Action::What::kHaltProgram).halt.code == code::kProgramError);
  attempt.failure.reason = pawl::ledger::dead_reason::kConflict;
  CHECK(of(Action::What::kHaltAtMessage).halt.parameter("reason") == "conflict");
  attempt.what = Undertaking::kEndOfLog;
  const auto end = of(Action::What::kHaltProgram).halt;
  CHECK(end.code == code::kLogEndNotStored);
  CHECK_FALSE(end.message_offset);
  CHECK(end.parameter("offset") == "41");

  attempt.what = Undertaking::kMessage;
  attempt.failure = {};
  attempt.failure.reason = pawl::ledger::dead_reason::kCrash;
  CHECK(of(Action::What::kHaltAtMessage).halt.code == code::kProcessCrashed);
  attempt.failure = {};
  attempt.failure.kind = pawl::postgres::FailureClass::kTransactionEnded;
  CHECK(of(Action::What::kHaltAtMessage).halt.code == code::kTransactionEnded);
  attempt.failure = {};
  attempt.failure.halt = unknown_outcome_halt("a", "f48", std::chrono::hours(1));
  const auto unknown = of(Action::What::kHaltAtMessage).halt;
  CHECK(unknown.code == code::kUnknownOutcome);
  CHECK(unknown.message_offset == 41);
  CHECK(unknown.parameter("remote_key") == "f48");
  CHECK_THAT(unknown.parameter("unknown_since"), Catch::Matchers::Matches("20..-..-..T..:..:..Z"));
}
