#pragma once

#include <cstdint>

#include "payments_world.hpp"

namespace pawl::test {

/// Payments in batches: accounts are locked in their order, so that batches of two partitions wait
/// for each other instead of ending in a deadlock.
inline constexpr const char* kBatchSql = R"toml(batch = true
sql = [
  "INSERT INTO ledger (event_id, account, amount) SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], {/amount}::bigint[])",
  """
  WITH sums AS (SELECT account, sum(amount) AS amount, count(*) AS entries
                  FROM unnest({/account}::text[], {/amount}::bigint[]) AS p (account, amount) GROUP BY account),
  locked AS MATERIALIZED (SELECT id FROM accounts WHERE id IN (SELECT account FROM sums) ORDER BY id FOR UPDATE)
  UPDATE accounts a SET balance = a.balance + s.amount, entries = a.entries + s.entries
    FROM locked l JOIN sums s ON s.account = l.id WHERE a.id = l.id
  """,
])toml";

/// Handlers of the test consumer that say how many messages they got.
inline constexpr const char* kBatchCode = "name = \"batch\"";
inline constexpr const char* kBatchPoison = "name = \"batch_throws_on_poison\"";

/// Keeps the order in which the ledger is written.
inline void note_order(const PaymentsWorld& world) {
  world.execute(
      "CREATE TABLE ordered (place bigserial, event_id text);"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO ordered "
      "(event_id) VALUES (NEW.event_id); RETURN NEW; END$$;"
      "CREATE TRIGGER note AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION note()");
}

/// Messages that came into the ledger before their partition's predecessor.
inline std::int64_t out_of_order(const PaymentsWorld& world) {
  return world.number(
      "SELECT count(*) FROM (SELECT kafka_offset, lag(kafka_offset) OVER (PARTITION BY partition "
      "ORDER BY place) AS previous FROM ordered JOIN pawl.idempotency_keys ON key = event_id) o "
      "WHERE kafka_offset < previous");
}

/// By which the ledger was written.
inline std::int64_t transactions(const PaymentsWorld& world) {
  return world.number("SELECT count(DISTINCT xmin::text) FROM ledger");
}

/// What a consumer with one of the handlers above has got at once.
inline int largest_batch(const testing::ChildProcess& process) {
  int largest = 0;
  const auto output = process.output();
  for (std::size_t at = output.find("BATCH "); at != std::string::npos;
       at = output.find("BATCH ", at + 1))
    largest = std::max(largest, std::stoi(output.substr(at + 6)));
  return largest;
}

}  // namespace pawl::test
