"""Rounds of chaos over pairs of handler kinds on one topic. tests/chaos/run starts it on servers of its own."""
import argparse
import collections
import http.server
import itertools
import json
import os
import random
import signal
import socketserver
import subprocess
import sys
import threading
import time

import psycopg
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from judge import Effect, Sent, judge

PAWL = os.environ["PAWL"]
POSTGRES = os.environ["SITE_POSTGRES"]
POSTGRES_FOLDER = os.environ["SITE_POSTGRES_FOLDER"]
KAFKA = os.environ["SITE_KAFKA"]
SERVICES = os.environ["SITE_SERVICES"]
SCRATCH = os.environ["SITE_SCRATCH"]

KINDS = ("sql", "batch", "function", "http", "concurrency")
# Messages of a batch share a transaction, which cannot be side by side with others' of the topic.
REFUSED = {("batch", "concurrency")}
POLICIES = ("dead-letter", "park", "retry-later")
PROCESSES = PARTITIONS = 3
KEYS = 20
ROUND_SECONDS = 60
DRAIN_SECONDS = 240

SCHEMA = """
CREATE TABLE ledger (n bigserial PRIMARY KEY, id text, key text, sequence bigint);
CREATE TABLE keys (key text PRIMARY KEY);
-- Messages that fail, with their probability.
CREATE TABLE bad (id text PRIMARY KEY, probability float);
INSERT INTO keys SELECT 'k' || g FROM generate_series(0, 99) g;
-- Messages of a key take effect in the order of n: the key's lock comes before it.
CREATE FUNCTION app_apply(p_id text, p_key text, p_sequence bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM keys WHERE key = p_key FOR UPDATE;
  IF EXISTS (SELECT FROM bad WHERE id = p_id AND random() < probability) THEN RAISE EXCEPTION 'bad %', p_id; END IF;
  INSERT INTO ledger (id, key, sequence) VALUES (p_id, p_key, p_sequence);
  PERFORM pg_sleep(random() * 0.01);
END $$;
CREATE FUNCTION app_function(topic text, "partition" integer, "offset" bigint, key bytea, value bytea, headers jsonb,
    timestamp_ms bigint) RETURNS void LANGUAGE sql AS $$
  SELECT app_apply(v->>'u', v->>'k', (v->>'s')::bigint) FROM (SELECT convert_from(value, 'UTF8')::jsonb AS v) x
$$;
-- What the remote API does for one request: it knows what it did already.
CREATE FUNCTION app_call(p_id text, p_key text, p_sequence bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE p float;
BEGIN
  PERFORM FROM keys WHERE key = p_key FOR UPDATE;
  IF EXISTS (SELECT FROM ledger WHERE id = p_id) THEN RETURN 200; END IF;
  SELECT probability INTO p FROM bad WHERE id = p_id;
  IF p = 1 THEN RETURN 422; END IF;
  IF random() < p THEN RETURN 503; END IF;
  INSERT INTO ledger (id, key, sequence) VALUES (p_id, p_key, p_sequence);
  RETURN 200;
END $$;
"""


def url_of(database):
    return POSTGRES.rsplit("/", 1)[0] + "/" + database


def connect(database):
    """PostgreSQL may just be down."""
    end = time.time() + 60
    while True:
        try:
            return psycopg.connect(url_of(database), autocommit=True)
        except psycopg.OperationalError:
            if time.time() > end:
                raise
            time.sleep(0.1)


def query(database, sql, *values):
    """Once more where PostgreSQL went down meanwhile."""
    for last in (False, True):
        try:
            with connect(database) as connection:
                cursor = connection.execute(sql, values or None)
                return cursor.fetchall() if cursor.description else None
        except psycopg.OperationalError:
            if last:
                raise


class RemoteApi:
    """An API that knows idempotency keys, and notices two calls of one key at once."""

    def __init__(self, database):
        self.under_way, self.at_once, self.lock = collections.Counter(), set(), threading.Lock()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = api.call(database, message, self.headers["Idempotency-Key"])
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # a process was killed in the middle of its request
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def call(self, database, message, key):
        with self.lock:
            self.under_way[key] += 1
            if self.under_way[key] > 1:
                self.at_once.add(message["u"])
        try:
            with psycopg.connect(url_of(database), autocommit=True, connect_timeout=2) as connection:
                return connection.execute("SELECT app_call(%s, %s, %s)", (message["u"], message["k"], int(message["s"]))).fetchone()[0]
        except psycopg.OperationalError:
            return 503
        finally:
            with self.lock:
                self.under_way[key] -= 1

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def handler(kind, topic, port):
    text = f'[[handler]]\nname = "{kind}"\ntopics = ["{topic}"]\nwhen = \'{{/h}} == "{kind}"\'\n'
    if kind == "batch":
        return text + ('batch = true\nsql = "SELECT app_apply(u, k, s) FROM unnest({/u}::text[], {/k}::text[], {/s}::bigint[])'
                       ' WITH ORDINALITY AS x (u, k, s, o) ORDER BY o"\n')
    if kind == "function":
        return text + 'function = "app_function"\n'
    if kind == "http":
        # Leases and keys of others do not share a scope.
        return text + (f'scope = "calls"\nhttp = {{ url = "http://127.0.0.1:{port}/calls", json = {{ u = "{{/u}}", k = "{{/k}}", s = "{{/s}}" }},'
                       ' timeout = "3s" }\n')
    text += 'sql = "SELECT app_apply({/u}, {/k}, {/s}::bigint)"\n'
    if kind == "concurrency":
        text += 'concurrency = 8\norder_by = "{key}"\nmax_ahead = 100\n'
    return text


class Round:
    def __init__(self, number, pair, policy, durability, unkeyed, random_):
        self.name = f"round_{number}"
        self.pair, self.policy, self.durability, self.unkeyed, self.random = pair, policy, durability, unkeyed, random_
        # The producer's thread has draws of its own, so that its messages do not depend on the faults.
        self.producer_seed = random_.random()
        self.api = None
        self.config = os.path.join(SCRATCH, self.name + ".toml")
        self.processes, self.stopped = {}, {}
        self.faults, self.ends = collections.Counter(), collections.Counter()
        self.sent, self.failed_deliveries = {}, []
        self.producing = threading.Event()
        self.producer_failure = None

    # ---- the site ----

    def prepare(self):
        query("postgres", f'CREATE DATABASE "{self.name}"')
        subprocess.run([PAWL, "migrate", "up", "--database", url_of(self.name)], check=True, stdout=subprocess.DEVNULL,
                       timeout=120)
        query(self.name, SCHEMA)
        admin = AdminClient({"bootstrap.servers": KAFKA})
        admin.create_topics([NewTopic(self.name, PARTITIONS, 1)])[self.name].result(30)
        self.api = RemoteApi(self.name)
        with open(self.config, "w") as file:
            file.write(f'[kafka]\nbootstrap_servers = "{KAFKA}"\ngroup = "{self.name}"\nsession_timeout = "6s"\n'
                       f'[postgres]\nurl = "{url_of(self.name)}"\n'
                       '[idempotency]\nkey = "{/id?}"\n' + ('missing_key = "process"\n' if self.unkeyed else "") +
                       f'[consumer]\ndurability = "{self.durability}"\n'
                       f'[failures]\non_failure = "{self.policy}"\nretry_for = "300ms"\nretry_later = ["2s", "3s", "5s"]\n'
                       'breaker = 0\nmax_crashes = 100\n' + "".join(handler(kind, self.name, self.api.port) for kind in self.pair))
        check = self.command("check")
        if check.returncode != 0:
            raise SystemExit(f"{self.pair} cannot be configured:\n{check.stdout}{check.stderr}")

    def command(self, *words):
        return subprocess.run([PAWL, *words, "--config", self.config], capture_output=True, text=True, timeout=120)

    def start(self, number):
        with open(os.path.join(SCRATCH, f"{self.name}.{number}.log"), "a") as log:
            self.processes[number] = subprocess.Popen([PAWL, "run", "--config", self.config], stdout=log, stderr=log)

    def start_missing(self):
        for number in range(PROCESSES):
            process = self.processes.get(number)
            if process is None or process.poll() is not None:
                if process is not None:
                    self.ends[process.returncode] += 1
                self.start(number)

    # ---- the messages ----

    def produce(self):
        try:
            self.produce_until_told()
        except Exception as error:
            self.producer_failure = error

    def produce_until_told(self):
        draw = random.Random(self.producer_seed)
        producer = Producer({"bootstrap.servers": KAFKA, "linger.ms": 5, "enable.idempotence": True, "log_level": 2})
        sequences = collections.Counter()

        def delivered(message):
            def note(error, record):
                if error is not None:
                    self.failed_deliveries.append(str(error))
                elif message["u"] not in self.sent:
                    self.sent[message["u"]] = Sent(message["u"], message["k"], message["s"], record.partition(), record.offset())
            return note

        for number in itertools.count():
            if not self.producing.is_set():
                break
            key = f"k{draw.randrange(KEYS)}"
            message = {"u": f"m{number}", "k": key, "s": sequences[key], "h": draw.choice(self.pair)}
            sequences[key] += 1
            keyed = not self.unkeyed or draw.random() < 0.7
            if keyed:
                message["id"] = message["u"]
            if draw.random() < 0.02:
                query(self.name, "INSERT INTO bad VALUES (%s, %s)  ON CONFLICT DO NOTHING", message["u"], 1.0 if draw.random() < 0.2 else 0.6)
            value = json.dumps(message).encode()
            for _ in range(2 if keyed and draw.random() < 0.1 else 1):
                producer.produce(self.name, value, key.encode(), on_delivery=delivered(message))
            producer.poll(0)
            time.sleep(0.01)
        if producer.flush(60):
            self.failed_deliveries.append("some were not sent within 60 s")

    # ---- the faults ----

    def wake(self, all_of_them=False):
        for number, until in list(self.stopped.items()):
            if all_of_them or time.time() > until:
                self.processes[number].send_signal(signal.SIGCONT)
                del self.stopped[number]

    def fault(self):
        kinds = ["kill", "freeze", "freeze for long", "reload", "stop", "terminate sessions", "crash PostgreSQL", "pause"]
        if not self.unkeyed:
            kinds.append("set back")
        what, number = self.random.choice(kinds), self.random.randrange(PROCESSES)
        process = self.processes[number]
        if number in self.stopped and what in ("freeze", "freeze for long", "reload", "stop"):
            return
        if what == "crash PostgreSQL" and self.random.random() < 0.6:
            return
        self.faults[what] += 1
        partition = str(self.random.randrange(PARTITIONS))
        if what == "kill":
            self.stopped.pop(number, None)
            process.kill()
        elif what.startswith("freeze"):
            process.send_signal(signal.SIGSTOP)
            self.stopped[number] = time.time() + (self.random.uniform(7, 14) if "long" in what else self.random.uniform(0.5, 3))
        elif what == "reload":
            process.send_signal(signal.SIGHUP)
        elif what == "stop":
            process.send_signal(signal.SIGTERM)
        elif what == "terminate sessions":
            query(self.name, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                             " AND application_name LIKE 'pawl%%' AND random() < %s", 0.5)
        elif what == "crash PostgreSQL":
            subprocess.run([SERVICES, "postgres", "restart", POSTGRES_FOLDER, "--mode", "immediate"], check=True, capture_output=True,
                           timeout=120)
        elif what == "pause":
            self.command("partitions", "pause", "--topic", self.name, "--partition", partition, "--because", "chaos")
            time.sleep(self.random.uniform(0.2, 1.5))
            self.command("partitions", "resume", "--topic", self.name, "--partition", partition)
        elif what == "set back":
            stored = self.stored().get(int(partition), -1)
            if stored > 50:
                self.command("offsets", "set", "--topic", self.name, "--partition", partition,
                             "--to", str(stored - self.random.randrange(40)), "--force", "--because", "chaos")

    def stored(self):
        return dict(query(self.name, "SELECT partition, last_processed_offset FROM pawl.processed_kafka_offsets"))

    # ---- one round ----

    def run(self, seconds):
        self.prepare()
        self.start_missing()
        self.producing.set()
        producer = threading.Thread(target=self.produce)
        producer.start()
        end = time.time() + seconds
        try:
            while time.time() < end:
                time.sleep(self.random.uniform(0.3, 2.0))
                self.wake()
                self.start_missing()
                self.fault()
        finally:
            self.producing.clear()
            producer.join()
        if self.producer_failure is not None or self.failed_deliveries:
            raise SystemExit(f"the producer failed: {self.producer_failure or self.failed_deliveries[:3]}")
        self.wake(all_of_them=True)
        query(self.name, "DELETE FROM bad")
        return self.drain()

    def drain(self):
        """Returns what is not finished, or ''."""
        consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": "ends of " + self.name})
        ends = {p: consumer.get_watermark_offsets(TopicPartition(self.name, p), timeout=30)[1] for p in range(PARTITIONS)}
        consumer.close()
        end = time.time() + DRAIN_SECONDS
        # What is retried by itself has time for it; what is not is replayed.
        replay_from = time.time() + (30 if self.policy == "retry-later" else 0)
        left = "not begun"
        while left and time.time() < end:
            time.sleep(0.5)
            self.start_missing()
            stored = self.stored()
            behind = {p: (stored.get(p, -1) + 1, last) for p, last in ends.items() if stored.get(p, -1) + 1 < last}
            waiting = query(self.name, "SELECT count(*) FROM pawl.dead_letters WHERE status IN ('dead', 'parked')")[0][0]
            left = f"partitions (stored, end): {behind}, dead letters: {waiting}" if behind or waiting else ""
            if waiting and not behind and time.time() > replay_from:
                self.command("dlq", "replay", "--all")
        return left and f"{left}\n{self.what_holds()}"

    def what_holds(self):
        """What an unfinished round leaves to look at: its processes and logs are gone later."""
        columns = {"processed_kafka_offsets": "partition, last_processed_offset, state, state_reason, owner, attempts",
                   "leases": "key, owner, lease_until - now() AS left, attempt, done, partition, kafka_offset",
                   "suspects": "*", "first_fetches": "*", "processes": "*", "process_conditions": "*"}
        return "\n".join(f"    {table}: {query(self.name, f'SELECT {what} FROM pawl.{table}')}" for table, what in columns.items())

    def stop(self):
        """Returns the processes that had to be killed."""
        self.wake(all_of_them=True)
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        hung = 0
        for process in self.processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                hung += 1
                process.kill()
                process.wait()
        if self.api:
            self.api.close()
        return hung

    def verdict(self, tamper):
        rows = query(self.name, "SELECT id, key, sequence FROM ledger ORDER BY n")
        effects = [Effect(*row, at_once=row[0] in self.api.at_once) for row in rows]
        if tamper == "lost":
            effects.pop(len(effects) // 2)
        elif tamper == "duplicated":
            effects.append(effects[0])
        elif tamper == "reordered":
            effects.append(effects.pop(0))
        dead = {row[0] for row in query(self.name, "SELECT convert_from(record_value, 'UTF8')::jsonb->>'u' FROM pawl.dead_letters")}
        return judge(list(self.sent.values()), effects, dead, ordered_with_dead_letters=self.policy != "dead-letter",
                     whole_log="concurrency" not in self.pair)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--pair")
    parser.add_argument("--policy", choices=POLICIES)
    parser.add_argument("--tamper", choices=("lost", "duplicated", "reordered"))
    options = parser.parse_args()
    draw = random.Random(options.seed)
    pairs = [pair for pair in itertools.combinations(KINDS, 2) if pair not in REFUSED]
    if options.pair:
        pairs = [tuple(options.pair.split(","))]
        if len(pairs[0]) != 2 or not set(pairs[0]) <= set(KINDS):
            sys.exit(f"--pair needs two of {', '.join(KINDS)}")
    print(f"seed {options.seed}", flush=True)
    total, unfinished, deck = collections.Counter(), 0, []
    end = time.time() + options.minutes * 60
    for number in itertools.count(1):
        left = end - time.time()
        if number > 1 and left < ROUND_SECONDS / 2:
            break
        # Each pair comes up once before one comes up again.
        deck = deck or draw.sample(pairs, len(pairs))
        pair = deck.pop()
        unkeyed = "http" not in pair and draw.random() < 0.3
        round_ = Round(number, pair, options.policy or draw.choice(POLICIES), draw.choice(("synchronous", "replayable")), unkeyed,
                       random.Random(draw.random()))
        print(f"round {number}: {' + '.join(pair)}, on_failure = {round_.policy}, durability = {round_.durability}"
              + (", a third without a key" if unkeyed else ""), flush=True)
        try:
            unfinished_work = round_.run(min(ROUND_SECONDS, max(left, 20)))
        finally:
            hung = round_.stop()
        found = round_.verdict(options.tamper)
        print("  faults: " + ", ".join(f"{n} {what}" for what, n in sorted(round_.faults.items()))
              + "; exit codes: " + ", ".join(f"{n} times {code}" for code, n in sorted(round_.ends.items())), flush=True)
        print(f"  sent={len(round_.sent)} lost={len(found.lost)} duplicated={len(found.duplicated)} reordered={len(found.reordered)}"
              + (f" NOT FINISHED: {unfinished_work}" if unfinished_work else "") + (f" {hung} HUNG" if hung else ""), flush=True)
        for texts in found:
            for text in texts[:5]:
                print(f"    {text}", flush=True)
        for what in found._fields:
            total[what] += len(getattr(found, what))
        unfinished += bool(unfinished_work or hung)
    if unfinished:
        print(f"{unfinished} rounds were not finished, or had processes that did not stop")
    print(" ".join(f"{what}={total[what]}" for what in ("lost", "duplicated", "reordered")))
    sys.exit(1 if unfinished or sum(total.values()) else 0)


if __name__ == "__main__":
    main()
