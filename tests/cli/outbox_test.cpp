// `relay` and `outbox` with a configuration of their own, and what of the outbox needs a person.
#include <csignal>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>

#include "aging_site.hpp"
#include "hook.hpp"
#include "prelude.hpp"
#include "relay_site.hpp"

namespace {

void stop(ChildProcess& child) {
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

std::string late_outbox(const Hook& hook) {
  return "[outbox]\nrelay = \"off\"\nalert_age = \"1s\"\n" + hook.section();
}

}  // namespace

TEST_CASE("a role with the rights of a relay relays and retries, with a configuration of its own") {
  RelaySite site;
  const auto role = "relay_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA pawl FROM PUBLIC");
  const auto owner = site.url;
  auto relay = owner;
  relay.replace(relay.find("postgres@"), 9, role + "@");
  site.url = relay;
  const auto lacking = site.run_relay({"check"});
  CHECK(lacking.code == 1);
  // One finding, and one command that can be pasted.
  CHECK_THAT(lacking.out,
             ContainsSubstring("pawl migrate grants --relay --role " + role + " | psql -h ") &&
                 ContainsSubstring(" -U postgres -d ") &&
                 ContainsSubstring("EXECUTE on function pawl.") &&
                 ContainsSubstring("\n1 check failed.\n"));

  site.url = owner;
  site.sql(run_script(scripts_folder() / "migrate", {"grants", "--relay", "--role", role}));
  site.publish(site.topic, "k", "arrives");
  site.publish("no-such-topic", "k", "is refused");
  site.url = relay;

  const auto check = site.run_relay({"check"});
  INFO(check.out);
  CHECK(check.code == 0);
  CHECK_THAT(check.out, ContainsSubstring("so only `relay` is checked"));
  const auto drained = site.run_relay({"relay", "--drain"});
  INFO(drained.err);
  CHECK(drained.code == 0);
  const auto records = read_topic(site.bootstrap, site.topic);
  REQUIRE(records.size() == 1);
  CHECK(records.front().value == "arrives");
  const auto status = site.run_relay({"outbox", "status", "--json"});
  CHECK(nlohmann::json::parse(status.out).at("failed") == 1);
  const auto retried = site.run_relay({"outbox", "retry", "--all", "--json"});
  CHECK(retried.code == 0);
  CHECK(nlohmann::json::parse(retried.out) ==
        nlohmann::json{{"requeued", 1}, {"not_found", nlohmann::json::array()}});
  CHECK(site.run_relay({"relay", "--drain"}).code == 0);
  const auto discarded =
      site.run_relay({"outbox", "discard", "2", "--because", "a test", "--json"});
  CHECK(discarded.code == 0);
  CHECK(nlohmann::json::parse(discarded.out) ==
        nlohmann::json{{"discarded", 1}, {"requeued", 0}, {"not_found", nlohmann::json::array()}});
  CHECK_THAT(site.run_relay({"outbox", "list"}).out,
             ContainsSubstring("No outbox message has failed."));

  // Nothing beyond that.
  pqxx::connection connection(site.url);
  for (const auto* refused : {"SELECT FROM pawl.idempotency_keys", "SELECT FROM pawl.dead_letters",
                              "UPDATE pawl.processed_kafka_offsets SET last_processed_offset = 0",
                              "SELECT pawl.publish('t', 'k', 'v')"}) {
    CAPTURE(refused);
    pqxx::nontransaction tx(connection);
    CHECK_THROWS_AS(tx.exec(refused), pqxx::insufficient_privilege);
  }
}

TEST_CASE("what lacks a group or a handler, and not both, is a consumer's, and incomplete") {
  RelaySite site;
  site.outbox_lines = "[[handler]]\ntopics = [\"t\"]\nsql = [\"SELECT 1\"]\nkey = \"{key}\"\n";
  const auto no_group = site.run_relay({"relay", "--drain"});
  CHECK(no_group.code == 2);
  CHECK_THAT(no_group.err, ContainsSubstring("kafka.group: not set"));
  site.outbox_lines = "";
  const auto no_handler = site.run_relay({"check", "--set", "kafka.group=g"});
  CHECK(no_handler.code == 2);
  CHECK_THAT(no_handler.out, ContainsSubstring("handler: none"));
  // Those that consume want both.
  const auto run = site.run_relay({"run"});
  CHECK(run.code == 2);
  CHECK_THAT(run.err,
             ContainsSubstring("kafka.group: not set") && ContainsSubstring("handler: none"));
  site.outbox_lines = "relais = \"on\"\n";
  const auto unknown = site.run_relay({"relay", "--drain"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("outbox.relais"));
}

TEST_CASE(
    "a message that waits too long is one alert of all processes, and the end of it another") {
  const auto hook = Hook::recording();
  Site site;
  site.more = late_outbox(hook);
  site.sql("SELECT pawl.publish('t', 'k', 'v')");
  const auto first = site.start();
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets", "1");
  const auto late = hook.wait_for("outbox-late");
  CHECK_THAT(late.at("msg").get<std::string>(),
             ContainsSubstring("outbox.alert_age = 1s") &&
                 ContainsSubstring("no process publishes") &&
                 ContainsSubstring("\n  pawl outbox status --config /"));
  // It is stored once it is told.
  site.wait_for_sql("SELECT reported FROM pawl.outbox_watch", "alerted");
  const auto holder = site.sql("SELECT holder FROM pawl.outbox_watch");

  const auto text = site.run({"outbox", "status", "--exit-code"});
  CHECK(text.code == 3);
  CHECK_THAT(text.out, ContainsSubstring("late (outbox.alert_age = 1s)"));
  const auto json = site.run({"outbox", "status", "--json"});
  CHECK(json.code == 0);
  CHECK(nlohmann::json::parse(json.out).at("late") == true);
  const auto status = site.run({"status", "--exit-code"});
  CHECK(status.code == 3);
  CHECK_THAT(status.out, ContainsSubstring("outbox late"));

  // The one that looks dies; another one knows what was told.
  const auto second = site.start();
  first->kill(SIGKILL);
  wait_until([&] { return site.sql("SELECT holder FROM pawl.outbox_watch") != holder; }, kDeadline,
             "the second process to look");
  site.sql("DELETE FROM pawl.outbox");
  hook.wait_for("outbox-caught-up");
  CHECK(site.run({"outbox", "status", "--exit-code"}).code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  stop(*second);
  CHECK(hook.count("outbox-late") == 1);
  CHECK(hook.count("outbox-caught-up") == 1);
}

TEST_CASE("a process that sends alerts looks in place of one that writes its log alone") {
  const auto hook = Hook::recording();
  Site site;
  site.more = "[outbox]\nrelay = \"off\"\nalert_age = \"1s\"\n";
  site.sql("SELECT pawl.publish('t', 'k', 'v')");
  const auto quiet = site.start();
  quiet->wait_for_output("the oldest message waits for", kDeadline);
  site.more = late_outbox(hook);
  const auto loud = site.start();
  hook.wait_for("outbox-late");
  CHECK(site.sql("SELECT alerts FROM pawl.outbox_watch") == "t");
  stop(*quiet);
  stop(*loud);
}

TEST_CASE("while PostgreSQL is away nobody is told that no message waits any more") {
  const auto hook = Hook::recording();
  PostgresServer server;
  Site site;
  site.url = server.create_database("away");
  site.sql("CREATE TABLE ledger (event_id text PRIMARY KEY, account text, amount bigint)");
  site.sql("CREATE TABLE accounts (id text, balance bigint, entries bigint)");
  site.more = late_outbox(hook) + "unreachable_after = \"500ms\"\n";
  site.sql("SELECT pawl.publish('t', 'k', 'v')");
  const auto child = site.start();
  hook.wait_for("outbox-late");
  server.stop(StopMode::kImmediate);
  hook.wait_for("database-unreachable");
  server.start();
  hook.wait_for("database-reachable");
  CHECK(hook.count("outbox-caught-up") == 0);
  wait_until(
      [&] {
        return site.sql(
                   "SELECT lease_until > now() + interval '1 second' FROM pawl.outbox_watch") ==
               "t";
      },
      kDeadline, "the next look");
  CHECK(hook.count("outbox-caught-up") == 0);
  site.sql("DELETE FROM pawl.outbox");
  hook.wait_for("outbox-caught-up");
  stop(*child);
  CHECK(hook.count("outbox-late") == 1);
}

TEST_CASE("a message that Kafka refuses is an alert of its topic, also of a process that relays") {
  const auto hook = Hook::recording();
  RelaySite site;
  site.outbox_lines = hook.section();
  site.publish("no-such-topic", "account-of-somebody", "v");
  const auto child = site.start_relay();
  const auto alert = hook.wait_for("outbox-rejected");
  CHECK(alert.at("topic") == "no-such-topic");
  CHECK_FALSE(alert.contains("group"));
  CHECK_FALSE(alert.contains("partition"));
  const auto detail = alert.at("msg").get<std::string>();
  CHECK_THAT(detail, ContainsSubstring("does not exist in Kafka") &&
                         ContainsSubstring("\n  pawl outbox retry --config /") &&
                         ContainsSubstring(".toml 1\n  pawl outbox discard --config /") &&
                         !ContainsSubstring("account-of-somebody"));
  site.wait_for_sql("SELECT count(*) FROM pawl.outbox_failed", "1");
  CHECK(site.run_relay({"outbox", "status", "--exit-code"}).code == 3);
  stop(*child);
}

TEST_CASE("of what was given up Kafka's reason is kept, and who gave it up, when and why") {
  RelaySite site;
  site.publish("no-such-topic", "k", "v");
  site.publish("no-such-topic", "other", "v");
  REQUIRE(site.run_relay({"relay", "--drain"}).code == 0);
  const auto refused = nlohmann::json::parse(site.run_relay({"outbox", "show", "1"}).out);
  CHECK(refused.at("resolution").is_null());
  CHECK(refused.at("resolved_by").is_null());
  CHECK(refused.at("resolved_at").is_null());
  REQUIRE(site.run_relay({"outbox", "discard", "1", "--because", "a test of it"}).code == 0);

  const auto shown = nlohmann::json::parse(site.run_relay({"outbox", "show", "1"}).out);
  CHECK(shown.at("status") == "discarded");
  CHECK(shown.at("reason") == "topic no-such-topic does not exist in Kafka");
  CHECK(shown.at("resolution") == "a test of it");
  CHECK(shown.at("resolved_by") == "postgres");
  CHECK(shown.at("resolved_at").get<std::string>() >= shown.at("failed_at").get<std::string>());
  const auto all = site.run_relay({"outbox", "list", "--discarded"});
  CHECK_THAT(all.out, ContainsSubstring("does not exist in Kafka") &&
                          ContainsSubstring("a test of it") && ContainsSubstring("BECAUSE"));
  CHECK(site.run_relay({"outbox", "list"}).out.find("BECAUSE") == std::string::npos);
}

TEST_CASE("a process that is there and cannot publish is told, with what Kafka says") {
  // Less than what a lane asks for, so Kafka refuses its producer.
  KafkaBroker broker({.settings = {"transaction.max.timeout.ms=1000"}});
  RelaySite site;
  site.bootstrap = broker.bootstrap();
  broker.create_topic(site.topic, 1);
  site.publish(site.topic, "k", "v");
  CHECK_THAT(
      site.run_relay({"outbox", "status"}).out,
      ContainsSubstring("no process publishes") && ContainsSubstring("its log contains the cause"));
  const auto child = site.start_relay();
  child->wait_for_output("Failed to acquire transactional PID", kDeadline);
  wait_until(
      [&] {
        return site.run_relay({"outbox", "status"}).out.find("cannot publish") != std::string::npos;
      },
      kDeadline, "the status to name the process that cannot publish");
  const auto status = site.run_relay({"outbox", "status"});
  CHECK_THAT(status.out, ContainsSubstring(" cannot publish and retries: ") &&
                             ContainsSubstring("imeout") &&
                             !ContainsSubstring("no process publishes"));
  const auto json = nlohmann::json::parse(site.run_relay({"outbox", "status", "--json"}).out);
  REQUIRE(json.at("relays").size() == 1);
  CHECK(json.at("relays")[0].at("transactions") == true);
  CHECK(json.at("relays")[0].at("problem").is_string());
  const auto checked = site.run_relay({"check"});
  INFO(checked.out);
  CHECK(checked.code == 1);
  CHECK_THAT(checked.out,
             ContainsSubstring("the brokers allow transactions of 1000 ms "
                               "(transaction.max.timeout.ms), and the outbox needs 15000 ms") &&
                 ContainsSubstring("\n1 check failed.\n"));
  site.outbox_lines = "transactions = false\n";
  CHECK(site.run_relay({"check"}).code == 0);
  stop(*child);
  // It has said that it is gone.
  CHECK(site.sql("SELECT count(*) FROM pawl.outbox_relays") == "0");
}

TEST_CASE("processes of one database that publish with and without transactions are told") {
  RelaySite site;
  site.outbox_lines = "transactions = true\n";
  const auto first = site.start_relay();
  site.wait_for_sql("SELECT transactions FROM pawl.outbox_relays", "t");
  site.outbox_lines = "transactions = false\n";
  const auto second = site.start_relay();
  second->wait_for_output("outbox.transactions is false here, but true in", kDeadline);
  first->wait_for_output("outbox.transactions is true here, but false in", kDeadline);
  stop(*second);
  stop(*first);
}

TEST_CASE("relay logs which shards it publishes, how many messages it publishes, and its end") {
  RelaySite site;
  site.publish(site.topic, "k", "v");
  site.outbox_lines = "[log]\nprogress_interval = \"1s\"\n";
  const auto child = site.start_relay();
  for (const auto* shard : {"0", "1", "2", "3"})
    child->wait_for_output("outbox_shard_acquired shard=" + std::string(shard) + " ", kDeadline);
  // A line a second; the message may be published before the last shard is acquired, or after that.
  child->wait_for_output(" progress_reported published=1 ", kDeadline);
  child->wait_for_output(" rejected=0 shards=4", kDeadline);
  stop(*child);
  CHECK_THAT(child->output(), ContainsSubstring("outbox_shard_released shard=3 ") &&
                                  ContainsSubstring(" relay_stopped published=1 rejected=0 "));
  site.publish(site.topic, "k", "w");
  CHECK_THAT(site.run_relay({"relay", "--drain"}).err,
             ContainsSubstring(" relay_stopped published=1 ") &&
                 ContainsSubstring("no message waits in the outbox"));
}

TEST_CASE("a relay logs an outage once, with its end, at the start and later") {
  PostgresServer server;
  KafkaBroker broker;
  RelaySite site(broker, server);
  site.publish(site.topic, "k", "v");
  site.outbox_lines = "[log]\nprogress_interval = \"500ms\"\n";
  server.stop();
  broker.kill();
  const auto child = site.start_relay();
  child->wait_for_output("PostgreSQL is unreachable: ", kDeadline);
  server.start();
  child->wait_for_output(" database_reachable outage_s=", kDeadline);
  child->wait_for_output("Kafka is unreachable: ", kDeadline);
  broker.start();
  child->wait_for_output(" kafka_reachable outage_s=", kDeadline);
  child->wait_for_output(" progress_reported published=1 ", kDeadline);
  const auto at_start = child->output();
  INFO(at_start);
  CHECK(occurrences(at_start, " database_unreachable: ") == 1);
  CHECK(occurrences(at_start, " kafka_unreachable: ") == 1);

  server.stop(StopMode::kImmediate);
  wait_until([&] { return occurrences(child->output(), " database_unreachable: ") == 2; },
             kDeadline, "the second outage of PostgreSQL");
  server.start();
  wait_until([&] { return occurrences(child->output(), " database_reachable outage_s=") == 2; },
             kDeadline, "its end");
  stop(*child);
  const auto log = child->output();
  CHECK(occurrences(log, " database_unreachable: ") == 2);
  CHECK(occurrences(log, " database_reachable outage_s=") == 2);
  CHECK(occurrences(log, " kafka_unreachable: ") == 1);
  CHECK(occurrences(log, " kafka_reachable outage_s=") == 1);
}

TEST_CASE("a halt because of pawl.publish names the statement that calls it") {
  struct Row {
    std::string call;
    std::string says;
  };
  const std::vector<Row> rows{
      {"pawl.publish({/account}, 'k', 'v')", "pawl.publish: 'no topic' is not a valid name"},
      {R"(pawl.publish('t', 'k', 'v', '{\"a\": 1}'))", "header a is not a text"},
  };
  for (const auto& [call, says] : rows) {
    CAPTURE(call);
    Site site;
    site.handler = "sql = [\"SELECT 1\", \"SELECT " + call + "\"]\n";
    site.pay(0, "e", "no topic", "1");
    const auto run = site.run({"run", "--drain", "--set", "failures.max_attempts=1"});
    CHECK(run.code == 4);
    CHECK_THAT(site.sql("SELECT concat_ws(': ', halt_parameters ->> 'statement', halt_cause)"
                        " FROM pawl.processed_kafka_offsets"),
               StartsWith("sql[1]: " + says));
  }
}

TEST_CASE("relay tells that PostgreSQL is away, and back") {
  const auto hook = Hook::recording();
  PostgresServer server;
  RelaySite site;
  site.url = server.create_database("away");
  site.outbox_lines = "alert_age = \"1s\"\n" + hook.section("unreachable_after = \"500ms\"\n");
  site.publish(site.topic, "k", "v");
  const auto child = site.start_relay();
  site.wait_for_sql("SELECT count(*) FROM pawl.outbox", "0");
  server.stop(StopMode::kImmediate);
  hook.wait_for("database-unreachable");
  server.start();
  hook.wait_for("database-reachable");
  stop(*child);
}

TEST_CASE("more messages than are counted are told as more") {
  Site site;
  site.sql(
      "INSERT INTO pawl.outbox (shard, topic, event_id)"
      " SELECT CASE WHEN n <= 100001 THEN 0 ELSE 1 END, 't', n::text"
      "   FROM generate_series(1, 200001) n");
  const auto json = nlohmann::json::parse(site.run({"outbox", "status", "--json"}).out);
  CHECK(json.at("waiting") == 200000);
  CHECK(json.at("more_waiting") == true);
  CHECK(json.at("shards")[0].at("waiting") == 100000);
  CHECK(json.at("shards")[0].at("more_waiting") == true);
  CHECK(json.at("shards")[1].at("waiting") == 100000);
  CHECK(json.at("shards")[1].at("more_waiting") == false);
  const auto text = site.run({"outbox", "status"}).out;
  CHECK_THAT(text, ContainsSubstring("more than 200,000 messages wait"));
}

TEST_CASE("retention removes what was given up of the outbox, and nothing that waits") {
  Aging site;
  site.pay_many(0, "e", 1);
  site.drain();
  site.sql(
      "INSERT INTO pawl.outbox_failed (outbox_id, shard, topic, event_id, created_at, failed_at,"
      "                                status, reason, resolved_at, resolved_by)"
      " SELECT n, 0, 't', n::text, now() - interval '90 days', now() - interval '90 days',"
      "        CASE WHEN n <= 1203 THEN 'discarded' WHEN n = 1204 THEN 'failed' ELSE 'waiting' END,"
      "        'why',"
      "        CASE WHEN n <= 1200 THEN now() - interval '31 days'"
      "             WHEN n <= 1203 THEN now() - interval '29 days' END, 'somebody'"
      "   FROM generate_series(1, 1205) n");
  const auto dry = site.prune({"--dry-run"});
  INFO(dry.out << dry.err);
  CHECK_THAT(dry.out, ContainsSubstring("1,200 discarded messages of the outbox"));
  CHECK(site.sql("SELECT count(*) FROM pawl.outbox_failed") == "1205");
  CHECK(nlohmann::json::parse(site.prune({"--json"}).out).at("outbox_discarded") == 1200);
  CHECK(site.sql("SELECT string_agg(status, ' ' ORDER BY outbox_id) FROM pawl.outbox_failed") ==
        "discarded discarded discarded failed waiting");
  site.sql(
      "UPDATE pawl.outbox_failed SET resolved_at = now() - interval '9 years'"
      " WHERE status = 'discarded'");
  const auto kept = site.prune({"--json", "--set", "retention.outbox=0s"});
  CHECK(nlohmann::json::parse(kept.out).at("outbox_discarded") == 0);
}
