// What a command reads of tables that have grown: each of them a few times at most, not once for
// each partition or row; and no whole table for a list that has a limit.
#include <fmt/format.h>

#include "prelude.hpp"
#include "site.hpp"

namespace {

constexpr int kPartitions = 100;
constexpr int kRows = 60'000;

/// Of each record key one message that failed, one that waits behind it, and one that is resolved.
std::string fill(const std::string& topic) {
  return fmt::format(R"sql(
  CREATE TEMPORARY TABLE ours ON COMMIT DROP AS
  SELECT c.consumer_id, t.source_id, (SELECT min(scope_id) FROM pawl.idempotency_scopes) AS scope_id
    FROM pawl.consumers c JOIN pawl.consumer_topics t USING (consumer_id) WHERE t.topic = '{0}';
  INSERT INTO pawl.scope_sources (scope_id, source_id, retention_ms)
  SELECT scope_id, source_id, 1000 FROM ours ON CONFLICT DO NOTHING;
  INSERT INTO pawl.dead_letters
         (consumer_id, topic, partition, kafka_offset, timestamp_ms, message_digest, status, reason, handler,
          idempotency_key, error, record_key, record_key_hash, value_bytes, payload, resolved_at, resolution)
  SELECT o.consumer_id, '{0}', i / 3 % {1}, 1000000 + i, 1700000000000, sha256(i::text::bytea),
         (ARRAY['dead', 'parked', 'replayed'])[1 + i % 3], 'error', 'h', 'letter-' || i, 'e',
         (i / 3)::text::bytea, sha256((i / 3)::text::bytea), 1, 'complete',
         CASE WHEN i % 3 = 2 THEN now() END, CASE WHEN i % 3 = 2 THEN 'applied' END
    FROM ours o CROSS JOIN generate_series(0, {2} - 1) i;
  INSERT INTO pawl.parked_keys (consumer_id, topic, record_key_hash)
  SELECT o.consumer_id, '{0}', sha256(i::text::bytea) FROM ours o CROSS JOIN generate_series(0, {2} / 3 - 1) i;
  INSERT INTO pawl.skipped_messages (consumer_id, topic, partition, kafka_offset, reason)
  SELECT o.consumer_id, '{0}', i % {1}, 2000000 + i, 'unmatched'
    FROM ours o CROSS JOIN generate_series(0, {2} - 1) i;
  INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset, created_at)
  SELECT o.scope_id, 'key-' || i, 0, o.source_id, i % {1}, 3000000 + i, now() - interval '1 day'
    FROM ours o CROSS JOIN generate_series(0, {2} - 1) i;
  INSERT INTO pawl.leases (scope_id, key, token, payload_hash, source_id, partition, kafka_offset)
  SELECT o.scope_id, 'lease-' || i, -1, 0, o.source_id, i % {1}, 4000000 + i
    FROM ours o CROSS JOIN generate_series(0, {2} - 1) i;
)sql",
                     topic, kPartitions, kRows);
}

/// Rows and entries of indexes that sessions have read of pawl's tables, once all have ended.
std::int64_t rows_read(const Site& site) {
  // A session tells what it has read at its end.
  site.wait_for_sql(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
      " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
      "0");
  return std::stoll(site.sql(
      "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'pawl')"
      " + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'pawl')"));
}

}  // namespace

TEST_CASE("what commands read grows with the rows and not with rows times partitions") {
  Site site(kPartitions);
  {
    KafkaProducer producer(site.bootstrap);
    for (int partition = 0; partition < kPartitions; ++partition) {
      producer.send(site.topic, {.key = "a",
                                 .value = R"({"account": "a", "amount": 1})",
                                 .headers = {{"event-id", fmt::format("e{}", partition)}},
                                 .partition = partition});
    }
    producer.flush();
  }
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql(fill(site.topic));
  site.sql("ANALYZE");
  const auto letter = site.sql("SELECT min(dead_letter_id) FROM pawl.dead_letters");

  struct Case {
    std::vector<std::string> command;
    std::int64_t most;
  };
  const std::vector<Case> cases{
      {{"calls", "list"}, kRows / 2},
      {{"dlq", "show", letter}, kRows / 2},
      {{"dlq", "replay", letter, "--dry-run"}, kRows / 2},
      // It says how many there are as well.
      {{"dlq", "list"}, 4 * kRows},
      {{"dlq", "parked"}, 4 * kRows},
      // One sample.
      {{"status", "--interval", "0s"}, 8 * kRows},
      {{"prune", "--dry-run", "--older-than", "1s"}, 8 * kRows},
      {{"audit"}, 40 * kRows},
  };
  for (const auto& c : cases) {
    const auto before = rows_read(site);
    const auto done = site.run(c.command);
    const auto read = rows_read(site) - before;
    CAPTURE(c.command, done.err);
    CHECK_FALSE(done.out.empty());
    CHECK(read <= c.most);
  }
}
