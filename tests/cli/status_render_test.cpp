#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "cli/screen.hpp"
#include "cli/status.hpp"
#include "cli/status_problems.hpp"
#include "engine/owner.hpp"
#include "engine/position_checks.hpp"
#include "json_schema.hpp"
#include "prelude.hpp"

using namespace pawl::cli;

namespace {

constexpr std::int64_t kNow = 1'800'000'000'000;  // 2027-01-15T08:00:00Z

StatusPartition running(int number, std::int64_t lag) {
  StatusPartition partition;
  partition.partition = {"payments", number};
  auto& row = partition.row.emplace();
  row.partition = partition.partition;
  row.stored = ledger::Position::behind(99);
  row.owner = "host:1:ab";
  row.released = false;
  row.state_since = "2027-01-15T05:55:00Z";
  row.updated_at = "2027-01-15T07:59:59Z";
  partition.end = 100 + lag;
  return partition;
}

StatusPartition halted(int number) {
  auto partition = running(number, 5);
  partition.row->state = ledger::PartitionState::kHalted;
  partition.row->halt = {.kind = "message",
                         .code = "message_failed",
                         .message_offset = 100,
                         .cause = "invalid input syntax " + std::to_string(number)};
  partition.concern = Concern::kHalted;
  return partition;
}

Status with(std::vector<StatusPartition> partitions) {
  Status status;
  status.group = "payments";
  status.known = true;
  status.now_ms = kNow;
  for (const auto& partition : partitions) {
    if (partition.row && partition.row->state == ledger::PartitionState::kHalted) {
      status.halts.emplace(partition.partition,
                           engine::rendered(partition.row->halt, {}, partition.partition));
    }
  }
  status.partitions = std::move(partitions);
  return status;
}

/// Kafka's log of payments[NUMBER] starts after its stored offset, which is 100.
void add_pending_halt(Status& status, int number, std::int64_t log_start) {
  const pawl::TopicPartition partition{"payments", number};
  const auto halt = engine::outside_log(ledger::Position::behind(99), {log_start, 200}).value();
  status.pending_halts.emplace(partition, PendingHalt{halt, engine::rendered(halt, {}, partition)});
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("status shows what messages wait for, once for all processes") {
  auto status = with({running(0, 0)});
  CHECK(!needs_somebody(status));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("conditions").empty());
  pawl::Condition condition;
  condition.kind = pawl::Condition::Kind::kRemoteServiceUnreachable;
  condition.subject = "https://api.example";
  condition.since = pawl::Timestamp(std::chrono::milliseconds(kNow));
  condition.messages = 3;
  condition.cause = "refused";
  status.conditions = {{"one", condition}, {"two", condition}};
  CHECK(needs_somebody(status));
  CHECK_THAT(verdict_of(status), ContainsSubstring("1 remote service unreachable"));
  CHECK_THAT(
      status_text(status),
      ContainsSubstring("\nUNREACHABLE\n  https://api.example\n      https://api.example has been "
                        "unreachable since 2027-01-15T08:00:00Z: refused. 6 messages wait;") &&
          ContainsSubstring("      Reported by one, two.\n"));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("conditions").at(1) ==
        nlohmann::json({{"kind", "remote_service_unreachable"},
                        {"subject", "https://api.example"},
                        {"since", "2027-01-15T08:00:00Z"},
                        {"messages", 3},
                        {"cause", "refused"},
                        {"lasting", true},
                        {"blocking_pid", nullptr},
                        {"process", "two"}}));

  condition.kind = pawl::Condition::Kind::kPartitionBlocked;
  condition.subject = "payments[0]";
  condition.lasting = false;
  status.conditions = {{"one", condition}};
  CHECK_FALSE(needs_somebody(status));
  CHECK_THAT(verdict_of(status),
             ContainsSubstring("1 waiting for a lock") && !ContainsSubstring("blocked"));
  CHECK_THAT(status_text(status), ContainsSubstring("payments[0] has waited for a lock since"));
}

TEST_CASE("partitions that wait for one session are one problem, with the command that ends it") {
  const auto waits = [](int partition, int pid, std::int64_t messages) {
    pawl::Condition condition;
    condition.kind = pawl::Condition::Kind::kPartitionBlocked;
    condition.subject = "payments[" + std::to_string(partition) + "]";
    condition.topic = "payments";
    condition.partition = partition;
    condition.since = pawl::Timestamp(std::chrono::milliseconds(kNow));
    condition.messages = messages;
    condition.cause = "session 42 (user app) holds the lock";
    condition.blocking_pid = pid;
    return condition;
  };
  auto status = with({running(0, 3), running(1, 4), running(2, 5), running(3, 0)});
  status.database = "user=pay password=*** dbname=p host=db";
  status.conditions = {{"one", waits(0, 42, 3)}, {"two", waits(1, 42, 4)}, {"two", waits(2, 0, 5)}};
  const auto text = status_text(status);
  CHECK_THAT(text, ContainsSubstring("\nBLOCKED\n  payments[2]     since 08:00:00\n") &&
                       ContainsSubstring(
                           "\n  payments[0-1]   since 08:00:00\n      payments[0] has waited for a "
                           "lock since 2027-01-15T08:00:00Z: session 42 (user app) holds the "
                           "lock. 7 messages wait;") &&
                       ContainsSubstring("      Reported by one, two.\n") &&
                       ContainsSubstring("If the session's role is a superuser, -U must name a "
                                         "superuser.") &&
                       ContainsSubstring(
                           "> psql -d 'dbname=p host=db' -U postgres -c 'SELECT "
                           "pg_terminate_backend(42)'\n"
                           "  See docs/runbook/incidents.md#a-partition-that-waits-for-a-lock\n"));
  CHECK(occurrences(text, "pg_terminate_backend") == 1);
}

TEST_CASE("a partition that waits for a lock has the state blocked, unless it is worse") {
  struct Row {
    const char* name;
    bool blocked;
    std::function<void(StatusPartition&)> change;
    const char* state;
    std::size_t count;
  };
  const auto row = GENERATE(values<Row>({
      {"not blocked", false, [](auto&) {}, "running", 0},
      {"blocked", true, [](auto&) {}, "blocked", 1},
      {"also stalled", true, [](auto& one) { one.row->since_update_ms = 300000; }, "blocked", 1},
      {"unowned", true, [](auto& one) { one.row->released = true; }, "unowned", 0},
  }));
  CAPTURE(row.name);
  auto partition = running(0, 5);
  row.change(partition);
  partition.blocked = row.blocked;
  partition.end_before = partition.end;
  partition.concern = concern_of(&*partition.row, partition.end_before, partition.blocked);
  const auto status = with({partition});
  const auto counts = totals_of(status).counts.value();
  CHECK(counts.blocked == row.count);
  CHECK(counts.stalled == 0);
  CHECK_THAT(status_text(status, {.partitions = true}),
             ContainsSubstring(fmt::format("  {}  ", row.state)));
}

TEST_CASE("each heading of problems has a page that exists and describes it") {
  const auto read = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    REQUIRE(file);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  // The runbook's table has all headings.
  const auto table = read(PAWL_SOURCE_DIR "/docs/runbook/progress.md");
  const std::regex heading("`([A-Z ]+)`");
  const auto rows = table.substr(table.find("## Headings of `pawl status`"));
  std::size_t headings = 0;
  for (std::sregex_iterator found(rows.begin(), rows.end(), heading), end; found != end; ++found) {
    const auto name = (*found)[1].str();
    CAPTURE(name);
    const std::string page(page_of(name));
    REQUIRE(!page.empty());
    ++headings;
    const auto anchor = page.find('#');
    const auto text = read(PAWL_SOURCE_DIR "/" + page.substr(0, anchor));
    if (anchor == std::string::npos)
      continue;
    bool known = false;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("## "))
        continue;
      std::string slug;
      for (const unsigned char c : line.substr(3)) {
        if (std::isalnum(c) != 0)
          slug += static_cast<char>(std::tolower(c));
        else if (c == ' ' || c == '-')
          slug += '-';
      }
      known = known || slug == page.substr(anchor + 1);
    }
    CHECK(known);
  }
  CHECK(headings == 16);
  CHECK(page_of("NO HEADING").empty());
}

TEST_CASE("status does not advise to start a process while processes wait for Kafka") {
  struct Row {
    const char* name;
    std::vector<std::string> running;
    std::vector<std::string> waiting;
    bool lasting;
    const char* verdict;
    const char* advice;
    bool starts_process;
  };
  const auto row = GENERATE(values<Row>({
      {"no process", {}, {}, true, "1 unowned, lag", "No message is processed there", true},
      {"one waits",
       {"a"},
       {"a"},
       true,
       "1 unowned, 1 process waits for Kafka",
       "Running: a. The process waits for Kafka and takes the partitions when Kafka responds.",
       false},
      {"both wait",
       {"a", "b"},
       {"a", "b"},
       true,
       "1 unowned, 2 processes wait for Kafka",
       "Running: a, b. The processes wait for Kafka and take the partitions when Kafka responds.",
       false},
      {"since a moment ago",
       {"a", "b"},
       {"a", "b"},
       false,
       "1 unowned, 2 processes wait for Kafka",
       "Running: a, b. The processes wait for Kafka and take the partitions when Kafka responds.",
       false},
      {"one of two waits",
       {"a", "b"},
       {"b"},
       true,
       "1 unowned, 1 process waits for Kafka",
       "Running: a. No action needed: Kafka assigns the partitions.",
       false},
  }));
  CAPTURE(row.name);
  auto partition = running(0, 5);
  partition.row->released = true;
  auto status = with({partition});
  status.processes = row.running;
  pawl::Condition condition;
  condition.kind = pawl::Condition::Kind::kKafkaUnreachable;
  condition.subject = "broker:9092";
  condition.since = pawl::Timestamp(std::chrono::milliseconds(kNow));
  condition.cause = "timed out";
  condition.lasting = row.lasting;
  for (const auto& process : row.waiting)
    status.conditions.push_back({process, condition});
  CHECK(needs_somebody(status) == (row.lasting && !row.waiting.empty()));
  CHECK_THAT(verdict_of(status),
             ContainsSubstring(row.verdict) && !ContainsSubstring("waiting for a lock"));
  const auto text = status_text(status);
  CHECK_THAT(text, ContainsSubstring(row.advice));
  CHECK((text.find("pawl run") != std::string::npos) == row.starts_process);
  CHECK((text.find("WAITING FOR KAFKA") != std::string::npos) == !row.waiting.empty());
  if (!row.waiting.empty()) {
    CHECK_THAT(text, ContainsSubstring("since 2027-01-15T08:00:00Z: timed out.") &&
                         ContainsSubstring("Check the brokers broker:9092, and the network"));
  }
}

TEST_CASE("status shows which outbox messages wait, for how long, and if no process publishes") {
  auto status = with({running(0, 0)});
  const auto has = [&](const std::string& text) {
    return status_text(status).find(text) != std::string::npos;
  };
  // Neither an unknown outbox nor an empty one has messages that wait.
  CHECK(!has("OUTBOX"));
  CHECK(status_json(status, false).find(R"("outbox":null)") != std::string::npos);
  auto& outbox = status.outbox.emplace();
  outbox.now = pawl::ledger::Instant(std::chrono::milliseconds(kNow));
  outbox.lanes = {{0, "host:1:ab", false, 0, std::nullopt, 7, std::nullopt},
                  {1, "", false, 3, outbox.now - std::chrono::milliseconds(2500), 0, std::nullopt}};
  CHECK(has("\nOUTBOX          3 messages wait, the oldest for 2.5 s.\n"));
  CHECK(!has("failed"));
  outbox.alert_age = std::chrono::milliseconds(2500);
  CHECK(!has("late"));
  CHECK(status_json(status, false).find(R"("late":false)") != std::string::npos);
  outbox.alert_age = std::chrono::milliseconds(2000);
  CHECK(has("the oldest for 2.5 s, late (outbox.alert_age = 2s)"));
  CHECK(has("   outbox late   "));
  CHECK(status_json(status, false).find(R"("late":true)") != std::string::npos);
  outbox.lanes[1].more = true;
  CHECK(has("OUTBOX          more than 3 messages wait"));
  CHECK(status_json(status, false).find(R"("more_waiting":true)") != std::string::npos);
  outbox.lanes[1].more = false;
  outbox.lanes[0].owner_late = true;
  CHECK(has("no process publishes"));
  outbox.relays = {{"host:2:cd", true, ""}};
  CHECK(!has("no process publishes"));
  CHECK(has("no process holds a shard, although host:2:cd can publish. Read its log."));
  outbox.relays = {{"host:2:cd", true, ""}, {"host:3:ef", std::nullopt, ""}};
  CHECK(has("although host:2:cd, host:3:ef can publish. Read their log."));
  outbox.relays[1].problem = "not authorized";
  CHECK(has("; host:3:ef cannot publish and retries: not authorized"));
  CHECK(!has("no process holds a shard"));
  outbox.relays[1].left_out = "half[1] (it has no leader) of shard 2";
  CHECK(has(
      "; host:3:ef cannot write to half[1] (it has no leader) of shard 2, retries, and publishes"));
  CHECK(
      status_json(status, false)
          .find(
              R"("relays":[{"owner":"host:2:cd","transactions":true,"problem":null,"unwritable":null},)") !=
      std::string::npos);
  outbox.lanes[1].waiting = 0;
  CHECK(!has("OUTBOX"));
  outbox.set_apart = 2;
  status.invocation.config_file = "F";
  CHECK(
      has("OUTBOX          no message waits; 2 failed.\n"
          "                > pawl outbox list --config F\n"));
  CHECK(has("   2 outbox messages failed   "));
  CHECK(status_json(status, false).find(R"("failed":2)") != std::string::npos);
}

TEST_CASE("status starts with the verdict, then problems, then dead letters, then the topics") {
  auto status = with({halted(0), halted(1), running(2, 12335)});
  status.letters = {
      {"payments", "pay", "error", "dead", 5, "2027-01-15T07:58:00Z", 2, "2027-01-15T08:58:00Z",
       "23503",
       "insert or update on table \"ledger\" violates foreign key constraint "
       "\"ledger_account_fkey\"",
       "sql[0]"},
      {"payments", "pay", "conflict", "dead", 1, "2027-01-15T07:59:00Z", 1, "", "",
       "another payload"},
      {"payments", "pay", "parked", "parked", 1, "2027-01-15T07:59:00Z", 0, ""},
      {"notes", "", "undecodable", "dead", 1, "2027-01-15T07:30:00Z", 0, "", "", "not JSON\n}"}};
  status.server.parked_keys = 1;
  status.server.connections = 31;
  status.server.max_connections = 200;
  CHECK(status_text(status) ==
        "payments   2 of 3 partitions halted   2027-01-15 08:00:00 UTC\n"
        "           lag 12,345   4 dead letters   3 scheduled retries   1 parked message\n"
        "\n"
        "HALTED\n"
        "  payments[0]@100   since 05:55:00   lag 5\n"
        "      invalid input syntax 0\n"
        "      > pawl partitions resume --config FILE -t payments -p 0                            "
        "# after the fix\n"
        "        pawl partitions skip --config FILE -t payments -p 0 --offset 100 --because TEXT  "
        "# if it cannot be fixed\n"
        "  payments[1]@100   since 05:55:00   lag 5\n"
        "      invalid input syntax 1\n"
        "      > pawl partitions resume --config FILE -t payments -p 1                            "
        "# after the fix\n"
        "        pawl partitions skip --config FILE -t payments -p 1 --offset 100 --because TEXT  "
        "# if it cannot be fixed\n"
        "  See docs/runbook/halts.md\n"
        "\n"
        "DEAD LETTERS   DEAD  SCHEDULED  PARKED  OLDEST  ERROR\n"
        "  pay             3          3       1   2 min  23503 ledger_account_fkey\n"
        "  topic notes     1          -       -  30 min  undecodable: not JSON\n"
        "  total           4          3       1  30 min  -\n"
        "  Next scheduled retry at 2027-01-15 08:58:00 UTC.\n"
        "  Later messages of 1 record key wait for a dead letter or a scheduled retry.\n"
        "  > pawl dlq list --config FILE\n"
        "    pawl dlq replay --config FILE --all  # after the fix\n"
        "\n"
        "POSTGRESQL      ok, 31 of 200 connections (0 of this consumer, 0 of pawl in total), "
        "vacuum not blocked\n"
        "\n"
        "TOPIC     PARTITIONS  RUNNING  HALTED  PAUSED  UNOWNED     LAG  RATE  ETA  OWNERS\n"
        "payments           3        1       2       0        0  12,345     ?    ?  host:1\n"
        "Each partition with OFFSET, END, and OWNER: pawl status --config FILE --partitions\n");
  CHECK(verdict_of(status) ==
        "2 of 3 partitions halted, lag 12,345, 4 dead letters, 3 scheduled retries, 1 parked "
        "message");
}

TEST_CASE("the JSON of a status follows its schema, whatever parameters a halt has") {
  const auto& schema = json_schemas().at("status");
  auto all = halted(0);
  const auto& documented = schema.at("$defs").at("halt_parameters").at("properties");
  for (const auto& [name, member] : documented.items()) {
    const bool time = member.contains("format");
    all.row->halt.parameters[name] = time                             ? "2027-01-15T08:00:00Z"
                                     : member.at("type") == "boolean" ? "true"
                                                                      : "7";
  }
  StatusPartition unstored;
  unstored.partition = {"payments", 2};
  auto status = with({all, running(1, 5), unstored});
  status.letters = {{"payments", "pay", "error", "scheduled", 5, "2027-01-15T07:58:00Z", 5,
                     "2027-01-15T08:58:00Z"}};
  status.leases.emplace();
  status.oldest = {{"payments", 0}, std::chrono::minutes(2)};
  status.outbox.emplace().lanes = {{0, "host:1:ab", false, 0, std::nullopt, 7, std::nullopt}};
  add_pending_halt(status, 1, 120);
  const auto json = nlohmann::json::parse(status_json(status, false));
  CHECK(violation(json, schema).empty());
  CHECK(json.at("partitions").at(0).at("halt_parameters").size() == documented.size());
  // Only PostgreSQL has the others.
  status.postgres_problem = "refused";
  status.outbox.reset();
  CHECK(violation(nlohmann::json::parse(status_json(status, false)), schema).empty());
}

TEST_CASE("a halt that the next assignment would cause is a problem, one per topic and code") {
  auto status = with({running(0, 0), running(1, 0)});
  CHECK(nlohmann::json::parse(status_json(status, false))
            .at("partitions")
            .at(0)
            .at("pending_halt")
            .is_null());
  add_pending_halt(status, 0, 103);
  CHECK(needs_somebody(status));
  CHECK_THAT(verdict_of(status), StartsWith("none of 2 partitions halted, 1 will halt, "));
  CHECK_THAT(status_text(status),
             ContainsSubstring("\nWILL HALT\n  payments[0]\n") &&
                 ContainsSubstring("      The partition will halt, at the latest when a process "
                                   "acquires it.\n") &&
                 ContainsSubstring("offsets set --config FILE -t payments -p 0 --to earliest\n") &&
                 !ContainsSubstring("each of the others"));
  const auto json = nlohmann::json::parse(status_json(status, false)).at("partitions");
  CHECK(json.at(0).at("pending_halt").at("code") == "log_start_moved");
  CHECK(json.at(0).at("pending_halt").at("parameters").at("log_start") == 103);
  CHECK(json.at(1).at("pending_halt").is_null());

  add_pending_halt(status, 1, 150);
  CHECK_THAT(verdict_of(status), ContainsSubstring(", 2 will halt, "));
  CHECK_THAT(status_text(status),
             ContainsSubstring("\nWILL HALT\n  payments[0-1]\n      payments[0]: ") &&
                 ContainsSubstring("The commands are for payments[0]; each of the others needs the "
                                   "same.\n") &&
                 ContainsSubstring("See docs/runbook/halts.md#codes-of-a-position\n"));
}

TEST_CASE("partitions that halt for one cause are one problem") {
  auto one = halted(3);
  auto two = halted(1);
  auto other = halted(2);
  for (auto* partition : {&one, &two}) {
    partition->row->halt = {.kind = "circuit-breaker",
                            .code = "circuit_breaker_open",
                            .handler = "ship",
                            .cause = "HTTP status 401",
                            .parameters = {{"messages", "50"}}};
  }
  one.row->state_since = "2027-01-14T05:00:00Z";
  two.end.reset();
  const auto problems = problems_of(with({one, two, other, running(0, 0)}));
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].heading == "HALTED");
  CHECK(problems[0].title == std::vector<std::string>{"payments[1,3]", "ship",
                                                      "since 2027-01-14 05:00:00", "lag ?",
                                                      "circuit breaker"});
  CHECK(problems[0].texts ==
        std::vector<std::string>{
            "50 consecutive messages of handler ship failed the same way: HTTP status 401",
            "pawl retries automatically every 10s. Fix the cause. No other action needed."});
  CHECK(problems[0].steps.empty());
  CHECK(problems[1].title ==
        std::vector<std::string>{"payments[2]@100", "since 05:55:00", "lag 5"});
}

TEST_CASE("status shows the action of a halt, unless the comments of its commands suffice") {
  auto partition = halted(0);
  auto& halt = partition.row->halt;
  CHECK(problems_of(with({partition})).front().texts ==
        std::vector<std::string>{"invalid input syntax 0"});
  halt.parameters = {{"reason", "conflict"}};
  const auto conflict = problems_of(with({partition})).front();
  REQUIRE(conflict.texts.size() == 2);
  CHECK_THAT(conflict.texts[1],
             StartsWith("Use a key that is unique per event.") && EndsWith("or skip the message."));
  CHECK(conflict.steps.size() == 2);
  halt = {.kind = "unknown-outcome",
          .code = "unknown_outcome",
          .message_offset = 100,
          .cause = "an earlier call may or may not have succeeded",
          .parameters = {{"idempotency_key", "order-1"},
                         {"remote_key", "f48"},
                         {"unknown_since", "2027-01-15T07:00:00Z"}}};
  CHECK(problems_of(with({partition})).front().texts ==
        std::vector<std::string>{
            "an earlier call may or may not have succeeded (unknown since 2027-01-15T07:00:00Z)",
            "Check the call f48 with the remote service, record its outcome, then resume the "
            "partition."});
}

TEST_CASE("the cause of a halt does not repeat the handler of its title") {
  auto partition = halted(0);
  partition.row->halt.handler = "pay";
  partition.row->halt.cause = "invalid input syntax";
  partition.row->halt.parameters["statement"] = "sql[0]";
  const auto problems = problems_of(with({partition}));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].title ==
        std::vector<std::string>{"payments[0]@100", "pay", "since 05:55:00", "lag 5"});
  CHECK(problems[0].texts == std::vector<std::string>{"sql[0]: invalid input syntax"});
}

TEST_CASE("each paused partition needs a resume of its own") {
  auto one = running(0, 0);
  one.row->state = ledger::PartitionState::kPaused;
  one.row->operator_reason = "maintenance";
  auto two = one;
  two.partition = two.row->partition = {"payments", 1};
  auto status = with({one, two});
  status.invocation.config_file = "F";
  const auto problems = problems_of(status);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].heading == "PAUSED");
  CHECK(problems[0].title.front() == "payments[0-1]");
  CHECK(problems[0].texts ==
        std::vector<std::string>{
            "maintenance", "The commands are for payments[0]; each of the others needs the same."});
  REQUIRE(problems[0].steps.size() == 1);
  CHECK(problems[0].steps[0].text == "pawl partitions resume --config F -t payments -p 0");
}

TEST_CASE("status in a terminal has colors, symbols, and lines that are not too long") {
  auto invoice = halted(0);
  invoice.row->halt.cause =
      "insert or update on table \"invoices\" violates foreign key constraint "
      "\"invoices_order_id_fkey\"";
  auto status = with({invoice, running(1, 0)});
  status.invocation.program = "p";
  StatusView view;
  view.terminal = {60, 0, false, true};
  const auto text = status_text(status, view);
  CHECK_THAT(text, StartsWith("payments   ✖ 1 of 2 partitions halted\n"
                              "           2027-01-15 08:00:00 UTC\n"
                              "           lag 5   no dead letters\n") &&
                       ContainsSubstring("\n      insert or update on table \"invoices\" violates "
                                         "foreign\n"
                                         "      key constraint \"invoices_order_id_fkey\"\n"));
  view.terminal = {80, 0, true, true};
  const auto red = status_text(status, view);
  CHECK_THAT(red, StartsWith("\033[1mpayments\033[0m   \033[31m✖ \033[0m\033[31m1 of 2 partitions "
                             "halted\033[0m" +
                             std::string(20, ' ') + "2027-01-15 08:00:00 UTC\n") &&
                      ContainsSubstring("\n\033[1mHALTED\033[0m\n"));
  const auto first = red.substr(0, red.find('\n'));
  CHECK(width_of(first) == 80);
}

TEST_CASE("when nothing is wrong the verdict of status says so") {
  CHECK(verdict_of(with({running(0, 0), running(1, 0)})) ==
        "none of 2 partitions halted, lag 0, no dead letters");
  CHECK(verdict_of(with({running(0, 0)})) == "1 partition, not halted, lag 0, no dead letters");
  CHECK_THAT(verdict_of(with({halted(0)})), StartsWith("1 of 1 partition halted, "));
}

TEST_CASE("the verdict has the age of the oldest unprocessed message, if it is a second or more") {
  auto status = with({running(0, 5), running(1, 0)});
  status.oldest = {{"payments", 0}, std::chrono::milliseconds(999)};
  CHECK(verdict_of(status) == "none of 2 partitions halted, lag 5, no dead letters");
  status.oldest->age = std::chrono::milliseconds(121'500);
  CHECK(verdict_of(status) ==
        "none of 2 partitions halted, lag 5, oldest unprocessed 2 min (payments[0]), no dead "
        "letters");
  CHECK(nlohmann::json::parse(status_json(status, false)).at("oldest_unprocessed") ==
        nlohmann::json({{"topic", "payments"}, {"partition", 0}, {"age_seconds", 121}}));
}

TEST_CASE("a session that blocks vacuum is named once it is old, or many transactions are newer") {
  auto status = with({running(0, 0)});
  const auto line = [&] {
    const auto text = status_text(status);
    const auto begin = text.find("vacuum ");
    return text.substr(begin, text.find("\nTOPIC") - begin);
  };
  CHECK(line() == "vacuum not blocked\n");
  ledger::HorizonHolder holder{"session", "17", "app", "report", "active", 0, 59};
  status.server.holders = {holder};
  CHECK(line() == "vacuum not blocked\n");
  holder.name = "18";
  holder.since = 60;
  status.server.holders.push_back(holder);
  CHECK(
      line() ==
      "vacuum blocked by session 18 \"report\" of app, active, open for 60 s, 0 transactions have "
      "started since\n"
      "                Every message gets slower until that transaction ends.\n");
  holder.since.reset();
  status.server.holders = {holder};
  CHECK(line() == "vacuum not blocked\n");
  // Its age is not visible: such as an ANALYZE by autovacuum, which ends soon.
  status.server.holders[0].transactions = 99'999;
  CHECK(line() == "vacuum not blocked\n");
  status.server.holders[0].transactions = 100'000;
  CHECK(line() ==
        "vacuum blocked by session 18 \"report\" of app, active, 100,000 transactions have "
        "started since\n");
  status.server.sees_all = false;
  status.server.role = "\"pay app\"";
  CHECK_THAT(line(),
             ContainsSubstring("\n                GRANT pg_read_all_stats TO \"pay app\";\n"));
}

TEST_CASE("the verdict distinguishes a PostgreSQL that rejects from one that is unreachable") {
  auto status = with({});
  status.postgres_problem = "password authentication failed";
  CHECK(verdict_of(status) == "PostgreSQL cannot be used by this command");
  CHECK_THAT(status_text(status),
             ContainsSubstring("password authentication failed\n      This is the result of this "
                               "command's own connection."));
  status.postgres_answers = false;
  CHECK(verdict_of(status) == "PostgreSQL is unreachable for this command");
}

TEST_CASE("the address of a PostgreSQL that cannot be used is printed once") {
  auto status = with({});
  status.database = "user=app host=db";
  status.postgres_problem = "cannot connect to user=app host=db: refused; check postgres.url";
  CHECK_THAT(status_text(status),
             ContainsSubstring("\nPOSTGRESQL\n  user=app host=db\n      refused; check "
                               "postgres.url\n"));
}

TEST_CASE("a thousand partitions are one screen, and --partitions shows each") {
  std::vector<StatusPartition> partitions;
  for (int p = 0; p < 1000; ++p)
    partitions.push_back(p == 777 ? halted(p) : running(p, p));
  const auto status = with(partitions);

  const auto screen = status_text(status);
  CHECK(lines(screen) < 17);
  CHECK_THAT(screen, ContainsSubstring("payments[777]@100") &&
                         ContainsSubstring("\npayments       1,000      999       1 "));

  const auto everything = status_text(status, {.partitions = true});
  CHECK(occurrences(everything, "host:1:ab") == 1000);
  CHECK_THAT(everything,
             ContainsSubstring("TOPIC     PARTITION  STATE    OFFSET   END") &&
                 ContainsSubstring("\npayments          3  running     100   103    3 "));
}

TEST_CASE("a thousand causes are one screen that tells how many are omitted") {
  std::vector<StatusPartition> partitions;
  for (int p = 0; p < 1000; ++p)
    partitions.push_back(halted(p));
  const auto screen = status_text(with(partitions));
  CHECK(lines(screen) < 40);
  CHECK(occurrences(screen, "invalid input syntax") == 5);
  CHECK(occurrences(screen, "partitions resume") == 5);
  CHECK_THAT(screen, ContainsSubstring("1,000 of 1,000 partitions halted") &&
                         ContainsSubstring("\n  ... 995 more: pawl status --config FILE --all\n"));
  CHECK(occurrences(status_text(with(partitions), {.all = true}), "invalid input syntax") == 1000);
}

TEST_CASE("of many topics status shows the most urgent, and --all shows each") {
  std::vector<StatusPartition> partitions;
  for (int topic = 0; topic < 12; ++topic) {
    auto partition = running(0, topic);
    partition.partition.topic = partition.row->partition.topic = fmt::format("topic-{:02}", topic);
    partitions.push_back(partition);
  }
  const auto screen = status_text(with(partitions));
  CHECK_THAT(screen, ContainsSubstring("\ntopic-11 ") && !ContainsSubstring("\ntopic-01 ") &&
                         ContainsSubstring("... 2 more topics: pawl status --config FILE --all\n"));
  CHECK(screen.find("topic-11 ") < screen.find("topic-02 "));
  CHECK(occurrences(status_text(with(partitions), {.all = true}), "\ntopic-") == 12);
}

TEST_CASE("a partition without an owner is unowned, and its last owner is named") {
  auto released = running(0, 1);
  released.row->released = true;
  auto gone = running(1, 1);
  gone.row->session_gone = true;
  const auto status = with({released, gone, running(2, 1)});
  CHECK_THAT(verdict_of(status), ContainsSubstring("2 unowned"));
  CHECK_THAT(status_text(status, {.partitions = true}),
             ContainsSubstring("\nUNOWNED\n  2 partitions   payments[0-1]\n      No message is "
                               "processed there until a process takes the partitions.\n"
                               "      Last owner: host:1:ab.\n") &&
                 ContainsSubstring("payments          1  unowned     100  101    1     ?    ?  2 h "
                                   "5 min  -\n"));
  CHECK_THAT(status_text(status), ContainsSubstring("\npayments           3        1       0       "
                                                    "0        2    3 "));
}

TEST_CASE("status advises to start a process only if none is known to run") {
  auto gone = running(0, 1);
  gone.row->session_gone = true;
  auto status = with({gone, running(1, 1)});
  status.invocation = {"payments", "F", {}};
  const std::string run = "payments run --config F";
  CHECK_THAT(status_text(status), ContainsSubstring("takes the partition.\n") &&
                                      ContainsSubstring("      > " + run + "\n"));
  // It was killed, or reconnects.
  status.processes = {"host:1:ab"};
  CHECK_THAT(status_text(status),
             ContainsSubstring("host:1:ab reported within the last 20 s, and has no session now") &&
                 ContainsSubstring("> " + run + "  # if the process does not run any more\n"));
  status.processes = {"host:1:ab", "host:2:cd"};
  pawl::KafkaOptions kafka;
  kafka.session_timeout = std::chrono::seconds(31);
  status.place_kept = pawl::engine::place_kept_text(kafka);
  CHECK_THAT(
      status_text(status),
      ContainsSubstring("Running: host:2:cd. No action needed: Kafka assigns the partitions.") &&
          ContainsSubstring("for kafka.session_timeout (31 s), and for longer if another") &&
          !ContainsSubstring(run));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("processes") ==
        nlohmann::json(status.processes));
}

TEST_CASE(
    "partitions without an offset are in the table, and a topic without any offset is named") {
  const auto unmet = [](const std::string& topic, int number) {
    StatusPartition partition;
    partition.partition = {topic, number};
    partition.end = 5;
    partition.concern = Concern::kUnowned;
    return partition;
  };
  const auto added = with({running(0, 0), unmet("payments", 1)});
  CHECK(unstored_topics(added).empty());
  CHECK_THAT(verdict_of(added), ContainsSubstring("none of 2 partitions halted, 1 unowned"));

  const auto refused = with({unmet("orders", 0), unmet("orders", 1), running(0, 0)});
  CHECK(unstored_topics(refused) == std::vector<std::string>{"orders"});
  CHECK_THAT(verdict_of(refused), ContainsSubstring("2 unowned, lag ?"));
  CHECK_THAT(status_text(refused),
             ContainsSubstring("\nNOT STARTED\n  orders\n      No offset is stored for orders. "
                               "No process") &&
                 !ContainsSubstring("stored for payments"));
  CHECK(verdict_of(with({unmet("orders", 0)})) == "no offset is stored for its topics yet");
}

TEST_CASE("status names the message that is tried again, and how often it has failed") {
  auto partition = running(0, 3);
  partition.row->attempts = 7;
  partition.row->attempts_offset = 100;
  const auto status = with({partition, running(1, 0)});
  CHECK(verdict_of(status) == "none of 2 partitions halted, 1 retrying, lag 3, no dead letters");
  CHECK_THAT(status_text(status),
             ContainsSubstring("\nRETRYING\n  payments[0]@100   7 failed attempts   lag 3\n"
                               "      Later messages of the partition wait.\n"
                               "      The log of host:1:ab contains the cause and the attempts "
                               "that are left.\n"
                               "      The message can be skipped now, before its attempts end.\n"
                               "      > pawl partitions peek --config FILE -t payments -p 0\n"
                               "        pawl try --config FILE -t payments -p 0 --offset 100       "
                               "                      # shows what the next attempt would do\n"
                               "        pawl partitions skip --config FILE -t payments -p 0 "
                               "--offset 100 --because TEXT  # if the cause cannot be fixed\n"));
  const auto json = nlohmann::json::parse(status_json(status, false)).at("partitions")[0];
  CHECK(json.at("message_offset") == 100);
  CHECK(json.at("failed_attempts") == 7);

  // Of messages that run side by side, the one that has failed the most.
  auto beside = running(2, 3);
  beside.row->ahead = {4, 131, 3, 2, "2027-01-15T07:59:57Z", 111};
  const auto text = status_text(with({beside}));
  CHECK_THAT(text, ContainsSubstring("  payments[2]@111   2 failed attempts   lag 3\n"
                                     "      Messages that need not wait for this one continue. 2 "
                                     "other messages are retried as well.\n"
                                     "      The log of host:1:ab contains the cause and the "
                                     "attempts that are left.\n"
                                     "      > pawl partitions peek --config FILE -t payments -p 2 "
                                     "--offset 111\n"
                                     "        pawl try --config FILE -t payments -p 2 --offset 111 "
                                     "             # shows what the next attempt would do\n") &&
                       !ContainsSubstring("partitions skip"));
  // Messages before it are no longer processed, so that it is the next one.
  beside.row->stored = ledger::Position::behind(110);
  CHECK_THAT(status_text(with({beside})),
             ContainsSubstring("partitions skip --config FILE -t payments -p 2 --offset 111 "
                               "--because TEXT"));
  beside.row->stored = ledger::Position::behind(99);
  const auto beside_json =
      nlohmann::json::parse(status_json(with({beside}), false)).at("partitions")[0];
  CHECK(beside_json.at("message_offset") == 111);
  CHECK(beside_json.at("failed_attempts") == 2);
  // Once it is halted, none is tried again, and the message that halts it is named.
  beside.row->state = ledger::PartitionState::kHalted;
  beside.row->ahead.finished = 0;
  beside.row->halt.message_offset = 100;
  CHECK_THAT(status_text(with({beside})),
             ContainsSubstring("\nHALTED\n  payments[2]@100   since") &&
                 !ContainsSubstring("RETRYING") && !ContainsSubstring("OUT OF ORDER"));
  CHECK(nlohmann::json::parse(status_json(with({beside}), false))
            .at("partitions")[0]
            .at("message_offset") == 100);

  // Nobody tries it where nobody owns the partition.
  partition.row->released = true;
  CHECK_THAT(status_text(with({partition})), !ContainsSubstring("RETRYING"));
}

TEST_CASE("status says that a partition is on probation, and what that is") {
  auto partition = running(0, 3);
  partition.row->suspect = ledger::SuspectView{100, 2, true};
  const auto status = with({partition, running(1, 0)});
  CHECK(verdict_of(status) ==
        "none of 2 partitions halted, 1 on probation, lag 3, no dead letters");
  const auto text = status_text(status);
  CHECK_THAT(text, ContainsSubstring("\nON PROBATION\n  payments[0]@100   lag 3\n") &&
                       ContainsSubstring("The message is processed alone now; 2 processes have "
                                         "exited since") &&
                       ContainsSubstring("the other partitions of its process host:1:ab wait (of "
                                         "payments). Then they continue for at least as long.\n") &&
                       ContainsSubstring("Check the exit codes"));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("totals").at("on_probation") == 1);
}

TEST_CASE("status says when no other partition waits for one on probation") {
  auto partition = running(0, 3);
  partition.row->suspect = ledger::SuspectView{100, 0, true};
  auto another = running(1, 0);
  another.row->owner = "host:2:cd";
  CHECK_THAT(status_text(with({partition, another})),
             ContainsSubstring("Its process has no other partition that waits for it.\n"
                               "      No action needed.\n"));
}

TEST_CASE("the commands in status can be pasted") {
  auto partition = running(0, 3);
  partition.row->attempts = 7;
  auto unowned = running(1, 0);
  unowned.row->released = true;
  unowned.concern = Concern::kUnowned;
  StatusPartition unstored;
  unstored.partition = {"orders", 0};
  unstored.concern = Concern::kUnowned;
  auto status = with({partition, unowned, unstored});
  status.invocation = {"payments", "/etc/pawl/my file.toml", {}};
  status.letters = {{"payments", "pay", "error", "dead", 5, "2027-01-15T07:58:00Z", 0, ""}};
  status.leases = ledger::LeaseCounts{};
  status.leases->unknown = 1;
  status.leases->losses = 1;
  const auto text = status_text(status);
  const std::string config = " --config '/etc/pawl/my file.toml'";
  for (const auto& command : {"> payments partitions peek" + config + " -t payments -p 0\n",
                              "> payments run" + config + "\n", "> payments check" + config + "\n",
                              "> payments dlq list" + config + "\n",
                              "  payments dlq replay" + config + " --all  # after the fix\n",
                              "> payments calls list" + config + " --unknown\n",
                              "  payments calls list" + config + " --lost\n"})
    CHECK_THAT(text, ContainsSubstring(command));
  CHECK_THAT(text, ContainsSubstring("\nCALLS           1 with an unknown outcome, 1 lost their "
                                     "lease\n"));
}

TEST_CASE("a partition that no process has started is not one that lost its owner") {
  StatusPartition refused;
  refused.partition = {"payments", 3};
  refused.concern = Concern::kUnowned;
  auto unowned = running(1, 0);
  unowned.row->released = true;
  unowned.concern = Concern::kUnowned;
  const auto text = status_text(with({running(0, 0), unowned, refused}));
  CHECK_THAT(text, ContainsSubstring("\nUNOWNED\n  1 partition   payments[1]\n") &&
                       ContainsSubstring("\nNOT STARTED\n  payments[3]\n      No offset is stored "
                                         "for payments[3]. No process"));
}

TEST_CASE("who is needed by what status shows") {
  const auto well = with({running(0, 0)});
  CHECK(!needs_somebody(well));
  CHECK(needs_somebody(with({halted(0)})));
  // Never run, and met nothing though there is a topic.
  CHECK(needs_somebody(Status{}));
  CHECK(needs_somebody(with({})));
  auto status = well;
  status.missing_topics = {"orders"};
  CHECK(needs_somebody(status));
  CHECK_THAT(status_text(status), ContainsSubstring("   1 topic missing   ") &&
                                      ContainsSubstring("\nTOPICS\n  orders\n      Topic orders "
                                                        "does not exist in Kafka. Create it"));
  status = well;
  status.partitions.emplace_back().partition = {"orders", 0};
  CHECK(needs_somebody(status));
  // Of a pattern's topics one may go, and there may be none yet.
  status = well;
  status.gone_topics = {"orders.eu"};
  CHECK(!needs_somebody(status));
  CHECK_THAT(status_text(status), ContainsSubstring("Topic orders.eu no longer exists in Kafka."));
  status = with({});
  status.awaits_topics = true;
  CHECK(!needs_somebody(status));
  CHECK_THAT(verdict_of(status), ContainsSubstring("no topic matches its patterns yet"));
  status.known = false;
  CHECK(needs_somebody(status));
}

TEST_CASE("texts from elsewhere cannot steer the terminal that shows them") {
  auto partition = halted(0);
  partition.row->halt.cause = "key \"\033[2J\a\"";
  CHECK_THAT(status_text(with({partition})),
             !ContainsSubstring("\033") && !ContainsSubstring("\a"));
}

TEST_CASE("status shows which message delays the stored offset, and how many after it finished") {
  auto status = with({running(0, 40)});
  CHECK_THAT(status_text(status), !ContainsSubstring("OUT OF ORDER"));
  const auto ahead_in_json = [&] {
    return nlohmann::json::parse(status_json(status, false)).at("partitions")[0].at("out_of_order");
  };
  // Offset 0 is an offset; where nothing is finished there is none.
  CHECK(ahead_in_json().at("completed") == 0);
  CHECK(ahead_in_json().at("up_to").is_null());
  auto& row = *status.partitions[0].row;
  row.updated_at = "2027-01-15T07:00:00Z";
  row.ahead = {12, 131, 1, 3, "2027-01-15T07:59:57Z"};
  CHECK_THAT(status_text(status),
             ContainsSubstring("\nFINISHED OUT OF ORDER\n  payments[0]@100\n      This message "
                               "delays the stored offset for 3 s. 12 messages after it are "
                               "finished, up to offset 131.\n"));
  CHECK(ahead_in_json() ==
        nlohmann::json{{"completed", 12}, {"up_to", 131}, {"retrying", 1}, {"failed_attempts", 3}});
  // Those after it were finished while another message delayed the offset.
  row.updated_at = "2027-01-15T07:59:59Z";
  CHECK_THAT(status_text(status), ContainsSubstring("delays the stored offset for 1 s. "));
  // Nothing after it is finished.
  row.ahead = {0, -1, 2, 1, "", 100};
  CHECK_THAT(status_text(status), !ContainsSubstring("OUT OF ORDER"));
}

TEST_CASE("status in JSON says null for what is not known") {
  auto partition = running(0, 0);
  partition.end.reset();
  auto status = with({partition});
  status.kafka_problem = "no broker";
  const auto json = nlohmann::json::parse(status_json(status, false));
  CHECK(json.at("kafka_problem") == "no broker");
  CHECK(json.at("postgres_problem").is_null());
  CHECK(json.at("totals").at("lag").is_null());
  CHECK(json.at("partitions")[0].at("lag").is_null());
  CHECK(json.at("partitions")[0].at("per_second").is_null());
  CHECK(status_json(status, false).find('\n') == std::string::npos);
}

TEST_CASE("a window shows whole lines in order of priority, and says how much it omits") {
  using Kind = StatusBlock::Kind;
  const std::vector<StatusBlock> blocks{{Kind::kSection, "verdict\n"},
                                        {Kind::kHeading, "\nHALTED\n"},
                                        {Kind::kProblem, "  one\n    why\n"},
                                        {Kind::kProblem, "  two\n    why\n"},
                                        {Kind::kSection, "\ncounts\n"},
                                        {Kind::kHeading, "\nTOPIC\n"},
                                        {Kind::kTopic, "a\n"},
                                        {Kind::kTopic, "b\n"}};
  struct Case {
    const char* what;
    std::size_t rows;
    std::size_t columns;
    const char* text;
  };
  const Case cases[] = {
      {"no limit", 0, 0,
       "verdict\n\nHALTED\n  one\n    why\n  two\n    why\n\ncounts\n\nTOPIC\na\nb\nhint\n"},
      {"all fits", 14, 80,
       "verdict\n\nHALTED\n  one\n    why\n  two\n    why\n\ncounts\n\nTOPIC\na\nb\nhint\n"},
      {"the last row of the table does not fit", 13, 80,
       "verdict\n\nHALTED\n  one\n    why\n  two\n    why\n\ncounts\n\nTOPIC\na\n"
       "... 1 topic not shown (enlarge the window)   hint\n"},
      {"a heading without its rows", 12, 80,
       "verdict\n\nHALTED\n  one\n    why\n  two\n    why\n\ncounts\n"
       "... 2 topics not shown (enlarge the window)   hint\n"},
      {"half of a problem", 7, 80,
       "verdict\n\nHALTED\n  one\n    why\n  two\n"
       "... 1 problem, 1 section, 2 topics not shown (enlarge the window)   hint\n"},
      {"no room for the hint", 3, 70,
       "verdict\n... 2 problems, 1 section, 2 topics not shown (enlarge the window)\n"},
      {"long lines take several rows", 5, 5,
       "verdict\n... 2 problems, 1 section, 2 topics not shown (enlarge the window)\n"},
  };
  for (const auto& [what, rows, columns, text] : cases) {
    INFO(what);
    CHECK(fitted(blocks, {columns, rows, false, false}, "hint") == text);
  }
  CHECK(fitted({}, {80, 24, false, false}, "").empty());
}
