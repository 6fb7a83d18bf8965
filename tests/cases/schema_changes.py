"""Tables and types change while the consumer runs: what it has prepared is stale."""
import time

import psycopg

from harness import case

# What is promised is for messages that begin more than 5 s after the DDL committed.
PROMISED_AFTER = 5.5


def live(site, before, sql, first, change, second, *, head='[failures]\non_failure = "dead-letter"\nretry_for = "1s"\nprogram_error_retry = "1s"\n', patience=15, sets=(), **handler):
    """Messages of `first` with the old schema, `change` while the process runs, then `second`; returns the site and the log."""
    s = site()
    for one in before:
        s.sql(one)
    s.write(s.handler(sql, **handler), head=head)
    p = s.start(*sets)
    for i, v in enumerate(first):
        s.send(v, id=f"a{i}", key=f"a{i}")
    if not s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == len(first), 25):
        s.problems.append("the first messages did not arrive:\n" + "\n".join(s.log(p).splitlines()[-5:]))
    for one in change if isinstance(change, list) else [change]:
        s.sql(one)
    time.sleep(PROMISED_AFTER)
    for i, v in enumerate(second):
        s.send(v, id=f"b{i}", key=f"b{i}")
    end = len(first) + len(second) - 1
    passed = s.wait(lambda: s.rows("SELECT max(last_processed_offset) FROM pawl.processed_kafka_offsets")[0][0] == end, patience)
    letters = s.rows("SELECT kafka_offset, sqlstate, error FROM pawl.dead_letters ORDER BY 1")
    s.expect(passed, f"stands still {patience} s after the change")
    s.expect(not letters, f"letters of good messages: {[(o, c, e[:160]) for o, c, e in letters]}")
    s.stop(p)
    if s.problems:
        s.note("log:\n" + "\n".join(x[:420] for x in s.log(p).splitlines() if " warn " in x or " error " in x)[:3500])
    return s


@case("schema", "xataio/pgstream#1208, tracecat#1655 (int to bigint)", "a column is widened to bigint while the writer runs: its statement keeps int4, and big values fail although the column takes them",
      "the big value is stored; no letter, no halt")
def widen_int(site):
    s = live(site, ["CREATE TABLE t (id text, n int)"], "INSERT INTO t VALUES ({header:event-id}, {/n})", [{"n": 1}],
             "ALTER TABLE t ALTER COLUMN n TYPE bigint", [{"n": 2}, {"n": 5000000000}])
    s.same(s.rows("SELECT n FROM t ORDER BY 1"), [(1,), (2,), (5000000000,)], "rows")


@case("schema", "confluentinc/kafka-connect-jdbc (timestamp vs timestamptz), debezium DBZ-578", "timestamp becomes timestamptz while the writer runs: the statement still reads a timestamp, so the offset in the text is dropped without a word",
      "the instant of the text is stored")
def timestamp_to_timestamptz(site):
    s = live(site, ["CREATE TABLE t (id text, at timestamp)"], "INSERT INTO t VALUES ({header:event-id}, {/at})", [{"at": "2024-01-01T00:00:00"}],
             "ALTER TABLE t ALTER COLUMN at TYPE timestamptz USING at AT TIME ZONE 'UTC'", [{"at": "2024-06-01T12:00:00+05:00"}])
    s.same(s.rows("SELECT (at AT TIME ZONE 'UTC')::text FROM t WHERE id = 'b0'"), [("2024-06-01 07:00:00",)], "the instant")


@case("schema", "same kind: real becomes numeric", "amounts are rounded to six digits without a word", "all digits are stored")
def real_to_numeric(site):
    s = live(site, ["CREATE TABLE t (id text, amount real)"], "INSERT INTO t VALUES ({header:event-id}, {/amount})", [{"amount": 1.5}],
             "ALTER TABLE t ALTER COLUMN amount TYPE numeric", [{"amount": "123456789.12"}])
    s.same(s.rows("SELECT amount::text FROM t WHERE id = 'b0'"), [("123456789.12",)], "the amount")


@case("schema", "npgsql/npgsql#4015, pgjdbc server-prepare docs", "text becomes uuid (or jsonb) while the writer runs: 42804 at every message until a restart",
      "goes on by itself: a new session prepares anew")
def text_to_uuid(site):
    live(site, ["CREATE TABLE t (id text, u text)"], "INSERT INTO t VALUES ({header:event-id}, {/u})", [{"u": "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0001"}],
         "ALTER TABLE t ALTER COLUMN u TYPE uuid USING u::uuid", [{"u": "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0002"}, {"u": "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0003"}])


@case("schema", "same kind: integer becomes text", "values that are no numbers fail although the column takes them", "stored")
def int_to_text(site):
    s = live(site, ["CREATE TABLE t (id text, zip int)"], "INSERT INTO t VALUES ({header:event-id}, {/zip})", [{"zip": 12345}],
             "ALTER TABLE t ALTER COLUMN zip TYPE text", [{"zip": "01234"}, {"zip": "SW1A 1AA"}])
    s.same(s.rows("SELECT zip FROM t WHERE id LIKE 'b%' ORDER BY 1"), [("01234",), ("SW1A 1AA",)], "rows")


@case("schema", "prisma/orm#7678, oxidecomputer/omicron#5561", "an enum is replaced (new type, column altered, old type dropped): cache lookup failed for type, XX000, until a restart",
      "goes on by itself, no letters")
def enum_replaced(site):
    live(site, ["CREATE TYPE st AS ENUM ('new', 'paid', 'gone')", "CREATE TABLE t (id text, s st)"], "INSERT INTO t VALUES ({header:event-id}, {/s})", [{"s": "new"}],
         ["CREATE TYPE st_new AS ENUM ('new', 'paid', 'void')", "ALTER TABLE t ALTER COLUMN s TYPE st_new USING s::text::st_new", "DROP TYPE st", "ALTER TYPE st_new RENAME TO st"],
         [{"s": "paid"}, {"s": "void"}])


@case("schema", "prisma/orm#7678", "an enum with an explicit cast in the statement is replaced", "goes on by itself, no letters")
def enum_replaced_with_cast(site):
    live(site, ["CREATE TYPE st AS ENUM ('new', 'paid')", "CREATE TABLE t (id text, s st)"], "INSERT INTO t VALUES ({header:event-id}, {/s}::st)", [{"s": "new"}],
         ["CREATE TYPE st_new AS ENUM ('new', 'paid', 'void')", "ALTER TABLE t ALTER COLUMN s TYPE st_new USING s::text::st_new", "DROP TYPE st", "ALTER TYPE st_new RENAME TO st"],
         [{"s": "paid"}, {"s": "void"}])


@case("schema", "ALTER TYPE ... ADD VALUE in a running system", "a new value of an enum", "goes on, the new value is known")
def enum_value_added(site):
    live(site, ["CREATE TYPE st AS ENUM ('new')", "CREATE TABLE t (id text, s st)"], "INSERT INTO t VALUES ({header:event-id}, {/s})", [{"s": "new"}],
         "ALTER TYPE st ADD VALUE 'late'", [{"s": "late"}])


@case("schema", "blue/green tables: DROP TABLE and RENAME", "a table is replaced by one of the same name", "goes on by itself")
def table_swapped(site):
    live(site, ["CREATE TABLE t (id text, n int)"], "INSERT INTO t (id, n) VALUES ({header:event-id}, {/n})", [{"n": 1}],
         ["CREATE TABLE t2 (id text, n int, extra text DEFAULT 'x')", "INSERT INTO t2 SELECT * FROM t", "ALTER TABLE t RENAME TO t_old", "ALTER TABLE t2 RENAME TO t"], [{"n": 2}])


@case("schema", "pgjdbc/r2dbc-postgresql#382", "RETURNING * after ADD COLUMN: cached plan must not change result type", "goes on by itself")
def returning_star(site):
    live(site, ["CREATE TABLE t (id text, n int)"], "INSERT INTO t (id, n) VALUES ({header:event-id}, {/n}) RETURNING *", [{"n": 1}],
         "ALTER TABLE t ADD COLUMN extra text DEFAULT 'x'", [{"n": 2}, {"n": 3}])


@case("schema", "ACCESS EXCLUSIVE locks of VACUUM FULL, ALTER TABLE ... during load", "the table is locked for longer than lock_timeout", "waits, counts nothing, applies once")
def locked_table(site):
    s = site()
    s.sql("CREATE TABLE t (id text, n int)")
    s.write(s.handler("INSERT INTO t VALUES ({header:event-id}, {/n})"), head='[failures]\non_failure = "dead-letter"\nretry_for = "0s"')
    p = s.start('postgres.lock_timeout="500ms"')
    s.send({"n": 1}, id="a")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 1, 25), "applied before the lock")
    with psycopg.connect(s.url) as c:
        c.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        s.send({"n": 2}, id="b")
        time.sleep(4)
        c.rollback()
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 2, 15), "applied after the lock")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")
    s.stop(p)
    s.note(f"{len(s.log(p).splitlines())} log lines")


@case("schema", "prisma/orm#7678 with many messages: does it ever end?", "an enum is replaced, 120 messages follow", "goes on by itself; not 50 letters and a halt until somebody restarts the process")
def enum_replaced_flood(site):
    s = site()
    s.sql("CREATE TYPE st AS ENUM ('new', 'paid'); CREATE TABLE t (id text, s st)")
    s.write(s.handler("INSERT INTO t VALUES ({header:event-id}, {/s})"), head='[failures]\non_failure = "dead-letter"\nretry_for = "0s"\nprogram_error_retry = "1s"\n')
    p = s.start()
    s.send({"s": "new"}, id="a")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 1, 20), "applied before the change")
    s.sql("CREATE TYPE st_new AS ENUM ('new', 'paid', 'void'); ALTER TABLE t ALTER COLUMN s TYPE st_new USING s::text::st_new; DROP TYPE st; ALTER TYPE st_new RENAME TO st")
    time.sleep(PROMISED_AFTER)
    s.send_many([dict(value={"s": "void"}, id=f"b{i}") for i in range(120)])
    s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 121, 12)
    state = s.rows("SELECT state, halt_code, left(halt_cause, 300) FROM pawl.processed_kafka_offsets")
    letters = s.rows("SELECT count(*) FROM pawl.dead_letters")[0][0]
    s.same(s.rows("SELECT count(*) FROM t"), [(121,)], f"rows 12 s later; {letters} letters; state {state}")
    s.stop(p)


@case("schema", "replaying letters: pawl dlq replay is a new process", "after the enum was replaced", "replay applies them (new session)")
def replay_after_enum_replaced(site):
    s = live(site, ["CREATE TYPE st AS ENUM ('new')", "CREATE TABLE t (id text, s st)"], "INSERT INTO t VALUES ({header:event-id}, {/s})", [{"s": "new"}],
             ["CREATE TYPE st_new AS ENUM ('new', 'void'); ALTER TABLE t ALTER COLUMN s TYPE st_new USING s::text::st_new; DROP TYPE st; ALTER TYPE st_new RENAME TO st"], [{"s": "void"}])
    s.problems.clear(); s.notes.clear()
    r = s.cmd("dlq", "replay", "--all")
    s.same((r.code, s.rows("SELECT count(*) FROM t")), (0, [(2,)]), "replay: " + r.tail(2))


@case("schema", "the same kind by a function's signature", "f(int) is dropped and f(bigint) made: the statement keeps int4", "big values are taken")
def function_widened(site):
    s = live(site, ["CREATE TABLE t (id text, n bigint); CREATE FUNCTION f(i text, n int) RETURNS void LANGUAGE sql AS 'INSERT INTO t VALUES (i, n)'"], "SELECT f({header:event-id}, {/n})", [{"n": 1}],
             "DROP FUNCTION f(text, int); CREATE FUNCTION f(i text, n bigint) RETURNS void LANGUAGE sql AS 'INSERT INTO t VALUES (i, n)'", [{"n": 5000000000}])
    s.same(s.rows("SELECT n FROM t WHERE id = 'b0'"), [(5000000000,)], "rows")


@case("schema", "the same kind: comparisons in WHERE", "WHERE code = {/code} with code int becoming text: '007' is looked up as 7", "the row of '007' is updated; not that of '7'")
def compare_after_change(site):
    s = live(site, ["CREATE TABLE t (id text); CREATE TABLE item (code int PRIMARY KEY, n int); INSERT INTO item VALUES (7, 0)"], ["UPDATE item SET n = n + 1 WHERE code = {/code}", "INSERT INTO t VALUES ({header:event-id})"], [{"code": 7}],
             "ALTER TABLE item ALTER COLUMN code TYPE text; INSERT INTO item VALUES ('007', 0)", [{"code": "007"}])
    s.same(s.rows("SELECT code, n FROM item ORDER BY 1"), [("007", 1), ("7", 1)], "rows")
