#include "ops/monitoring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/json_schema.hpp"
#include "config/listen_address.hpp"
#include "prelude.hpp"

using namespace pawl::ops;
using pawl::Event;
using pawl::PartitionSnapshot;
using pawl::Step;
using pawl::Timestamp;
using pawl::config::ListenAddress;
using pawl::config::parse_listen_address;

namespace {

Timestamp at(std::int64_t ms) {
  return Timestamp(std::chrono::milliseconds(ms));
}

PartitionSnapshot standing_at(std::optional<std::int64_t> next, std::optional<std::int64_t> end) {
  PartitionSnapshot snapshot{{"payments", 3}};
  snapshot.next = next;
  snapshot.log_end = end;
  return snapshot;
}

/// Asked by the machine's own name, or by another.
HttpAnswer answer(const std::string& method, const std::string& path,
                  const MetricsObserver& metrics, const ProcessLook& look,
                  const std::string& host = "box:9464") {
  HttpRequest request;
  request.method = method;
  request.path = path;
  request.header = [&](const std::string&) { return host; };
  return answer(request, HostNames("box", {"pawl.example.org"}), metrics, look);
}

}  // namespace

TEST_CASE("a name that is not this process's is refused, and the option told that adds it") {
  struct Case {
    std::string host;
    bool known;
  };
  const auto [host, known] = GENERATE(values<Case>({
      {"127.0.0.1:9465", true},
      {"[::1]:9465", true},
      {"localhost:9465", true},
      {"BOX:9465", true},
      {"box", true},
      {"pawl.example.org", true},
      {"Pawl.Example.org:80", true},
      {"x.pawl.example.org", false},
      {"example.org", false},
      {"box.example.org", false},
      {"evil.example:9465", false},
      {"boxer.example:9465", false},
      {"", false},
  }));
  const auto why = HostNames("box", {"PAWL.example.org"}).refusal(host);
  CAPTURE(host);
  CHECK(why.has_value() != known);
  if (host == "evil.example:9465")
    CHECK_THAT(why.value_or(""), ContainsSubstring("set monitoring.hosts = [\"evil.example\"]"));
}

TEST_CASE("a machine that has its name whole is reached by that and by the first part") {
  const HostNames names("box.example.org", {});
  for (const auto* host : {"box.example.org:1", "box:1"})
    CHECK_FALSE(names.refusal(host));
  for (const auto* host : {"box.example.org.evil.example:1", "bo:1", "example.org:1"})
    CHECK(names.refusal(host));
}

TEST_CASE("the reasons of halts are told under known names only, all else under any") {
  const MetricsObserver metrics;
  const ProcessLook look;
  const auto refused = answer("GET", "/status", metrics, look, "evil.example");
  CHECK(refused.status == 403);
  CHECK_THAT(refused.body, ContainsSubstring("monitoring.hosts"));
  CHECK(answer("GET", "/status", metrics, look, "pawl.example.org").status == 200);
  for (const auto* path : {"/metrics", "/live", "/ready"})
    CHECK(answer("GET", path, metrics, look, "evil.example").status == 200);
}

TEST_CASE("an address to listen on is numbers") {
  CHECK(parse_listen_address("127.0.0.1:9464") == ListenAddress{"127.0.0.1", 9464});
  CHECK(parse_listen_address("0.0.0.0:1") == ListenAddress{"0.0.0.0", 1});
  CHECK(parse_listen_address("[::1]:65535") == ListenAddress{"::1", 65535});
  CHECK(parse_listen_address("[::]:9464") == ListenAddress{"::", 9464});
  for (const auto* wrong :
       {"9464", ":9464", "localhost:9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:94x", "127.0.0.1:+94", "127.0.0.1: 94",
        "::1:9464", "[127.0.0.1]:9464", "[::1]", "[]:1", "http://127.0.0.1:1", "127.0.0.1:1/"}) {
    INFO(wrong);
    CHECK_FALSE(parse_listen_address(wrong));
  }
}

TEST_CASE("the oldest message's age is known once it is fetched, and nothing without one") {
  auto partition = standing_at(7, 7);
  CHECK(oldest_age(partition, at(5000)) == std::chrono::milliseconds(0));
  partition = standing_at(7, 9);
  CHECK(oldest_age(partition, at(5000)) == std::nullopt);
  partition.waits_since = at(2000);
  CHECK(oldest_age(partition, at(5000)) == std::chrono::milliseconds(3000));
  CHECK(oldest_age(partition, at(1000)) == std::chrono::milliseconds(0));
  partition.log_end = std::nullopt;
  CHECK(oldest_age(partition, at(5000)) == std::nullopt);
}

TEST_CASE("a process lives while its threads go round, whatever else is the matter") {
  const MetricsObserver metrics;
  ProcessLook look;
  look.unready = "PostgreSQL cannot be used";
  look.silent_for = kDeadAfter - std::chrono::milliseconds(1);
  CHECK(answer("GET", "/live", metrics, look).status == 200);
  CHECK(answer("GET", "/ready", metrics, look).status == 503);
  CHECK(answer("GET", "/ready", metrics, look).body == "not ready: PostgreSQL cannot be used\n");
  look.unready.clear();
  CHECK(answer("GET", "/ready", metrics, look).status == 200);
  look.silent_for = kDeadAfter;
  CHECK(answer("GET", "/live", metrics, look).status == 503);
  CHECK_THAT(answer("GET", "/live", metrics, look).body, ContainsSubstring("60 s"));
}

TEST_CASE("only what is there is served, and only to be read") {
  const MetricsObserver metrics;
  const ProcessLook look;
  CHECK(answer("GET", "/", metrics, look).status == 404);
  CHECK(answer("GET", "/metrics/", metrics, look).status == 404);
  for (const auto* method : {"POST", "PUT", "DELETE", "OPTIONS"})
    CHECK(answer(method, "/metrics", metrics, look).status == 405);
  CHECK(answer("HEAD", "/metrics", metrics, look).status == 200);
}

TEST_CASE("the status has each partition with what is known of it, and null for what is not") {
  MetricsObserver metrics;
  metrics.on_event(Event{Step::kDatabaseConnected});
  ProcessLook look;
  look.version = "1.2.3";
  look.cluster = "default";
  look.group = "g";
  look.now = at(5000);
  look.partitions = {standing_at(7, 9), standing_at(std::nullopt, 9)};
  look.partitions[0].waits_since = at(4000);
  look.partitions[0].halted = true;
  look.partitions[0].halt_reason = "a table is missing";
  look.partitions.push_back(standing_at(8, 9));
  look.partitions[2].acquired = true;
  const auto status = nlohmann::json::parse(answer("GET", "/status", metrics, look).body);
  CHECK(violation(status, json_schemas().at(kStatusPage)).empty());
  CHECK(status.at("group") == "g");
  CHECK(status.at("ready") == true);
  CHECK(status.at("not_ready_reason").is_null());
  CHECK(status.at("database_reached") == true);
  CHECK(status.at("kafka_reached").is_null());
  const auto& first = status.at("partitions").at(0);
  CHECK(first.at("topic") == "payments");
  CHECK(first.at("partition") == 3);
  CHECK(first.at("lag") == 2);
  CHECK(first.at("oldest_age_ms") == 1000);
  CHECK(first.at("state") == "halted");
  CHECK(first.at("reason") == "a table is missing");
  CHECK(first.at("offset") == 7);
  CHECK(status.at("partitions").at(1).at("state").is_null());
  CHECK(status.at("partitions").at(2).at("state") == "running");
  CHECK(status.at("partitions").at(1).at("reason").is_null());
  CHECK(status.at("partitions").at(1).at("offset").is_null());
  CHECK(status.at("partitions").at(1).at("lag").is_null());
  look.partitions[0].halt_reason = std::string(900'000, 'x');
  CHECK(answer("GET", "/status", metrics, look).body.size() < 6000);
}

TEST_CASE("each event counts in the metric of its name, for its partition") {
  struct Case {
    Step step;
    std::string line;
  };
  const auto of_partition = [](const char* name) {
    return fmt::format("{}{{topic=\"payments\",partition=\"3\"}} ", name);
  };
  const auto count = GENERATE_COPY(values<Case>(
      {{Step::kMessageCommitted, of_partition("pawl_messages_applied_total")},
       {Step::kMessageDeduplicated, of_partition("pawl_messages_duplicate_total")},
       {Step::kMessageSkipped, of_partition("pawl_messages_skipped_total")},
       {Step::kMessageDeadLettered, of_partition("pawl_messages_dead_lettered_total")},
       {Step::kMessageParked, of_partition("pawl_messages_parked_total")},
       {Step::kRetryScheduled, of_partition("pawl_messages_retry_scheduled_total")},
       {Step::kRetrySucceeded, of_partition("pawl_messages_retry_succeeded_total")},
       {Step::kCommitOutcomeUnknown, of_partition("pawl_commit_outcomes_unknown_total")},
       {Step::kPartitionFenced, of_partition("pawl_partition_fenced_total")},
       {Step::kPartitionAssigned, of_partition("pawl_partition_reacquired_total")},
       {Step::kPartitionHalted, of_partition("pawl_partition_halts_total")},
       {Step::kDatabaseDisconnected, "pawl_database_connections_lost_total "}}));
  INFO(count.line);
  MetricsObserver metrics;
  const ProcessLook look;
  Event event{count.step};
  event.topic = "payments";
  event.partition = 3;
  const auto text = [&] { return answer("GET", "/metrics", metrics, look).body; };
  metrics.on_event(event);
  CHECK_THAT(text(), ContainsSubstring("\n" + count.line + "1\n"));
  // Halted where it is halted already, it has halted once.
  metrics.on_event(event);
  CHECK_THAT(text(), ContainsSubstring("\n" + count.line +
                                       (count.step == Step::kPartitionHalted ? "1\n" : "2\n")));
}

TEST_CASE("the outbox is late by the last look of the one who looks, for as long as that counts") {
  MetricsObserver metrics(std::chrono::seconds(3));
  const auto now = std::chrono::steady_clock::now();
  CHECK_FALSE(metrics.outbox_late(now));
  // Whoever had looked before has told others.
  metrics.on_event(Event{Step::kOutboxLate});
  CHECK_FALSE(metrics.outbox_late(now));
  Event seen{Step::kOutboxSampled};
  seen.waits = std::chrono::milliseconds(3001);
  metrics.on_event(seen);
  CHECK(metrics.outbox_late(now) == true);
  CHECK_FALSE(metrics.outbox_late(now + std::chrono::hours(1)));
  seen.waits = std::chrono::milliseconds(3000);
  metrics.on_event(seen);
  CHECK(metrics.outbox_late(now) == false);
}

TEST_CASE("the reason of a halt in the status has a limit") {
  const MetricsObserver metrics;
  ProcessLook look;
  look.partitions = {standing_at(7, 9)};
  look.partitions[0].halted = true;
  look.partitions[0].halt_reason = std::string(900'000, 'x');
  const auto body = answer("GET", "/status", metrics, look).body;
  CHECK(body.size() < 10'000);
  CHECK_THAT(nlohmann::json::parse(body).at("partitions").at(0).at("reason").get<std::string>(),
             Catch::Matchers::EndsWith("bytes omitted)"));
}

TEST_CASE("what messages wait for stands in the status and in metrics while it lasts") {
  const MetricsObserver metrics;
  ProcessLook look;
  const auto body = [&](const char* path) { return answer("GET", path, metrics, look).body; };
  CHECK(nlohmann::json::parse(body("/status")).at("conditions").empty());
  CHECK_THAT(body("/metrics"), !ContainsSubstring("pawl_remote_service") &&
                                   !ContainsSubstring("pawl_partition_blocked"));
  auto& remote = look.conditions.emplace_back();
  remote.kind = pawl::Condition::Kind::kRemoteServiceUnreachable;
  remote.subject = "https://api.example";
  remote.since = pawl::Timestamp(std::chrono::milliseconds(1'800'000'000'000));
  remote.messages = 12;
  remote.cause = "refused";
  auto& blocked = look.conditions.emplace_back();
  blocked.kind = pawl::Condition::Kind::kPartitionBlocked;
  blocked.subject = "t[3]";
  blocked.topic = "t";
  blocked.partition = 3;
  CHECK(violation(nlohmann::json::parse(body("/status")), json_schemas().at(kStatusPage)).empty());
  CHECK(nlohmann::json::parse(body("/status")).at("conditions").at(0) ==
        nlohmann::json({{"kind", "remote_service_unreachable"},
                        {"subject", "https://api.example"},
                        {"since", "2027-01-15T08:00:00Z"},
                        {"messages", 12},
                        {"cause", "refused"},
                        {"lasting", true},
                        {"blocking_pid", nullptr}}));
  CHECK_THAT(
      body("/metrics"),
      ContainsSubstring("pawl_remote_service_unreachable{endpoint=\"https://api.example\"} 1\n") &&
          ContainsSubstring("pawl_remote_service_waiting_messages{endpoint=\"https://"
                            "api.example\"} 12\n") &&
          ContainsSubstring("pawl_partition_blocked{topic=\"t\",partition=\"3\"} 1\n"));
  look.conditions.back().lasting = false;
  CHECK(nlohmann::json::parse(body("/status")).at("conditions").at(1).at("lasting") == false);
  CHECK_THAT(body("/metrics"), !ContainsSubstring("pawl_partition_blocked"));
}

TEST_CASE("servers, leases, the outbox and warnings stand in their metrics") {
  MetricsObserver metrics(std::chrono::seconds(3));
  ProcessLook look;
  look.silent_for = std::chrono::milliseconds(2500);
  look.unready = "it begins";
  const auto text = [&] { return answer("GET", "/metrics", metrics, look).body; };
  CHECK_THAT(text(),
             ContainsSubstring("pawl_heartbeat_age_seconds 2.5\n") &&
                 ContainsSubstring("pawl_ready 0\n") && !ContainsSubstring("pawl_kafka_up") &&
                 !ContainsSubstring("pawl_redis_up") && !ContainsSubstring("pawl_outbox_late"));
  for (const auto step : {Step::kKafkaUnreachable, Step::kRedisUnreachable})
    metrics.on_event(Event{step});
  CHECK_THAT(text(),
             ContainsSubstring("pawl_kafka_up 0\n") && ContainsSubstring("pawl_redis_up 0\n"));
  Event warning{Step::kWarning};
  warning.warning = pawl::Warning::kLeaseLost;
  Event seen{Step::kOutboxSampled};
  seen.waits = std::chrono::seconds(4);
  for (const auto& event : {Event{Step::kKafkaReachable}, Event{Step::kRedisReachable},
                            Event{Step::kOutboxShardAcquired}, seen, warning})
    metrics.on_event(event);
  CHECK_THAT(text(), ContainsSubstring("pawl_kafka_up 1\n") &&
                         ContainsSubstring("pawl_redis_up 1\n") &&
                         ContainsSubstring("pawl_outbox_late 1\n") &&
                         ContainsSubstring("pawl_leases_lost_total 1\n") &&
                         ContainsSubstring("pawl_warnings_total{code=\"lease_lost\"} 1\n"));
  seen.waits = std::chrono::seconds(0);
  metrics.on_event(seen);
  CHECK_THAT(text(), ContainsSubstring("pawl_outbox_late 0\n"));
}

TEST_CASE("a partition's state is a flag for each") {
  const MetricsObserver metrics;
  ProcessLook look;
  look.partitions = {standing_at(7, 9)};
  look.partitions[0].acquired = true;
  look.partitions[0].paused = true;
  const std::string labels = "{topic=\"payments\",partition=\"3\"} ";
  CHECK_THAT(answer("GET", "/metrics", metrics, look).body,
             ContainsSubstring("pawl_partition_acquired" + labels + "1\n") &&
                 ContainsSubstring("pawl_partition_paused" + labels + "1\n") &&
                 ContainsSubstring("pawl_partition_halted" + labels + "0\n"));
}

TEST_CASE("what partitions and classes there are bounds the metrics, not what was processed") {
  MetricsObserver metrics;
  const ProcessLook look;
  const auto lines = [&] {
    return std::ranges::count(answer("GET", "/metrics", metrics, look).body, '\n');
  };
  Event event{Step::kMessageCommitted};
  event.topic = "payments";
  event.partition = 3;
  metrics.on_event(event);
  const auto once = lines();
  for (int i = 0; i < 1000; ++i) {
    event.offset = i;
    const auto key = fmt::format("key-{}", i);
    event.detail = key;
    for (const auto step :
         {Step::kMessageCommitted, Step::kMessageDeduplicated, Step::kMessageParked}) {
      event.step = step;
      metrics.on_event(event);
    }
  }
  CHECK(lines() == once);
}

TEST_CASE("metrics have no line for what is not known") {
  MetricsObserver metrics;
  ProcessLook look;
  look.version = "1.2.3";
  const auto before = answer("GET", "/metrics", metrics, look).body;
  CHECK_THAT(before, ContainsSubstring("pawl_build_info{version=\"1.2.3\"} 1\n") &&
                         !ContainsSubstring("pawl_database_up") &&
                         !ContainsSubstring("pawl_lag_messages") &&
                         !ContainsSubstring("pawl_calls_in_flight") &&
                         !ContainsSubstring("pawl_outbox"));
  look.leases_held = 0;
  Event seen{Step::kOutboxSampled};
  seen.waits = std::chrono::milliseconds(1500);
  metrics.on_event(seen);
  look.partitions = {standing_at(7, 9), standing_at(std::nullopt, 9)};
  look.partitions[1].partition.partition = 4;
  look.partitions[1].on_probation = true;
  look.partitions[1].fetch_crashes = 2;
  Event committed{Step::kMessageCommitted};
  committed.topic = "pay\"ments";
  committed.partition = 3;
  metrics.on_event(committed);
  metrics.on_event(Event{Step::kDatabaseUnreachable});
  const auto text = answer("GET", "/metrics", metrics, look).body;
  CHECK_THAT(text,
             ContainsSubstring("pawl_database_up 0\n") &&
                 ContainsSubstring("pawl_calls_in_flight 0\n") &&
                 ContainsSubstring("pawl_outbox_oldest_age_seconds 1.5\n") &&
                 ContainsSubstring("# TYPE pawl_lag_messages gauge\n") &&
                 ContainsSubstring("pawl_lag_messages{topic=\"payments\",partition=\"3\"} 2\n") &&
                 !ContainsSubstring("pawl_lag_messages{topic=\"payments\",partition=\"4\"}") &&
                 ContainsSubstring("pawl_log_end_offset{topic=\"payments\",partition=\"4\"} 9\n") &&
                 ContainsSubstring(
                     "pawl_partition_on_probation{topic=\"payments\",partition=\"3\"} 0\n") &&
                 ContainsSubstring(
                     "pawl_partition_on_probation{topic=\"payments\",partition=\"4\"} 1\n") &&
                 ContainsSubstring(
                     "pawl_partition_fetch_crashes{topic=\"payments\",partition=\"4\"} 2\n") &&
                 ContainsSubstring(
                     "pawl_messages_applied_total{topic=\"pay\\\"ments\",partition=\"3\"} 1\n"));
}
