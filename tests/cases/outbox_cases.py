"""pawl.publish with what applications give it."""
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ConfigResource

from harness import case, ADMIN, KAFKA
from payloads import LETTERS


def read(topic, quiet=2.0):
    c = Consumer({"bootstrap.servers": KAFKA, "group.id": "r" + str(time.time()), "isolation.level": "read_committed", "enable.auto.commit": False})
    c.assign([TopicPartition(topic, 0, 0)])
    got, since = [], time.time()
    while time.time() - since < quiet:
        m = c.poll(0.2)
        if m is not None and not m.error():
            got.append(m)
            since = time.time()
    c.close()
    return got


@case("outbox", "outbox with data-made topics and headers", "a topic name of the message's that is none, headers that are no object, a value beyond max.message.bytes", "the message's fault (22023): a letter; the neighbours are published")
def outbox_bad_data(site):
    s = site()
    out = s.topic + "-out"
    s.create_topic(out)
    s.write(s.handler("SELECT pawl.publish({/t}, {/k?}, {/v?}, {/h?}::jsonb)"), head=LETTERS)
    items = [{"t": out, "k": "k", "v": "0"}, {"t": "no topic!", "k": "k", "v": "1"}, {"t": "", "k": "k", "v": "2"}, {"t": "x" * 250, "k": "k", "v": "3"}, {"t": out, "k": "k", "v": "4", "h": [1, 2]}, {"t": out, "k": "k", "v": "5", "h": {"a": {"b": 1}}}, {"t": out, "k": "k", "v": "6", "h": {"a": "b"}}, {"t": ".", "k": "k", "v": "7"}]
    for i, v in enumerate(items):
        s.send(v, id=f"e{i}")
    done = s.drain(timeout=40)
    s.same(done.code, 0, "exit code: " + done.tail(2, 300))
    s.same([m.value() for m in read(out)], [b"0", b"6"], "published")
    s.same(s.rows("SELECT kafka_offset, sqlstate FROM pawl.dead_letters ORDER BY 1"), [(i, "22023") for i in (1, 2, 3, 4, 5, 7)], "letters")


@case("outbox", "librdkafka and Java partitioners differ (consistent_random and murmur2): a key in two partitions", "keys of a Java producer and of the outbox", "the same partition as Java's default partitioner (murmur2)")
def outbox_partitioner(site):
    s = site()
    out = s.topic + "-out"
    s.create_topic(out, 12)
    s.write(s.handler([f"SELECT pawl.publish('{out}', 'key-' || i, i::text) FROM generate_series(1, 60) i"]), head=LETTERS)
    s.send({}, id="a")
    s.same(s.drain(timeout=40).code, 0, "exit code")

    def murmur2(data):
        seed, m, r = 0x9747b28c, 0x5bd1e995, 24
        n = len(data); h = (seed ^ n) & 0xffffffff
        for i in range(0, n // 4 * 4, 4):
            k = int.from_bytes(data[i:i + 4], "little"); k = k * m & 0xffffffff; k ^= k >> r; k = k * m & 0xffffffff
            h = h * m & 0xffffffff; h ^= k
        rest = data[n // 4 * 4:]
        if rest:
            h ^= int.from_bytes(rest, "little"); h = h * m & 0xffffffff
        h ^= h >> 13; h = h * m & 0xffffffff; h ^= h >> 15
        return h
    c = Consumer({"bootstrap.servers": KAFKA, "group.id": "r" + s.n, "isolation.level": "read_committed"})
    c.assign([TopicPartition(out, p, 0) for p in range(12)])
    wrong = n = 0
    since = time.time()
    while time.time() - since < 2:
        m = c.poll(0.2)
        if m is not None and not m.error():
            n += 1; since = time.time()
            wrong += m.partition() != (murmur2(m.key()) & 0x7fffffff) % 12
    c.close()
    s.same((n, wrong), (60, 0), "records, in another partition than Java's")


@case("outbox", "a topic that refuses (too large) amid many keys", "one record beyond the topic's max.message.bytes", "set apart with its key's later ones; others go on; retry after ALTER works in order")
def outbox_refused(site):
    s = site()
    out = s.topic + "-out"
    s.create_topic(out, 1, {"max.message.bytes": "5000"})
    s.write(s.handler("SELECT pawl.publish('%s', {/k}, repeat('x', {/n}::int) || {header:event-id})" % out), head=LETTERS)
    for i, (k, n) in enumerate([("a", 1), ("b", 9000), ("a", 1), ("b", 1), ("c", 1), ("b", 2)]):
        s.send({"k": k, "n": n}, id=f"e{i}")
    done = s.drain(timeout=60)
    s.note(f"drain: {done.code}: {done.tail(1, 200)}")
    # The order of the outbox is per key: other keys may be in another lane.
    def of(key):
        return [m.value()[-2:] for m in read(out) if m.key() == key]

    s.same([of(b"a"), of(b"b"), of(b"c")], [[b"e0", b"e2"], [], [b"e4"]], "published")
    wider = ConfigResource(ConfigResource.Type.TOPIC, out, set_config={"max.message.bytes": "100000"})
    list(ADMIN.alter_configs([wider]).values())[0].result(10)
    r = s.cmd("outbox", "retry", "--all")
    s.same(r.code, 0, "retry: " + r.tail(2))
    s.same(s.cmd("relay", "--drain", timeout=60).code, 0, "exit code of relay")
    s.same(
        [of(b"a"), of(b"b"), of(b"c")], [[b"e0", b"e2"], [b"e1", b"e3", b"e5"], [b"e4"]], "after retry, in order of the key"
    )
