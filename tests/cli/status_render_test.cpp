#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/screen.hpp"
#include "cli/status.hpp"
#include "engine/owner.hpp"
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
  partition.row->reason =
      "cannot go on; then: pawl partitions resume --partition " + std::to_string(number);
  partition.concern = Concern::kHalted;
  return partition;
}

Status with(std::vector<StatusPartition> partitions) {
  Status status;
  status.group = "payments";
  status.known = true;
  status.now_ms = kNow;
  status.partitions = std::move(partitions);
  return status;
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
  condition.what = "https://api.example";
  condition.since = pawl::Timestamp(std::chrono::milliseconds(kNow));
  condition.messages = 3;
  condition.cause = "refused";
  status.conditions = {{"one", condition}, {"two", condition}};
  CHECK(needs_somebody(status));
  CHECK_THAT(verdict_of(status), ContainsSubstring("1 remote service UNREACHABLE"));
  CHECK_THAT(
      status_text(status, false),
      ContainsSubstring("https://api.example has been unreachable since 2027-01-15T08:00:00Z: "
                        "refused. 6 messages wait;") &&
          ContainsSubstring("Reported by: one, two\n"));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("conditions").at(1) ==
        nlohmann::json({{"kind", "remote_service_unreachable"},
                        {"what", "https://api.example"},
                        {"since", "2027-01-15T08:00:00Z"},
                        {"messages", 3},
                        {"cause", "refused"},
                        {"lasting", true},
                        {"process", "two"}}));

  condition.kind = pawl::Condition::Kind::kPartitionBlocked;
  condition.what = "payments [0]";
  condition.lasting = false;
  status.conditions = {{"one", condition}};
  CHECK_FALSE(needs_somebody(status));
  CHECK_THAT(verdict_of(status),
             ContainsSubstring("1 waiting for a lock") && !ContainsSubstring("BLOCKED"));
  CHECK_THAT(status_text(status, false),
             ContainsSubstring("payments [0] has waited for a lock since"));
}

TEST_CASE("status says what of the outbox waits, for how long, and where nobody publishes it") {
  auto status = with({running(0, 0)});
  const auto has = [&](const std::string& text) {
    return status_text(status, false).find(text) != std::string::npos;
  };
  // What is unknown, and what is empty, is no message that waits.
  CHECK(!has("Outbox"));
  CHECK(status_json(status, false).find(R"("outbox":null)") != std::string::npos);
  auto& outbox = status.outbox.emplace();
  outbox.now = pawl::ledger::Instant(std::chrono::milliseconds(kNow));
  outbox.lanes = {{0, "host:1:ab", false, 0, std::nullopt, 7, std::nullopt},
                  {1, "", false, 3, outbox.now - std::chrono::milliseconds(2500), 0, std::nullopt}};
  CHECK(has("Outbox: 3 messages wait, the oldest for 2.5 s; 0 are set apart."));
  CHECK(!has("SET APART"));
  outbox.alert_age = std::chrono::milliseconds(2500);
  CHECK(!has("LATE"));
  CHECK(status_json(status, false).find(R"("late":false)") != std::string::npos);
  outbox.alert_age = std::chrono::milliseconds(2000);
  CHECK(has("the oldest for 2.5 s, LATE (outbox.alert_age = 2s)"));
  CHECK(has("the outbox is LATE"));
  CHECK(status_json(status, false).find(R"("late":true)") != std::string::npos);
  outbox.lanes[1].more = true;
  CHECK(has("Outbox: more than 3 messages wait"));
  CHECK(status_json(status, false).find(R"("more_wait":true)") != std::string::npos);
  outbox.lanes[1].more = false;
  outbox.lanes[0].owner_late = true;
  CHECK(has("NO PROCESS PUBLISHES"));
  outbox.relays = {{"host:2:cd", true, ""}};
  CHECK(!has("NO PROCESS PUBLISHES"));
  CHECK(has("NO LANE IS HELD, although host:2:cd is there to publish: its log says why"));
  outbox.relays = {{"host:2:cd", true, ""}, {"host:3:ef", std::nullopt, ""}};
  CHECK(has("although host:2:cd, host:3:ef are there to publish: their log says why"));
  outbox.relays[1].problem = "not authorized";
  CHECK(has("; host:3:ef CANNOT PUBLISH, and tries again: not authorized"));
  CHECK(!has("NO LANE"));
  outbox.relays[1].left_out = "half [1] (it has no leader) of lane 2";
  CHECK(has("; host:3:ef CANNOT WRITE to half [1] (it has no leader) of lane 2, tries again"));
  CHECK(
      status_json(status, false)
          .find(
              R"("relays":[{"owner":"host:2:cd","transactions":true,"problem":null,"left_out":null},)") !=
      std::string::npos);
  outbox.lanes[1].waiting = 0;
  CHECK(!has("Outbox"));
  outbox.set_apart = 2;
  status.invocation.config_file = "F";
  CHECK(has("2 are set apart (`pawl outbox list --config F`)"));
  CHECK(has("2 messages of the outbox SET APART"));
  CHECK(status_json(status, false).find(R"("set_apart":2)") != std::string::npos);
}

TEST_CASE("the first line of status is the verdict") {
  auto status = with({halted(0), halted(1), running(2, 12335)});
  status.letters = {
      {"payments", "pay", "error", "dead", 5, "2027-01-15T07:58:00Z", 2, "2027-01-15T08:58:00Z"},
      {"payments", "pay", "parked", "parked", 1, "2027-01-15T07:58:00Z", 0, ""}};
  const auto text = status_text(status, false);
  CHECK(text.substr(0, text.find('\n')) ==
        "payments: 2 of 3 partitions HALTED, lag 12,345, 3 dead letters, 2 to be tried again "
        "later, 1 parked message");
  CHECK(text.find("tried again by themselves is due at 2027-01-15T08:58:00Z") != std::string::npos);
}

TEST_CASE("when nothing is wrong the verdict of status says so") {
  CHECK(verdict_of(with({running(0, 0), running(1, 0)})) ==
        "no partition of 2 halted, lag 0, no dead letters");
}

TEST_CASE("what holds back vacuum is named once it is old, or nobody knows how old it is") {
  auto status = with({running(0, 0)});
  const auto line = [&] {
    const auto text = status_text(status, false);
    const auto begin = text.find("Vacuum is held back by: ");
    return text.substr(begin, text.find("Connections:") - begin);
  };
  CHECK(line() == "Vacuum is held back by: nothing\n");
  ledger::HorizonHolder holder{"session", "17", "app", "report", "active", 0, 59};
  status.server.holders = {holder};
  CHECK(line() == "Vacuum is held back by: nothing for 60 s\n");
  holder.name = "18";
  holder.since = 60;
  status.server.holders.push_back(holder);
  CHECK_THAT(line(), ContainsSubstring("session 18 \"report\" of app, active, open for") &&
                         ContainsSubstring("Every message gets slower"));
  holder.since.reset();
  status.server.holders = {holder};
  CHECK_THAT(line(), ContainsSubstring("nothing for 60 s"));
  status.server.holders[0].transactions = 1;
  CHECK_THAT(line(), ContainsSubstring("session 18") &&
                         ContainsSubstring(", 1 transaction has begun meanwhile\n") &&
                         !ContainsSubstring("Every message gets slower"));
  status.server.sees_all = false;
  status.server.role = "\"pay app\"";
  CHECK_THAT(line(), ContainsSubstring("\n  GRANT pg_read_all_stats TO \"pay app\";\n"));
}

TEST_CASE("the verdict tells a PostgreSQL that refuses from one that does not answer") {
  auto status = with({});
  status.postgres_problem = "password authentication failed";
  CHECK(verdict_of(status) == "PostgreSQL CANNOT BE USED by this command");
  CHECK_THAT(status_text(status, false),
             ContainsSubstring("password authentication failed\n  That is the result of this "
                               "command's own connection."));
  status.postgres_answers = false;
  CHECK(verdict_of(status) == "PostgreSQL DOES NOT ANSWER this command");
}

TEST_CASE("the address of a PostgreSQL that cannot be used stands once in its line") {
  auto status = with({});
  status.database = "user=app host=db";
  status.postgres_problem = "cannot connect to user=app host=db: refused; check postgres.url";
  CHECK_THAT(status_text(status, false),
             ContainsSubstring("\nPostgreSQL at user=app host=db: refused; check postgres.url\n"));
}

TEST_CASE("a thousand partitions are one screen, and --all shows each") {
  std::vector<StatusPartition> partitions;
  for (int p = 0; p < 1000; ++p)
    partitions.push_back(p == 777 ? halted(p) : running(p, p));
  const auto status = with(partitions);

  const auto screen = status_text(status, false);
  CHECK(lines(screen) < 40);
  // What is halted stands first, then the longest lag.
  CHECK(screen.find("777") < screen.find("999"));
  CHECK_THAT(screen, ContainsSubstring("980 more") && !ContainsSubstring("\npayments          3 "));

  const auto everything = status_text(status, true);
  CHECK(occurrences(everything, "host:1:ab") == 1000);
}

TEST_CASE("a thousand halted partitions are one screen that tells how many are left out") {
  std::vector<StatusPartition> partitions;
  for (int p = 0; p < 1000; ++p)
    partitions.push_back(halted(p));
  const auto screen = status_text(with(partitions), false);
  CHECK(lines(screen) < 50);
  CHECK(occurrences(screen, "partitions resume") == 5);
  CHECK_THAT(screen,
             ContainsSubstring("1000 of 1000 partitions HALTED") && ContainsSubstring("995 more"));
  CHECK(occurrences(status_text(with(partitions), true), "partitions resume") == 1000);
}

TEST_CASE("status tells nobody for what has no owner, and who was the last") {
  auto released = running(0, 1);
  released.row->released = true;
  auto gone = running(1, 1);
  gone.row->session_gone = true;
  const auto status = with({released, gone, running(2, 1)});
  CHECK_THAT(verdict_of(status), ContainsSubstring("2 WITHOUT OWNER"));
  CHECK_THAT(status_text(status, false), ContainsSubstring("2 partitions without owner: nothing"));
  CHECK_THAT(
      status_text(status, false),
      ContainsSubstring("nobody\n") && ContainsSubstring("nobody (host:1:ab has no session)\n"));
}

TEST_CASE("status advises to start a process only if none is known to run") {
  auto gone = running(0, 1);
  gone.row->session_gone = true;
  auto status = with({gone, running(1, 1)});
  status.invocation = {"payments", "F", {}};
  const std::string run = "payments run --config F";
  CHECK_THAT(status_text(status, false), ContainsSubstring("a process takes it: " + run));
  // Killed, or connecting again.
  status.processes = {"host:1:ab"};
  CHECK_THAT(status_text(status, false),
             ContainsSubstring("host:1:ab ran within the last 20 s, and has no session now") &&
                 ContainsSubstring("If it does not run any more: " + run));
  status.processes = {"host:1:ab", "host:2:cd"};
  pawl::KafkaOptions kafka;
  kafka.session_timeout = std::chrono::seconds(31);
  status.place_kept = pawl::engine::place_kept_text(kafka);
  CHECK_THAT(status_text(status, false),
             ContainsSubstring("Running: host:2:cd. No action needed: Kafka assigns them.") &&
                 ContainsSubstring("for kafka.session_timeout (31 s), and for longer if another") &&
                 !ContainsSubstring(run));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("processes") ==
        nlohmann::json(status.processes));
}

TEST_CASE(
    "partitions that nobody has met stand beside the others, and a topic without any is named") {
  const auto unmet = [](const std::string& topic, int number) {
    StatusPartition partition;
    partition.partition = {topic, number};
    partition.end = 5;
    partition.concern = Concern::kUnowned;
    return partition;
  };
  const auto added = with({running(0, 0), unmet("payments", 1)});
  CHECK(unstored_topics(added).empty());
  CHECK_THAT(verdict_of(added), ContainsSubstring("no partition of 2 halted, 1 WITHOUT OWNER"));

  const auto refused = with({unmet("orders", 0), unmet("orders", 1), running(0, 0)});
  CHECK(unstored_topics(refused) == std::vector<std::string>{"orders"});
  CHECK_THAT(verdict_of(refused), ContainsSubstring("2 WITHOUT OWNER, lag unknown"));
  CHECK_THAT(status_text(refused, false), ContainsSubstring("Nothing is stored of topic orders:") &&
                                              !ContainsSubstring("of topic payments"));
  CHECK(verdict_of(with({unmet("orders", 0)})) == "no partition is stored yet");
}

TEST_CASE("status names the message that is tried again, and how often it has failed") {
  auto partition = running(0, 3);
  partition.row->attempts = 7;
  partition.row->attempts_offset = 100;
  const auto status = with({partition, running(1, 0)});
  CHECK(verdict_of(status) == "no partition of 2 halted, 1 retrying, lag 3, no dead letters");
  CHECK_THAT(status_text(status, false),
             ContainsSubstring(
                 "payments [0] RETRYING offset 100: 7 attempts of it failed; the partition") &&
                 ContainsSubstring("retrying"));
  const auto json = nlohmann::json::parse(status_json(status, false)).at("partitions")[0];
  CHECK(json.at("message_offset") == 100);
  CHECK(json.at("failed_attempts") == 7);

  // Of messages that run side by side, the one that has failed the most.
  auto beside = running(2, 3);
  beside.row->ahead = {4, 131, 3, 2, "2027-01-15T07:59:57Z", 111};
  const auto text = status_text(with({beside}), false);
  CHECK_THAT(text, ContainsSubstring("payments [2] RETRYING offset 111: 2 attempts of it failed; "
                                     "messages that need not wait for it go on meanwhile. 2 other "
                                     "messages are retried as well.\n"
                                     "  The log of host:1:ab says why and how many attempts are "
                                     "left. The message: ") &&
                       ContainsSubstring("partitions peek --config FILE --topic payments "
                                         "--partition 2 --offset 111\n"));
  const auto beside_json =
      nlohmann::json::parse(status_json(with({beside}), false)).at("partitions")[0];
  CHECK(beside_json.at("message_offset") == 111);
  CHECK(beside_json.at("failed_attempts") == 2);
  // Once it is halted, none is tried again, and the message that halts it is named.
  beside.row->state = ledger::PartitionState::kHalted;
  beside.row->ahead.finished = 0;
  beside.row->halt_offset = 100;
  CHECK_THAT(status_text(with({beside}), false), ContainsSubstring("payments [2] HALTED since") &&
                                                     !ContainsSubstring("RETRYING") &&
                                                     !ContainsSubstring("ahead of its stored"));
  CHECK(nlohmann::json::parse(status_json(with({beside}), false))
            .at("partitions")[0]
            .at("message_offset") == 100);

  // Nobody tries it where nobody owns the partition.
  partition.row->released = true;
  CHECK_THAT(status_text(with({partition}), false), !ContainsSubstring("RETRYING"));
}

TEST_CASE("status says that a partition is on probation, and what that is") {
  auto partition = running(0, 3);
  partition.row->suspect = ledger::SuspectView{100, 2, true};
  const auto status = with({partition, running(1, 0)});
  CHECK(verdict_of(status) == "no partition of 2 halted, 1 on probation, lag 3, no dead letters");
  const auto text = status_text(status, false);
  CHECK_THAT(text, ContainsSubstring("payments [0] is on PROBATION at offset 100") &&
                       ContainsSubstring("It runs alone now; 2 processes have ended since") &&
                       ContainsSubstring("the other partitions of its process host:1:ab wait (of "
                                         "payments); then they run for at least as long.") &&
                       ContainsSubstring("Check the exit codes"));
  CHECK(nlohmann::json::parse(status_json(status, false)).at("totals").at("on_probation") == 1);
}

TEST_CASE("status says when no other partition waits for one on probation") {
  auto partition = running(0, 3);
  partition.row->suspect = ledger::SuspectView{100, 0, true};
  auto another = running(1, 0);
  another.row->owner = "host:2:cd";
  CHECK_THAT(status_text(with({partition, another}), false),
             ContainsSubstring("Its process has no other partition that waits for it.\n"
                               "  No action needed.\n"));
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
  const auto text = status_text(status, false);
  for (const auto* command : {"payments partitions peek --config '/etc/pawl/my file.toml' --topic "
                              "payments --partition 0\n",
                              "payments run --config '/etc/pawl/my file.toml'\n",
                              "payments check --config '/etc/pawl/my file.toml'\n",
                              "payments dlq list --config '/etc/pawl/my file.toml'\n",
                              "payments dlq show --config '/etc/pawl/my file.toml' ID\n",
                              "payments leases list --config '/etc/pawl/my file.toml' --unknown\n",
                              "payments leases list --config '/etc/pawl/my file.toml' --lost\n"})
    CHECK_THAT(text, ContainsSubstring(command));
}

TEST_CASE("what nobody has begun is no partition that lost its owner") {
  StatusPartition refused;
  refused.partition = {"payments", 3};
  refused.concern = Concern::kUnowned;
  auto unowned = running(1, 0);
  unowned.row->released = true;
  unowned.concern = Concern::kUnowned;
  const auto text = status_text(with({running(0, 0), unowned, refused}), false);
  CHECK_THAT(text, ContainsSubstring("1 partition without owner") &&
                       ContainsSubstring("Nothing is stored of topic payments, partition 3: no "
                                         "process has begun it, or one has refused to"));
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
  CHECK_THAT(status_text(status, false), ContainsSubstring("TOPICS ARE MISSING") &&
                                             ContainsSubstring("orders does not exist in Kafka"));
  status = well;
  status.partitions.emplace_back().partition = {"orders", 0};
  CHECK(needs_somebody(status));
  // Of a pattern's topics one may go, and there may be none yet.
  status = well;
  status.gone_topics = {"orders.eu"};
  CHECK(!needs_somebody(status));
  CHECK_THAT(status_text(status, false),
             ContainsSubstring("orders.eu does not exist in Kafka any"));
  status = with({});
  status.awaits_topics = true;
  CHECK(!needs_somebody(status));
  CHECK_THAT(verdict_of(status), ContainsSubstring("no topic for its patterns yet"));
  status.known = false;
  CHECK(needs_somebody(status));
}

TEST_CASE("texts from elsewhere cannot steer the terminal that shows them") {
  auto partition = halted(0);
  partition.row->reason = "key \"\033[2J\a\"";
  CHECK_THAT(status_text(with({partition}), false),
             !ContainsSubstring("\033") && !ContainsSubstring("\a"));
}

TEST_CASE("status says how far a partition is ahead of its stored offset, and what holds it back") {
  auto status = with({running(0, 40)});
  CHECK(status_text(status, false).find("ahead") == std::string::npos);
  const auto ahead_in_json = [&] {
    return nlohmann::json::parse(status_json(status, false)).at("partitions")[0].at("ahead");
  };
  // Offset 0 is an offset; where nothing is finished there is none.
  CHECK(ahead_in_json().at("finished") == 0);
  CHECK(ahead_in_json().at("up_to").is_null());
  auto& row = *status.partitions[0].row;
  row.updated_at = "2027-01-15T07:00:00Z";
  row.ahead = {12, 131, 1, 3, "2027-01-15T07:59:57Z"};
  CHECK(status_text(status, false)
            .find("payments [0] is ahead of its stored offset: 12 messages finished behind it, up "
                  "to offset 131.\n"
                  "  The message behind offset 99 has held it back for 3 s.\n") !=
        std::string::npos);
  CHECK(ahead_in_json() ==
        nlohmann::json{{"finished", 12}, {"up_to", 131}, {"trying", 1}, {"failed_attempts", 3}});
  // Those behind it were finished when another message was in the way.
  row.updated_at = "2027-01-15T07:59:59Z";
  CHECK_THAT(status_text(status, false), ContainsSubstring("has held it back for 1 s.\n"));
  // Nothing is ahead of it.
  row.ahead = {0, -1, 2, 1, "", 100};
  CHECK_THAT(status_text(status, false), !ContainsSubstring("is ahead of its stored offset"));
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

TEST_CASE("a screen shows what fits, with long lines counted as they wrap") {
  CHECK(fit("one\ntwo\nthree\n", 2, 80) == "one\ntwo\n");
  CHECK(fit("0123456789\ntwo\n", 2, 5) == "0123456789\n");
  CHECK(fit("one\n\nthree", 3, 80) == "one\n\nthree");
  CHECK(fit("", 3, 80).empty());
}
