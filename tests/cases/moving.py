"""Moving over from other consumers, other clients in the group, Debezium's odd values, locales."""
import os
import time

from confluent_kafka import Consumer, TopicPartition
from harness import case, delete_records, KAFKA
from payloads import LETTERS, table
from topology import PUT, OUT, once


def commit(s, offset, group=None):
    c = Consumer({"bootstrap.servers": KAFKA, "group.id": group or s.group, "enable.auto.commit": False})
    c.commit(offsets=[TopicPartition(s.topic, 0, offset)], asynchronous=False)
    c.close()


@case("moving", "moving an existing consumer over: the committed offset lies before the log's start (retention) or behind its end (topic made anew)", "first start with start = committed and a commit that Kafka cannot honour",
      "halts and says so, nothing skipped without a word")
def committed_out_of_range(site):
    for committed, deleted, what in ((5, 10, "before the start"), (500, 0, "behind the end"), (20, 0, "at the end"), (0, 0, "at 0")):
        s = site()
        s.sql(OUT)
        s.write(s.handler(PUT), head=LETTERS)
        s.send_many([dict(value={}, id=f"e{i}") for i in range(20)])
        commit(s, committed)
        if deleted:
            delete_records(s.topic, deleted)
        done = s.drain(timeout=25)
        rows = s.rows("SELECT count(*) FROM out")[0][0]
        s.note(f"commit {what}: code {done.code}, {rows} rows; " + " | ".join(x[31:260] for x in done.out.splitlines() if "[0]" in x)[:400])
        if committed in (5, 500):
            s.expect(done.code == 4, f"commit {what}: code {done.code}, {rows} rows: does not halt")
        else:
            s.same((done.code, rows), (0, 20 - committed), f"commit {what}")


@case("moving", "INCONSISTENT_GROUP_PROTOCOL: a Java service (range assignor) is still in the group", "another client with the same group.id and another assignor", "says which assignors do not fit; goes on when the other one is gone; nothing applied twice")
def foreign_assignor(site):
    s = site(partitions=2)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    c = Consumer({"bootstrap.servers": KAFKA, "group.id": s.group, "partition.assignment.strategy": "range", "enable.auto.commit": False, "session.timeout.ms": 6000})
    c.subscribe([s.topic])
    for _ in range(30):
        c.poll(0.2)
        if c.assignment():
            break
    s.send_many([dict(value={}, id=f"e{i}", partition=i % 2) for i in range(10)])
    p = s.start()
    t = time.time()
    while time.time() - t < 8:
        c.poll(0.2)
    log = s.log(p)
    s.note("while the other is there: " + " | ".join(x[31:330] for x in log.splitlines() if "warn" in x or "error" in x)[:700])
    s.expect("assignor" in log or "protocol" in log.lower(), "says nothing of assignors")
    s.doubt("assignor" in log, "the warning does not say what to do (kafka.assignor, or end the other member)")
    c.close()
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 10, 40), "goes on when the other one is gone")
    s.stop(p)
    once(s, 10)


@case("moving", "the same, and the CASE for empty texts ('' for a number: ServiceNow, CSV gateways)", "CASE WHEN {/x} = '' THEN NULL ELSE {/x}::int END: the parameter is an int, so '' fails before the CASE is looked at", "as templates.md (Casts and guards) says: the text without a number is a dead letter")
def case_does_not_guard(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, (CASE WHEN {/v} = '' THEN NULL ELSE {/v}::int END)::text)", [(b'{"v":"5"}', "5"), (b'{"v":""}', ("letter", "invalid input syntax for type integer"))])


@case("moving", "the same with what works", "::text::jsonb and ::text::int within the CASE; NULLIF({/v}, '')::int", "works")
def case_that_guards(site):
    toast(site, "::text::jsonb")
    table(site, "INSERT INTO out VALUES ({header:event-id}, (CASE WHEN {/v} = '' THEN NULL ELSE {/v}::text::int END)::text)", [(b'{"v":"5"}', "5"), (b'{"v":""}', None)])
    table(site, "INSERT INTO out VALUES ({header:event-id}, (NULLIF({/v}, '')::int)::text)", [(b'{"v":"5"}', "5"), (b'{"v":""}', None)])


def toast(site, cast):
    s = site()
    s.sql("CREATE TABLE t (id int PRIMARY KEY, doc jsonb, n int)")
    s.write(s.handler("""INSERT INTO t AS old (id, doc, n) VALUES ({/id}::int, CASE WHEN {/doc?} = '__debezium_unavailable_value' THEN NULL ELSE {/doc?}CAST END, {/n}::int)
ON CONFLICT (id) DO UPDATE SET n = excluded.n, doc = CASE WHEN {/doc?} = '__debezium_unavailable_value' THEN old.doc ELSE excluded.doc END""".replace("CAST", cast)), head=LETTERS)
    for i in range(12):
        s.send({"id": 1, "doc": {"v": i} if i % 4 == 0 else "__debezium_unavailable_value", "n": i}, id=f"e{i}")
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT doc, n FROM t"), [({"v": 8}, 11)], "row")
    if s.problems:
        s.note(str(s.rows("SELECT count(*), min(sqlstate), min(error) FROM pawl.dead_letters")))


@case("moving", "confluentinc/kafka-connect-jdbc#886, #754 (tombstones with composite JSON keys)", "the record key is JSON, {\"pk1\": .., \"pk2\": ..}, the value null", "the row is deleted by ({key}::jsonb)->>'pk1'")
def json_record_keys(site):
    s = site()
    s.sql("CREATE TABLE t (pk1 text, pk2 int, v text, PRIMARY KEY (pk1, pk2))")
    k = 'key = "{topic_id}:{partition}:{offset}"'
    s.write("\n".join([s.handler({"text": "DELETE FROM t WHERE pk1 = ({key}::jsonb)->>'pk1' AND pk2 = (({key}::jsonb)->>'pk2')::int", "expect_rows": 1}, when='"!has({value})"'),
                       s.handler("INSERT INTO t SELECT k->>'pk1', (k->>'pk2')::int, {/v} FROM (SELECT {key}::jsonb AS k) x ON CONFLICT (pk1, pk2) DO UPDATE SET v = excluded.v")]), head=LETTERS, key=k)
    s.send({"v": "a"}, key='{"pk1":"A","pk2":1}')
    s.send({"v": "b"}, key='{"pk1":"A","pk2":2}')
    s.send({"v": "c"}, key='{"pk2":2, "pk1":"A"}')
    s.send(None, key='{"pk1": "A", "pk2": 1}')
    s.send(None, key='{"pk1": "A", "pk2": 1}')
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT * FROM t"), [("A", 2, "c")], "rows")
    s.same(s.rows("SELECT kafka_offset FROM pawl.dead_letters"), [(4,)], "letters")


@case("moving", "many and large headers (spring trace baggage, 1000 headers, one of 900 kB)", "headers as large as a message may be", "applied; a letter keeps them; shown")
def many_headers(site):
    s = site()
    s.sql("CREATE TABLE out (id text, h text)")
    s.write(s.handler(["INSERT INTO out VALUES ({header:event-id}, length({header:big})::text)", "SELECT 1 / {/n}::int"]), head=LETTERS)
    hs = [(f"h{i}", b"x" * 50) for i in range(1000)] + [("big", b"y" * 900_000)]
    s.send({"n": 1}, id="a", headers=hs)
    s.send({"n": 0}, id="b", headers=hs)
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT h FROM out"), [("900000",)], "rows")
    r = s.cmd("dlq", "show", "1")
    s.same(r.code, 0, "dlq show")
    s.sql("CREATE OR REPLACE FUNCTION pg_temp.x() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    e = s.cmd("dlq", "export")
    s.same(e.code, 0, "export")
    s.note(f"export {len(e.out)} bytes, show {len(r.out)} bytes")


@case("moving", "JasperFx/wolverine#2648 (duplicates known by the English message only)", "lc_messages is another language", "duplicates, letters and waits as in English")
def other_language(site):
    s = site()
    langs = [l.strip() for l in os.popen("locale -a").read().split() if not l.lower().startswith(("c", "posix", "en"))]
    if not langs:
        s.note("no other locale is installed: only German-like text by a trigger is tried")
    s.sql("CREATE TABLE out (id text PRIMARY KEY)")
    if langs:
        s.sql(f"ALTER DATABASE \"{s.db}\" SET lc_messages = '{langs[0]}'")
    s.write(s.handler("INSERT INTO out VALUES ({/id})"), head=LETTERS)
    s.send({"id": "x"}, id="1"); s.send({"id": "x"}, id="1"); s.send({"id": "x"}, id="2"); s.send({"id": "y"}, id="3")
    done = s.drain()
    s.same((done.code, s.rows("SELECT count(*) FROM out"), s.rows("SELECT sqlstate FROM pawl.dead_letters")), (0, [(2,)], [("23505",)]), "code, rows, letters")


@case("moving", "log compaction of retries: producers that send the same id with a later timestamp or other field order", "same id, members in another order, blanks, 1.0 for 1", "documented: a conflict, dead letter (never silently dropped); conflict = ignore takes it as duplicate")
def same_id_other_bytes(site):
    for policy, letters in (("fail", 2), ("ignore", 0)):
        s = site()
        s.sql("CREATE TABLE out (id text)")
        s.write(s.handler("INSERT INTO out VALUES ({header:event-id})", conflict=f'"{policy}"'), head=LETTERS)
        for v in (b'{"a":1,"b":2}', b'{"b":2,"a":1}', b'{"a":1, "b":2}', b'{"a":1,"b":2}'):
            s.send(v, id="same")
        done = s.drain()
        s.same((done.code, s.rows("SELECT count(*) FROM out"), s.rows("SELECT count(*) FROM pawl.dead_letters")), (0, [(1,)], [(letters,)]), f"conflict = {policy}")


@case("moving", "kafka.start = a time, with record timestamps out of order (CreateTime of several producers)", "an older record stands behind a newer one", "begins at the first record at or after the time, nothing behind it is left out")
def start_at_a_time(site):
    s = site()
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    now = int(time.time() * 1000)
    for i, ago in enumerate((5000, 4000, 1000, 4500, 900, 4800)):
        s.send({}, id=f"e{i}", timestamp=now - ago * 1000)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now / 1000 - 2000))
    done = s.drain(f"kafka.start={at}")
    s.same(done.code, 0, "exit code: " + done.tail(2, 200))
    s.same(s.rows("SELECT id FROM out ORDER BY o"), [("e2",), ("e3",), ("e4",), ("e5",)], "rows")


