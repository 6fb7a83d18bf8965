"""What operators do to the database and the program around the consumer."""
import json
import os
import re
import signal
import subprocess
import threading
import time

import psycopg

from harness import case, KAFKA, PG, admin_sql, pg_url
from payloads import LETTERS
from schema_changes import PROMISED_AFTER


@case("operations", "debezium publication.autocreate.mode=all_tables: 'does not have a replica identity and publishes updates' (55000)",
      "CREATE PUBLICATION FOR ALL TABLES: every UPDATE and DELETE of a table without primary key fails", "pawl's own tables all have one; the user's table without one is the program's fault (halt), not 50 letters of good messages")
def publication_for_all_tables(site):
    s = site()
    s.sql("CREATE TABLE acc (id int, n int); INSERT INTO acc SELECT i, 0 FROM generate_series(1, 3) i")
    s.write(s.handler({"text": "UPDATE acc SET n = n + 1 WHERE id = {/id}::int", "expect_rows": 1}), head='[failures]\non_failure = "dead-letter"\nretry_for = "0s"\nprogram_error_retry = "1s"\n')
    s.sql("CREATE PUBLICATION p FOR ALL TABLES")
    s.send_many([dict(value={"id": i % 3 + 1}, id=f"e{i}") for i in range(10)])
    done = s.drain(timeout=25)
    letters = s.rows("SELECT count(*) FROM pawl.dead_letters")[0][0]
    s.doubt(letters == 0, f"{letters} letters of good messages (up to failures.circuit_breaker, then a halt): by design of the breaker")
    s.note(f"code {done.code}: {done.tail(2, 350)}")


@case("operations", "logical replication does not copy sequences (RDS blue/green, pg_upgrade by replication)", "a database whose sequences start at 1 again while the rows are there", "letters, consumers and scopes still get ids, or the text says that a sequence is behind; nothing lost")
def sequences_behind(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.write(s.handler(["INSERT INTO out VALUES ({header:event-id})", "SELECT 1 / {/n}::int"]), head=LETTERS)
    for i in range(4):
        s.send({"n": i % 2}, id=f"a{i}")
    s.drain()
    s.send_many([dict(value={"n": 0}, id=f"x{i}") for i in range(200)])
    s.drain()
    s.sql("DELETE FROM pawl.dead_letters WHERE false")
    names = [r[0] for r in s.rows("SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'pawl' AND c.relkind = 'S'")]
    for name in names:
        s.sql(f"ALTER SEQUENCE {name} RESTART")
    repairs = re.findall(r"SELECT setval\(.*\);", s.check().out)
    s.expect(len(repairs) > 1, f"check names the sequences with rows: {repairs}")
    for repair in repairs:
        s.sql(repair)
    for i in range(4):
        s.send({"n": i % 2}, id=f"b{i}")
    done = s.drain(timeout=20)
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT count(*) FROM out"), [(4,)], "rows")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(204,)], "letters")
    check = s.check()
    s.note(f"sequences {names}; check {check.code}: " + " | ".join(x[:200] for x in check.out.splitlines() if " FAIL " in x)[:400])
    if s.problems:
        s.note(done.tail(5, 450))


@case("operations", "moving to a new server by pg_dump and pg_restore", "the database is dumped and restored under another name, the consumer goes on there", "goes on at its offset, nothing applied twice")
def dump_and_restore(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.write(s.handler(["INSERT INTO out VALUES ({header:event-id})", "SELECT 1 / {/n}::int"]), head=LETTERS)
    for i in range(10):
        s.send({"n": i % 5}, id=f"a{i}")
    s.drain()
    port = PG.rsplit(":", 1)[1].split("/")[0]
    new = s.db + "_new"
    admin_sql(f'CREATE DATABASE "{new}"')
    try:
        dump = subprocess.run(f"pg_dump -Fc -h 127.0.0.1 -p {port} -U postgres {s.db} | pg_restore -h 127.0.0.1 -p {port} -U postgres -d {new}", shell=True, capture_output=True, text=True, timeout=120)
        s.expect(dump.returncode == 0, "restore: " + dump.stderr[-300:])
        s.url = pg_url(new)
        s.write(s.handler(["INSERT INTO out VALUES ({header:event-id})", "SELECT 1 / {/n}::int"]), head=LETTERS)
        for i in range(10, 20):
            s.send({"n": i % 5}, id=f"a{i}")
        done = s.drain()
        s.same(done.code, 0, "exit code: " + done.tail(2))
        s.same(s.rows("SELECT count(*), count(DISTINCT id) FROM out"), [(16, 16)], "rows")
        s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(4,)], "letters")
        a = s.cmd("audit")
        s.same(a.code, 0, "audit: " + a.tail(3))
    finally:
        admin_sql(f'DROP DATABASE "{new}" WITH (FORCE)')


@case("operations", "CWE-117 log injection, terminal escapes in payloads", "a value with line breaks and ESC that PostgreSQL quotes in its error", "one log line, control characters shown as such; the same in dlq show, peek, try, status")
def log_injection(site):
    s = site()
    s.sql("CREATE TABLE out (id text, n int)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id}, {/n}::int)"), head=LETTERS)
    evil = "1\n2026-01-01T00:00:00.000+00:00 error partition_halted all is lost\x1b]0;title\x07\x1b[2J\r\u202eabc\u2028x\x85y"
    s.send({"n": evil}, id="e\x1b[31m\n1", key="k\x1b[2J\nfake", headers=[("h\x1b[0m", b"\x1b[5m\n")])
    done = s.drain()
    s.same(done.code, 0, "exit code")
    fake = [x for x in done.out.splitlines() if x.startswith("2026-01-01")]
    s.expect(not fake, f"a log line of the producer's making: {fake}")
    s.expect("\x1b" not in done.out and "\r" not in done.out, "ESC or CR in the log")
    for words in (["dlq", "list"], ["dlq", "show", "1"], ["partitions", "peek", "--topic", s.topic, "--partition", "0", "--offset", "0"], ["try", "--topic", s.topic, "--partition", "0", "--offset", "0"], ["status"], ["keys", "show", "e\x1b[31m\n1"]):
        r = s.cmd(*words)
        s.expect("\x1b" not in r.out, f"{words[:2]} prints ESC")
        s.expect(not any(x.startswith("2026-01-01") for x in r.out.splitlines()), f"{words[:2]} prints a line of the producer's making")
        for ch, name in (("\u202e", "U+202E (right-to-left override)"), ("\u2028", "U+2028"), ("\x85", "U+0085")):
            if ch in r.out:
                s.note(f"{words[:2]} prints {name} as it is")
    for ch, name in (("\u202e", "U+202E"), ("\u2028", "U+2028"), ("\x85", "U+0085")):
        if ch in done.out:
            s.note(f"the log has {name} as it is")


@case("operations", "first steps on odd topics: empty topic, only tombstones, Avro, arrays, 500 members, reserved words, equal names after folding", "pawl init looks at one message and writes a configuration",
      "each file can be read by pawl check (no syntax errors), or init says why not")
def init_on_odd_messages(site):
    shapes = {
        "empty": [], "tombstone": [None], "avro": [b"\x00\x00\x00\x00\x01\x02abc"], "array": [[{"a": 1}]], "scalar": [b"5"], "text": [b"hello"],
        "reserved": [{"order": 1, "user": "x", "select": 2, "Order": 3, "ORDER": 4, "group": {"by": 1}}],
        "odd": [{"": 1, "a b": 2, "a-b": 3, "a_b": 4, "a.b": 5, "1st": 6, "\u00fcber": 7, "q\"uote": 8, "ap'os": 9, "br{ace}": 10, "pi|pe": 11, "que?": 12, "sl/ash": 13, "ti~lde": 14, "back\\slash": 15, "$x": 16, "${HOME}": 17, "line\nbreak": 18, "'''": 19, '"""': 20, "n" * 200: 21, "\u0000": 22}],
        "many": [{f"member_{i}": i for i in range(1700)}], "deep": [b'{"a":' * 200 + b"1" + b"}" * 200], "debezium": [{"before": None, "after": {"id": 1, "name": "x"}, "source": {"lsn": 1}, "op": "c", "ts_ms": 1}],
        "dup": [b'{"a":1,"a":2}'], "nulls": [{"a": None, "b": [], "c": {}}], "types": [{"i": 1, "f": 1.5, "b": True, "s": "x", "t": "2024-01-01T00:00:00Z", "u": "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0001", "big": 12345678901234567890, "arr": [1, 2]}],
    }
    for name, values in shapes.items():
        s = site()
        for v in values:
            s.send(v, key="k", headers=[("event-id", b"1"), ("X-Odd Header{}", b"1"), ("content-type", b"application/json")])
        out = os.path.join(s.dir, "init.toml")
        r = s.pawl("init", "--topic", s.topic, "-o", out, "--bootstrap-servers", KAFKA, timeout=40)
        if not os.path.exists(out):
            s.note(f"{name}: init {r.code}: {r.tail(2, 250)}")
            s.expect(r.code in (0, 1, 2) and "terminate" not in r.out, f"{name}: {r.tail(2)}")
            continue
        s.config = out
        c = s.pawl("check", "--config", out, "--set", f"postgres.url={s.url}", timeout=40)
        bad = [x for x in c.out.splitlines() if "invalid TOML" in x or re.search(r"column \d+: ", x) or "unknown" in x]
        s.expect(not bad, f"{name}: init {r.code} wrote what check cannot read: {bad[:3]}")
        s.note(f"{name}: init {r.code}, check {c.code}: " + " | ".join(x[:160] for x in c.out.splitlines() if " FAIL " in x)[:330])


@case("operations", "operators resume a halted partition, or send SIGHUP, after an ALTER TABLE that made a statement stale", "42804 until the process ends; the halt says 'it is tried again by itself'", "resume or the retry itself makes a new session")
def resume_after_stale_statement(site):
    s = site()
    s.sql("CREATE TABLE t (id text, u text)")
    s.write(s.handler("INSERT INTO t VALUES ({header:event-id}, {/u})"), head='[failures]\nprogram_error_retry = "1s"\n')
    p = s.start()
    u = "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c000%d"
    s.send({"u": u % 1}, id="a")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 1, 20), "applied before the change")
    s.sql("ALTER TABLE t ALTER COLUMN u TYPE uuid USING u::uuid")
    time.sleep(PROMISED_AFTER)
    s.send({"u": u % 2}, id="b")
    by_itself = s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 2, 6)
    check = s.check()
    r = s.cmd("partitions", "resume", "--topic", s.topic, "--partition", "0")
    resumed = s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 2, 6)
    hup = False
    if not resumed:
        p.send_signal(signal.SIGHUP)
        hup = s.wait(lambda: s.rows("SELECT count(*) FROM t")[0][0] == 2, 10)
    s.expect(by_itself or resumed, f"by itself {by_itself}, check {check.code}, resume (code {r.code}) helps {resumed}, SIGHUP helps {hup}")
    s.stop(p)


@case("operations", "a watchdog of the DBA's ends transactions older than N seconds (pg_cron with pg_terminate_backend)", "57P01 in the middle of the same message again and again", "counted like a broken connection, then the policy; the log says which message, not that PostgreSQL is away", slow=True)
def killed_by_watchdog(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.write(s.handler(["SELECT pg_sleep({/s}::float)", "INSERT INTO out VALUES ({header:event-id})"]), head=LETTERS)
    s.send({"s": 0}, id="a"); s.send({"s": 3}, id="long"); s.send({"s": 0}, id="c")
    stop = []

    def watchdog():
        with psycopg.connect(PG, autocommit=True) as c:
            while not stop:
                c.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'pawl%%' AND xact_start < clock_timestamp() - interval '1 s'", (s.db,))
                time.sleep(0.2)
    t = threading.Thread(target=watchdog)
    t.start()
    done = s.drain(timeout=35)
    stop.append(1)
    t.join()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT id FROM out ORDER BY 1"), [("a",), ("c",)], "rows")
    s.note(f"{len(done.out.splitlines())} lines: " + " | ".join(x[31:200] for x in done.out.splitlines() if "warn" in x)[:700])


@case("operations", "apt upgrades of PostgreSQL without a restart: could not load library plpgsql.so: undefined symbol (XX000)", "new sessions cannot run any function: every message fails with class XX", "no letters of good messages: class XX is no message's fault")
def internal_errors(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.sql("CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT FROM pg_class WHERE relname = 'broken_now') THEN RAISE EXCEPTION 'could not load library \"x.so\": undefined symbol: y' USING ERRCODE = 'XX000'; END IF; RETURN new; END $$; CREATE TRIGGER t BEFORE INSERT ON out FOR EACH ROW EXECUTE FUNCTION broken()")
    s.sql("CREATE TABLE broken_now (x int)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id})"), head='[failures]\non_failure = "dead-letter"\nretry_for = "0s"\nprogram_error_retry = "1s"\n')
    s.send_many([dict(value={}, id=f"e{i}") for i in range(10)])
    s.drain(timeout=20)
    n = s.rows("SELECT count(*) FROM pawl.dead_letters")[0][0]
    s.doubt(n == 0, f"{n} letters of good messages for class XX (up to failures.circuit_breaker, then a halt)")


@case("operations", "sequence behind with rows that wait (the reader of the outbox goes by numbers)", "rows wait under ids 1..20 while new ones would get 1..10", "no row lost; an error names the sequence, or it heals")
def outbox_sequence_behind_waiting(site):
    s = site()
    s.sql("CREATE TABLE t (id text)")
    s.write(s.handler(["INSERT INTO t VALUES ({header:event-id})", f"SELECT pawl.publish('{s.topic}-out', 'k', {{value}})"]), head=LETTERS + '[outbox]\nrelay = "off"\n')
    for i in range(5):
        s.send({"i": i}, id=f"a{i}")
    s.drain()
    s.sql("ALTER SEQUENCE pawl.outbox_outbox_id_seq RESTART")
    for i in range(5, 10):
        s.send({"i": i}, id=f"a{i}")
    done = s.drain(timeout=25)
    s.note(f"code {done.code}, rows {s.rows('SELECT count(*) FROM pawl.outbox')}, t {s.rows('SELECT count(*) FROM t')}, letters {s.rows('SELECT kafka_offset, sqlstate, left(error, 150) FROM pawl.dead_letters')}")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters of good messages")


def init_and_run(s, value, **header):
    """init, the table that it proposes, check, run; returns the rows."""
    s.send(value, key="k", headers=[("event-id", b"1")])
    out = os.path.join(s.dir, "init.toml")
    s.pawl("init", "--topic", s.topic, "-o", out, "--bootstrap-servers", KAFKA, timeout=40)
    text = open(out).read()
    table = re.search(r"CREATE TABLE .*?\);", text, re.S)
    ddl = re.sub(r"\n#\s*", " ", table.group(0)) if table else ""
    if ddl:
        s.sql(ddl)
    s.config = out
    check = s.pawl("check", "--config", out, "--set", f"postgres.url={s.url}", timeout=40)
    done = s.pawl("run", "--drain", "--config", out, "--set", f"postgres.url={s.url}", "--set", "failures.on_failure=dead-letter", "--set", "failures.retry_for=0s", timeout=40)
    name = re.search(r"CREATE TABLE (\S+)", ddl)
    rows = s.rows(f"SELECT to_jsonb(t) FROM {name.group(1)} t") if name else []
    return text, check, done, [r[0] for r in rows]


@case("operations", "members as Ruby, Clojure and JSON-LD name them: active?, pi|pe, @id, $type, a-b beside a_b", "pawl init, the proposed table, run as it stands", "each member's value is in a column, or the file says which were left out; none becomes NULL without a word")
def init_member_names(site):
    for doc in ({"id": 7, "active?": True}, {"id": 7, "a|b": "x"}, {"id": 7, "@type": "x", "$ref": "y"}, {"id": 7, "a-b": "one", "a_b": "two"}, {"id": 7, "c{d}": "x"}, {"id": 7, "back\\slash": "x"}, {"id": 7, "quo\"te": "x"}, {"ID": 1, "id": 2}):
        s = site()
        text, check, done, rows = init_and_run(s, doc)
        want = sorted(str(v) for v in doc.values())
        got = sorted(str(v) for v in rows[0].values()) if rows else None
        names_left = all(("# Omitted" in text and str(k) in text) or str(v) in (got or []) for k, v in doc.items())
        s.expect(got == want or names_left, f"{json.dumps(doc)}: check {check.code}, run {done.code}, row {rows}; " + " | ".join(x[-160:] for x in check.out.splitlines() if " FAIL " in x)[:300] + " " + str(re.search(r"VALUES.*", text).group(0) if "VALUES" in text else "")[:200])


@case("operations", "configuration dumped and used again (config show > new.toml)", "SQL with quotes of all kinds, backslashes, line breaks, ${ escapes, unicode", "config show prints TOML that means the same")
def config_round_trip(site):
    s = site()
    s.sql("CREATE TABLE out (id text, v text)")
    sql = "INSERT INTO out VALUES ({header:event-id},\n  E'a\\\\b\\'' || '\"' || $x$q'''$x$ || U&'\\00e9' || '$${X}' || '\u00e9\t' || {/v\\|w?}::text || '') -- \"\"\" end"
    s.write("\n".join(["[[handler]]", f'topics = ["{s.topic}"]', "sql = " + json.dumps(sql)]), head=LETTERS)
    s.send({"v|w": "V"}, id="1")
    done = s.drain()
    s.same(done.code, 0, "exit code: " + done.tail(2))
    first = s.rows("SELECT v FROM out")
    show = s.cmd("config", "show")
    toml = "\n".join(show.out.splitlines())
    new = os.path.join(s.dir, "new.toml")
    with open(new, "w") as file:
        file.write(toml + "\n")
    s.config = new
    check = s.pawl("check", "--config", new, "--set", f"postgres.url={s.url}")
    s.expect(check.code == 0, "check of what config show printed: " + check.tail(4, 300))
    s.send({"v|w": "V"}, id="2")
    done = s.pawl("run", "--drain", "--config", new, "--set", f"postgres.url={s.url}")
    s.same(s.rows("SELECT v FROM out WHERE id = '2'"), first, "the same value")


@case("operations", "pawl try and partitions peek on every odd message", "tombstones, binary, 1 MB, deep, not JSON, headers of bytes", "they print something useful and end with 0 or 1, never a crash")
def try_and_peek(site):
    s = site()
    s.sql("CREATE TABLE out (id text, v text)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id}, {/v})"), head=LETTERS)
    values = [None, b"", b"\x00\x01", b"[" * 5000, b'{"v":' + b'"x' * 1 + b'y' * 900000 + b'"}', b'{"v":"\\ud800"}', b'{"v":NaN}', b'{"v":1}', '{"v":"\u202e\u0007"}'.encode()]
    for i, v in enumerate(values):
        s.send(v, key=b"\xff\x00", id=f"e{i}", headers=[("x", b"\xff"), ("y", None)])
    for i in range(len(values)):
        for words in (["try"], ["partitions", "peek"], ["partitions", "peek", "--json"]):
            r = s.cmd(*words, "--topic", s.topic, "--partition", "0", "--offset", str(i))
            s.expect(r.code in (0, 1) and "terminate" not in r.out and len(r.out) > 20, f"{words} of offset {i}: code {r.code}: {r.tail(2, 200)}")
            if "--json" in words and r.code == 0:
                try:
                    json.loads(r.out)
                except Exception as e:
                    s.problems.append(f"peek --json of offset {i}: {e}")
    s.same(s.rows("SELECT count(*) FROM out"), [(0,)], "try stores nothing")


@case("operations", "Avro and plain-text topics (Confluent wire format; log lines with backslashes)", "pawl init on a value that is no JSON proposes a column bytea and {value}, which is bound as text", "the proposed table takes that message unchanged, or init says that SQL cannot hold bytes")
def init_not_json(site):
    for value in (b"hello", b"C:\\temp\\new", b"\\x4142", b"a\\134b", b"\x00\x00\x00\x00\x2a\x06abc", b"\xff\xfe"):
        s = site()
        text, check, done, rows = init_and_run(s, value)
        name = re.search(r"CREATE TABLE (\S+)", text).group(1)
        got = [bytes(r[0]) for r in s.rows(f"SELECT value FROM {name}")]
        s.expect(got == [value], f"{value!r}: check {check.code}, run {done.code}, stored {got}, letters {s.rows('SELECT left(error, 90) FROM pawl.dead_letters')}")


@case("operations", "somebody looks at the register with FOR UPDATE in psql and goes for lunch", "a foreign session holds the register's row for 15 s, stalled_owner_after = 2 s", "the person's session is not ended; the log says who holds it; goes on afterwards")
def person_holds_register(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id})"), head=LETTERS)
    p = s.start('postgres.stalled_owner_after="2s"', 'postgres.lock_timeout="1s"')
    s.send({}, id="a")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 1, 20), "the first message is applied")
    with psycopg.connect(s.url, application_name="psql") as c:
        c.execute("SELECT * FROM pawl.processed_kafka_offsets FOR UPDATE")
        s.send({}, id="b")
        time.sleep(15)
        try:
            c.execute("SELECT 1")
            c.rollback()
        except Exception as e:
            s.problems.append(f"the person's session was ended: {e}")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 2, 20), "goes on")
    s.stop(p)
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")
    log = s.log(p)
    s.note(" | ".join(x[31:330] for x in log.splitlines() if "warn" in x or "error" in x)[:900])
    s.doubt("PID" in log or "pid" in log or "psql" in log, "the log does not say who holds the row")
