"""A case has a database and a topic of its own on shared servers, and runs the program `pawl` alone.

tests/cases/run starts the servers and sets the variables that are read here.
"""
import itertools
import json
import os
import signal
import subprocess
import threading
import time
import urllib.parse

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

PAWL = os.environ["PAWL"]  # the program
PG = os.environ["SITE_POSTGRES"]  # postgresql://...
KAFKA = os.environ["SITE_KAFKA"]  # host:port
KAFKA_FOLDER = os.environ["SITE_KAFKA_FOLDER"]
PGBOUNCER_PORT = os.environ["SITE_PGBOUNCER_PORT"]  # in transaction mode, before the same server
SERVICES = os.environ["SITE_SERVICES"]  # scripts/services
SCRATCH = os.environ["SITE_SCRATCH"]
# Waits and commands may take this many times as long: on a machine that does much else.
PATIENCE = float(os.environ.get("CASES_PATIENCE", "1"))
KEEP = os.environ.get("SITE_KEEP") == "yes"

CASES = []


def case(kind, source, situation, right, slow=False, alone=False):
    """source: the public report. right: the right result. slow: only with --all.
    alone: changes the servers for every case; no other case runs meanwhile."""
    def register(fn):
        if any(c["name"] == fn.__name__ for c in CASES):
            raise ValueError(f"two cases are called {fn.__name__}")
        CASES.append(dict(name=fn.__name__, kind=kind, source=source, situation=situation, right=right,
                          slow=slow or alone, alone=alone, fn=fn))
        return fn
    return register


def pg_url(database, **more):
    parts = urllib.parse.urlsplit(PG)
    query = "?" + urllib.parse.urlencode(more, quote_via=urllib.parse.quote) if more else ""
    return f"{parts.scheme}://{parts.netloc}/{database}{query}"


def admin_sql(sql):
    with psycopg.connect(PG, autocommit=True) as c:
        return c.execute(sql)


TEMPLATE = "cases_template"
TEMPLATE_LOCK = threading.Lock()


def make_template_database():
    admin_sql(f'CREATE DATABASE "{TEMPLATE}"')
    done = subprocess.run([PAWL, "migrate", "up", "--database", pg_url(TEMPLATE)], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit("migrate: " + done.stdout + done.stderr)


ADMIN = AdminClient({"bootstrap.servers": KAFKA, "log_level": 0})
COUNT = itertools.count()


def delete_records(topic, before):
    """Those of partition 0 in front of an offset, as retention does."""
    subprocess.run([SERVICES, "kafka", "delete-records", KAFKA_FOLDER, topic, "0", str(before)], check=True,
                   capture_output=True, timeout=60 * PATIENCE)


class Done:
    def __init__(self, code, out):
        self.code, self.out = code, out

    def tail(self, n=12, width=400):
        return "\n".join(line[:width] for line in self.out.strip().splitlines()[-n:])


class Site:
    """A database, a topic, a configuration."""

    def __init__(self, name, partitions=1, topic_conf=None):
        self.n = f"{name[:50]}_{next(COUNT)}"
        self.db = self.n.lower()
        self.group = self.n
        self.topic = self.n + "_t"
        self.dir = os.path.join(SCRATCH, self.n)
        os.makedirs(self.dir, exist_ok=True)
        self.config = os.path.join(self.dir, "c.toml")
        with TEMPLATE_LOCK:
            admin_sql(f'CREATE DATABASE "{self.db}" TEMPLATE "{TEMPLATE}"')
        self.url = pg_url(self.db)
        if partitions:
            self.create_topic(self.topic, partitions, topic_conf)
        self.problems, self.notes, self.doubts = [], [], []
        self.processes = []
        self._producer = None

    # Kafka
    def create_topic(self, topic, partitions=1, conf=None):
        list(ADMIN.create_topics([NewTopic(topic, partitions, 1, config=conf or {})]).values())[0].result(20)
        for _ in range(100):
            meta = ADMIN.list_topics(topic, timeout=10).topics[topic]
            if meta.error is None and len(meta.partitions) == partitions and all(p.leader >= 0 for p in meta.partitions.values()):
                return
            time.sleep(0.05)

    def producer(self, **conf):
        return Producer({"bootstrap.servers": KAFKA, "log_level": 0, "message.max.bytes": 100_000_000, "linger.ms": 0, **{k.replace("_", "."): v for k, v in conf.items()}})

    def send(self, value, key=None, headers=None, id=None, topic=None, partition=0, timestamp=0, producer=None):
        """value: bytes, str, None, or anything else as JSON. id: the header event-id."""
        if value is not None and not isinstance(value, (bytes, str)):
            value = json.dumps(value)
        hs = list(headers or [])
        if id is not None:
            hs.append(("event-id", id if isinstance(id, bytes) else str(id).encode()))
        if self._producer is None:
            self._producer = self.producer()
        p = producer or self._producer
        failed = []
        p.produce(topic or self.topic, value=value, key=key, headers=hs, partition=partition, timestamp=timestamp,
                  on_delivery=lambda e, m: failed.append(e) if e else None)
        if producer is None:
            p.flush(20)
            if failed:
                raise RuntimeError(f"produce: {failed}")

    def send_many(self, items):
        for item in items:
            self.send(producer=self._producer_or_new(), **item)
        self._producer.flush(60)

    def _producer_or_new(self):
        if self._producer is None:
            self._producer = self.producer()
        return self._producer

    # PostgreSQL
    def sql(self, sql, *args):
        # A case may set short timeouts for its database. They apply to pawl, not to the checks of the case.
        with psycopg.connect(self.url, autocommit=True, options="-c statement_timeout=0 -c lock_timeout=0") as c:
            cur = c.execute(sql, args or None)
            return cur.fetchall() if cur.description else None

    def rows(self, sql):
        return self.sql(sql)

    # pawl
    def write(self, handlers, head="", url=None, bootstrap=None, key='key = "{header:event-id}"', raw=None):
        text = raw if raw is not None else f'''[kafka]
bootstrap_servers = "{bootstrap or KAFKA}"
group = "{self.group}"
[postgres]
url = "{url or self.url}"
[idempotency]
{key}
{head}
{handlers.replace("TOPIC", self.topic)}
'''
        with open(self.config, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return text

    def handler(self, sql, **more):
        lines = ["[[handler]]", f'topics = ["{self.topic}"]']
        for k, v in more.items():
            lines.append(f"{k} = {v}")
        sqls = sql if isinstance(sql, list) else [sql]
        entries = []
        for s in sqls:
            if isinstance(s, dict):
                entries.append("{ text = '''" + s["text"] + "''', expect_rows = %d }" % s["expect_rows"])
            else:
                entries.append("'''" + s + "'''")
        lines.append("sql = [" + ", ".join(entries) + "]")
        return "\n".join(lines)

    def pawl(self, *args, timeout=60, env=None):
        e = dict(os.environ, **(env or {}))
        try:
            done = subprocess.run([PAWL, *args], capture_output=True, timeout=timeout * PATIENCE, env=e)
            return Done(done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace"))
        except subprocess.TimeoutExpired as t:
            return Done(-1, "TIMEOUT\n" + ((t.stdout or b"") + (t.stderr or b"")).decode("utf-8", "replace"))

    def cmd(self, *words, timeout=60, env=None):
        return self.pawl(*words, "--config", self.config, timeout=timeout, env=env)

    def drain(self, *sets, timeout=60, env=None):
        args = ["run", "--config", self.config, "--drain"]
        for s in sets:
            args += ["--set", s]
        done = self.pawl(*args, timeout=timeout, env=env)
        with open(os.path.join(self.dir, "drain.log"), "a") as f:
            f.write(done.out)
        return done

    def check(self):
        return self.cmd("check")

    def start(self, *sets, env=None, name="run"):
        args = [PAWL, "run", "--config", self.config]
        for s in sets:
            args += ["--set", s]
        path = os.path.join(self.dir, f"{name}.log")
        with open(path, "wb") as log:
            p = subprocess.Popen(args, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})))
        p.log_path = path
        self.processes.append(p)
        return p

    def log(self, p):
        with open(p.log_path, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def stop(self, p, timeout=40):
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(timeout * PATIENCE)
            except subprocess.TimeoutExpired:
                self.problems.append("does not stop on SIGTERM")
                p.kill()
                p.wait()
        return p.returncode

    def wait(self, condition, timeout=30, every=0.1):
        """Returns whether the condition became true in time. A check that fails because PostgreSQL or a row is missing
        is repeated; the error of the last check is raised."""
        end = time.time() + timeout * PATIENCE
        error = None
        while time.time() < end:
            try:
                if condition():
                    return True
                error = None
            except (psycopg.Error, IndexError) as failure:
                error = failure
            time.sleep(every)
        if error:
            raise error
        return False

    # verdicts
    def expect(self, ok, what):
        if not ok:
            self.problems.append(what)
        return ok

    def same(self, got, want, what):
        return self.expect(got == want, f"{what}: got {got!r}, want {want!r}")

    def doubt(self, ok, what):
        """Not plainly wrong: by design, or only unhelpful."""
        if not ok:
            self.doubts.append(what)

    def note(self, text):
        self.notes.append(text)

    def close(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
                p.wait()
        if not KEEP:
            try:
                admin_sql(f'DROP DATABASE "{self.db}" WITH (FORCE)')
            except Exception:
                pass
            try:
                ADMIN.delete_topics([self.topic])
            except Exception:
                pass

