// Books that look odd and are in order: a consumer that is running, logs with holes, positions that
// an operator moved, replays, and keys that retention removed.
#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "audited_site.hpp"
#include "prelude.hpp"

namespace {

/// The tally of one partition of the first topic.
nlohmann::json partition_of(const AuditedSite& site, const nlohmann::json& report, int partition) {
  for (const auto& entry : report.at("partitions")) {
    if (entry.at("topic") == site.topic && entry.at("partition") == partition)
      return entry;
  }
  return {};
}

/// The first offset that compaction has not looked at yet.
std::int64_t compacted_up_to(const std::string& topic) {
  std::ifstream file(KafkaBroker::shared().folder() / "data" / "cleaner-offset-checkpoint");
  std::string name;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::int64_t partition = 0;
    std::int64_t offset = 0;
    if (words >> name >> partition >> offset && name == topic && partition == 0)
      return offset;
  }
  return 0;
}

}  // namespace

TEST_CASE("an audit beside a running consumer finds nothing") {
  AuditedSite site;
  const auto child = site.start();
  // Before its first contact there are no books.
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE NOT released", "3");
  for (int round = 0; round < 6; ++round) {
    const auto prefix = "r" + std::to_string(round) + "-";
    site.pay_many(0, prefix, 400);
    site.pay_many(1, prefix, 200);
    site.pay(0, prefix + "bad", "b", "\"no number\"");
    site.pay(0, prefix + "waits", "b", "1");
    CHECK(site.findings().empty());
    CHECK(site.findings({"--fast"}).empty());
  }
  site.wait_for_stored(0, 6 * 402 - 1);
  site.wait_for_stored(1, 6 * 200 - 1);
  CHECK(site.findings().empty());
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline).code == 0);
}

TEST_CASE("aborted transactions and control records are no findings") {
  AuditedSite site;
  KafkaProducer producer(site.bootstrap, site.topic + "-producer");
  for (int i = 0; i < 6; ++i) {
    producer.begin();
    for (int n = 0; n < 3; ++n) {
      producer.send(site.topic, {.key = "a",
                                 .value = R"({"account": "a", "amount": 1})",
                                 .headers = {{"event-id", fmt::format("t{}-{}", i, n)}},
                                 .partition = 0});
    }
    producer.flush();
    if (i % 2 == 0) {
      producer.commit();
    } else {
      producer.abort();
    }
  }
  site.drain();
  const auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  CHECK(partition_of(site, report, 0).at("records") == 9);
  CHECK(site.findings({"--fast"}).empty());
  site.sql("DELETE FROM pawl.idempotency_keys WHERE key = 't2-1'");
  CHECK(site.findings() == Found{"missing-key 0 9 t2-1"});
}

TEST_CASE("records that compaction removed are no findings, and the others are still audited") {
  AuditedSite site;
  auto& broker = KafkaBroker::shared();
  broker.set_topic_config(site.topic, {{"cleanup.policy", "compact"},
                                       {"segment.ms", "100"},
                                       {"min.cleanable.dirty.ratio", "0.01"},
                                       {"min.compaction.lag.ms", "0"},
                                       {"delete.retention.ms", "0"}});
  // One record key: compaction leaves the last record of what it has looked at.
  site.pay_many(0, "c", 20);
  site.drain();
  int more = 0;
  wait_until(
      [&] {
        site.pay_many(0, fmt::format("m{}-", more++), 1);
        return compacted_up_to(site.topic) > 20;
      },
      kDeadline, "compaction");
  site.drain();
  const auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  CHECK(partition_of(site, report, 0).at("records") < 20 + more);
  const auto last = fmt::format("m{}-0", more - 1);
  const auto offset =
      site.sql("SELECT kafka_offset FROM pawl.idempotency_keys WHERE key = '" + last + "'");
  site.sql("DELETE FROM pawl.idempotency_keys WHERE key = '" + last + "'");
  CHECK(site.findings() == Found{"missing-key 0 " + offset + " " + last});
}

TEST_CASE("a log whose beginning was removed is audited from where it begins") {
  AuditedSite site;
  site.process_all_kinds();
  KafkaBroker::shared().delete_records(site.topic, 0, 8);
  const auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  CHECK(partition_of(site, report, 0).at("from_offset") == 8);
  CHECK(partition_of(site, report, 0).at("records") == 6);
  site.sql("DELETE FROM pawl.idempotency_keys WHERE key IN ('e7', 'e8')");
  CHECK(site.findings() == Found{"missing-key 0 8 e8"});
}

TEST_CASE("records that Kafka removed before they were processed are a finding") {
  AuditedSite site;
  site.process_all_kinds();
  site.pay_many(0, "late", 4);
  KafkaBroker::shared().delete_records(site.topic, 0, 16);
  CHECK(site.findings() == Found{"offset 0 - -"});
  CHECK(site.findings({"--fast"}) == Found{"offset 0 - -"});
}

TEST_CASE("an audit names no offset of a partition of which none is stored") {
  AuditedSite site;
  site.drain();
  const auto fast = site.run({"audit", "--fast"});
  INFO(fast.out << fast.err);
  CHECK(fast.code == 0);
  CHECK_THAT(fast.out, ContainsSubstring("  OFFSET  ") && !ContainsSubstring(" -1"));
  site.pay_many(0, "late", 4);
  KafkaBroker::shared().delete_records(site.topic, 0, 2);
  CHECK_THAT(site.run({"audit", "--fast"}).out,
             ContainsSubstring("starts at 2: the records from 0 on were removed"));
}

TEST_CASE("positions that an operator moved are no findings, before and after going on") {
  AuditedSite site;
  site.process_all_kinds();
  const auto set = [&](const std::string& to) {
    REQUIRE(
        site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", to}).code ==
        0);
  };
  set("4");
  CHECK(site.findings().empty());
  CHECK(site.findings({"--fast"}).empty());
  site.drain();
  auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  CHECK(partition_of(site, report, 0).at("records") == 10);
  // All but the dead letter and what is parked behind it.
  CHECK(partition_of(site, report, 0).at("duplicates") == 8);
  CHECK(partition_of(site, report, 0).at("applied") == 0);

  // Forward past some, over a later duplicate of one of them, and back: first seen later.
  site.pay_many(0, "g", 4);
  site.pay(0, "g1", "a", "1");
  set("16");
  site.drain();
  CHECK(site.findings().empty());
  set("14");
  site.drain();
  CHECK(site.sql("SELECT kafka_offset FROM pawl.idempotency_keys WHERE key = 'g1'") == "18");
  CHECK(site.findings().empty());
  CHECK(site.findings({"--fast"}).empty());
}

TEST_CASE("dead letters that were replayed or discarded are no findings") {
  AuditedSite site;
  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'b')");
  site.pay(0, "first", "b", "1");
  site.pay(0, "second", "b", "1");
  site.pay(0, "third", "a", "\"no number\"");
  site.drain();
  CHECK(site.findings().empty());
  site.sql("ALTER TABLE ledger DROP CONSTRAINT known");
  const auto id = site.sql("SELECT dead_letter_id FROM pawl.dead_letters WHERE kafka_offset = 2");
  REQUIRE(site.run({"dlq", "discard", id, "--because", "no number"}).code == 0);
  REQUIRE(site.run({"dlq", "replay", "--all"}).code == 0);
  const auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  CHECK(partition_of(site, report, 0).at("applied") == 2);
  CHECK(partition_of(site, report, 0).at("dead_letters") == 1);
  CHECK(site.findings({"--fast"}).empty());

  site.sql("DELETE FROM pawl.idempotency_keys WHERE key = 'second'");
  CHECK(site.findings() == Found{"missing-key 0 1 second"});
  CHECK(site.findings({"--fast"}) == Found{"replayed 0 1 -"});
  CHECK(site.findings({"--limit", "1"}) == Found{"replayed 0 1 -"});
}

TEST_CASE("keys that retention removed are too old to tell, and no findings") {
  AuditedSite site;
  // Young enough for Kafka's own retention.
  const auto begin = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch()) -
                     std::chrono::hours(1);
  KafkaProducer producer(site.bootstrap);
  for (int i = 0; i < 6; ++i) {
    producer.send(site.topic, {.key = "a",
                               .value = R"({"account": "a", "amount": 1})",
                               .headers = {{"event-id", "o" + std::to_string(i)}},
                               .partition = 0,
                               .timestamp_ms = (begin.count() + i) * 1000});
  }
  producer.flush();
  site.drain();
  site.sql("DELETE FROM pawl.idempotency_keys WHERE key IN ('o0', 'o1', 'o4')");
  CHECK(site.findings().size() == 3);
  // The third record is the first that is young enough.
  site.sql(fmt::format("UPDATE pawl.idempotency_scopes SET pruned_to = to_timestamp({})",
                       begin.count() + 2));
  const auto report = site.audit();
  CHECK(partition_of(site, report, 0).at("too_old") == 2);
  CHECK(partition_of(site, report, 0).at("applied") == 3);
  CHECK(site.findings() == Found{"missing-key 0 4 o4"});
}

TEST_CASE("what was set aside, and retention removed, is too old to tell as well") {
  AuditedSite site;
  const auto hour_ago = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch() - std::chrono::hours(1));
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic, {.key = "a",
                             .value = "no JSON",
                             .headers = {{"event-id", "bad"}},
                             .partition = 0,
                             .timestamp_ms = hour_ago.count()});
  producer.send(site.keyless,
                {.key = "b", .value = "1", .partition = 0, .timestamp_ms = hour_ago.count()});
  producer.flush();
  site.drain();
  REQUIRE(site.run({"dlq", "discard", "--all", "--because", "test"}).code == 0);
  CHECK(site.findings().empty());
  site.sql("UPDATE pawl.dead_letters SET resolved_at = now() - interval '30 minutes'");
  site.sql("UPDATE pawl.skipped_messages SET skipped_at = now() - interval '30 minutes'");
  const auto prune =
      site.run({"prune", "--set", "retention.dead_letters=60s", "--set", "retention.skipped=60s"});
  INFO(prune.out << prune.err);
  REQUIRE(prune.code == 0);
  REQUIRE(site.sql("SELECT (SELECT count(*) FROM pawl.dead_letters) + (SELECT count(*) FROM "
                   "pawl.skipped_messages)") == "0");
  const auto report = site.audit();
  CHECK(report.at("findings_total") == 0);
  CHECK(partition_of(site, report, 0).at("too_old") == 1);
  CHECK(site.findings({"--fast"}).empty());
}

TEST_CASE("a replayed letter that retention removed before its key is no finding") {
  AuditedSite site;
  site.sql("ALTER TABLE ledger ADD CONSTRAINT wrong CHECK (account <> 'bad')");
  site.pay_many(0, "e", 3);
  site.pay(0, "bad", "bad", "1");
  site.drain();
  site.sql("ALTER TABLE ledger DROP CONSTRAINT wrong");
  REQUIRE(site.run({"dlq", "replay", "--all"}).code == 0);
  CHECK(site.findings().empty());
  site.sql("UPDATE pawl.dead_letters SET resolved_at = now() - interval '30 minutes'");
  REQUIRE(site.run({"prune", "--set", "retention.dead_letters=60s"}).code == 0);
  REQUIRE(site.sql("SELECT count(*) FROM pawl.dead_letters") == "0");
  CHECK(site.findings().empty());
  CHECK(site.findings({"--fast"}).empty());
}
