"""Shapes of values."""
import json

from harness import case

LETTERS = '[failures]\non_failure = "dead-letter"\nretry_for = "0s"\ncircuit_breaker = 0\n'


def table(site, sql, items, *, create="CREATE TABLE out (id text PRIMARY KEY, v text)", select="SELECT v FROM out WHERE id = %s", head=LETTERS, sets=(), key=None, **handler):
    """items: (value, want); want is the row's text, or ('letter', part of the error)."""
    s = site()
    for one in create if isinstance(create, list) else [create]:
        s.sql(one)
    s.write(s.handler(sql, **handler), head=head, **({"key": key} if key is not None else {}))
    s.send_many([dict(value=v, id=f"e{i}") for i, (v, _) in enumerate(items)])
    done = s.drain(*sets)
    s.same(done.code, 0, "exit code")
    if done.code:
        s.note(done.tail(5, 600))
    for i, (v, want) in enumerate(items):
        row = s.sql(select, f"e{i}")
        letter = s.sql("SELECT error, sqlstate FROM pawl.dead_letters WHERE kafka_offset = %s", i)
        shown = repr(v if v is None or len(v) < 80 else v[:80])
        if isinstance(want, tuple) and want and want[0] == "letter":
            s.expect(not row and letter and want[1] in letter[0][0], f"offset {i} {shown}: row {row}, letter {letter}; want a letter with {want[1]!r}")
        else:
            s.expect(row == [(want,)], f"offset {i} {shown}: row {row}, letter {letter}; want {want!r}")
    return s, done


PUT = "INSERT INTO out VALUES ({header:event-id}, {/v?})"


@case("payload", "simdjson/simdjson-java#37, aws/event-ruler#34", "two members of one name: one parser takes the first, the database the last", "the last, everywhere: in {/v} as in {value}::jsonb")
def duplicate_members(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, {/v} || '/' || (({value}::jsonb)->>'v'))",
          [(b'{"v":1,"v":2}', "2/2"), (b'{"v":{"a":1},"v":"x"}', "x/x"), (b'{"\\u0076":"esc","v":"plain"}', "plain/plain"), (b'{"v":"plain","\\u0076":"esc"}', "esc/esc")])


@case("payload", "confluentinc/ksql#4710, kafka-connect-storage-cloud#568", "numbers through a double: digits lost, exponents written", "each digit as it was written")
def numbers_keep_digits(site):
    table(site, PUT, [(b'{"v":169299987.35345112}', "169299987.35345112"), (b'{"v":10.0}', "10.0"), (b'{"v":1E400}', "1E400"), (b'{"v":-0}', "-0"),
                      (b'{"v":123456789012345678901234567890.123456789012345678901234567890}', "123456789012345678901234567890.123456789012345678901234567890"),
                      (b'{"v":1e-7}', "1e-7"), (b'{"v":18446744073709551616}', "18446744073709551616"), (b'{"v":01}', ("letter", "number is malformed")),
                      (b'{"v":.5}', ("letter", "missing or malformed")), (b'{"v":1.}', ("letter", "number is malformed")), (b'{"v":+1}', ("letter", "malformed"))])


@case("payload", "python json.dumps(float('nan')), pandas to_json", "NaN, Infinity, undefined, trailing commas, comments, single quotes", "letters that say where; the neighbours applied")
def nearly_json(site):
    table(site, PUT, [(b'{"v":NaN}', ("letter", "at byte 5")), (b'{"v":-Infinity}', ("letter", "at byte 5")), (b'{"v":1,}', ("letter", "not JSON")), (b"{'v':1}", ("letter", "not JSON")),
                      (b'{"v":1} // x', ("letter", "not JSON")), (b'{"v":1}{"v":2}', ("letter", "not JSON")), (b'{"v":1}\n{"v":2}\n', ("letter", "not JSON")), (b'{"v":tru}', ("letter", "not JSON")),
                      (b'{"v":"a\nb"}', ("letter", "control character")), (b'{"v":"\\x"}', ("letter", "escape")), (b'{"v":1', ("letter", "not JSON")), (b"", ("letter", "empty")),
                      (b"   ", ("letter", "not JSON")), (b'{"v":"ok"}', "ok")])


@case("payload", "getsentry/sentry#10752, ayunis-core#1613 (lone surrogates into jsonb)", "{value}::jsonb of what {/id} reads without trouble", "a letter for the one, also in a batch; others applied")
def jsonb_refuses(site):
    table(site, "INSERT INTO out SELECT {header:event-id}, ({value}::jsonb)->>'v'", [(b'{"v":"a"}', "a"), (b'{"v":"\\u0000"}', ("letter", "")), (b'{"v":"\\ud800"}', ("letter", "")), (b'{"v":"b"}', "b")])


@case("payload", "DaveGamble/cJSON#184, jqlang/jq#45 (UTF-8 BOM of .NET producers)", "a byte order mark before the JSON", "{/v} and {value}::jsonb agree: both read it, or the message says why not")
def byte_order_mark(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, {/v})", [(b'\xef\xbb\xbf{"v":"a"}', "a")])
    s, done = table(site, "INSERT INTO out VALUES ({header:event-id}, ({value}::jsonb)->>'v')", [(b'\xef\xbb\xbf{"v":"a"}', "a")])


@case("payload", "arrays at the top level (REST proxies send [ {...} ])", "the value is an array, a string, a number, null", "pointers into it work; others are letters")
def top_level_shapes(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, {/0/v})", [(b'[{"v":1},{"v":2}]', "1"), (b'[]', ("letter", "no {/0/v}")), (b'"x"', ("letter", "no {/0/v}")), (b'null', ("letter", "no {/0/v}")), (b'5', ("letter", "no {/0/v}")),
                                                                     (b'{"0":{"v":"member"}}', "member"), (b'[[1]]', ("letter", "no {/0/v}"))])


@case("payload", "confluentinc/librdkafka#1835, #1314, benthos large messages", "values of 1 to 12 MB in a topic that allows them, small ones around them", "all applied, in order; a letter of 8 MB is kept whole and shown")
def large_values(site):
    s = site(topic_conf={"max.message.bytes": "20000000"})
    s.sql("CREATE TABLE out (n bigserial, id text PRIMARY KEY, len int)")
    s.write(s.handler("INSERT INTO out (id, len) VALUES ({header:event-id}, length({/v}))"), head=LETTERS + '[dead_letters]\nmax_payload = "64MiB"\n')
    sizes = [10, 1_100_000, 10, 12_000_000, 3_000_000, 10]
    s.send_many([dict(value=b'{"v":"' + b"x" * n + b'"}', id=f"e{i}") for i, n in enumerate(sizes)] + [dict(value=b'{"v":"' + b"y" * 8_000_000, id="bad")])
    done = s.drain('kafka.buffer="1MiB"')
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT len FROM out ORDER BY n"), [(n,) for n in sizes], "lengths in order")
    s.same(s.rows("SELECT length(record_value) FROM pawl.dead_letters"), [(8_000_006,)], "the letter's value")
    shown = s.cmd("dlq", "show", "1")
    s.expect(shown.code == 0 and len(shown.out) < 9_000_000, f"dlq show: {shown.code}, {len(shown.out)} bytes")
    s.note(f"dlq show of an 8 MB letter prints {len(shown.out)} bytes")


@case("payload", "risingwavelabs/risingwave#19792, ClickHouse/clickhouse-kafka-connect#346 (Debezium decimals as base64)", "decimal.handling.mode=precise: \"AYHN\" for 987.65 (scale 2)",
      "refused by ::numeric (letter), or decoded by SQL; never stored as another number")
def debezium_base64_decimal(site):
    # big-endian two's complement, by SQL of the user's
    decode = ("INSERT INTO out SELECT {header:event-id}, (CASE WHEN get_bit(b, 7) = 1 THEN n - power(256::numeric, length(b)) ELSE n END / 100)::numeric(20,2)::text "
              "FROM (SELECT b, sum(get_byte(b, i)::numeric * power(256::numeric, length(b) - 1 - i)) AS n FROM (SELECT decode({/v}, 'base64') AS b) x, generate_series(0, length(b) - 1) AS i GROUP BY b) y")
    table(site, decode, [(b'{"v":"AYHN"}', "987.65"), (b'{"v":"ASw="}', "3.00"), (b'{"v":"/w=="}', "-0.01"), (b'{"v":"AA=="}', "0.00")])
    table(site, "INSERT INTO out VALUES ({header:event-id}, {/v}::numeric::text)", [(b'{"v":"AYHN"}', ("letter", "numeric"))])


@case("payload", "debezium VariableScaleDecimal, artie-labs/reader#302", "a struct {scale, value} where a number is expected", "a letter for a cast to numeric")
def debezium_variable_scale(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, {/v}::numeric::text)", [(b'{"v":{"scale":5,"value":"ASw="}}', ("letter", "numeric")), (b'{"v":1.5}', "1.5")])


@case("payload", "yugabyte/yb-voyager#1023, artie-labs/transfer#69 (MicroTimestamp, NanoTimestamp, Date as days)", "microseconds since the epoch taken for seconds or milliseconds", "by SQL: to_timestamp(v / 1e6) exact to the microsecond")
def debezium_micro_timestamps(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, (timestamp 'epoch' + {/v}::bigint * interval '1 microsecond')::text)",
          [(b'{"v":1717243200123456}', "2024-06-01 12:00:00.123456"), (b'{"v":-1}', "1969-12-31 23:59:59.999999"), (b'{"v":1717243200123}', "1970-01-20 21:00:43.200123"), (b'{"v":9223372036854775807}', ("letter", "out of range"))],
          key='key = "{header:event-id}"')


@case("payload", "DBZ-578, flink-cdc#4181 (with and without zone)", "ISO texts with Z, offset, none, a comma, a lower-case t, leap second, 24:00", "as PostgreSQL reads them; what it refuses is a letter")
def iso_times(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, ({/v}::timestamptz AT TIME ZONE 'UTC')::text)",
          [(b'{"v":"2024-06-01T12:00:00Z"}', "2024-06-01 12:00:00"), (b'{"v":"2024-06-01T12:00:00.123456789+02:00"}', "2024-06-01 10:00:00.123457"), (b'{"v":"2024-06-30T23:59:60Z"}', "2024-07-01 00:00:00"),
           (b'{"v":"2024-06-01T24:00:00Z"}', "2024-06-02 00:00:00"), (b'{"v":"2024-13-01T00:00:00Z"}', ("letter", "")), (b'{"v":""}', ("letter", "")), (b'{"v":"0001-01-01T00:00:00Z"}', "0001-01-01 00:00:00"),
           (b'{"v":"10000-01-01T00:00:00Z"}', "10000-01-01 00:00:00")])


@case("payload", "StarRocks/starrocks-connector-for-kafka#17 (schema and payload)", "Debezium with schemas.enable, without, a tombstone, null before, a snapshot's r", "one template reads both")
def debezium_envelopes(site):
    s = site()
    s.sql("CREATE TABLE out (id int PRIMARY KEY, name text, op text)")
    env = {"before": None, "after": {"id": 1, "name": "A"}, "source": {"lsn": 5}, "op": "c"}
    s.write("\n".join([s.handler("INSERT INTO out VALUES ({/payload/after/id|/after/id}::int, {/payload/after/name|/after/name?}, {/payload/op|/op}) ON CONFLICT (id) DO UPDATE SET name = excluded.name, op = excluded.op",
                                 when="'{/payload/op|/op} in [\"c\", \"u\", \"r\"]'", key='"{topic_id}:{partition}:{offset}"'),
                       s.handler("DELETE FROM out WHERE id = {/payload/before/id|/before/id}::int", when="'{/payload/op|/op} == \"d\"'", key='"{topic_id}:{partition}:{offset}"'),
                       s.handler("SELECT 1", when='"!has({value})"', key='"{topic_id}:{partition}:{offset}"')]), head=LETTERS)
    s.send(env, key='{"id":1}')
    s.send({"schema": {"type": "struct", "fields": []}, "payload": dict(env, after={"id": 2, "name": None}, op="r")}, key='{"id":2}')
    s.send({"schema": None, "payload": dict(env, before={"id": 1, "name": "A"}, after=None, op="d")}, key='{"id":1}')
    s.send(None, key='{"id":1}')
    s.send({"schema": None, "payload": None}, key='{"id":3}')
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT * FROM out"), [(2, None, "r")], "rows")
    s.note("letters: " + str([(o, e[:200]) for o, e in s.rows("SELECT kafka_offset, error FROM pawl.dead_letters")]))


@case("payload", "values that are the words of arrays: {}, NULL, \"quoted\", back\\slash, commas", "texts that mean something within an array literal, in batches", "each text as it came")
def array_hostile_texts(site):
    texts = ["", "NULL", "null", "{}", "{a,b}", 'say "hi"', "back\\slash", "\\", "'", "a,b", " lead", "trail ", "\t", "\n", "\\x41", "\u0001", "💥"]
    table(site, "INSERT INTO out SELECT * FROM unnest({header:event-id}::text[], {/v}::text[])", [(json.dumps({"v": t}).encode(), t) for t in texts] + [(b'{"v":null}', None)], batch="true")


@case("payload", "MassTransit/CloudEvents: value is a JSON text within JSON", "{/data} is a string that holds JSON; base64 bodies", "a text; ({/data}::jsonb)->>'v' reads it")
def json_in_json(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, ({/data}::jsonb)->>'v')", [(json.dumps({"data": json.dumps({"v": "in\"ner"})}).encode(), 'in"ner'), (b'{"data":{"v":"plain"}}', "plain"), (b'{"data":"not json"}', ("letter", "json"))])


