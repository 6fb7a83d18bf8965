// [monitoring]: what `run` and `relay` serve, held against `status`, PostgreSQL and Kafka.
#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "free_port.hpp"
#include "json_schema.hpp"
#include "prelude.hpp"
#include "relay_site.hpp"
#include "site.hpp"

namespace {

struct Reply {
  long status = 0;  ///< 0: nobody answered
  std::string type;
  std::string body;
};

std::size_t append(const char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

/// A process that is watched, and what it answers.
class Watched {
 public:
  explicit Watched(Site& site) : Watched(site, site.more) {}
  /// `configuration`: to which its section is added.
  Watched(const Site& site, std::string& configuration) : site_(site) {
    configuration += fmt::format("\n[monitoring]\nlisten = \"127.0.0.1:{}\"\n", port_);
  }

  std::uint16_t port() const { return port_; }

  /// `method` empty: GET. `host` empty: the address.
  Reply ask(const std::string& path, const std::string& method = "",
            const std::string& host = "") const {
    const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
    const auto url = fmt::format("http://127.0.0.1:{}{}", port_, path);
    Reply reply;
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
        curl_slist_append(nullptr, ("Host: " + host).c_str()), curl_slist_free_all);
    if (!host.empty())
      curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    if (method == "HEAD") {
      curl_easy_setopt(curl.get(), CURLOPT_NOBODY, 1L);
    } else if (!method.empty()) {
      curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
    }
    if (curl_easy_perform(curl.get()) != CURLE_OK)
      return {};
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
    const char* type = nullptr;
    curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_TYPE, &type);
    reply.type = type == nullptr ? "" : type;
    return reply;
  }

  void wait_for(const std::string& path, long status) const {
    wait_until([&] { return ask(path).status == status; }, kDeadline,
               fmt::format("{} to say {}", path, status));
  }

  /// The value of a line of /metrics; nullopt: it is not there.
  std::optional<double> metric(const std::string& series) const {
    const auto text = "\n" + ask("/metrics").body;
    const auto at = text.find("\n" + series + " ");
    if (at == std::string::npos)
      return std::nullopt;
    return std::stod(text.substr(at + series.size() + 2));
  }
  std::optional<double> metric(const std::string& name, int partition) const {
    return metric(fmt::format("{}{{topic=\"{}\",partition=\"{}\"}}", name, site_.topic, partition));
  }
  void wait_for_metric(const std::string& name, int partition, double value) const {
    wait_until([&] { return metric(name, partition) == value; }, kDeadline,
               fmt::format("{} of partition {} to be {}", name, partition, value));
  }

 private:
  const Site& site_;
  const std::uint16_t port_ = pawl::test::free_port();
};

void stop(ChildProcess& child) {
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

/// Of each partition, by `status`.
std::map<int, nlohmann::json> status_of(Site& site) {
  const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
  std::map<int, nlohmann::json> partitions;
  for (const auto& partition : status.at("partitions"))
    partitions[partition.at("partition").get<int>()] = partition;
  return partitions;
}

void make_tables(const Site& site) {
  site.sql("CREATE TABLE ledger (event_id text PRIMARY KEY, account text, amount bigint)");
  site.sql("CREATE TABLE accounts (id text, balance bigint, entries bigint)");
}

const std::vector<std::string> kOneTry{"--set", "failures.max_attempts=1"};

}  // namespace

TEST_CASE("the lag is that of `status`, of PostgreSQL and of Kafka, also of what is halted") {
  Site site(3);
  const Watched watched(site);
  site.pay_many(0, "fine-", 20);
  site.pay(1, "bad", "a", "\"no number\"");
  site.pay_many(1, "behind-", 4);
  const auto child = site.start(kOneTry);
  site.wait_for_stored(0, 19);
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'halted'",
                    "1");
  watched.wait_for_metric("pawl_lag_messages", 1, 5);
  watched.wait_for_metric("pawl_partition_halted", 1, 1);
  watched.wait_for_metric("pawl_lag_messages", 2, 0);

  auto status = status_of(site);
  for (const int partition : {0, 1, 2}) {
    INFO("partition " << partition);
    const auto& its = status.at(partition);
    CHECK(watched.metric("pawl_lag_messages", partition) == its.at("lag").get<double>());
    CHECK(watched.metric("pawl_log_end_offset", partition) == its.at("end").get<double>());
    const auto end = KafkaBroker::shared().last_stable_offset(site.topic, partition);
    CHECK(watched.metric("pawl_log_end_offset", partition) == static_cast<double>(end));
    CHECK(watched.metric("pawl_next_offset", partition) == its.at("offset").get<double>());
    CHECK(watched.metric("pawl_next_offset", partition) ==
          static_cast<double>(site.stored(partition) + 1));
    CHECK(watched.metric("pawl_partition_halted", partition) ==
          (its.at("state") == "halted" ? 1.0 : 0.0));
  }
  CHECK(watched.metric("pawl_partition_halts_total", 1) == 1.0);
  CHECK(watched.metric("pawl_oldest_unprocessed_age_seconds", 0) == 0.0);
  // It grows while the partition stands at that message.
  const auto age = watched.metric("pawl_oldest_unprocessed_age_seconds", 1);
  REQUIRE(age);
  wait_until([&] { return watched.metric("pawl_oldest_unprocessed_age_seconds", 1) > age; },
             kDeadline, "the message to get older");

  // What comes to it shows within the monitor's interval.
  site.pay_many(1, "more-", 3);
  watched.wait_for_metric("pawl_lag_messages", 1, 8);
  const auto told = nlohmann::json::parse(watched.ask("/status").body);
  CHECK(violation(told, json_schemas().at(kStatusPage)).empty());
  CHECK(told.at("group") == site.group);
  // The reason of a halt is not for what another site's name leads here.
  CHECK(watched.ask("/status", "", "evil.example").status == 403);
  CHECK_THAT(watched.ask("/status", "", "evil.example").body,
             ContainsSubstring("monitoring.hosts"));
  CHECK(watched.ask("/metrics", "", "evil.example").status == 200);
  CHECK(told.at("ready") == true);
  for (const auto& partition : told.at("partitions")) {
    const int number = partition.at("partition");
    CHECK(partition.at("lag") == (number == 1 ? 8 : 0));
    CHECK(partition.at("state") == (number == 1 ? "halted" : "running"));
    CHECK(partition.at("reason").is_string() == (number == 1));
    CHECK(partition.at("offset") == site.stored(number) + 1);
  }
  stop(*child);
}

TEST_CASE("what is counted is what the register has counted") {
  Site site(2);
  const Watched watched(site);
  site.handler = R"toml(when = '{/account} != "left out"'
missing_key = "process"
sql = "UPDATE accounts SET balance = balance + {/amount}::bigint WHERE id = {/account}"
)toml";
  site.more += "[failures]\nunmatched = \"skip\"\n";
  for (const int partition : {0, 1}) {
    site.pay_many(partition, fmt::format("fine-{}-", partition), 10 + partition);
    site.pay_many(partition, fmt::format("fine-{}-", partition), 3);
    site.pay(partition, fmt::format("skipped-{}", partition), "left out", "1");
    site.pay(partition, fmt::format("bad-{}", partition), "a", "\"no number\"");
    site.pay(partition, fmt::format("fine-{}-0", partition), "b", "7");  // another payload
    KafkaProducer producer(site.bootstrap);
    producer.send(site.topic, {.key = "a",
                               .value = R"({"account": "a", "amount": 1})",
                               .headers = {},
                               .partition = partition});
    producer.flush();
  }
  const auto child =
      site.start({"--set", "failures.on_failure=dead-letter", "--set", "failures.max_attempts=1"});
  site.wait_for_stored(0, 16);
  site.wait_for_stored(1, 17);
  const std::map<std::string, std::string> metrics{
      {"applied_count", "pawl_messages_applied_total"},
      {"duplicate_count", "pawl_messages_duplicate_total"},
      {"skipped_count", "pawl_messages_skipped_total"},
      {"dead_count", "pawl_messages_dead_lettered_total"},
      {"unchecked_count", "pawl_messages_unchecked_total"},
      {"parked_count", "pawl_messages_parked_total"}};
  for (const int partition : {0, 1}) {
    for (const auto& [column, metric] : metrics) {
      INFO(metric << " of partition " << partition);
      const auto stored = site.sql(fmt::format(
          "SELECT {} FROM pawl.processed_kafka_offsets WHERE partition = {}", column, partition));
      watched.wait_for_metric(metric, partition, std::stod(stored));
    }
    CHECK(watched.metric("pawl_messages_applied_total", partition) == 11.0 + partition);
    CHECK(watched.metric("pawl_messages_unchecked_total", partition) == 1.0);
    CHECK(watched.metric("pawl_messages_duplicate_total", partition) == 3.0);
    CHECK(watched.metric("pawl_messages_skipped_total", partition) == 1.0);
    CHECK(watched.metric("pawl_messages_dead_lettered_total", partition) == 2.0);
    const auto failed = [&](const std::string& of) {
      return watched.metric(
          fmt::format("pawl_failed_attempts_total{{topic=\"{}\",partition=\"{}\",reason=\"{}\"}}",
                      site.topic, partition, of));
    };
    CHECK(failed("conflict") == 1.0);
    CHECK(watched.metric("pawl_messages_conflicting_total", partition) == 1.0);
    CHECK(failed("error") == 1.0);
  }
  // Each of them was timed once.
  CHECK(watched.metric(
            fmt::format("pawl_fetch_to_commit_seconds_count{{topic=\"{}\"}}", site.topic)) == 35.0);
  CHECK(watched.metric("pawl_commit_seconds_count").value_or(0) > 0);
  CHECK(watched.metric("pawl_database_up") == 1.0);
  wait_until([&] { return watched.metric("pawl_kafka_up") == 1.0; }, kDeadline, "Kafka to be up");
  stop(*child);
}

TEST_CASE("each message is timed once, however it travels, and what travels together is counted") {
  struct Row {
    std::string handler;
    std::string more;
    bool apart;         ///< handlers' statements run before the flight with the COMMIT
    std::string flock;  ///< what counts those that travel together; empty: none do
  };
  const std::string batch = R"toml(batch = true
sql = "INSERT INTO ledger SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], {/amount}::bigint[])"
)toml";
  const auto row = GENERATE_COPY(values<Row>({
      {"", "[consumer]\npipeline = 1\n", true, ""},
      {"", "", false, "pawl_pipeline_messages"},
      {batch, "", true, "pawl_batch_messages"},
      {"concurrency = 4\n", "[consumer]\npipeline = 1\n", true, ""},
  }));
  CAPTURE(row.handler, row.more);
  Site site;
  const Watched watched(site);
  site.more += row.more;
  site.handler = "name = \"payment\"\n" +
                 (row.handler.starts_with("batch") ? row.handler : row.handler + site.handler);
  site.pay_many(0, "e", 40);
  const auto child = site.start();
  site.wait_for_stored(0, 39);
  watched.wait_for_metric("pawl_messages_applied_total", 0, 40);
  CHECK(watched.metric(
            fmt::format("pawl_fetch_to_commit_seconds_count{{topic=\"{}\"}}", site.topic)) == 40.0);
  const auto commits = watched.metric("pawl_commit_seconds_count").value_or(0);
  const auto handled =
      watched.metric("pawl_handler_seconds_count{handler=\"payment\"}").value_or(0);
  if (row.flock.empty()) {
    CHECK(commits == 40);
    CHECK(handled == 40);
  } else {
    // The first ones may go alone.
    const auto together = watched.metric(row.flock + "_sum").value_or(0);
    const auto flights = watched.metric(row.flock + "_count").value_or(0);
    CHECK(together > 1);
    CHECK(flights < together);
    CHECK(commits == flights + 40 - together);
    if (row.apart)
      CHECK(handled == commits);
  }
  stop(*child);
}

TEST_CASE("it lives and is not ready while PostgreSQL is away, also before it was ever there") {
  PostgresServer server;
  Site site(2);
  site.url = server.create_database("away");
  make_tables(site);
  const Watched watched(site);
  site.pay(0, "bad", "a", "\"no number\"");
  site.pay_many(1, "fine-", 5);
  server.stop();
  const auto child = site.start(kOneTry);
  watched.wait_for("/ready", 503);
  wait_until(
      [&] {
        return watched.ask("/ready").body.find("Waiting for PostgreSQL") != std::string::npos;
      },
      kDeadline, "the reason");
  CHECK(watched.ask("/live").status == 200);
  CHECK(watched.ask("/metrics").status == 200);

  server.start();
  watched.wait_for("/ready", 200);
  site.wait_for_sql("SELECT count(*) FROM ledger", "5");
  watched.wait_for_metric("pawl_partition_halted", 0, 1);
  CHECK(watched.ask("/ready").status == 200);
  CHECK(watched.ask("/live").status == 200);

  server.stop(StopMode::kImmediate);
  watched.wait_for("/ready", 503);
  CHECK_THAT(watched.ask("/ready").body, ContainsSubstring("PostgreSQL cannot be used: "));
  CHECK(watched.ask("/live").status == 200);
  CHECK(watched.metric("pawl_database_up") == 0.0);
  CHECK(watched.metric("pawl_ready") == 0.0);

  server.start();
  watched.wait_for("/ready", 200);
  wait_until([&] { return watched.metric("pawl_partition_reacquired_total", 1) > 0.0; }, kDeadline,
             "the partition to be taken anew");
  CHECK(watched.metric("pawl_database_connections_lost_total").value_or(0) > 0);
  stop(*child);
}

TEST_CASE("a partition on probation is a metric while its suspects run alone") {
  Site site;
  site.kafka_lines = "session_timeout = \"6s\"\n";
  // Each payment waits in its own transaction until the gate is open.
  site.sql(
      "CREATE TABLE gate (open boolean);"
      "CREATE FUNCTION wait_for_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOOP "
      "EXIT WHEN EXISTS (SELECT FROM gate); PERFORM pg_sleep(0.05); END LOOP; RETURN NEW; END $$;"
      "CREATE TRIGGER wait_for_gate BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION "
      "wait_for_gate()");
  site.pay_many(0, "e", 3);
  const Watched watched(site);
  const auto killed = site.start();
  const std::string sessions =
      "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
  site.wait_for_sql("SELECT count(*) > 0 FROM " + sessions + " AND wait_event = 'PgSleep'", "t");
  killed->kill(SIGKILL);
  killed->wait(kDeadline);
  // A session that lives would speak for its process.
  site.sql("SELECT count(pg_terminate_backend(pid)) FROM " + sessions);
  const auto child = site.start();
  watched.wait_for_metric("pawl_partition_on_probation", 0, 1);
  site.sql("INSERT INTO gate VALUES (true)");
  watched.wait_for_metric("pawl_partition_on_probation", 0, 0);
  CHECK(site.stored(0) == 2);
  CHECK(watched.metric("pawl_partition_fetch_crashes", 0) == 0.0);
  stop(*child);
}

TEST_CASE("only GET and HEAD are served, and the text is what Prometheus reads") {
  Site site;
  const Watched watched(site);
  site.pay_many(0, "fine-", 5);
  site.pay(0, "bad", "a", "\"no number\"");
  const auto child = site.start(kOneTry);
  site.wait_for_stored(0, 4);
  watched.wait_for("/ready", 200);
  CHECK(watched.ask("/metrics", "POST").status == 405);
  CHECK(watched.ask("/metrics", "DELETE").status == 405);
  CHECK(watched.ask("/nothing").status == 404);
  const auto head = watched.ask("/metrics", "HEAD");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  watched.wait_for_metric("pawl_partition_halted", 0, 1);
  const auto metrics = watched.ask("/metrics");
  CHECK(metrics.type == "text/plain; version=0.0.4; charset=utf-8");

  const TempDir folder("promtool");
  write_file(folder.path() / "metrics", metrics.body);
  ChildProcess promtool(
      "/bin/sh", {"-c", "exec promtool check metrics < " + (folder.path() / "metrics").string()},
      {.environment = {},
       .output = folder.path() / "out",
       .errors = folder.path() / "err",
       .working_directory = {}});
  CHECK(promtool.wait(kDeadline).code == 0);
  INFO(metrics.body);
  CHECK(read_file(folder.path() / "out") == "");
  CHECK(read_file(folder.path() / "err") == "");
  stop(*child);
}

TEST_CASE("leases held are the calls that are under way") {
  Site site;
  // It takes connections and never answers.
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(silent, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(silent, 8) == 0);
  REQUIRE(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  site.handler = fmt::format(
      "http = {{ url = \"http://127.0.0.1:{}/\", timeout = \"60s\" }}\n"
      "concurrency = 4\norder_by = \"{{header:event-id}}\"\n",
      ntohs(address.sin_port));
  const Watched watched(site);
  const auto child = site.start({"--set", "consumer.shutdown_timeout=2s"});
  wait_until([&] { return watched.metric("pawl_calls_in_flight") == 0.0; }, kDeadline,
             "no call to be made");
  site.pay_many(0, "call-", 3);
  wait_until([&] { return watched.metric("pawl_calls_in_flight") == 3.0; }, kDeadline,
             "three calls to be under way");
  CHECK(nlohmann::json::parse(watched.ask("/status").body).at("calls_in_flight") == 3);
  site.wait_for_sql("SELECT count(*) FROM pawl.leases WHERE owner IS NOT NULL", "3");
  child->kill(SIGTERM);
  child->wait(kDeadline);
  ::close(silent);
}

TEST_CASE("a process that only relays tells what it publishes, and whether it can") {
  PostgresServer server;
  RelaySite site;
  site.url = server.create_database("relay");
  const Watched watched(site, site.outbox_lines);
  const auto relay = site.start_relay();
  watched.wait_for("/ready", 200);
  for (int i = 0; i < 5; ++i)
    site.publish(site.topic, std::to_string(i), "value");
  wait_until([&] { return watched.metric("pawl_outbox_published_total") == 5.0; }, kDeadline,
             "five messages to be published");
  wait_until([&] { return watched.metric("pawl_outbox_shards") == 4.0; }, kDeadline,
             "all lanes to be its own");
  CHECK(watched.metric("pawl_outbox_rejected_total") == 0.0);
  wait_until([&] { return watched.metric("pawl_outbox_oldest_age_seconds") == 0.0; }, kDeadline,
             "nothing to wait in the outbox");
  const auto status = nlohmann::json::parse(watched.ask("/status").body);
  CHECK(violation(status, json_schemas().at(kStatusPage)).empty());
  CHECK(status.at("group").is_null());
  server.stop(StopMode::kImmediate);
  watched.wait_for("/ready", 503);
  const auto unready = watched.ask("/ready").body;
  const std::string text = "not ready: PostgreSQL cannot be used: ";
  CHECK_THAT(unready, Catch::Matchers::StartsWith(text));
  CHECK(unready.size() > text.size() + 10);
  CHECK(watched.ask("/live").status == 200);
  server.start();
  watched.wait_for("/ready", 200);
  stop(*relay);
}

TEST_CASE(
    "a process that only relays knows of its database also if nobody looks for late messages") {
  PostgresServer server;
  RelaySite site;
  site.url = server.create_database("relay");
  site.outbox_lines = "alert_age = \"0s\"\n";
  const Watched watched(site, site.outbox_lines);
  const auto relay = site.start_relay();
  wait_until([&] { return watched.metric("pawl_outbox_shards") == 4.0; }, kDeadline,
             "all lanes to be its own");
  server.stop(StopMode::kImmediate);
  watched.wait_for("/ready", 503);
  server.start();
  watched.wait_for("/ready", 200);
  stop(*relay);
}

TEST_CASE("an address that cannot be listened on is refused with its option") {
  Site site;
  site.more = "\n[monitoring]\nlisten = \"localhost\"\n";
  for (const auto* command : {"check", "run"}) {
    const auto refused = site.run({command});
    CHECK(refused.code == 2);
    CHECK_THAT(refused.out + refused.err, ContainsSubstring("monitoring.listen = \"localhost\""));
  }

  Site other;
  const Watched watched(other);
  const auto child = other.start();
  watched.wait_for("/live", 200);
  site.more = fmt::format("\n[monitoring]\nlisten = \"127.0.0.1:{}\"\n", watched.port());
  const auto taken = site.run({"run"});
  CHECK(taken.code == 1);
  CHECK_THAT(taken.err, ContainsSubstring(
                            fmt::format("monitoring.listen = \"127.0.0.1:{}\"", watched.port())) &&
                            ContainsSubstring("Address already in use"));
  // Of a network that is nobody's (RFC 5737).
  site.more = "\n[monitoring]\nlisten = \"192.0.2.1:9464\"\n";
  const auto foreign = site.run({"run"});
  CHECK(foreign.code == 1);
  CHECK_THAT(foreign.err, ContainsSubstring("monitoring.listen = \"192.0.2.1:9464\"") &&
                              ContainsSubstring("Cannot assign requested address"));
  stop(*child);
}
