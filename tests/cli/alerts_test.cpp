#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <sstream>
#include <thread>

#include "hook.hpp"
#include "prelude.hpp"
#include "site.hpp"

namespace {

using Arguments = std::vector<std::string>;

const Arguments kDeadLetters{"--set", "failures.on_failure=dead-letter", "--set",
                             "failures.max_attempts=1"};
const Arguments kHalts{"--set", "failures.max_attempts=1"};

/// Whether a process runs; one that waits for its parent's look does not.
bool lives(const std::string& pid) {
  const auto stat = read_file("/proc/" + std::to_string(std::stol(pid)) + "/stat");
  const auto state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z' && stat[state + 2] != 'X';
}

/// Runs `use` where the kernel refuses pidfd_open, as a container's seccomp profile may; what it
/// starts inherits that.
void without_pidfd_open(const std::function<void()>& use) {
  std::thread([&use] {
    std::array<sock_filter, 4> filter{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program{filter.size(), filter.data()};
    REQUIRE(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    use();
  }).join();
}

void stop(ChildProcess& child) {
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

}  // namespace

TEST_CASE("a halt and a dead letter run the alert command, with JSON on stdin and variables") {
  const auto hook = Hook::recording();
  Site site(2);
  site.more = hook.section();
  site.pay(0, "fine", "a", "1");
  site.pay(0, "bad", "account-of-somebody", "\"no number\"");
  {
    const auto child = site.start(kDeadLetters);
    const auto alert = hook.wait_for("dead-letter");
    CHECK(alert.at("topic") == site.topic);
    CHECK(alert.at("partition") == 0);
    CHECK(alert.at("offset") == 1);
    CHECK(alert.at("group") == site.group);
    CHECK(alert.at("suppressed") == 0);
    CHECK(alert.at("handler").is_string());
    const auto id = site.sql("SELECT dead_letter_id FROM pawl.dead_letters");
    CHECK_THAT(alert.at("msg").get<std::string>(), ContainsSubstring("Inspect the message:\n  ") &&
                                                       ContainsSubstring(" dlq show --config ") &&
                                                       EndsWith(" " + id));
    CHECK_THAT(child->output(), ContainsSubstring(" message_dead_lettered ") &&
                                    ContainsSubstring(" dlq show --config "));
    stop(*child);
  }
  site.pay(1, "fine too", "a", "1");
  site.pay(1, "halting", "account-of-somebody", "\"no number\"");
  const auto child = site.start(kHalts);
  const auto alert = hook.wait_for("halt");
  CHECK(alert.at("partition") == 1);
  CHECK(alert.at("offset") == 1);
  CHECK(alert.at("handler").is_string());
  CHECK_THAT(alert.at("msg").get<std::string>(), ContainsSubstring("partitions resume"));
  wait_until([&] { return hook.file("env").find("PAWL_ALERT_KIND=halt") != std::string::npos; },
             kDeadline, "the variables of the halt");
  CHECK_THAT(hook.file("env"), ContainsSubstring("PAWL_ALERT_TOPIC=" + site.topic + "\n") &&
                                   ContainsSubstring("PAWL_ALERT_PARTITION=1\n"));
  // What the variable holds is what skips the message.
  const auto env = hook.file("env");
  const auto at = env.find("PAWL_ALERT_OFFSET=") + std::string("PAWL_ALERT_OFFSET=").size();
  const auto offset = env.substr(at, env.find('\n', at) - at);
  CHECK(site.run({"partitions", "skip", "--topic", site.topic, "--partition", "1", "--offset",
                  offset, "--because", "a test"})
            .code == 0);
  site.wait_for_stored(1, 1);
  stop(*child);
  CHECK_THAT(hook.file("alerts"), !ContainsSubstring("account-of-somebody"));
}

TEST_CASE("a message whose retries are used up is a dead letter's alert, and not before") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section("min_interval = \"0s\"\n");
  site.pay(0, "bad", "a", "\"no number\"");
  const auto child =
      site.start({"--set", "failures.on_failure=retry-later", "--set", "failures.max_attempts=1",
                  "--set", "failures.retry_later=[\"1s\", \"1s\"]"});
  const auto alert = hook.wait_for("dead-letter");
  CHECK(alert.at("topic") == site.topic);
  CHECK(alert.at("offset") == 0);
  CHECK(alert.at("handler").is_string());
  CHECK_THAT(alert.at("msg").get<std::string>(), ContainsSubstring(" dlq show "));
  CHECK(site.sql("SELECT retries FROM pawl.dead_letters") == "2");
  CHECK(hook.count("dead-letter") == 1);
  stop(*child);
}

TEST_CASE("an alert comes by NOTIFY as well, also alone") {
  Site site;
  site.more = "\n[alerts]\nnotify_channel = \"On Call\"\n";
  site.pay(0, "bad", "a", "\"no number\"");
  pqxx::connection listener(site.url);
  std::vector<std::string> payloads;
  listener.listen("On Call", [&payloads](const pqxx::notification& notification) {
    payloads.emplace_back(notification.payload.c_str());
  });
  const auto child = site.start(kHalts);
  wait_until([&] { return listener.get_notifs() > 0; }, kDeadline, "the notification");
  REQUIRE(payloads.size() == 1);
  const auto alert = nlohmann::json::parse(payloads.front());
  CHECK(alert.at("kind") == "halt");
  CHECK(alert.at("topic") == site.topic);
  stop(*child);
}

TEST_CASE("the alert command has no descriptors of the consumer, and its signals as at a login") {
  const Hook hook(
      "ls /proc/self/fd > \"$dir/fds\"\n"
      "grep -E '^Sig(Blk|Ign)' /proc/self/status > \"$dir/signals\"\n"
      "cut -d ' ' -f 5 /proc/$$/stat > \"$dir/group\"\n"
      "echo $$ > \"$dir/done\"\n");
  Site site;
  site.more = hook.section();
  site.pay(0, "bad", "a", "\"no number\"");
  const auto child = site.start(kHalts);
  hook.wait_for_file("done");
  // The last one is how ls itself looks.
  CHECK(hook.file("fds") == "0\n1\n2\n3\n");
  std::istringstream signals(hook.file("signals"));
  int found = 0;
  for (std::string name, bits; signals >> name >> bits; ++found) {
    // 32 and 33 are the C library's own.
    INFO(name << " " << bits);
    CHECK((std::stoull(bits, nullptr, 16) & 0x7FFFFFFFU) == 0);
  }
  CHECK(found == 2);
  CHECK(hook.file("group") == hook.file("done"));
  stop(*child);
}

TEST_CASE("a hanging alert command holds up no message, and is ended with all that it started") {
  const Hook hook(
      "sleep 3600 &\n"
      "echo $$ > \"$dir/pid\"\n"
      "echo $! > \"$dir/sleeper\"\n"
      "wait\n");
  Site site(2);
  site.more = hook.section("timeout = \"1h\"\n");
  site.pay(0, "bad", "a", "\"no number\"");
  {
    const auto child = site.start(kHalts);
    hook.wait_for_file("sleeper");
    site.pay_many(1, "e", 20);
    site.wait_for_stored(1, 19);
    CHECK(lives(hook.file("pid")));
    // Far less than the command's hour.
    stop(*child);
  }
  wait_until([&] { return !lives(hook.file("pid")) && !lives(hook.file("sleeper")); }, kDeadline,
             "the command's processes to be gone");
}

TEST_CASE(
    "an alert command that exceeds its timeout is killed, told in the log, and not the last") {
  const Hook hook(
      "cat >> \"$dir/alerts\"\n"
      "sleep 3600 &\n"
      "echo $! > \"$dir/sleeper\"\n"
      "wait\n");
  Site site(2);
  site.more = hook.section("timeout = \"500ms\"\n");
  site.pay(0, "bad", "a", "\"no number\"");
  const auto child = site.start(kHalts);
  child->wait_for_output("alerts.command failed for the alert halt: it did not exit in time",
                         kDeadline);
  wait_until([&] { return !lives(hook.file("sleeper")); }, kDeadline, "the sleeper to be gone");
  site.pay(1, "bad as well", "a", "\"no number\"");
  wait_until([&] { return hook.alerts().size() == 2; }, kDeadline, "the next alert");
  stop(*child);
}

TEST_CASE("a system that forbids pidfd_open is named in the failure of the alert command") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section();
  site.pay(0, "bad", "a", "\"no number\"");
  std::unique_ptr<ChildProcess> child;
  without_pidfd_open([&] { child = site.start(kHalts); });
  child->wait_for_output(
      "alerts.command failed for the alert halt: it was killed, because this system does not allow "
      "pidfd_open (Operation not permitted)",
      kDeadline);
  stop(*child);
}

TEST_CASE("an alert command need not read what it is given, and its exit code is told") {
  const Hook hook(
      "exec 0<&-\n"
      "echo \"$PAWL_ALERT_PARTITION\" >> \"$dir/partitions\"\n"
      "exit 7\n");
  Site site(2);
  site.more = hook.section();
  const auto child = site.start(kHalts);
  for (int p = 0; p < 2; ++p) {
    site.pay(p, "bad" + std::to_string(p), "a", "\"no number\"");
    wait_until([&] { return hook.file("partitions").find(std::to_string(p)) != std::string::npos; },
               kDeadline, "the alert of partition " + std::to_string(p));
  }
  child->wait_for_output("it exited with code 7", kDeadline);
  stop(*child);
}

TEST_CASE("an alert command that cannot be run is found by check, and refused by run") {
  Site site;
  site.more = "\n[alerts]\ncommand = [\"/nowhere/page\"]\n";
  const auto check = site.run({"check"});
  CHECK(check.code == 2);
  CHECK_THAT(check.out, ContainsSubstring("/nowhere/page: No such file"));
  const auto run = site.run({"run", "--drain"});
  CHECK(run.code == 2);
  CHECK_THAT(run.err, ContainsSubstring("/nowhere/page"));
  CHECK(site.sql("SELECT count(*) FROM pawl.consumers") == "0");
  // It may be on another machine than the operator's.
  CHECK(site.run({"offsets", "show"}).code == 0);

  const auto hook = Hook::recording();
  ::chmod(hook.path().c_str(), 0644);
  site.more = "\n[alerts]\ncommand = [\"" + hook.path().parent_path().string() + "\"]\n";
  CHECK_THAT(site.run({"check"}).out, ContainsSubstring("it is not a file"));
  site.more = "\n[alerts]\ncommand = [\"page\"]\n";
  CHECK_THAT(site.run({"run"}).err, ContainsSubstring("not an absolute path"));
}

TEST_CASE("of many dead letters one is told at once, and the others together") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section("min_interval = \"2s\"\n");
  for (int i = 0; i < 30; ++i)
    site.pay(0, "bad" + std::to_string(i), "a", "\"no number\"");
  const auto child = site.start(kDeadLetters);
  const auto told = [&hook] {
    std::int64_t sum = 0;
    for (const auto& alert : hook.alerts())
      sum += 1 + alert.at("suppressed").get<std::int64_t>();
    return sum;
  };
  wait_until([&] { return told() == 30; }, kDeadline, "30 dead letters to be told");
  CHECK(hook.alerts().size() < 10);
  CHECK(hook.alerts().front().at("suppressed") == 0);
  stop(*child);
}

TEST_CASE("alerts that min_interval holds back are sent when the process ends, as one") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section("min_interval = \"1h\"\n");
  for (int i = 0; i < 7; ++i)
    site.pay(0, "bad" + std::to_string(i), "a", "\"no number\"");
  const auto child = site.start(kDeadLetters);
  site.wait_for_stored(0, 6);
  hook.wait_for("dead-letter");
  stop(*child);
  std::int64_t told = 0;
  for (const auto& alert : hook.alerts())
    told += 1 + alert.at("suppressed").get<std::int64_t>();
  CHECK(told == 7);
  CHECK(hook.alerts().size() <= 2);
}

TEST_CASE("alerts that cannot be sent any more when the process ends are counted in its log") {
  const Hook hook(
      "echo $$ > \"$dir/pid\"\n"
      "exec sleep 3600\n");
  Site site;
  site.more = hook.section("timeout = \"1h\"\nmin_interval = \"1h\"\n");
  for (int i = 0; i < 7; ++i)
    site.pay(0, "bad" + std::to_string(i), "a", "\"no number\"");
  const auto child = site.start(kDeadLetters);
  hook.wait_for_file("pid");
  site.wait_for_stored(0, 6);
  stop(*child);
  CHECK_THAT(child->output(), ContainsSubstring(" alerts were not sent before the process exited"));
}

TEST_CASE("a circuit breaker that opens is an alert that names the handler") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section();
  for (int i = 0; i < 5; ++i)
    site.pay(0, "bad" + std::to_string(i), "a", "\"no number\"");
  auto arguments = kDeadLetters;
  arguments.insert(arguments.end(), {"--set", "failures.circuit_breaker=3"});
  const auto child = site.start(arguments);
  const auto alert = hook.wait_for("circuit-breaker");
  CHECK(alert.at("handler").is_string());
  CHECK(alert.at("offset") == 3);
  CHECK(hook.wait_for("halt").at("partition") == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.dead_letters") == "3");
  stop(*child);
}

TEST_CASE("PostgreSQL away for longer than the bound is one alert, and its return another") {
  const auto hook = Hook::recording();
  PostgresServer server;
  Site site(4);
  site.url = server.create_database("away");
  site.sql("CREATE TABLE ledger (event_id text PRIMARY KEY, account text, amount bigint)");
  site.sql("CREATE TABLE accounts (id text, balance bigint, entries bigint)");
  site.more = hook.section("notify_channel = \"alerts\"\nunreachable_after = \"500ms\"\n");
  for (int p = 0; p < 4; ++p)
    site.pay_many(p, "e" + std::to_string(p) + "-", 5);
  const auto child = site.start();
  site.wait_for_sql("SELECT count(*) FROM ledger", "20");
  server.stop(StopMode::kImmediate);
  CHECK_FALSE(hook.wait_for("database-unreachable").at("msg").get<std::string>().empty());
  server.start();
  CHECK(hook.wait_for("database-reachable").at("duration_s").is_number());
  site.pay_many(0, "later-", 5);
  site.wait_for_sql("SELECT count(*) FROM ledger", "25");
  stop(*child);
  CHECK(hook.alerts().size() == 2);
}

TEST_CASE("a database that lets nothing be written is an alert, also when it answers reads") {
  const auto hook = Hook::recording();
  PostgresServer server;
  Site site(2);
  site.url = server.create_database("read_only");
  site.sql("CREATE TABLE ledger (event_id text PRIMARY KEY, account text, amount bigint)");
  site.sql("CREATE TABLE accounts (id text, balance bigint, entries bigint)");
  site.more = hook.section("notify_channel = \"alerts\"\nunreachable_after = \"2s\"\n");
  site.pay_many(0, "e", 5);
  const auto child = site.start();
  site.wait_for_sql("SELECT count(*) FROM ledger", "5");
  // One session each: what is not written is not refused.
  const auto alter = [&](const std::string& command) {
    pqxx::connection connection(site.url);
    pqxx::nontransaction tx(connection);
    tx.exec("SET default_transaction_read_only = off");
    tx.exec("ALTER SYSTEM " + command);
    tx.exec("SELECT pg_reload_conf()");
  };
  alter("SET default_transaction_read_only = on");
  CHECK_THAT(hook.wait_for("database-unreachable").at("msg").get<std::string>(),
             ContainsSubstring("the server is read-only"));
  alter("RESET default_transaction_read_only");
  CHECK(hook.wait_for("database-reachable").at("duration_s").is_number());
  site.pay_many(1, "later-", 5);
  site.wait_for_sql("SELECT count(*) FROM ledger", "10");
  stop(*child);
}

TEST_CASE("a database without room for a message is an alert, and its retries are an outage's") {
  const auto hook = Hook::recording();
  Site site;
  // A disk that is full, without the disk.
  site.sql(
      "CREATE TABLE no_room (); CREATE FUNCTION needs_room() RETURNS trigger LANGUAGE plpgsql AS "
      "$$BEGIN IF to_regclass('no_room') IS NOT NULL THEN RAISE EXCEPTION 'could not extend file' "
      "USING ERRCODE = '53100'; END IF; RETURN NEW; END$$; CREATE TRIGGER needs_room BEFORE INSERT "
      "ON ledger FOR EACH ROW EXECUTE FUNCTION needs_room()");
  site.more = hook.section("notify_channel = \"alerts\"\nunreachable_after = \"2s\"\n");
  site.pay_many(0, "e", 5);
  // The message's own retries would not come back within the time of this test.
  const auto child =
      site.start({"--set", "failures.retry_initial=10m", "--set", "failures.retry_max=10m"});
  CHECK_THAT(hook.wait_for("database-unreachable").at("msg").get<std::string>(),
             ContainsSubstring("could not extend file"));
  site.sql("DROP TABLE no_room");
  CHECK(hook.wait_for("database-reachable").at("duration_s").is_number());
  site.wait_for_sql("SELECT count(*) FROM ledger", "5");
  stop(*child);
}

TEST_CASE("a halt whose cause is gone is said to have ended") {
  Site site;
  site.sql("ALTER TABLE ledger RENAME COLUMN amount TO sum");
  site.pay_many(0, "e", 5);
  const auto child = site.start({"--set", "failures.program_error_retry=500ms"});
  child->wait_for_output("partition_halted", kDeadline);
  site.sql("ALTER TABLE ledger RENAME COLUMN sum TO amount");
  child->wait_for_output(" partition_resumed ", kDeadline);
  site.wait_for_stored(0, 4);
  stop(*child);
}

TEST_CASE("Kafka away for longer than the bound is one alert, and its return another") {
  const auto hook = Hook::recording();
  KafkaBroker broker;
  Site site;
  site.bootstrap = broker.bootstrap();
  broker.create_topic(site.topic, 1);
  site.more = hook.section("unreachable_after = \"500ms\"\n");
  site.pay_many(0, "e", 5);
  const auto child = site.start();
  site.wait_for_stored(0, 4);
  broker.kill();
  CHECK_FALSE(hook.wait_for("kafka-unreachable").at("msg").get<std::string>().empty());
  child->wait_for_output(" kafka_unreachable: ", kDeadline);
  // Each error once: librdkafka repeats it in its own log, and counts and times it.
  CHECK_THAT(child->output(), !ContainsSubstring("librdkafka FAIL"));
  broker.start();
  CHECK(hook.wait_for("kafka-reachable").at("duration_s").is_number());
  child->wait_for_output(" kafka_reachable", kDeadline);
  site.pay_many(0, "later-", 5);
  site.wait_for_stored(0, 9);
  stop(*child);
}

TEST_CASE("a consumer that finds no server when it starts tells that as well") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section("unreachable_after = \"500ms\"\n");
  SECTION("PostgreSQL") {
    site.url = "postgresql://postgres@127.0.0.1:9/nothing";
    const auto child = site.start();
    hook.wait_for("database-unreachable");
    stop(*child);
  }
  SECTION("Kafka") {
    site.bootstrap = "127.0.0.1:9";
    const auto child = site.start();
    hook.wait_for("kafka-unreachable");
    stop(*child);
  }
}

TEST_CASE("what PostgreSQL quotes from rows is logged only where log.error_details asks for it") {
  Site site;
  site.sql("INSERT INTO ledger VALUES ('taken', 'account-of-somebody', 1)");
  site.pay(0, "taken", "a", "1");
  const auto without = site.run({"run", "--drain", "--set", "failures.max_attempts=1"});
  CHECK(without.code == 4);
  CHECK_THAT(without.err, ContainsSubstring("partition_halted") &&
                              ContainsSubstring("ledger_pkey") &&
                              !ContainsSubstring("already exists"));
  const auto with = site.run(
      {"run", "--drain", "--set", "failures.max_attempts=1", "--set", "log.error_details=true"});
  CHECK_THAT(with.err, ContainsSubstring("Key (event_id)=(taken) already exists."));
}

TEST_CASE(
    "a field of 900 KB that PostgreSQL quotes is cut in each text, and stored with its limit") {
  const auto hook = Hook::recording();
  Site site;
  site.more = hook.section();
  const std::string value(900'000, 'x');
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic, {.key = "a",
                             .value = R"({"account": "a", "amount": ")" + value + R"("})",
                             .headers = {{"event-id", "e"}},
                             .partition = 0});
  producer.flush();
  const auto longest_line = [](const std::string& text) {
    std::istringstream lines(text);
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);)
      longest = std::max(longest, line.size());
    return longest;
  };
  const auto halted = site.run(
      {"run", "--drain", "--set", "failures.max_attempts=1", "--set", "log.error_details=true"});
  CHECK(halted.code == 4);
  CHECK_THAT(halted.err,
             ContainsSubstring("partition_halted") && ContainsSubstring("bytes omitted"));
  CHECK(longest_line(halted.err) < 5000);
  const auto alert = hook.wait_for("halt");
  CHECK(alert.at("statement") == "sql[0]");
  const auto detail = alert.at("msg").get<std::string>();
  CHECK_THAT(detail, ContainsSubstring("x... (") && ContainsSubstring("partitions resume"));
  CHECK_THAT(detail, !ContainsSubstring(std::string(200, 'x')));
  const auto status = site.run({"status", "--json"});
  CHECK_THAT(status.out, ContainsSubstring("bytes omitted"));
  CHECK(longest_line(status.out) < 5000);

  REQUIRE(site.run({"run", "--drain", "--set", "failures.max_attempts=1", "--set",
                    "failures.on_failure=dead-letter"})
              .code == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.dead_letters WHERE length(error) < 300 AND error LIKE "
                 "'%bytes omitted)' AND length(error_detail) BETWEEN 8192 AND 8300") == "1");
}
