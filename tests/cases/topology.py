"""Events in Kafka: groups, logs, topics."""
import time

from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

import harness
from harness import case, ADMIN, KAFKA
from payloads import LETTERS

PUT = "INSERT INTO out VALUES ({header:event-id}, {partition}::int, {offset}::bigint)"
OUT = "CREATE TABLE out (id text, p int, o bigint, n bigserial)"


def once(s, want):
    rows = s.rows("SELECT count(*), count(DISTINCT id) FROM out")
    s.same(rows, [(want, want)], "rows, different ids")


@case("topology", "apache/druid#5404, redpanda#8698, spring-kafka#1587", "transactions: committed, aborted, markers at the log's end, an open transaction behind them", "committed only, lag 0, drain ends; the open one is waited for")
def transactions(site):
    s = site()
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    p = Producer({"bootstrap.servers": KAFKA, "transactional.id": s.n, "transaction.timeout.ms": 15000})
    p.init_transactions()
    for n, commit in enumerate([True, False, True, False]):
        p.begin_transaction()
        for i in range(5):
            p.produce(s.topic, value=b"{}", headers=[("event-id", f"{n}-{i}".encode())])
        p.flush()
        p.commit_transaction() if commit else p.abort_transaction()
    done = s.drain(timeout=30)
    s.same(done.code, 0, "exit code")
    once(s, 10)
    s.expect("lag 0" in s.cmd("status").out, "status says lag 0: " + s.cmd("status").tail(6))
    s.same(s.cmd("audit").code, 0, "audit")
    p.begin_transaction()
    p.produce(s.topic, value=b"{}", headers=[("event-id", b"open")])
    p.flush()
    s.send({}, id="behind")
    done = s.drain(timeout=12)
    s.note(f"drain before an open transaction: code {done.code}: {done.tail(1, 250)}")
    p.abort_transaction()
    done = s.drain(timeout=20)
    s.same(done.code, 0, "exit code behind the open one")
    once(s, 11)


@case("topology", "apache/pinot#19359, #8219 (retention overtakes), DeleteRecords", "records are deleted in front of the consumer: before its start, while it is stopped, and all of them", "before the start: begins there; later: halts and says so; offsets set goes on")
def delete_records(site):
    s = site()
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    s.send_many([dict(value={}, id=f"e{i}") for i in range(20)])
    harness.delete_records(s.topic, 5)
    done = s.drain()
    s.same(done.code, 0, "exit code from a log that begins at 5")
    once(s, 15)
    s.send_many([dict(value={}, id=f"f{i}") for i in range(20)])
    harness.delete_records(s.topic, 30)
    done = s.drain(timeout=30)
    s.same(done.code, 4, "halts")
    s.expect("retention removed" in done.out, "says retention: " + done.tail(3, 300))
    r = s.cmd("offsets", "set", "--topic", s.topic, "--partition", "0", "--to", "earliest", "--because", "test")
    s.same(r.code, 0, "offsets set")
    done = s.drain()
    s.same(done.code, 0, "goes on")
    once(s, 25)
    harness.delete_records(s.topic, 40)
    done = s.drain(timeout=30)
    s.same(done.code, 0, "an emptied log that was processed to its end: " + done.tail(3, 250))


@case("topology", "partition count increased under load (keys move)", "4 partitions become 9 while two processes run", "all once; the new ones from their start")
def partitions_added(site):
    s = site(partitions=4)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    ps = [s.start(name=f"run{i}") for i in range(2)]
    s.send_many([dict(value={}, id=f"a{i}", partition=i % 4) for i in range(400)])
    list(ADMIN.create_partitions([NewPartitions(s.topic, 9)]).values())[0].result(20)
    time.sleep(0.5)
    s._producer = None
    s.send_many([dict(value={}, id=f"b{i}", partition=i % 9) for i in range(900)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 1300, 40), f"all arrived: {s.rows('SELECT count(*) FROM out')}")
    for p in ps:
        s.stop(p)
    once(s, 1300)
    s.same(s.rows("SELECT bool_and(ok) FROM (SELECT o >= lag(o, 1, -1::bigint) OVER (PARTITION BY p ORDER BY n) AS ok FROM out) x"), [(True,)], "order within partitions")


@case("topology", "topic deleted and created again with the same name (CI scripts)", "deleted and recreated with more records while the process is stopped", "halts with 'deleted and created again'; offsets set --to earliest applies the new one")
def topic_recreated(site):
    s = site()
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    s.send_many([dict(value={}, id=f"e{i}") for i in range(5)])
    s.drain()
    list(ADMIN.delete_topics([s.topic]).values())[0].result(20)
    time.sleep(2)
    s._producer = None
    s.create_topic(s.topic)
    s.send_many([dict(value={}, id=f"f{i}") for i in range(50)])
    done = s.drain(timeout=30)
    s.same(done.code, 4, "halts: " + done.tail(2, 300))
    s.expect("created again" in done.out, "says so")
    s.same(s.rows("SELECT count(*) FROM out"), [(5,)], "nothing applied")
    s.cmd("offsets", "set", "--topic", s.topic, "--all", "--to", "earliest", "--because", "x")
    done = s.drain()
    s.same(done.code, 0, "goes on")
    once(s, 55)


@case("topology", "static members replaced (kubernetes StatefulSet, two pods of one name)", "a second process with the same group_instance_id", "one of both ends and says why; nothing twice")
def same_instance_id(site):
    s = site(partitions=2)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    a = s.start("kafka.group_instance_id=pod-0", name="a")
    s.send_many([dict(value={}, id=f"a{i}", partition=i % 2) for i in range(50)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 50, 30), "applied by the first process")
    b = s.start("kafka.group_instance_id=pod-0", name="b")
    s.expect(s.wait(lambda: a.poll() is not None or b.poll() is not None, 30), "one of both ends")
    s.send_many([dict(value={}, id=f"b{i}", partition=i % 2) for i in range(50)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 100, 60), "the other goes on")
    codes = (a.poll(), b.poll())
    s.expect(codes.count(None) == 1, f"one ended: {codes}")
    for p in (a, b):
        s.stop(p)
    once(s, 100)
    s.note("who ended: " + s.log(a).strip().splitlines()[-1][:250])


@case("topology", "max.poll.interval.ms exceeded by long handlers (librdkafka, spring-kafka, racecar)", "a statement of 12 s with max.poll.interval.ms 6 s, a second process takes part", "applied once; partitions do not go back and forth", slow=True)
def long_handler(site):
    s = site(partitions=2)
    s.sql(OUT)
    s.write(s.handler(["SELECT pg_sleep({/s}::float)", PUT]), head=LETTERS + '[kafka.librdkafka]\n"max.poll.interval.ms" = 6000\n', key='key = "{header:event-id}"')
    a = s.start('kafka.session_timeout="6s"', name="a")
    s.send({"s": 0}, id="x", partition=0)
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 1, 30), "the first message is applied")
    s.send({"s": 12}, id="long", partition=0)
    for i in range(5):
        s.send({"s": 0}, id=f"y{i}", partition=i % 2)
    time.sleep(3)
    b = s.start('kafka.session_timeout="6s"', name="b")
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 7, 60), f"all: {s.rows('SELECT count(*) FROM out')}")
    time.sleep(1)
    for p in (a, b):
        s.stop(p)
    once(s, 7)
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")


@case("topology", "librdkafka built without a codec; vector/fluent-bit with zstd and snappy producers", "batches in none, gzip, snappy, lz4, zstd, idempotent producers, mixed", "all applied")
def compressions(site):
    s = site()
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    n = 0
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        p = Producer({"bootstrap.servers": KAFKA, "compression.type": codec, "enable.idempotence": True, "linger.ms": 50})
        for i in range(50):
            p.produce(s.topic, value=b'{"pad":"' + b"x" * 200 + b'"}', headers=[("event-id", f"{codec}{i}".encode())], partition=0)
            n += 1
        p.flush()
    done = s.drain()
    s.same(done.code, 0, "exit code")
    once(s, n)


@case("topology", "the new consumer protocol (KIP-848) with librdkafka", "group_protocol = consumer, two processes, one leaves", "all once")
def new_protocol(site):
    s = site(partitions=4)
    s.sql(OUT)
    s.write(s.handler(PUT), head=LETTERS)
    ps = [s.start("kafka.group_protocol=consumer", name=f"n{i}") for i in range(2)]
    s.send_many([dict(value={}, id=f"a{i}", partition=i % 4) for i in range(400)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 400, 30), "the first messages are applied")
    s.stop(ps[0])
    s.send_many([dict(value={}, id=f"b{i}", partition=i % 4) for i in range(400)])
    s.expect(s.wait(lambda: s.rows("SELECT count(*) FROM out")[0][0] == 800, 30), f"all: {s.rows('SELECT count(*) FROM out')}")
    s.stop(ps[1])
    once(s, 800)
