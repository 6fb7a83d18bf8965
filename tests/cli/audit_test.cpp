// The books of a consumer that has stopped: they agree, and each way to corrupt them is found.
#include "audited_site.hpp"
#include "prelude.hpp"

namespace {

/// Something that never happens by itself, and what an audit then says.
struct Corruption {
  std::string sql;
  Found full;
  Found fast;
};

void check_corruption(AuditedSite& site, const Corruption& corruption) {
  // The books are put back afterwards, whatever was changed in them.
  const std::vector<std::string> tables{"idempotency_keys", "processed_kafka_offsets",
                                        "dead_letters", "skipped_messages", "parked_keys"};
  for (const auto& table : tables)
    site.sql("CREATE TABLE saved_" + table + " AS TABLE pawl." + table);
  site.sql(corruption.sql);
  INFO(corruption.sql);
  CHECK(site.findings() == corruption.full);
  CHECK(site.findings({"--fast"}) == corruption.fast);
  for (const auto& table : tables) {
    site.sql("DELETE FROM pawl." + table);
    site.sql("INSERT INTO pawl." + table + " OVERRIDING SYSTEM VALUE TABLE saved_" + table);
    site.sql("DROP TABLE saved_" + table);
  }
}

std::string change_row(const std::string& what) {
  return "UPDATE pawl.processed_kafka_offsets SET " + what +
         " WHERE partition = 0 AND topic LIKE 'payments%'";
}

std::string change_key(const std::string& key, const std::string& what) {
  return "UPDATE pawl.idempotency_keys SET " + what + " WHERE key = '" + key + "'";
}

}  // namespace

TEST_CASE("an audit finds no inconsistency after messages that ended in every way") {
  AuditedSite site;
  site.process_all_kinds();
  const auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  REQUIRE(report.at("partitions").size() == 3);
  for (const auto& partition : report.at("partitions")) {
    INFO(partition.dump());
    if (partition.at("topic") == site.keyless) {
      CHECK(partition.at("records") == 3);
      CHECK(partition.at("unchecked") == 2);
      CHECK(partition.at("skipped") == 1);
    } else if (partition.at("partition") == 0) {
      CHECK(partition.at("records") == 14);
      CHECK(partition.at("applied") == 11);
      CHECK(partition.at("duplicates") == 1);
      CHECK(partition.at("dead_letters") == 1);
      CHECK(partition.at("parked") == 1);
    } else {
      CHECK(partition.at("records") == 6);
      CHECK(partition.at("applied") == 5);
      CHECK(partition.at("duplicates") == 1);
    }
  }
  CHECK(site.audit({"--fast"}).at("findings_total") == 0);

  const auto text = site.run({"audit"});
  CHECK(text.code == 0);
  CHECK_THAT(text.out, ContainsSubstring("DUPLICATES") && !ContainsSubstring("TOO OLD") &&
                           !ContainsSubstring("FINDINGS") &&
                           EndsWith("\nNo inconsistencies found (23 messages in 3 partitions "
                                    "checked).\n"));
  CHECK_THAT(site.run({"audit", "--verbose"}).out,
             ContainsSubstring("TOO OLD") && ContainsSubstring("FINDINGS"));
  CHECK_THAT(site.run({"audit", "--fast"}).out,
             EndsWith("\nNo inconsistencies found (offsets and counters of 3 partitions; no record "
                      "was read).\n"));
}

TEST_CASE("each corruption of the books is found at its place, and nothing else") {
  AuditedSite site;
  site.process_all_kinds();
  // Behind the stored offset: not processed, and no finding.
  site.pay_many(0, "late", 2);

  check_corruption(
      site, {"DELETE FROM pawl.idempotency_keys WHERE key = 'e4'", {"missing-key 0 4 e4"}, {}});
  check_corruption(site,
                   {change_key("e5", "payload_hash = payload_hash + 1"), {"payload 0 5 e5"}, {}});
  check_corruption(site, {change_key("e3", "payload_hash = payload_hash + 1"),
                          {"payload 0 3 e3", "conflict 0 10 e3"},
                          {}});
  check_corruption(site, {change_key("e6", "kafka_offset = 2"), {"position 0 2 e6"}, {}});
  check_corruption(
      site, {change_key("e6", "kafka_offset = 8"), {"position 0 6 e6", "position 0 8 e6"}, {}});
  check_corruption(site, {change_key("e6", "partition = 1, kafka_offset = 2"),
                          {"counters 0 - -", "position 1 2 e6"},
                          {}});
  check_corruption(
      site, {change_key("e6", "key = 'other'"), {"missing-key 0 6 e6", "position 0 6 other"}, {}});
  check_corruption(site, {change_key("e6", "kafka_offset = 1000"),
                          {"position 0 6 e6", "beyond-offset 0 1000 e6"},
                          {"beyond-offset 0 1000 e6"}});
  check_corruption(site, {"DELETE FROM pawl.dead_letters WHERE status = 'dead'",
                          {"counters 0 - -", "missing-key 0 11 bad"},
                          {"counters 0 - -"}});
  check_corruption(site, {"DELETE FROM pawl.skipped_messages",
                          {"counters 0 - -", "missing-record 0 2 -"},
                          {"counters 0 - -"}});
  check_corruption(site, {"DELETE FROM pawl.parked_keys", {"parked 0 12 -"}, {"parked 0 12 -"}});
  check_corruption(site, {"UPDATE pawl.dead_letters SET due_at = 'infinity' WHERE status = 'dead'",
                          {"parked 0 11 -"},
                          {"parked 0 11 -"}});
  check_corruption(site, {"UPDATE pawl.dead_letters SET status = 'replayed', resolved_at = now(),"
                          " resolution = 'applied' WHERE status = 'dead'",
                          {"missing-key 0 11 bad"},
                          {"replayed 0 11 -"}});
  check_corruption(
      site,
      {change_row("applied_count = applied_count + 1"), {"counters 0 - -"}, {"counters 0 - -"}});
  check_corruption(site, {change_row("applied_count = applied_count - 1"), {"counters 0 - -"}, {}});
  check_corruption(site, {change_row("applied_count = applied_count + 1,"
                                     " duplicate_count = duplicate_count - 1"),
                          {"counters 0 - -"},
                          {}});

  // The history has the offset of this message, which is not a stored offset.
  site.sql(
      "INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset,"
      " to_offset) SELECT consumer_id, topic, partition, 'dlq discard', 1000, 1000"
      "  FROM pawl.processed_kafka_offsets WHERE partition = 0 AND topic LIKE 'payments%'");
  check_corruption(site, {change_key("e6", "kafka_offset = 1000"), {"position 0 6 e6"}, {}});
  check_corruption(site, {change_key("e6", "kafka_offset = 999"),
                          {"position 0 6 e6", "beyond-offset 0 999 e6"},
                          {"beyond-offset 0 999 e6"}});
}

TEST_CASE("a stored offset that was moved is found, forward and back") {
  AuditedSite site;
  site.process_all_kinds();
  site.pay_many(0, "late", 2);

  check_corruption(site, {change_row("last_processed_offset = 15"),
                          {"missing-key 0 14 late0", "missing-key 0 15 late1", "counters 0 - -"},
                          {}});
  check_corruption(site, {change_row("last_processed_offset = 1000"),
                          {"offset 0 - -", "missing-key 0 14 late0", "missing-key 0 15 late1"},
                          {"offset 0 - -"}});
  check_corruption(site, {change_row("last_processed_offset = 10"),
                          {"counters 0 - -", "counters 0 - -", "beyond-offset 0 11 -",
                           "beyond-offset 0 12 -", "beyond-offset 0 13 e10"},
                          {"counters 0 - -", "counters 0 - -", "beyond-offset 0 11 -",
                           "beyond-offset 0 12 -", "beyond-offset 0 13 e10"}});
  CHECK(site.audit().at("findings_total") == 0);
}

TEST_CASE("a stored offset whose record is not in the log any more is found by its leader epoch") {
  AuditedSite site;
  site.process_all_kinds();
  REQUIRE(site.sql("SELECT string_agg(DISTINCT leader_epoch::text, ' ')"
                   "  FROM pawl.processed_kafka_offsets WHERE applied_count > 0") == "0");
  // Of an epoch that the log does not know, as after it was put back.
  check_corruption(site, {change_row("leader_epoch = 5"), {"offset 0 - -"}, {"offset 0 - -"}});
  // And not compared where it is unknown, as after `offsets set`.
  check_corruption(site, {change_row("leader_epoch = NULL"), {}, {}});
}

TEST_CASE("an audit prints as many findings as asked for, and counts all") {
  AuditedSite site;
  site.process_all_kinds();
  site.sql("DELETE FROM pawl.idempotency_keys WHERE partition = 1");
  const auto report = site.audit({"--max-findings", "2"});
  CHECK(report.at("findings").size() == 2);
  CHECK(report.at("findings_total") == 6);
  const auto text = site.run({"audit", "--max-findings", "1"});
  CHECK(text.code == 3);
  CHECK_THAT(text.out, ContainsSubstring(site.topic + "[1]@0 key \"f0\": its key is not stored") &&
                           ContainsSubstring(" --topic " + site.topic + " --partition 1 --to 0") &&
                           ContainsSubstring("... 5 more: --max-findings N\n") &&
                           ContainsSubstring("6 findings."));
}

TEST_CASE("an audit may be narrowed to a topic, a partition, the newest records or a time") {
  AuditedSite site;
  site.process_all_kinds();
  site.sql("DELETE FROM pawl.idempotency_keys WHERE key IN ('e0', 'f1')");
  CHECK(site.findings() == Found{"missing-key 0 0 e0", "missing-key 1 1 f1"});
  CHECK(site.findings({"--topic", site.keyless}).empty());
  CHECK(site.findings({"--topic", site.topic, "--partition", "1"}) == Found{"missing-key 1 1 f1"});
  CHECK(site.findings({"--limit", "5"}) == Found{"missing-key 1 1 f1"});
  CHECK(site.findings({"--limit", "4"}).empty());
  CHECK(site.findings({"--from-timestamp", "2020-01-01T00:00:00Z"}).size() == 2);
  CHECK(site.findings({"--from-timestamp", "2100-01-01T00:00:00Z"}).empty());
}

TEST_CASE("a role that may only read can audit") {
  AuditedSite site;
  site.process_all_kinds();
  const auto role = "auditor_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql("GRANT USAGE ON SCHEMA pawl TO " + role);
  site.sql("GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO " + role);
  site.url.replace(site.url.find("postgres@"), 9, role + "@");
  const auto outcome = site.run({"audit"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("the application's own checks run with the audit, read-only") {
  AuditedSite site;
  site.process_all_kinds();
  site.more +=
      "[audit]\ntimeout = \"200ms\"\nsql = [\n"
      "  { name = \"sums\", text = \"SELECT a.id, a.balance FROM accounts a WHERE a.id = 'a' AND "
      "a.balance <> (SELECT sum(amount) FROM ledger WHERE account = 'a');\" },\n"
      "  \"SELECT event_id, amount FROM ledger WHERE event_id LIKE 'e%' ORDER BY event_id\",\n"
      "  { name = \"writes\", text = \"DELETE FROM ledger RETURNING 1\" },\n"
      "  { name = \"slow\", text = \"SELECT pg_sleep(3600)\" },\n"
      "]\n";
  const auto report = site.audit({"--fast"});
  CHECK(report.at("findings_total") == 3);
  const auto& checks = report.at("checks");
  REQUIRE(checks.size() == 4);
  CHECK(checks[0].at("name") == "sums");
  CHECK(checks[0].at("rows") == 0);
  CHECK(checks[1].at("name") == "#2");
  CHECK(checks[1].at("rows") == 11);
  CHECK(checks[1].at("columns") == std::vector<std::string>{"event_id", "amount"});
  CHECK_FALSE(checks[1].contains("shown"));
  CHECK_FALSE(checks[2].at("problem").is_null());
  CHECK_THAT(checks[3].at("problem").get<std::string>(), ContainsSubstring("57014"));
  CHECK(report.at("incomplete") == true);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "16");

  const auto hidden = site.run({"audit", "--fast"});
  CHECK(hidden.code == 3);
  CHECK_THAT(hidden.out, ContainsSubstring("check #2: 11 rows (event_id, amount)") &&
                             !ContainsSubstring("event_id = e0"));
  const auto shown = site.run({"audit", "--fast", "--show-rows"});
  CHECK_THAT(shown.out, ContainsSubstring("event_id = e0, amount = 1"));
}

TEST_CASE("an audit that could not verify something exits with 1 if it has no other findings") {
  AuditedSite site;
  site.process_all_kinds();
  site.more += "[audit]\nsql = [\"SELECT 1 FROM no_such_table\"]\n";
  const auto outcome = site.run({"audit", "--fast", "--json"});
  CHECK(outcome.code == 1);
  const auto report = nlohmann::json::parse(outcome.out);
  CHECK(report.at("incomplete") == true);
  CHECK(report.at("findings").at(0).at("kind") == "check-failed");
}

TEST_CASE("a wrong call of audit is told, with exit code 2") {
  Site site;
  CHECK(site.run({"audit", "--topic", "no-such-topic"}).code == 2);
  CHECK(site.run({"audit", "--partition", "0"}).code == 2);
  CHECK(site.run({"audit", "--from-timestamp", "yesterday"}).code == 2);
  const auto wrong = site.run({"audit", "--set", R"(audit.sql=["SELECT {key}"])"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("audit.sql[0]"));
  const auto unknown = site.run({"audit"});
  CHECK(unknown.code == 1);
  CHECK_THAT(unknown.err, ContainsSubstring("has no consumer"));
}
