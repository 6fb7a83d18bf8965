"""Statements as people write them."""
import time

from harness import case
from payloads import LETTERS, table

KEY = "{header:event-id}"


@case("sql", "confluentinc/kafka-connect-jdbc#1081, devlake#1729", "one row twice in a batch: ON CONFLICT DO UPDATE command cannot affect row a second time (21000)",
      "documented: split until it passes; all applied, last state stands; how slow?")
def upsert_twice_in_batch(site):
    s = site()
    s.sql("CREATE TABLE out (id text PRIMARY KEY, v int)")
    s.write(s.handler("INSERT INTO out SELECT * FROM unnest({/k}::text[], {/v}::int[]) ON CONFLICT (id) DO UPDATE SET v = excluded.v", batch="true"), head=LETTERS)
    s.send_many([dict(value={"k": f"k{i % 7}", "v": i}, id=f"e{i}") for i in range(1000)])
    began = time.time()
    done = s.drain(timeout=120)
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT id, v FROM out ORDER BY 1"), [(f"k{i}", max(range(i, 1000, 7))) for i in range(7)], "last states")
    s.same(s.rows("SELECT count(*) FROM pawl.dead_letters"), [(0,)], "letters")
    lines = [x for x in done.out.splitlines() if "attempt_failed" in x]
    s.note(f"{time.time() - began:.1f} s for 1000 messages; {len(lines)} lines of failed attempts; the last: {lines[-1][:300] if lines else ''}")


@case("sql", "kafka-connect-jdbc#327 (tables with rules)", "a DO ALSO rule (audit copy) and expect_rows: with a pipeline the statement travels in a WITH, where rules are refused",
      "applied as with pipeline = 1")
def rule_do_also(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.sql("CREATE TABLE copy (id text)")
    s.sql("CREATE RULE audit AS ON INSERT TO out DO ALSO INSERT INTO copy VALUES (new.id)")
    s.write(s.handler({"text": f"INSERT INTO out VALUES ({KEY})", "expect_rows": 1}), head=LETTERS + 'program_error_retry = "1s"\n')
    s.send_many([dict(value={}, id=f"e{i}") for i in range(40)])
    check = s.check()
    done = s.drain(timeout=30)
    s.same(done.code, 0, "exit code")
    s.same((s.rows("SELECT count(*) FROM out"), s.rows("SELECT count(*) FROM copy")), ([(40,)], [(40,)]), "rows and copies")
    s.note(f"check: code {check.code}")
    if s.problems:
        s.note(done.tail(4, 500))


@case("sql", "hiddentao/squel#166, pgjdbc#643, xk6 (the ? operators of jsonb)", "data ? 'k', ?|, ?&, @?, @@, #>>, ::, := and { } in literals beside placeholders", "all reach PostgreSQL as written")
def operators_and_literals(site):
    table(site, "INSERT INTO out SELECT {header:event-id}, concat_ws(',', d ? 'a', d ?| array['x','a'], d ?& '{a,b}', d @? '$.a', d @@ '$.b == 2', d #>> '{c,d}', d -> 'c' ->> 'd', '{}'::jsonb, '{\"a\": {\"b\": 1}}'::jsonb #> '{a}', $x$${not a placeholder}$x$, E'\\'{x}', U&'\\0041', d::text LIKE '%{%', '{1,2}'::int[], ('[1,2)'::int4range)::text) FROM (SELECT {value}::jsonb AS d) q -- {/comment is no placeholder",
          [(b'{"a":1,"b":2,"c":{"d":"e"}}', "t,t,t,t,t,e,e,{},{\"b\": 1},{not a placeholder},'{x},A,t,{1,2},[1,2)")])


@case("sql", "pgx#2233 (inconsistent types deduced), appsmith#6390 (could not determine data type)", "a placeholder twice as text and varchar; jsonb_build_object({/x}); {/x} IS NULL; concat",
      "twice: works since each has its own type; unknown types: pawl check says to write the type")
def types_of_placeholders(site):
    table(site, "INSERT INTO out VALUES ({header:event-id}, (SELECT max(u) FROM (SELECT 'a'::varchar AS u) x WHERE u = {/v} OR {/v} = 'zz'))", [(b'{"v":"a"}', "a"), (b'{"v":"zz"}', "a")])
    s = site()
    s.sql("CREATE TABLE out (id text, d jsonb)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id}, jsonb_build_object('v', {/v}))"), head=LETTERS + 'program_error_retry = "1s"\n')
    s.send({"v": 1}, id="1")
    check = s.check()
    s.same(check.code, 1, "check finds it")
    s.note("check: " + "\n".join(x[:400] for x in check.out.splitlines() if "type" in x)[:900])


@case("sql", "knex#6141, elixir-ecto#2394 (errors that come with COMMIT)", "deferred foreign keys and constraint triggers, in a pipeline of 60 messages", "only the violating ones are letters; no other effect is lost or doubled")
def deferred_constraints(site):
    s = site()
    s.sql("CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 100)")
    s.sql("CREATE TABLE out (id text PRIMARY KEY, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED, u int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    s.write(s.handler(f"INSERT INTO out VALUES ({KEY}, {{/p}}::int, {{/u}}::int)"), head=LETTERS)
    s.send_many([dict(value={"p": 999 if i % 10 == 3 else i, "u": 0 if i % 10 == 7 else i}, id=f"e{i}") for i in range(60)])
    done = s.drain()
    s.same(done.code, 0, "exit code")
    bad = {i for i in range(60) if i % 10 in (3, 7)}
    s.same({r[0] for r in s.rows("SELECT kafka_offset FROM pawl.dead_letters")}, bad, "letters")
    s.same(s.rows("SELECT count(*) FROM out"), [(60 - len(bad),)], "rows")


@case("sql", "NOTICE and WARNING floods of triggers", "a trigger that raises 1,000 notices a row, one with a NUL-like text", "applied; the log is not flooded")
def notice_flood(site):
    s = site()
    s.sql("CREATE TABLE out (id text); CREATE FUNCTION n() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..1000 LOOP RAISE WARNING 'w % %', i, new; END LOOP; RETURN new; END $$; CREATE TRIGGER t BEFORE INSERT ON out FOR EACH ROW EXECUTE FUNCTION n()")
    s.write(s.handler(f"INSERT INTO out VALUES ({KEY})"), head=LETTERS)
    s.send_many([dict(value={}, id=f"e{i}") for i in range(50)])
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.expect(len(done.out.splitlines()) < 60, f"{len(done.out.splitlines())} lines")


@case("sql", "identity, generated columns, domains, arrays, ranges, enums, citext, bytea, hstore in one row", "types as people have them, without casts where PostgreSQL derives them", "stored; check says nothing wrong")
def many_types(site):
    s = site()
    s.sql("CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE DOMAIN money2 AS numeric(12,2) CHECK (value >= 0)")
    s.sql('CREATE TABLE "Order" (n bigint GENERATED ALWAYS AS IDENTITY, id uuid, "Total Amount" money2, tags text[], m mood, c citext UNIQUE, raw bytea, attrs hstore, during tstzrange, gen text GENERATED ALWAYS AS (upper(m2)) STORED, m2 text, iv interval, ip inet, pt point, x xml, b boolean, ch char(3))')
    s.write(s.handler("""INSERT INTO "Order" (id, "Total Amount", tags, m, c, raw, attrs, during, m2, iv, ip, pt, b, ch)
VALUES ({/id}, {/total}, ARRAY(SELECT jsonb_array_elements_text({/tags}::jsonb)), {/m}, {/c}, decode({/raw}, 'base64'), (SELECT hstore(array_agg(key), array_agg(value)) FROM jsonb_each_text({/attrs}::jsonb)), tstzrange({/from}, {/to}), {/m2?}, {/iv}, {/ip}, {/pt}, {/b}, {/ch})"""), head=LETTERS)
    doc = {"id": "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0001", "total": 12.345, "tags": ["a", "b,c", "\"q\""], "m": "ok", "c": "MiXed", "raw": "AP8=", "attrs": {"k": "v", "n": None}, "from": "2024-01-01T00:00:00Z", "to": "2024-01-02T00:00:00Z", "m2": "up", "iv": "P1DT2H", "ip": "10.0.0.1/8", "pt": "(1,2)", "b": True, "ch": "ab"}
    s.send(doc, id="1")
    s.send(dict(doc, c="mixed"), id="2")
    s.send(dict(doc, total=-1, c="z"), id="3")
    s.send(dict(doc, m="sad", c="y"), id="4")
    check = s.check()
    s.same(check.code, 0, "check: " + check.tail(5))
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("""SELECT id::text, "Total Amount"::text, tags, m::text, c::text, raw, attrs::text, gen, iv::text, host(ip), b FROM "Order" """), [("5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0001", "12.35", ["a", "b,c", '"q"'], "ok", "MiXed", b"\x00\xff", '"k"=>"v", "n"=>NULL', "UP", "1 day 02:00:00", "10.0.0.1", True)], "row")
    s.same({r for r in s.rows("SELECT kafka_offset, sqlstate FROM pawl.dead_letters")}, {(1, "23505"), (2, "23514"), (3, "22P02")}, "letters")


@case("sql", "void, records, set-returning functions with expect_rows (kafka sinks that call functions)", "SELECT f() returning void / record / setof, no rows, with expect_rows", "counts as PostgreSQL counts, with pipeline and without")
def functions_with_expect_rows(site):
    for pipeline in ("1", "100"):
        s = site()
        s.sql("CREATE TABLE out (id text); CREATE FUNCTION v(i text) RETURNS void LANGUAGE sql AS 'INSERT INTO out VALUES (i)'; CREATE FUNCTION r(i text, OUT a int, OUT b text) RETURNS record LANGUAGE sql AS 'SELECT 1, i'; CREATE FUNCTION sr(n int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, n)'")
        s.write(s.handler([{"text": f"SELECT v({KEY})", "expect_rows": 1}, {"text": f"SELECT r({KEY}), r({KEY})", "expect_rows": 1}, {"text": f"SELECT * FROM r({KEY})", "expect_rows": 1}, {"text": "SELECT sr({/n}::int)", "expect_rows": 2}, {"text": "SELECT 1 WHERE {/n}::int = 0", "expect_rows": 0}, {"text": "VALUES (1), (2)", "expect_rows": 2}, {"text": "TABLE out LIMIT 1", "expect_rows": 1}, {"text": "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 LIMIT 1 FOR UPDATE" if False else "(SELECT 1) UNION ALL (SELECT 2)", "expect_rows": 2}]), head=LETTERS)
        s.send_many([dict(value={"n": 3 if i == 5 else 2}, id=f"e{i}") for i in range(20)])
        done = s.drain(f"consumer.pipeline={pipeline}")
        s.same(done.code, 0, f"exit code with pipeline {pipeline}")
        s.same(s.rows("SELECT count(*) FROM out"), [(19,)], f"rows with pipeline {pipeline}")
        s.same(s.rows("SELECT kafka_offset FROM pawl.dead_letters"), [(5,)], "letters")
        if s.problems:
            s.note(done.tail(4, 400) + str(s.rows("SELECT kafka_offset, error FROM pawl.dead_letters LIMIT 3")))


@case("sql", "comments at the end, semicolons, CRLF, tabs, no-break blanks pasted from a wiki", "a statement pasted with U+00A0, CRLF and a trailing -- comment", "runs, or is refused with its place")
def pasted_sql(site):
    table(site, "INSERT INTO out\r\nVALUES ({header:event-id},\t{/v}) -- it's {done;\r\n;  ", [(b'{"v":"a"}', "a")])
    table(site, "/* first /* nested */ {x */ INSERT INTO out VALUES ({header:event-id}, {/v})\n-- trailing without newline", [(b'{"v":"a"}', "a")])
    table(site, {"text": "INSERT INTO out VALUES ({header:event-id}, {/v}) -- trailing", "expect_rows": 1}, [(b'{"v":"a"}', "a"), (b'{"v":"b"}', "b")])
    s = site()
    s.sql("CREATE TABLE out (id text, v text)")
    s.write(s.handler("INSERT\u00a0INTO out VALUES ({header:event-id}, {/v})"), head=LETTERS)
    check = s.check()
    s.same(check.code, 1, "check finds the no-break blank")
    s.note("no-break blank: " + "\n".join(x[:250] for x in check.out.splitlines() if "syntax" in x or "blank" in x))


@case("sql", "dollar quotes that begin with a brace: $${...}$$ in TOML with ${...} substitution", "a JSON literal in dollar quotes is also the escape of the configuration", "runs as PostgreSQL reads it, or an error that names the clash")
def dollar_quote_before_brace(site):
    s = site()
    s.sql("CREATE TABLE out (id text, v text)")
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id}, ($${\"a\":1}$$::jsonb)->>'a')"), head=LETTERS)
    s.send({}, id="1")
    done = s.drain(timeout=20)
    s.expect(done.code == 0 and s.rows("SELECT v FROM out") == [("1",)] or "$$$" in done.out, "neither runs nor says what clashes")
    s.note(f"code {done.code}: {done.tail(3, 400)}")


@case("sql", "raw-event tables (payload bytea), kafka-connect-jdbc bytes columns", "INSERT INTO raw (payload) VALUES ({value}): the text is read as bytea's escape format: \\\\ becomes \\, \\x41.. is decoded, \\\" and \\n fail", "the bytes of the message, or pawl check refuses a text for a bytea (convert_to({value}, 'UTF8') is what works)")
def value_into_bytea(site):
    for sql in ("INSERT INTO raw VALUES ({header:event-id}, {value})", "INSERT INTO raw VALUES ({header:event-id}, {value}::bytea)", "INSERT INTO raw VALUES ({header:event-id}, convert_to({value}, 'UTF8'))"):
        s = site()
        s.sql("CREATE TABLE raw (id text, payload bytea)")
        s.write(s.handler(sql), head=LETTERS)
        values = [b'{"a":1}', b'{"re":"\\\\d+"}', b'{"s":"a\\"b"}', b'{"path":"C:\\\\temp"}', b"\\x4142"]
        for i, v in enumerate(values):
            s.send(v, id=f"e{i}")
        check = s.check()
        s.drain()
        got = {k: bytes(v) for k, v in s.rows("SELECT id, payload FROM raw")}
        bad = {v: got.get(f"e{i}", "letter") for i, v in enumerate(values) if got.get(f"e{i}") != v}
        s.expect(not bad or check.code == 1, f"{sql[-40:]}: check {check.code}; stored for each: {bad}")


