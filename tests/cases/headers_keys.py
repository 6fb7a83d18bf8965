"""Keys, headers, record timestamps."""
from harness import case
from payloads import LETTERS


@case("keys", "smallrye#1848, MassTransit#3871, vertx-kafka-client#313", "a header whose value is null; one that is empty; one that is absent", "null and absent: no key (letter); empty: no key; neighbours applied")
def null_header(site):
    s = site()
    s.sql("CREATE TABLE out (o bigint, h text)")
    s.write(s.handler("INSERT INTO out VALUES ({offset}::bigint, {header:h?})", key='"{header:event-id}"'), head=LETTERS)
    s.send({}, headers=[("event-id", b"1"), ("h", None)])
    s.send({}, headers=[("event-id", b"2"), ("h", b"")])
    s.send({}, headers=[("event-id", b"3")])
    s.send({}, headers=[("event-id", None)])
    s.send({}, headers=[("event-id", b"")])
    s.send({}, headers=[])
    s.send({}, headers=[("event-id", b"4"), ("event-id", None)])
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT * FROM out ORDER BY o"), [(0, None), (1, ""), (2, None)], "rows")
    letters = s.rows("SELECT kafka_offset, error FROM pawl.dead_letters ORDER BY 1")
    s.same([o for o, _ in letters], [3, 4, 5, 6], "letters")
    s.note("letters: " + str([(o, e[:140]) for o, e in letters]))


@case("keys", "an empty header before a filled field", "{header:event-id|/event_id}: the header is there and empty, the field has the id", "the first that has a value: an empty text is none in a key; the field counts")
def empty_header_then_field(site):
    s = site()
    s.sql("CREATE TABLE out (o bigint)")
    s.write(s.handler("INSERT INTO out VALUES ({offset}::bigint)"), key='key = "{header:event-id|/event_id}"', head=LETTERS)
    s.send({"event_id": "a"}, headers=[("event-id", b"")])
    s.send({"event_id": "b"}, headers=[("event-id", None)])
    s.send({"event_id": "c"}, headers=[])
    s.same(s.drain().code, 0, "exit code")
    s.same(s.rows("SELECT * FROM out ORDER BY o"), [(0,), (1,), (2,)], "rows")
    s.note("letters: " + str([(o, e[:200]) for o, e in s.rows("SELECT kafka_offset, error FROM pawl.dead_letters")]))


@case("keys", "kafka headers are bytes: spring's DefaultKafkaHeaderMapper quotes them as JSON", "event-id as '\"5f0c\"' (JSON-quoted) beside '5f0c'", "two keys; documented as bytes as they are")
def json_quoted_header(site):
    s = site()
    s.sql("CREATE TABLE out (o bigint)")
    s.write(s.handler("INSERT INTO out VALUES ({offset}::bigint)"), head=LETTERS)
    s.send({}, headers=[("event-id", b'"5f0c"')])
    s.send({}, headers=[("event-id", b'5f0c')])
    s.send({}, headers=[("event-id", b'5f0c')])
    s.same(s.drain().code, 0, "exit code")
    s.same(s.rows("SELECT * FROM out ORDER BY o"), [(0,), (1,)], "rows")


@case("keys", "confluentinc/confluent-kafka-python headers with several values", "the same header several times", "the last one counts, in key, SQL and when")
def repeated_headers(site):
    s = site()
    s.sql("CREATE TABLE out (o bigint, h text)")
    s.write(s.handler("INSERT INTO out VALUES ({offset}::bigint, {header:h})", when="'{header:type} == \"b\"'"), head=LETTERS)
    s.send({}, headers=[("event-id", b"x"), ("event-id", b"y"), ("h", b"1"), ("h", b"2"), ("type", b"a"), ("type", b"b")])
    s.send({}, headers=[("event-id", b"y"), ("h", b"1"), ("h", b"2"), ("type", b"b")])
    s.same(s.drain().code, 0, "exit code")
    s.same(s.rows("SELECT * FROM out ORDER BY o"), [(0, "2")], "rows")


@case("keys", "header names with blanks, colons, dots, non-ASCII; upper and lower case", "names as producers write them", "each is found by its name")
def odd_header_names(site):
    s = site()
    s.sql("CREATE TABLE out (v text)")
    names = ["X-Request Id", "a:b", "a.b", "\u00e9", "k|p", "q?", "{x}", "back\\slash"]
    write = ["{header:X-Request Id}", "{header:a:b}", "{header:a.b}", "{header:\u00e9}", "{header:k\\|p}", "{header:q\\?}", "{header:\\{x\\}}", "{header:back\\\\slash}"]
    s.write(s.handler("INSERT INTO out VALUES (concat_ws(',', " + ", ".join(w + "::text" for w in write) + "))"), head=LETTERS)
    s.send({}, id="1", headers=[(n, str(i).encode()) for i, n in enumerate(names)])
    done = s.drain()
    s.same(s.rows("SELECT * FROM out"), [(",".join(str(i) for i in range(len(names))),)], "rows")
    if s.problems:
        s.note(done.tail(4))


@case("keys", "producers that give seconds, microseconds or nanoseconds as the record's timestamp", "timestamps of the year 1970, 55,000 and 53 million", "applied; letters, status, peek, retention and replay bear it")
def odd_record_timestamps(site):
    s = site(topic_conf={"message.timestamp.before.max.ms": "9223372036854775807", "message.timestamp.after.max.ms": "9223372036854775807", "retention.ms": "-1"})
    s.sql("CREATE TABLE out (o bigint, t text)")
    s.write(s.handler(["INSERT INTO out VALUES ({offset}::bigint, {timestamp?})", "SELECT 1 / (CASE WHEN {/bad} = 'yes' THEN 0 ELSE 1 END)"]), head=LETTERS)
    stamps = [1717243200, 1717243200123456, 1717243200123456789, 9223372036854775807, 1]
    n = 0
    for t in stamps:
        for bad in ("no", "yes"):
            s.send({"bad": bad}, id=f"e{n}", timestamp=t)
            n += 1
    done = s.drain(timeout=40)
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT t FROM out ORDER BY o"), [(str(t),) for t in stamps], "rows")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(len(stamps),)], "letters")
    if s.problems:
        s.note(done.tail(6, 500))
    for words in (["dlq", "list"], ["dlq", "show", "3"], ["dlq", "show", "4"], ["status"], ["offsets", "show"], ["partitions", "peek", "--topic", s.topic, "--partition", "0", "--offset", "6"], ["audit"], ["dlq", "replay", "--all"], ["prune", "--dry-run"]):
        r = s.cmd(*words)
        bad = r.code not in (0, 1) or "terminate" in r.out or "what()" in r.out
        s.expect(not bad, f"{words}: code {r.code}: {r.tail(3, 300)}")
        if "timestamp" in r.out.lower():
            s.note(f"{' '.join(words[:3])}: " + "; ".join(x.strip()[:150] for x in r.out.splitlines() if "timestamp" in x.lower())[:300])


@case("keys", "function handlers: headers as jsonb with binary and NUL values, names twice", "f(..., headers jsonb, ...) with hostile headers", "no failure; binary ones null; the last of a name")
def function_headers(site):
    s = site()
    s.sql("CREATE TABLE out (k bytea, v bytea, h jsonb, t bigint)")
    s.sql("CREATE FUNCTION f(topic text, \"partition\" integer, \"offset\" bigint, key bytea, value bytea, headers jsonb, timestamp_ms bigint) RETURNS void LANGUAGE sql AS 'INSERT INTO out VALUES (key, value, headers, timestamp_ms)'")
    s.write(f'[[handler]]\ntopics = ["{s.topic}"]\nfunction = "f"\n', head=LETTERS)
    s.send(b"\x00\xff", key=b"\x00", id="1", headers=[("b", b"\xff"), ("n", b"a\x00"), ("z", None), ("d", b"1"), ("d", b"2"), ("\u00e9", b"x"), ("q\"", b'"')])
    s.send(None, key=None, id="2")
    done = s.drain()
    s.same(done.code, 0, "exit code")
    rows = s.rows("SELECT k, v, h - 'event-id' FROM out")
    s.same([(bytes(k) if k is not None else None, bytes(v) if v is not None else None, h) for k, v, h in rows],
           [(b"\x00", b"\x00\xff", {"b": None, "n": None, "z": None, "d": "2", "\u00e9": "x", 'q"': '"'}), (None, None, {})], "rows")
    if s.problems:
        s.note(done.tail(4))
