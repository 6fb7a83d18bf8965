#pragma once

#include <string>
#include <vector>

namespace pawl::test {

/// A way in which messages reach PostgreSQL. What is promised whatever fails is promised in each.
struct Mode {
  std::string name;
  std::string handler;                ///< a [[handler]]; empty: the SQL handler with expect_rows
  std::vector<std::string> settings;  ///< `--set`
  bool flies = false;                 ///< transactions travel together
  bool batches = false;               ///< many messages have one transaction
  bool beside = false;                ///< messages of a partition run side by side
};

const std::vector<Mode>& modes();
const Mode& mode(const std::string& name);

/// The SQL handler without expect_rows: its messages travel together.
inline constexpr const char* kFlightSql = R"toml(sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml";

/// The same side by side, eight of a partition at a time. Those of an account have an order, and so
/// do not wait for each other's locks.
inline constexpr const char* kBesideSql = R"toml(concurrency = 8
order_by = "{/account}"
concurrency_window = 20
sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml";
inline constexpr const char* kBesideCode = R"toml(name = "payment"
concurrency = 8
order_by = "{/account}"
concurrency_window = 20)toml";

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

/// The test consumer's own; it says how many messages it got.
inline constexpr const char* kBatchCode = "name = \"batch\"";

}  // namespace pawl::test
