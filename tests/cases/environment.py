"""Servers and databases as they are found: settings, poolers, restarts, limits."""
import json
import os
import time

import psycopg

from harness import case, PG
from payloads import LETTERS


@case("environment", "databases with legacy settings (bytea_output=escape, DateStyle SQL,DMY, IntervalStyle, TimeZone Kolkata, extra_float_digits, search_path nowhere)",
      "ALTER DATABASE ... SET of everything that changes how values are written", "all commands and the run work as elsewhere; bytes of letters come back as they were")
def hostile_database_settings(site):
    s = site()
    s.sql("CREATE TABLE public.out (id text, at timestamptz, b bytea, deny int)")
    for k, v in {"bytea_output": "escape", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "timezone": "Asia/Kolkata", "extra_float_digits": "-5", "search_path": "nowhere", "default_transaction_isolation": "serializable",
                 "transform_null_equals": "on", "quote_all_identifiers": "on", "standard_conforming_strings": "off", "escape_string_warning": "off", "array_nulls": "off", "client_encoding": "LATIN1", "client_min_messages": "debug1",
                 "statement_timeout": "700", "lock_timeout": "1", "idle_in_transaction_session_timeout": "700", "synchronous_commit": "off", "backslash_quote": "off", "xmloption": "document", "row_security": "on", "jit_above_cost": "0", "plan_cache_mode": "force_generic_plan", "default_transaction_deferrable": "on", "enable_seqscan": "off", "lc_messages": "C"}.items():
        s.sql(f'ALTER DATABASE "{s.db}" SET {k} = ' + (v if k in ("search_path", "datestyle") else f"'{v}'"))
    s.write(s.handler(["INSERT INTO public.out VALUES ({header:event-id}, {/at}, decode({/b}, 'base64'))", "SELECT 1 / (CASE WHEN {/bad?} = 'yes' AND NOT EXISTS (SELECT FROM public.out WHERE id = 'open') THEN 0 ELSE 1 END)"]), head='[failures]\non_failure = "dead-letter"\nretry_for = "0s"\n')
    raw = b'{"at":"2024-02-03T04:05:06Z","b":"AP8nXA==","bad":"yes","note":"it\'s \\\\ \xc3\xa9"}'
    for i in range(20):
        s.send(raw.replace(b'"yes"', b'"no"'), id=f"e{i}", key=b"\x00\xff'\\")
    s.send(raw, id="dead", key=b"\x00\xff'\\", headers=[("h", b"\xff\x00")])
    check = s.check()
    s.same(check.code, 0, "check: " + check.tail(6))
    done = s.drain()
    s.same(done.code, 0, "exit code")
    if done.code:
        s.note(done.tail(6, 500))
    s.same(s.rows("SELECT DISTINCT (at AT TIME ZONE 'UTC') = timestamp '2024-02-03 04:05:06', encode(b, 'hex') FROM public.out"), [(True, "00ff275c")], "values")
    for words in (["status"], ["offsets", "show"], ["dlq", "list"], ["dlq", "show", "1"], ["dlq", "show", "1", "--json"], ["dlq", "export"], ["audit"], ["keys", "show", "e1"], ["prune", "--dry-run"], ["partitions", "peek", "--topic", s.topic, "--partition", "0", "--offset", "3"], ["skipped", "list"], ["outbox", "status"], ["calls", "list"]):
        r = s.cmd(*words)
        s.expect(r.code == 0, f"{words}: code {r.code}: {r.tail(3, 300)}")
    j = s.cmd("dlq", "show", "1", "--json")
    try:
        doc = json.loads(j.out)
        s.same(doc.get("value"), raw.decode(), "value in --json")
    except Exception as e:
        s.problems.append(f"dlq show --json: {e}: {j.tail(3)}")
    f = os.path.join(s.dir, "value")
    r = s.cmd("dlq", "show", "1", "--value-to", f)
    s.expect(os.path.exists(f) and open(f, "rb").read() == raw, f"--value-to: {r.tail(2)}")
    s.sql("INSERT INTO public.out VALUES ('open')")
    r = s.cmd("dlq", "replay", "--all")
    s.same(r.code, 0, "replay: " + r.tail(3))
    s.same(s.rows("SELECT count(*) FROM public.out WHERE id = 'dead'"), [(1,)], "replayed once")
    for words in (["offsets", "set", "--topic", s.topic, "--partition", "0", "--to", "earliest", "--because", "x"],):
        r = s.cmd(*words)
        s.same(r.code, 0, f"{words}: {r.tail(3)}")
    done = s.drain()
    s.same(s.rows("SELECT count(*) FROM public.out"), [(22,)], "rows after reading again")


@case("environment", "debezium DBZ-7822, connection idle timeouts", "idle_session_timeout of 300 ms ends idle sessions again and again", "goes on; few lines in the log; nothing counted")
def idle_session_timeout(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.sql(f"ALTER DATABASE \"{s.db}\" SET idle_session_timeout = '300ms'")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id})"), head=LETTERS)
    p = s.start()
    for i in range(6):
        s.send({}, id=f"e{i}")
        time.sleep(1.2)
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 6, 15), "all applied")
    s.stop(p)
    lines = s.log(p).splitlines()
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")
    s.note(f"{len(lines)} log lines in 8 s: " + " | ".join(x[31:200] for x in lines[-4:]))
    s.expect(len(lines) < 40, f"{len(lines)} log lines")


@case("environment", "too many clients already, reserved connections (53300)", "ALTER ROLE ... CONNECTION LIMIT 1 while the program needs more", "waits and says so; goes on when there is room")
def connection_limit(site):
    s = site()
    role = "lim_" + s.db[-12:]
    s.sql("CREATE TABLE out (id text)")
    s.sql(f'CREATE ROLE "{role}" LOGIN CONNECTION LIMIT 1; GRANT ALL ON out TO "{role}"; GRANT ALL ON ALL TABLES IN SCHEMA pawl TO "{role}"; GRANT ALL ON ALL SEQUENCES IN SCHEMA pawl TO "{role}"; GRANT USAGE ON SCHEMA pawl TO "{role}"')
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id})"), head=LETTERS, url=s.url.replace("postgres@", role + "@"))
    s.send_many([dict(value={}, id=f"e{i}") for i in range(10)])
    p = s.start()
    stuck = not s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 10, 8)
    log = s.log(p)
    s.expect(not stuck or "connection" in log, "neither goes on nor says why")
    s.sql(f'ALTER ROLE "{role}" CONNECTION LIMIT 20')
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 10, 20), "goes on when there is room")
    s.stop(p)
    s.note(("waited: " if stuck else "needed no more: ") + " | ".join(x[31:260] for x in log.splitlines() if "warn" in x or "error" in x)[:900])
    s.sql(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


@case("environment", "default_transaction_read_only, ALTER DATABASE ... during maintenance", "the database is made read-only for a while", "waits, counts nothing, goes on by itself")
def read_only_for_a_while(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id})"), head=LETTERS)
    p = s.start()
    s.send({}, id="a")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 1, 20), "applied before the database is read-only")
    s.sql(f'ALTER DATABASE "{s.db}" SET default_transaction_read_only = on')
    s.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{s.db}' AND application_name LIKE 'pawl%%'")
    s.send({}, id="b")
    time.sleep(4)
    with psycopg.connect(PG, autocommit=True) as c:
        c.execute(f'ALTER DATABASE "{s.db}" RESET default_transaction_read_only')
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 2, 20), "goes on")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")
    s.stop(p)
    s.note(f"{len(s.log(p).splitlines())} lines: " + " | ".join(x[31:200] for x in s.log(p).splitlines() if "warn" in x or "error" in x)[:600])


