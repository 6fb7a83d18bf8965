"""Rounds of chaos over pairs of handler kinds on two topics. tests/chaos/run starts it on servers of its own."""
import argparse
import collections
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import psycopg
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from application import HEALTHY, ILL, KEYS, KINDS, PARTITIONS, REFUSED, SCHEMA, TOPICS, RemoteApi, handler, partition_of, program
from judge import Effect, Sent, judge, judge_fairness, up_intervals, without

PAWL = os.environ["PAWL"]
POSTGRES = os.environ["SITE_POSTGRES"]
POSTGRES_FOLDER = os.environ["SITE_POSTGRES_FOLDER"]
KAFKA = os.environ["SITE_KAFKA"]
KAFKA_FOLDER = os.environ["SITE_KAFKA_FOLDER"]
SERVICES = os.environ["SITE_SERVICES"]
SCRATCH = os.environ["SITE_SCRATCH"]

POLICIES = ("dead-letter", "park", "retry-later")
PROCESSES = 3
# Of a round: the first spell, a storm, the second spell, and a rest in which all are fed and nothing is ill.
SPELL_SECONDS, STORM_SECONDS, REST_SECONDS = 45, 20, 32
ROUND_SECONDS = 220
MEASURED_SECONDS = 6
BACKLOG = 600
# From the end of the feed on until no healthy partition has a lag.
LAG_ZERO_SECONDS = 30
DRAIN_SECONDS = 240
SAMPLE_SECONDS = 0.5
# A partition without an owner counts as up if nothing has happened to a process or a server for so long.
QUIET_SECONDS = 20
# Each spell has one of each: an illness that lasts, and a shock after its first seconds.
ILLNESSES = ("none", "lock", "refusal", "poison")
SHOCKS = ("none", "kill", "kill all", "freeze", "freeze for long", "crash PostgreSQL", "restart PostgreSQL", "kill Kafka",
          "restart Kafka")
# What scripts/services does to a server.
SERVER_FAULTS = {"crash PostgreSQL": ("postgres", "restart", POSTGRES_FOLDER, "--mode", "immediate"),
                 "restart PostgreSQL": ("postgres", "restart", POSTGRES_FOLDER),
                 "kill Kafka": ("kafka", "restart", KAFKA_FOLDER, "--kill"),
                 "restart Kafka": ("kafka", "restart", KAFKA_FOLDER)}
BAD_SHARE, POISON_SHARE = 0.1, 0.4
# The partitions of the second topic below this one get messages that fail, and only with one of their keys: what waits
# behind such a message in the end is replayed at about a hundred messages per second.
FIRST_WITHOUT_BAD = 2
BAD_KEYS = PARTITIONS


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


class Feed:
    """Produces messages, in a thread of its own. Its draws are its own, so that its messages do not depend on the faults."""

    def __init__(self, pair, topics, unkeyed, seed):
        """topics: the name by letter."""
        self.pair, self.topics, self.unkeyed = pair, topics, unkeyed
        self.partitions = [(letter, partition) for letter in topics for partition in range(PARTITIONS)]
        self.draws = {partition: random.Random(f"{seed} {partition}") for partition in self.partitions}
        self.produced, self.sequences = collections.Counter(), collections.Counter()
        # The first record of each message, and when Kafka had it.
        self.sent, self.fed_at, self.failed = {}, {}, []
        self.kinds = {}
        self.bad_share = BAD_SHARE
        self.mode, self.rates, self.applied = "none", {}, collections.Counter()
        self.failure = None
        self.thread = threading.Thread(target=self.run)
        self.ended = threading.Event()

    def run(self):
        try:
            self.run_until_told()
        except Exception as error:
            self.failure = error
        self.ended.set()

    def run_until_told(self):
        producer = Producer({"bootstrap.servers": KAFKA, "linger.ms": 5, "enable.idempotence": True, "log_level": 2})
        begun, before = None, None
        while self.mode != "end":
            due = collections.Counter()
            if self.mode == "backlog":
                due.update({partition: self.applied[partition] + BACKLOG for partition in self.partitions})
            elif self.mode == "rate":
                if begun is None:
                    begun, before = time.time(), self.produced.copy()
                due.update({partition: before[partition] + int((time.time() - begun) * self.rates[partition[0]])
                            for partition in self.partitions})
            for partition in self.partitions:
                while self.produced[partition] < due[partition]:
                    self.produce(producer, partition)
            producer.poll(0.01)
        if producer.flush(60):
            self.failed.append("some were not sent within 60 s")

    def produce(self, producer, place):
        draw, (letter, partition) = self.draws[place], place
        number = draw.randrange(partition, KEYS, PARTITIONS)
        key = f"{letter}{number}"
        kind, keyed, twice = draw.choice(self.pair), draw.random() >= 0.3, draw.random() < 0.1
        bad, always = draw.random(), draw.random() < 0.2
        id = f"{letter}{partition}-{self.produced[place]}"
        can_be_bad = self.mode == "rate" and letter == ILL and partition < FIRST_WITHOUT_BAD and number < BAD_KEYS
        if can_be_bad and bad < self.bad_share:
            id += "~100" if always else "~60"
        message = {"u": id, "k": key, "s": self.sequences[key], "h": kind, "account": key, "amount": self.sequences[key]}
        self.kinds[id] = kind
        self.sequences[key] += 1
        self.produced[place] += 1
        keyed = keyed or not self.unkeyed
        if keyed:
            message["id"] = id
        for _ in range(2 if keyed and twice else 1):
            while True:
                try:
                    producer.produce(self.topics[letter], json.dumps(message).encode(), key.encode(), partition,
                                     headers={"event-id": id}, on_delivery=self.delivered(place, message))
                    break
                except BufferError:  # Kafka is down
                    producer.poll(0.1)
        producer.poll(0)

    def delivered(self, place, message):
        def note(error, record):
            if error is not None:
                self.failed.append(str(error))
            elif message["u"] not in self.sent:
                self.sent[message["u"]] = Sent(message["u"], message["k"], message["s"], place, record.offset())
                self.fed_at[message["u"]] = time.time()
        return note

    def stop(self):
        self.mode = "end"
        if self.thread.ident:
            self.thread.join()
        if self.failure is not None or self.failed:
            raise SystemExit(f"the producer failed: {self.failure or self.failed[:3]}")


class Round:
    def __init__(self, number, pair, policy, durability, unkeyed, illness, shock, random_):
        self.name = f"round_{number}"
        self.pair, self.policy, self.durability, self.unkeyed, self.random = pair, policy, durability, unkeyed, random_
        self.topics = {letter: f"{self.name}_{letter}" for letter in TOPICS}
        self.published_to = f"{self.name}_published"
        self.program = program(pair)
        # Drawn before anything depends on timing.
        illnesses = [one for one in ILLNESSES if one != "refusal" or "http" in pair]
        self.spells = [(illness or random_.choice(illnesses), shock or random_.choice(SHOCKS)) for _ in range(2)]
        self.feed = Feed(pair, self.topics, unkeyed, random_.random())
        self.apis = {}
        self.config = os.path.join(SCRATCH, self.name + ".toml")
        self.processes, self.stopped = {}, {}
        self.faults, self.ends = collections.Counter(), collections.Counter()
        # For the judge of fairness.
        self.servers_up, self.disturbed_at = True, time.time()
        self.paused, self.ill, self.samples = set(), [], []
        self.watching_ends = threading.Event()
        self.begun_at = time.time()
        self.rate_from, self.fed_until = None, None

    def say(self, text):
        print(f"  {time.time() - self.begun_at:6.1f} s: {text}", flush=True)

    # ---- the site ----

    def prepare(self):
        query("postgres", f'CREATE DATABASE "{self.name}"')
        subprocess.run([PAWL, "migrate", "up", "--database", url_of(self.name)], check=True, stdout=subprocess.DEVNULL,
                       timeout=120)
        query(self.name, SCHEMA)
        admin = AdminClient({"bootstrap.servers": KAFKA})
        for created in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in self.all_topics()]).values():
            created.result(30)
        self.apis = {letter: RemoteApi(url_of(self.name)) for letter in TOPICS}
        handlers = [handler(kind, letter, self.topics[letter], self.published_to, self.apis[letter].port)
                    for letter in TOPICS for kind in self.pair]
        with open(self.config, "w") as file:
            file.write(f'[kafka]\nbootstrap_servers = "{KAFKA}"\ngroup = "{self.name}"\nsession_timeout = "6s"\n'
                       f'[postgres]\nurl = "{url_of(self.name)}"\n'
                       '[idempotency]\nkey = "{/id?}"\n' + ('missing_key = "process"\n' if self.unkeyed else "") +
                       f'[consumer]\ndurability = "{self.durability}"\n'
                       f'[failures]\non_failure = "{self.policy}"\nretry_for = "300ms"\nretry_later = ["2s", "3s", "5s"]\n'
                       'retry_max = "5s"\ncircuit_breaker = 0\nmax_crashes = 100\n' + "".join(handlers))
        check = self.command("check")
        if check.returncode != 0:
            raise SystemExit(f"{self.pair} cannot be configured:\n{check.stdout}{check.stderr}")

    def all_topics(self):
        return [*self.topics.values(), *([self.published_to] if "publish" in self.pair else [])]

    def command(self, *words):
        return subprocess.run([self.program, *words, "--config", self.config], capture_output=True, text=True,
                              timeout=DRAIN_SECONDS)

    def start(self, number):
        with open(os.path.join(SCRATCH, f"{self.name}.{number}.log"), "a") as log:
            self.processes[number] = subprocess.Popen([self.program, "run", "--config", self.config], stdout=log, stderr=log)

    def start_missing(self):
        for number in range(PROCESSES):
            process = self.processes.get(number)
            if process is None or process.poll() is not None:
                if process is not None:
                    self.ends[process.returncode] += 1
                self.disturbed_at = time.time()
                self.start(number)

    # ---- how fast they are when all are healthy ----

    def applied(self):
        """Messages that took effect, by topic and partition."""
        rows = query(self.name, "SELECT key, count(*) FROM effects GROUP BY key")
        found = collections.Counter()
        for key, count in rows:
            found[key[0], partition_of(key)] += count
        return found

    def wait_until(self, reached, seconds, what):
        end = time.time() + seconds
        while not reached():
            if self.feed.ended.is_set():
                self.feed.stop()
            if time.time() > end:
                raise SystemExit(f"{what} within {seconds} s when all are healthy:\n{self.what_holds()}")
            time.sleep(0.25)
            self.feed.applied = self.applied()

    def measure(self):
        """Feeds each partition at half the rate that one process reaches with all of them."""
        self.start(0)
        self.feed.mode = "backlog"
        self.feed.thread.start()
        self.wait_until(lambda: all(self.feed.applied[place] >= 50 for place in self.feed.partitions), 90,
                        "not every partition began")
        begun, before = time.time(), self.applied()
        self.wait_until(lambda: time.time() - begun >= MEASURED_SECONDS, MEASURED_SECONDS * 5, "not measured")
        after, seconds = self.applied(), time.time() - begun
        self.feed.mode = "none"
        self.feed.rates = {letter: sum(after[letter, p] - before[letter, p] for p in range(PARTITIONS)) / seconds / PARTITIONS / 2
                           for letter in TOPICS}
        self.start_missing()
        self.wait_until(lambda: all(self.feed.applied[place] >= self.feed.produced[place] for place in self.feed.partitions), 180,
                        "the backlog was not applied")
        rates = ", ".join(f"{letter} {2 * rate:.0f}/s" for letter, rate in self.feed.rates.items())
        self.say(f"healthy rate of a partition in one process: {rates}; fed at half of it")
        if min(self.feed.rates.values()) <= 0:
            raise SystemExit("a partition applied nothing when all were healthy")

    # ---- what the judge of fairness has to know ----

    def watch(self):
        """Notes which partitions have an owner that is up, while the servers are up."""
        connection = None
        while not self.watching_ends.wait(SAMPLE_SECONDS):
            now = time.time()
            alive = {process.pid for number, process in list(self.processes.items())
                     if number not in self.stopped and process.poll() is None}
            quiet = len(alive) == PROCESSES and now - self.disturbed_at > QUIET_SECONDS
            try:
                connection = connection or psycopg.connect(url_of(self.name), autocommit=True, connect_timeout=2,
                                                           options="-c statement_timeout=2000")
                rows = connection.execute("SELECT topic, partition FROM pawl.processed_kafka_offsets"
                                          " WHERE NOT released AND split_part(owner, ':', 2) = ANY (%s)",
                                          ([str(pid) for pid in alive],)).fetchall()
            except psycopg.Error:
                connection = None
                continue
            owned = {(topic[-1], partition) for topic, partition in rows}
            up = {place for place in self.feed.partitions if place not in self.paused and (quiet or place in owned)}
            self.samples.append((now, up if self.servers_up else set()))

    def server_fault(self, *words):
        """Kafka or PostgreSQL is down, and up again when this returns."""
        self.servers_up, self.disturbed_at = False, time.time()
        subprocess.run([SERVICES, *words], check=True, capture_output=True, timeout=120)
        self.servers_up, self.disturbed_at = True, time.time()

    # ---- the faults ----

    def wake(self, all_of_them=False):
        for number, until in list(self.stopped.items()):
            if all_of_them or time.time() > until:
                self.processes[number].send_signal(signal.SIGCONT)
                self.disturbed_at = time.time()
                del self.stopped[number]

    def kill(self, number):
        self.disturbed_at = time.time()
        self.stopped.pop(number, None)
        self.processes[number].kill()

    def freeze(self, number, seconds):
        self.disturbed_at = time.time()
        self.stopped[number] = time.time() + seconds
        self.processes[number].send_signal(signal.SIGSTOP)

    def hit(self, what, number):
        """A fault of that process, or of a server."""
        if what == "kill":
            self.kill(number)
        elif what.startswith("freeze"):
            self.freeze(number, self.random.uniform(7, 14) if "long" in what else self.random.uniform(0.5, 3))
        elif what in SERVER_FAULTS:
            self.server_fault(*SERVER_FAULTS[what])

    def storm(self, seconds):
        """Many short faults one after another."""
        end = time.time() + seconds
        while time.time() < end:
            time.sleep(self.random.uniform(0.3, 2.0))
            self.wake()
            self.start_missing()
            self.fault()

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
        place = letter, partition = self.random.choice(self.feed.partitions)
        where = "--topic", self.topics[letter], "--partition", str(partition)
        if what == "reload":
            process.send_signal(signal.SIGHUP)
        elif what == "stop":
            self.disturbed_at = time.time()
            process.send_signal(signal.SIGTERM)
        elif what == "terminate sessions":
            query(self.name, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                             " AND application_name LIKE 'pawl%%' AND random() < %s", 0.5)
        elif what == "pause":
            self.paused.add(place)
            self.command("partitions", "pause", *where, "--because", "chaos")
            time.sleep(self.random.uniform(0.2, 1.5))
            self.command("partitions", "resume", *where)
            self.paused.discard(place)
        elif what == "set back":
            stored = self.stored().get(place, -1)
            if stored > 50:
                self.command("offsets", "set", *where, "--to", str(stored - self.random.randrange(40)), "--force",
                             "--because", "chaos")
        else:
            self.hit(what, number)

    def spell(self, illness, shock, seconds):
        """One illness that lasts, one shock, and otherwise rest: so that there is time in which servers and owners are up."""
        self.say(f"illness: {illness}, shock: {shock}")
        self.faults["illness: " + illness] += 1
        self.faults["shock: " + shock] += 1
        begin, lock = time.time(), None
        if illness == "lock":
            lock = connect(self.name)
            lock.autocommit = False
            lock.execute("LOCK TABLE effects_i IN EXCLUSIVE MODE")
        elif illness == "refusal":
            self.apis[ILL].refuse()
        elif illness == "poison":
            self.feed.bad_share = POISON_SHARE
        try:
            shock_at = begin + self.random.uniform(1, 4)
            while time.time() < begin + seconds:
                time.sleep(0.25)
                self.wake()
                self.start_missing()
                if shock_at is not None and time.time() > shock_at:
                    self.shock(shock)
                    shock_at = None
        finally:
            if lock:
                lock.close()
            if illness == "refusal":
                self.apis[ILL].accept()
            self.feed.bad_share = BAD_SHARE
            if illness in ("lock", "refusal"):
                self.ill.append((begin, time.time()))

    def shock(self, what):
        number = self.random.randrange(PROCESSES)
        if what == "kill all":
            for one in range(PROCESSES):
                self.kill(one)
        else:
            self.hit(what, number)

    def stored(self):
        """The last processed offset by topic and partition."""
        rows = query(self.name, "SELECT topic, partition, last_processed_offset FROM pawl.processed_kafka_offsets")
        return {(topic[-1], partition): offset for topic, partition, offset in rows}

    # ---- one round ----

    def run(self):
        """Returns what is not finished, or ''."""
        self.prepare()
        watch = threading.Thread(target=self.watch)
        try:
            self.measure()
            self.rate_from = time.time()
            self.feed.mode = "rate"
            watch.start()
            self.spell(*self.spells[0], SPELL_SECONDS)
            self.say("storm")
            self.storm(STORM_SECONDS)
            self.wake(all_of_them=True)
            self.spell(*self.spells[1], SPELL_SECONDS)
            self.wake(all_of_them=True)
            self.spell("none", "none", REST_SECONDS)
        finally:
            self.feed.mode = "end"
            self.watching_ends.set()
            if watch.ident:
                watch.join()
        self.feed.stop()
        self.fed_until = time.time()
        query(self.name, "UPDATE failures SET happen = false")
        left = self.drain()
        self.say("drained" if not left else "not drained")
        return left

    def drain(self):
        """Returns what is not finished, or ''."""
        consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": "ends of " + self.name})
        ends = {(letter, p): consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1]
                for letter, topic in self.topics.items() for p in range(PARTITIONS)}
        consumer.close()
        end = time.time() + DRAIN_SECONDS
        # What is retried by itself has time for it; what is not is replayed.
        replay_from = time.time() + (30 if self.policy == "retry-later" else 0)
        left = "not begun"
        while left and time.time() < end:
            time.sleep(0.5)
            self.start_missing()
            stored = self.stored()
            behind = {place: (stored.get(place, -1) + 1, last) for place, last in ends.items() if stored.get(place, -1) + 1 < last}
            waiting = query(self.name, "SELECT count(*) FROM pawl.dead_letters WHERE status IN ('dead', 'parked')")[0][0]
            unpublished = query(self.name, "SELECT (SELECT count(*) FROM pawl.outbox)"
                                           " + (SELECT count(*) FROM pawl.outbox_failed)")[0][0]
            left = (f"partitions (stored, end): {behind}, dead letters: {waiting}, not published: {unpublished}"
                    if behind or waiting or unpublished else "")
            if waiting and not behind and time.time() > replay_from:
                self.command("dlq", "replay", "--all")
        return left and f"{left}\n{self.what_holds()}"

    def what_holds(self):
        """What an unfinished round leaves to look at: its processes and logs are gone later."""
        columns = {"processed_kafka_offsets": "topic, partition, last_processed_offset, state, halt_code, halt_cause, owner, attempts",
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
        for api in self.apis.values():
            api.refuse()
        return hung

    # ---- what became of it ----

    def verdict(self, tamper):
        """A Verdict, and the Fairness by topic and partition of those that are judged."""
        rows = query(self.name, "SELECT id, key, sequence, extract(epoch FROM at)::float FROM effects ORDER BY n")
        at_once = {id for api in self.apis.values() for id in api.at_once}
        effects = [Effect(*row[:3], at_once=row[0] in at_once) for row in rows]
        if tamper == "lost":
            effects.pop(len(effects) // 2)
        elif tamper == "duplicated":
            effects.append(effects[0])
        elif tamper == "reordered":
            effects.append(effects.pop(0))
        dead = {row[0] for row in query(self.name, "SELECT convert_from(record_value, 'UTF8')::jsonb->>'u' FROM pawl.dead_letters")}
        ordered = self.policy != "dead-letter"
        found = judge(list(self.feed.sent.values()), effects, dead, ordered, whole_log="concurrency" not in self.pair)
        if "publish" in self.pair:
            expected = [sent for sent in self.feed.sent.values() if self.feed.kinds[sent.id] == "publish"]
            of_outbox = judge(expected, self.published(), dead, ordered, whole_log=False)
            found = found._make(ours + [f"published: {text}" for text in theirs] for ours, theirs in zip(found, of_outbox))
        applied = {row[0]: row[3] for row in rows}
        if tamper == "unfair":
            applied = {id: time + 2 * SPELL_SECONDS if id.startswith(f"{HEALTHY}1-") else time for id, time in applied.items()}
        return found, self.fairness(applied)

    def published(self):
        """What a reader of committed records gets."""
        consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": "reader of " + self.name, "isolation.level": "read_committed",
                             "enable.partition.eof": True, "enable.auto.commit": False})
        consumer.assign([TopicPartition(self.published_to, partition, 0) for partition in range(PARTITIONS)])
        records, ended, end = [], set(), time.time() + 60
        while len(ended) < PARTITIONS:
            if time.time() > end:
                raise SystemExit(f"{self.published_to} was not read within 60 s; ends reached: {ended}")
            record = consumer.poll(1)
            if record is None:
                continue
            if record.error() and record.error().code() == KafkaError._PARTITION_EOF:
                ended.add(record.partition())
            elif not record.error():
                message = json.loads(record.value())
                records.append(Effect(message["u"], message["k"], message["s"]))
        consumer.close()
        return records

    def fairness(self, applied):
        """applied: the time by ID."""
        found = {}
        for place in self.feed.partitions:
            letter, partition = place
            if letter == ILL and partition < FIRST_WITHOUT_BAD:
                continue
            fed = {id: self.feed.fed_at[id] for id, sent in self.feed.sent.items()
                   if sent.partition == place and self.feed.fed_at[id] >= self.rate_from}
            judged, lag_zero_by = up_intervals(self.samples, place, 6 * SAMPLE_SECONDS), self.fed_until + LAG_ZERO_SECONDS
            if letter == ILL:
                judged = without(judged, self.ill)
                # What it could not apply then takes half as long, at twice the rate of the feed.
                lag_zero_by += sum(end - begin for begin, end in self.ill)
            # Times as in the lines of the round.
            found[place] = judge_fairness(f"{self.topics[letter]}[{partition}]",
                                          *({id: time - self.begun_at for id, time in times.items()} for times in (fed, applied)),
                                          [(a - self.begun_at, b - self.begun_at) for a, b in judged], lag_zero_by - self.begun_at)
        return found

    def dead_letters_of_the_healthy(self):
        """What became a dead letter although no message of its partition was bad, with reasons."""
        return query(self.name, "SELECT topic, partition, handler, reason, left(max(error), 200), count(*), min(died_at)::text"
                                " FROM pawl.dead_letters WHERE topic = %s OR partition >= %s GROUP BY 1, 2, 3, 4",
                     self.topics[HEALTHY], FIRST_WITHOUT_BAD)


def share_text(worst):
    return "-" if worst is None else f"{worst:.2f}"


class Summary:
    """The figures of all rounds, by pair, and by whether a topic is the healthy one or the one that falls ill."""

    HEAD = ("pair", "partitions", "rounds", "fed", "applied", "windows", "worst share", "longest lag")

    def __init__(self):
        self.rows = {}

    def add(self, pair, fairness):
        for (letter, _), one in fairness.items():
            row = self.rows.setdefault((" + ".join(pair), "healthy" if letter == HEALTHY else "next to ill"), [])
            row.append(one)

    def lines(self):
        rows = [self.HEAD]
        for (pair, which), ones in sorted(self.rows.items()):
            worst = min((one.worst for one in ones if one.worst is not None), default=None)
            rounds = len(ones) // (PARTITIONS if which == "healthy" else PARTITIONS - FIRST_WITHOUT_BAD)
            rows.append((pair, which, str(rounds), str(sum(one.fed for one in ones)), str(sum(one.applied for one in ones)),
                         str(sum(one.windows for one in ones)), share_text(worst),
                         f"{max(one.lag for one in ones):.1f} s"))
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.HEAD))]
        return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--pair")
    parser.add_argument("--policy", choices=POLICIES)
    parser.add_argument("--illness", choices=ILLNESSES)
    parser.add_argument("--shock", choices=SHOCKS)
    parser.add_argument("--tamper", choices=("lost", "duplicated", "reordered", "unfair"))
    options = parser.parse_args()
    draw = random.Random(options.seed)
    pairs = [pair for pair in itertools.combinations(KINDS, 2) if pair not in REFUSED]
    if options.pair:
        pairs = [tuple(options.pair.split(","))]
        if len(pairs[0]) != 2 or not set(pairs[0]) <= set(KINDS):
            sys.exit(f"--pair needs two of {', '.join(KINDS)}")
        if options.illness == "refusal" and "http" not in pairs[0]:
            sys.exit("--illness refusal needs --pair with http")
    print(f"seed {options.seed}", flush=True)
    total, unfinished, deck, summary = collections.Counter(), 0, [], Summary()
    end = time.time() + options.minutes * 60
    for number in itertools.count(1):
        if number > 1 and end - time.time() < ROUND_SECONDS / 2:
            break
        # Each pair comes up once before one comes up again.
        deck = deck or draw.sample(pairs, len(pairs))
        pair = deck.pop()
        # Whatever the pair, as many draws.
        policy, durability = draw.choice(POLICIES), draw.choice(("synchronous", "replayable"))
        unkeyed, seed = draw.random() < 0.3 and not {"http", "code"} & set(pair), draw.random()
        round_ = Round(number, pair, options.policy or policy, durability, unkeyed, options.illness, options.shock, random.Random(seed))
        print(f"round {number} at {time.strftime('%H:%M:%S', time.gmtime())}: {' + '.join(pair)}, on_failure = {round_.policy}, durability = {round_.durability}"
              + (", a third without a key" if unkeyed else ""), flush=True)
        try:
            unfinished_work = round_.run()
        finally:
            hung = round_.stop()
        found, fairness = round_.verdict(options.tamper)
        summary.add(pair, fairness)
        unfair = [text for one in fairness.values() for text in one.unfair]
        # A round that could not judge has shown nothing.
        unfair += [f"{letter}[{partition}] was never up for long enough to be judged"
                   for (letter, partition), one in fairness.items() if letter == HEALTHY and one.windows == 0]
        print("  faults: " + ", ".join(f"{n} {what}" for what, n in sorted(round_.faults.items()))
              + "; exit codes: " + ", ".join(f"{n} times {code}" for code, n in sorted(round_.ends.items())), flush=True)
        for place, one in fairness.items():
            print(f"  {place[0]}[{place[1]}]: fed={one.fed} applied={one.applied} windows={one.windows}"
                  f" worst share={share_text(one.worst)} longest lag={one.lag:.1f} s", flush=True)
        for row in round_.dead_letters_of_the_healthy():
            print(f"  dead letters of a partition whose messages do not fail: {row}", flush=True)
        print(f"  sent={len(round_.feed.sent)} lost={len(found.lost)} duplicated={len(found.duplicated)}"
              f" reordered={len(found.reordered)} unfair={len(unfair)}"
              + (f" NOT FINISHED: {unfinished_work}" if unfinished_work else "") + (f" {hung} HUNG" if hung else ""),
              flush=True)
        for texts in (*found, unfair):
            for text in texts[:5]:
                print(f"    {text}", flush=True)
        for what in found._fields:
            total[what] += len(getattr(found, what))
        total["unfair"] += len(unfair)
        unfinished += bool(unfinished_work or hung)
    print("\n".join(summary.lines()))
    if unfinished:
        print(f"{unfinished} rounds were not finished, or had processes that did not stop")
    print(f"seed {options.seed}")
    print(" ".join(f"{what}={total[what]}" for what in ("lost", "duplicated", "reordered", "unfair")))
    sys.exit(1 if unfinished or sum(total.values()) else 0)


if __name__ == "__main__":
    main()
