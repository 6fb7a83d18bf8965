"""Task: what PostgreSQL can do at all. pgbench runs the statements of a message on the same tables,
with nothing around them: no Kafka, no decoding, without a reader of the results."""

import random
from dataclasses import dataclass

from .consume import require_correct
from .modes import ASYNCHRONOUS
from .pgbench import pgbench, value_in
from .processes import Failure
from .records import Labels, Values
from .site import ACCOUNTS, Database, Site

# pgbench has no texts to choose from, so keys and accounts are numbers, as long as the real ones are
# and cast to text. An account of that kind is ACCOUNT_BASE + n.
ACCOUNT_BASE = 100_000_000_000
KEY_BASE = 1_000_000_000_000_000_000
BATCH_SCRIPTS = 8  # so that batches of different accounts meet

PREPARE = f"""
DELETE FROM accounts;
INSERT INTO accounts (id) SELECT ({ACCOUNT_BASE} + n)::text FROM generate_series(0, {ACCOUNTS - 1}) AS n;
INSERT INTO pawl.consumers (cluster, group_id) VALUES ('default', 'limit');
INSERT INTO pawl.consumer_topics (consumer_id, topic, partitions, start_policy)
  SELECT consumer_id, 'limit', {{clients}}, 'earliest' FROM pawl.consumers;
INSERT INTO pawl.processed_kafka_offsets
  (consumer_id, topic, partition, last_processed_offset, owner_epoch, released, base_offset)
  SELECT consumer_id, 'limit', g, -1, 1, false, 0 FROM pawl.consumers, generate_series(0, {{clients}} - 1) AS g;
VACUUM (ANALYZE) accounts;
"""

# Each client has a partition's row of its own, like the owner of a partition. The texts are pawl's
# (framework/ledger/idempotency_keys.cpp and advance_text.cpp), with the transaction id asked for
# instead of compared, since one flight cannot carry it from the claim to the advance.
_ADVANCE = """UPDATE pawl.processed_kafka_offsets r
   SET last_processed_offset =
         CASE WHEN r.owner_epoch = :epoch::bigint
               AND r.last_processed_offset = :offset::bigint
               AND :next::bigint > :offset::bigint
               AND pg_current_xact_id_if_assigned() IS NOT NULL
              THEN :next::bigint
              ELSE pawl.reject_advance(r, :epoch::bigint, :offset::bigint, :next::bigint, NULL::xid8)
         END,
       applied_count = r.applied_count + {messages},
       leader_epoch = 0,
       last_timestamp_ms = coalesce(:key::bigint, r.last_timestamp_ms),
       updated_at = clock_timestamp()
 WHERE r.consumer_id = 1 AND r.topic = 'limit' AND r.partition = :client_id::integer;"""

_SETTINGS = f"""\\set next :offset + 1
\\set key {KEY_BASE} + :client_id * 1000000000000 + :next
\\set account {ACCOUNT_BASE} + random(0, {ACCOUNTS - 1})
\\set amount random(1, 100000)
"""

_CLAIM = """BEGIN;
INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset)
 VALUES (1, :key::text, :amount, 1, :client_id, :next)
 ON CONFLICT (scope_id, key) DO NOTHING RETURNING pg_current_xact_id();"""

_ENTER = "INSERT INTO ledger (event_id, account, amount) VALUES (:key::text, :account::text, :amount);"

_ADD = "UPDATE accounts SET balance = balance + :amount, entries = entries + 1 WHERE id = :account::text"

SINGLE = f"""{_SETTINGS}\\startpipeline
{_CLAIM}
{_ENTER}
{_ADD};
{_ADVANCE.format(messages=1)}
COMMIT;
\\endpipeline
\\set offset :next
"""

# For a handler that reads an answer before it goes on: that takes a second flight.
READING = f"""{_SETTINGS}\\startpipeline
{_CLAIM}
{_ADD} RETURNING balance;
\\endpipeline
\\startpipeline
{_ENTER}
{_ADVANCE.format(messages=1)}
COMMIT;
\\endpipeline
\\set offset :next
"""


def batch_script(size: int, seed: int) -> str:
    chosen = random.Random(seed)
    accounts = ",".join(str(ACCOUNT_BASE + chosen.randrange(ACCOUNTS)) for _ in range(size))
    amounts = ",".join(str(chosen.randint(1, 100_000)) for _ in range(size))
    arrays = f"'{{{accounts}}}'::text[], '{{{amounts}}}'::bigint[]"
    return f"""\\set first :offset + 1
\\set next :offset + {size}
\\set key {KEY_BASE} + :client_id * 1000000000000 + :first
\\startpipeline
BEGIN;
INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset)
 SELECT 1, (:key::bigint + g)::text, 0, 1, :client_id::integer, :first::bigint + g
   FROM generate_series(0, {size - 1}) AS g
 ON CONFLICT (scope_id, key) DO NOTHING RETURNING key;
INSERT INTO ledger (event_id, account, amount)
 SELECT (:key::bigint + n - 1)::text, account, amount
   FROM unnest({arrays}) WITH ORDINALITY AS u (account, amount, n);
WITH s AS (
  SELECT account, sum(amount) AS amount, count(*) AS n
    FROM unnest({arrays}) AS u (account, amount) GROUP BY account
), locked AS MATERIALIZED (
  SELECT a.id FROM accounts a JOIN s ON s.account = a.id ORDER BY a.id FOR NO KEY UPDATE OF a
)
UPDATE accounts a SET balance = a.balance + s.amount, entries = a.entries + s.n
  FROM s, locked l WHERE a.id = s.account AND l.id = a.id;
{_ADVANCE.format(messages=size)}
COMMIT;
\\endpipeline
\\set offset :next
"""


@dataclass(frozen=True)
class Limit:
    commit: str
    clients: int
    seconds: int
    batch_size: int = 0  # 0: one transaction per message
    flights: int = 1  # that a transaction takes; 2: an answer is read in between

    @property
    def labels(self) -> Labels:
        return {
            "mode": "limit",
            "commit": self.commit,
            "batch": int(self.batch_size > 0),
            "clients": self.clients,
            "batch_size": self.batch_size,
            "flights": self.flights,
        }

    def prepare(self, site: Site) -> None:
        """Nothing is needed beforehand."""

    def measure(self, site: Site) -> Values:
        with site.database(asynchronous=self.commit == ASYNCHRONOUS) as database:
            database.query(PREPARE.format(clients=self.clients))
            before = site.server_cpu_seconds()
            scripts = [SINGLE if self.flights == 1 else READING]
            if self.batch_size:
                scripts = [batch_script(self.batch_size, seed) for seed in range(BATCH_SCRIPTS)]
            report = pgbench(
                site,
                database.url,
                scripts,
                "--define=offset=-1",
                "--define=epoch=1",
                f"--client={self.clients}",
                f"--jobs={min(self.clients, 2)}",
                f"--time={self.seconds}",
            )
            server_cpu = site.server_cpu_seconds() - before
            return self._values(database, report, server_cpu)

    def _values(self, database: Database, report: str, server_cpu: float) -> Values:
        per_transaction = self.batch_size or 1
        transactions = int(
            value_in(report, "number of transactions actually processed").partition("/")[0]
        )
        messages = transactions * per_transaction
        entered = database.number("SELECT count(*) FROM ledger")
        if entered != messages or messages == 0:
            raise Failure(
                f"pgbench reports {messages} payments, the ledger holds {entered}:\n{report}"
            )
        require_correct(database, None, by_pawl=False)
        rate = float(value_in(report, "tps")) * per_transaction
        return {"rate": rate, "messages": messages, "server_cpu_us": server_cpu * 1e6 / messages}
