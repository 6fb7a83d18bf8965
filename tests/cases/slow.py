"""Servers that go down under load, and poolers."""
import subprocess
import time

import psycopg

from harness import case, admin_sql, KAFKA_FOLDER, PG, PGBOUNCER_PORT, SERVICES
from payloads import LETTERS
from topology import PUT, OUT


@case("topology", "broker killed and started again under load (librdkafka: all brokers down)", "kafka restart --kill while 4 partitions are read and written", "once each; goes on by itself", alone=True)
def kafka_killed(site):
    s = site(partitions=4)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    s.send_many([dict(value={}, id=f"e{i}", partition=i % 4) for i in range(4000)])
    p = s.start()
    time.sleep(1)
    subprocess.run([SERVICES, "kafka", "restart", KAFKA_FOLDER, "--kill"], capture_output=True, check=True, timeout=120)
    s._producer = None
    time.sleep(1)
    s.send_many([dict(value={}, id=f"f{i}", partition=i % 4) for i in range(400)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out WHERE id LIKE 'f%'")[0][0] == 400, 60), "all later ones are applied")
    s.stop(p)
    s.same(s.rows("SELECT count(*) = count(DISTINCT id), count(*) FILTER (WHERE id LIKE 'f%') FROM out"), [(True, 400)], "once each, all later ones")
    s.note(f"{s.rows('SELECT count(*) FROM out')[0][0]} rows in all (what a killed broker had not written is gone from Kafka); " + " | ".join(x[31:160] for x in s.log(p).splitlines() if 'warn' in x or 'error' in x)[:500])


@case("environment", "synchronous_standby_names names a standby that is gone: every COMMIT hangs", "set while messages flow, for 25 s", "each effect once; goes on when it is reset; the log says what hangs", alone=True)
def commits_hang(site):
    s = site(partitions=2)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    p = s.start('postgres.lock_timeout="2s"')
    s.send_many([dict(value={}, id=f"a{i}", partition=i % 2) for i in range(50)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 50, 20), "applied before the standby is named")
    try:
        admin_sql("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
        admin_sql("SELECT pg_reload_conf()")
        time.sleep(1)
        s.send_many([dict(value={}, id=f"b{i}", partition=i % 2) for i in range(50)])
        time.sleep(25)
    finally:
        with psycopg.connect(PG, autocommit=True, options="-c synchronous_commit=local") as c:
            c.execute("ALTER SYSTEM RESET synchronous_standby_names")
            c.execute("SELECT pg_reload_conf()")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 100, 60), "goes on")
    s.stop(p)
    s.same(s.rows("SELECT count(*), count(DISTINCT id) FROM out"), [(100, 100)], "once each")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")
    s.note(" | ".join(x[31:260] for x in s.log(p).splitlines() if "warn" in x or "error" in x)[:900])


@case("environment", "pgbouncer/pgbouncer#242, pgx#344 (prepared statements through transaction pooling)", "postgres.pooled forgotten behind PgBouncer in transaction mode", "refuses, or says pooled = true; no effect lost or doubled", slow=True)
def pooler_not_told(site):
    s = site(partitions=3)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS, url=f"postgresql://postgres@127.0.0.1:{PGBOUNCER_PORT}/{s.db}")
    s.send_many([dict(value={}, id=f"e{i}", partition=i % 3) for i in range(600)])
    check = s.cmd("check")
    done = s.drain(timeout=20)
    rows = s.rows("SELECT count(*), count(DISTINCT id) FROM out")
    s.expect(rows[0][0] == rows[0][1], f"doubled: {rows}")
    s.expect("pooled" in check.out or "pooled" in done.out or rows == [(600, 600)], "nobody says pooled")
    s.note(f"check {check.code}, run {done.code}, rows {rows}: " + " | ".join(x[:260] for x in (check.out + done.out).splitlines() if "pooled" in x)[:600])


@case("environment", "pgbouncer: unsupported startup parameter: options", "?options=-csearch_path=app in the URL behind PgBouncer", "an error that says what is wrong, not an endless wait without a hint", slow=True)
def pooler_and_options(site):
    s = site()
    s.sql("CREATE SCHEMA app; CREATE TABLE app.out (id text)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id})"), head=LETTERS, url=f"postgresql://postgres@127.0.0.1:{PGBOUNCER_PORT}/{s.db}?options=-csearch_path%3Dapp")
    s.send({}, id="a")
    check = s.cmd("check", timeout=30)
    done = s.drain("postgres.pooled=true", timeout=8)
    s.expect("options" in check.out or check.code == 0, "check does not name it")
    s.note(f"check {check.code}: " + " | ".join(x[:300] for x in check.out.splitlines() if "PostgreSQL" in x)[:400] + f"; run {done.code}: {done.tail(1, 250)}")
