"""Whose fault is it: messages whose data gives an SQLSTATE that looks like a wrong program, and the other way round."""
import time

import psycopg

from harness import case

DEAD = 'on_failure = "dead-letter"\nretry_for = "0s"'


def poison(site, setup, sql, good, bad, *, want_state, head="", doubtful=False):
    """good, bad, good with on_failure = dead-letter: the two good ones applied, the bad one a letter, code 0."""
    s = site()
    s.sql("CREATE TABLE out (id text PRIMARY KEY, v text)")
    for one in setup:
        s.sql(one)
    s.write(s.handler(sql), head="[failures]\n" + DEAD + '\nprogram_error_retry = "1s"' + head)
    for i, v in enumerate([good, bad, good]):
        s.send({"v": v}, id=f"e{i}", key=f"k{i}")
    done = s.drain(timeout=25)
    rows = s.rows("SELECT count(*) FROM out")[0][0]
    letters = s.rows("SELECT kafka_offset, sqlstate, reason FROM pawl.dead_letters")
    state = s.rows("SELECT state, last_processed_offset, halt_code, halt_cause FROM pawl.processed_kafka_offsets")
    s.same(done.code, 0, "exit code")
    s.same(rows, 2, "rows of good messages")
    s.expect(len(letters) == 1 and letters[0][0] == 1, f"one dead letter for the bad message: got {letters}")
    if letters:
        s.same(letters[0][1], want_state, "SQLSTATE of the dead letter")
    if doubtful:
        s.doubts, s.problems = s.problems, []
    if done.code != 0:
        s.note(f"state: {state}\nlog:\n{done.tail(4, 700)}")
    return s, done


@case("blame", "dailydotdev/daily-api#3713, ice-blockchain/heimdall#229", "text of a user's makes to_tsquery fail with 42601: taken for a wrong statement, retried or fatal",
      "the one message is a dead letter, its neighbours are applied")
def tsquery_of_a_user(site):
    poison(site, ["CREATE TABLE q (id text, v tsquery)"],
           ["INSERT INTO q VALUES ({header:event-id}, to_tsquery('english', {/v}))", "INSERT INTO out VALUES ({header:event-id}, {/v})"],
           "fat & cat", "fat cat :", want_state="42601")


@case("blame", "ltree paths with blanks from category feeds (ltree syntax error)", "a category with a blank is no ltree: 42601", "the one message is a dead letter")
def ltree_path(site):
    poison(site, ["CREATE EXTENSION ltree", "CREATE TABLE l (id text, v ltree)"],
           ["INSERT INTO l VALUES ({header:event-id}, {/v}::ltree)", "INSERT INTO out VALUES ({header:event-id}, {/v})"],
           "shop.shoes", "shop.shoes & more", want_state="42601")


@case("blame", "tsvector from upstream index", "text that is no tsvector: 42601", "the one message is a dead letter")
def tsvector_text(site):
    poison(site, ["CREATE TABLE q (id text, v tsvector)"],
           ["INSERT INTO q VALUES ({header:event-id}, {/v}::tsvector)", "INSERT INTO out VALUES ({header:event-id}, {/v})"],
           "a b", "'unclosed", want_state="42601")


@case("blame", "denoland/saaskit#78, xtdb/xtdb#5686 (row-level security)", "a message of a tenant that the policy refuses: 42501, as a missing grant",
      "the one message is a dead letter")
def row_level_security(site):
    s = site()
    role = "rls_" + s.db[-12:]
    s.sql("CREATE TABLE out (id text PRIMARY KEY, tenant text)")
    s.sql("ALTER TABLE out ENABLE ROW LEVEL SECURITY")
    s.sql("ALTER TABLE out FORCE ROW LEVEL SECURITY")
    s.sql("CREATE POLICY p ON out USING (true) WITH CHECK (tenant <> 'closed')")
    s.sql(f'CREATE ROLE "{role}" LOGIN')
    s.sql(f'GRANT ALL ON ALL TABLES IN SCHEMA pawl, public TO "{role}"; GRANT ALL ON ALL SEQUENCES IN SCHEMA pawl TO "{role}"; GRANT ALL ON SCHEMA pawl, public TO "{role}"; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pawl TO "{role}"')
    s.write(s.handler("INSERT INTO out VALUES ({header:event-id}, {/t})"), head="[failures]\n" + DEAD + '\nprogram_error_retry = "1s"',
            url=s.url.replace("postgres@", role + "@"))
    for i, t in enumerate(["a", "closed", "b"]):
        s.send({"t": t}, id=f"e{i}", key=f"k{i}")
    done = s.drain(timeout=25)
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT id FROM out ORDER BY 1"), [("e0",), ("e2",)], "rows")
    s.same(s.rows("SELECT kafka_offset FROM pawl.dead_letters"), [(1,)], "letters")
    if done.code:
        s.note(done.tail(4, 700))
    s.sql(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


@case("blame", "dynamic partitions by regclass/format() in functions", "the table of an unknown tenant is missing: 42P01 from EXECUTE with the message's data",
      "documented: any 42P01 halts; here only one message is wrong")
def dynamic_table(site):
    poison(site, ["CREATE TABLE t_a (id text)",
                  "CREATE FUNCTION put(t text, i text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('INSERT INTO %I VALUES ($1)', 't_' || t) USING i; END $$"],
           ["SELECT put({/v}, {header:event-id})", "INSERT INTO out VALUES ({header:event-id}, {/v})"],
           "a", "zz", want_state="42P01", doubtful=True)


@case("blame", "jsonb_path_query with .datetime()", "date against timestamptz without time zone usage: 0A000, as a stale plan", "the one message is a dead letter")
def jsonpath_datetime(site):
    poison(site, [], ["INSERT INTO out SELECT {header:event-id}, jsonb_path_exists({value}::jsonb, '$.v.datetime() ? (@ < \"2020-01-01T00:00:00+00:00\".datetime())')::text"],
           "2019-12-31T00:00:00+00:00", "2019-12-31", want_state="0A000")


@case("blame", "SELECT ... FOR UPDATE NOWAIT in handlers (55P03)", "a person holds the row: retried at once without a pause, the log and the server are flooded",
      "retried with a pause: some attempts a second at most, and few lines")
def nowait_storm(site):
    s = site()
    s.sql("CREATE TABLE acc (id int PRIMARY KEY, n int)")
    s.sql("INSERT INTO acc VALUES (1, 0)")
    s.sql("CREATE SEQUENCE tries")
    s.write(s.handler(["SELECT nextval('tries')", "SELECT n FROM acc WHERE id = {/v}::int FOR UPDATE NOWAIT", "UPDATE acc SET n = n + 1 WHERE id = {/v}::int"]))
    s.send({"v": 1}, id="a")
    with psycopg.connect(s.url) as holder:
        holder.execute("SELECT * FROM acc FOR UPDATE")
        p = s.start()
        s.expect(s.wait(lambda: s.rows("SELECT last_value FROM tries")[0][0] > 1, 20), "retried while the row is locked")
        a = s.rows("SELECT last_value FROM tries")[0][0]
        time.sleep(5)
        b = s.rows("SELECT last_value FROM tries")[0][0]
        holder.rollback()
    s.expect(s.wait(lambda: s.rows("SELECT n FROM acc")[0][0] == 1, 20), "applied when the row is free")
    s.stop(p)
    log = s.log(p)
    lines = len(log.splitlines())
    s.note(f"{(b - a) / 5:.1f} tries a second while the row is held; {lines} lines in the log")
    s.expect((b - a) / 5 < 60, f"{(b - a) / 5:.1f} tries a second")
    s.expect(lines < 60, f"{lines} log lines in about 6 s")
    s.same(s.rows("SELECT n FROM acc"), [(1,)], "effect once")


@case("blame", "RAISE with a class-40 code in functions of the application", "user code raises serialization_failure for a business rule: retried for ever, never a letter",
      "documented as contention; an operator must see that it never ends")
def raised_40001(site):
    s = site()
    s.sql("CREATE SEQUENCE tries")
    s.sql("CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('tries'); RAISE EXCEPTION 'version conflict' USING ERRCODE = '40001'; END $$")
    s.write(s.handler("SELECT f()"), head="[failures]\n" + DEAD + '\n[log]\nprogress_interval = "2s"')
    s.send({"v": 1}, id="a")
    p = s.start()
    s.expect(s.wait(lambda: s.rows("SELECT last_value FROM tries")[0][0] > 1, 20), "retried")
    a = s.rows("SELECT last_value FROM tries")[0][0]
    time.sleep(6)
    b = s.rows("SELECT last_value FROM tries")[0][0]
    status = s.cmd("status")
    s.stop(p)
    log = s.log(p)
    s.note(f"{(b-a)/6:.1f} tries a second, {len(log.splitlines())} log lines; status says:\n{status.tail(14, 200)}\nlog:\n" + "\n".join(x[:300] for x in log.splitlines()[-6:]))
    s.expect((b - a) / 6 < 60, f"{(b - a) / 6:.1f} tries a second")


@case("blame", "23514 no partition found for row (partition maintenance is late)", "rows of next month arrive before the partition", "a letter, or a retry until the partition is there")
def no_partition(site):
    s = site()
    s.sql("CREATE TABLE ev (id text, at date) PARTITION BY RANGE (at)")
    s.sql("CREATE TABLE ev1 PARTITION OF ev FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')")
    s.write(s.handler({"text": "INSERT INTO ev VALUES ({header:event-id}, {/at}::date)", "expect_rows": 1}), head="[failures]\n" + DEAD)
    for i, at in enumerate(["2024-01-05", "2024-02-05", "2024-01-06"]):
        s.send({"at": at}, id=f"e{i}")
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT id FROM ev ORDER BY 1"), [("e0",), ("e2",)], "rows")
    s.same(s.rows("SELECT sqlstate FROM pawl.dead_letters"), [("23514",)], "letter")


@case("blame", "22003 and 22P02 of numbers", "1e400 into double, 1.5 into bigint", "a letter")
def numeric_out_of_range(site):
    poison(site, [], ["INSERT INTO out VALUES ({header:event-id}, ({/v}::double precision)::text)"], 1.5, "1e400", want_state="22003")


@case("blame", "transaction_timeout / idle_in_transaction of the role", "a statement longer than statement_timeout of the handler, cancelled each time", "counted, then a letter")
def statement_too_long(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.write(s.handler(["SELECT pg_sleep({/v}::float)", "INSERT INTO out VALUES ({header:event-id})"], timeout='"500ms"'), head="[failures]\n" + DEAD)
    for i, v in enumerate([0, 3, 0]):
        s.send({"v": v}, id=f"e{i}")
    done = s.drain()
    s.same(done.code, 0, "exit code")
    s.same(s.rows("SELECT id FROM out ORDER BY 1"), [("e0",), ("e2",)], "rows")
    s.same(s.rows("SELECT sqlstate FROM pawl.dead_letters"), [("57014",)], "letter")


@case("blame", "the same kind: what can an operator do?", "a partition that halted as 'program' at one message", "partitions peek shows it, partitions skip leaves it out, the rest is applied")
def skip_a_program_halt(site):
    s = site()
    s.sql("CREATE TABLE out (id text); CREATE FUNCTION put(id text, v text) RETURNS void LANGUAGE plpgsql AS "
          "$$ BEGIN EXECUTE format('INSERT INTO %I VALUES ($1)', v) USING id; END $$")
    s.write(s.handler("SELECT put({header:event-id}, {/v})"), head='[failures]\nprogram_error_retry = "1s"\n')
    for i, v in enumerate(["out", "missing", "out"]):
        s.send({"v": v}, id=f"e{i}")
    s.drain(timeout=20)
    r = s.cmd("partitions", "skip", "--topic", s.topic, "--partition", "0", "--offset", "1", "--because", "bad")
    s.same(r.code, 0, "skip: " + r.tail(2))
    done = s.drain(timeout=20)
    s.same((done.code, s.rows("SELECT count(*) FROM out")), (0, [(2,)]), "code, rows")


@case("blame", "PL/pgSQL with dynamic SQL, RAISE of class 42 for business rules (ERRCODE = 'insufficient_privilege')", "a function of the application refuses one message with 42501", "the one message is a letter")
def raised_42501(site):
    poison(site, ["CREATE FUNCTION allow(v text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN IF v = 'no' THEN RAISE EXCEPTION 'tenant % may not', v USING ERRCODE = 'insufficient_privilege'; END IF; RETURN v; END $$"],
           ["INSERT INTO out VALUES ({header:event-id}, allow({/v}))"], "yes", "no", want_state="42501")


