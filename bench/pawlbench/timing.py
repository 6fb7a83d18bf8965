"""Tasks that measure time: from produce to commit, over a hand-over, to the first payment, of a flush.

They end at PostgreSQL's own time of a commit (pg_xact_commit_timestamp), which is taken when its record
is written and before it is flushed: what a flush takes is measured beside it. All of it happens on one
machine, so by one clock."""

import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass

from .consume import START_WITHIN, processed, require_correct, stop, wait_for_payment
from .modes import ASYNCHRONOUS, Consumer, command
from .pgbench import part, waits_ms
from .processes import Child, Failure, run
from .records import Labels, Values
from .site import Database, Site, wait_for

PARTITIONS = 8
CATCH_UP_WITHIN = 120.0


def percentiles(values: str, rows: str) -> str:
    found = f"percentile_disc(ARRAY[0.5, 0.99, 0.999]) WITHIN GROUP (ORDER BY {values})"
    return f"SELECT array_to_string({found}, '|') FROM {rows}"


def holds(database: Database, rows: str) -> bool:
    return database.query(f"SELECT EXISTS (SELECT {rows})") == "t"


def wait_until_owned(database: Database, consumer: Consumer, owners: int = 1) -> None:
    """Until each partition has an owner, and there are so many of them."""
    asked = (
        f"SELECT count(*) = {PARTITIONS} FROM pg_stat_activity"
        f" WHERE datname = '{database.name}' AND application_name <> 'psql'"
    )
    if consumer.mode.is_pawl:
        asked = (
            f"SELECT count(*) = {PARTITIONS} AND count(DISTINCT owner) = {owners}"
            " FROM pawl.processed_kafka_offsets WHERE NOT released"
        )
    wait_for(
        f"{owners} owners of the partitions", START_WITHIN, lambda: database.query(asked) == "t"
    )


@dataclass(frozen=True)
class EndToEnd:
    """From the call that produces a payment to its commit, at a steady rate."""

    consumer: Consumer
    per_second: int
    seconds: int

    WARM_UP = 2  # seconds that do not count

    @property
    def labels(self) -> Labels:
        return {
            "mode": self.consumer.mode.name,
            "commit": self.consumer.commit,
            "per_second": self.per_second,
        }

    def prepare(self, site: Site) -> None:
        site.record_commit_times()

    def measure(self, site: Site) -> Values:
        topic = site.empty_topic(PARTITIONS)
        payments = self.per_second * (self.seconds + self.WARM_UP)
        with site.database(asynchronous=self.consumer.commit == ASYNCHRONOUS) as database:
            times = site.work / f"{database.name}.csv"
            line = command(site, self.consumer, topic, database, database.url, follow=True)
            with Child(line, site.log(database.name)) as child:
                wait_until_owned(database, self.consumer)
                time.sleep(1)
                printed = run(
                    site.producer(
                        topic, payments, "--rate", str(self.per_second), "--times", str(times)
                    )
                )
                messages = int(printed.partition("messages=")[2].split()[0])
                by_pawl = self.consumer.mode.is_pawl
                wait_for(
                    "the last payment",
                    CATCH_UP_WITHIN,
                    lambda: processed(database, by_pawl) >= messages,
                )
                stop([child])
            require_correct(database, None, by_pawl)
            if database.number("SELECT count(*) FROM ledger") != payments:
                raise Failure("not all payments are in the ledger")
            return self._values(database, str(times))

    def _values(self, database: Database, times: str) -> Values:
        database.query(
            "CREATE TABLE sent (event_id text, sent_us bigint);\n"
            f"\\copy sent FROM '{times}' (FORMAT csv)\n"
            "CREATE TABLE waited AS"
            " SELECT extract(epoch FROM pg_xact_commit_timestamp(l.xmin)) * 1000 - s.sent_us / 1000.0 AS ms"
            "   FROM ledger l JOIN (SELECT event_id, min(sent_us) AS sent_us FROM sent GROUP BY 1) s USING (event_id)"
            f"  WHERE s.sent_us > (SELECT min(sent_us) FROM sent) + {self.WARM_UP} * 1000000"
        )
        p50, p99, p999 = database.numbers(percentiles("ms", "waited"))
        return {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}


@dataclass(frozen=True)
class Flush:
    """A transaction of one INSERT, by one client, committed synchronously."""

    seconds: int

    @property
    def labels(self) -> Labels:
        return {"mode": "flush"}

    def prepare(self, site: Site) -> None:
        site.record_commit_times()

    def measure(self, site: Site) -> Values:
        with site.database() as database:
            database.query("CREATE TABLE flushed (n integer)")
            insert = "INSERT INTO flushed VALUES (1);"
            waits = waits_ms(site, database.url, insert, f"--time={self.seconds}")
        return {
            "p50_ms": part(waits, 0.5),
            "p99_ms": part(waits, 0.99),
            "p999_ms": part(waits, 0.999),
        }


@dataclass(frozen=True)
class Handover:
    """Two processes; one comes, goes, and dies. The longest time in which a partition stood still while
    a steady stream of payments came in."""

    consumer: Consumer
    per_second: int = 500

    SETTLE = 2.0

    @property
    def labels(self) -> Labels:
        return {
            "mode": self.consumer.mode.name,
            "commit": self.consumer.commit,
            "session_timeout": self.consumer.session_timeout,
        }

    def prepare(self, site: Site) -> None:
        site.record_commit_times()

    def measure(self, site: Site) -> Values:
        topic = site.empty_topic(PARTITIONS)
        values: Values = {}
        with ExitStack() as stack:
            database = stack.enter_context(
                site.database(asynchronous=self.consumer.commit == ASYNCHRONOUS)
            )
            line = command(site, self.consumer, topic, database, database.url, follow=True)

            def start(name: str) -> Child:
                return stack.enter_context(Child(line, site.log(f"{database.name}-{name}")))

            stays = start("stays")
            wait_until_owned(database, self.consumer)
            # More than it takes; the producer is stopped at the end.
            line_of_producer = site.producer(
                topic, self.per_second * 600, "--rate", str(self.per_second)
            )
            producer = stack.enter_context(
                Child(line_of_producer, site.log(f"{database.name}-producer"))
            )
            wait_for_payment([stays, producer], database)
            time.sleep(self.SETTLE)

            begun = time.time()
            second = start("second")
            wait_until_owned(database, self.consumer, 2)
            values["join_ms"] = self._longest_pause(database, begun)

            begun = time.time()
            stop([second])
            wait_until_owned(database, self.consumer, 1)
            values["leave_ms"] = self._longest_pause(database, begun)

            killed = start("killed")
            wait_until_owned(database, self.consumer, 2)
            time.sleep(self.SETTLE)
            begun = time.time()
            killed.signal(signal.SIGKILL)
            killed.wait(10)
            wait_until_owned(database, self.consumer, 1)
            values["kill_ms"] = self._longest_pause(database, begun)

            producer.end()
            stop([stays])
            require_correct(database, None, by_pawl=True)
        return values

    def _longest_pause(self, database: Database, begun: float) -> float:
        time.sleep(self.SETTLE)
        return database.numbers(
            "SELECT max(extract(epoch FROM at - before)) * 1000"
            "  FROM (SELECT at, lag(at) OVER (PARTITION BY partition ORDER BY kafka_offset) AS before"
            "          FROM (SELECT partition, kafka_offset, pg_xact_commit_timestamp(xmin) AS at"
            "                  FROM pawl.idempotency_keys) AS keys) AS pairs"
            f" WHERE at > to_timestamp({begun})"
        )[0]


@dataclass(frozen=True)
class Start:
    """From the start of the process to its first payment, with a backlog that waits for it."""

    consumer: Consumer
    payments: int

    @property
    def labels(self) -> Labels:
        return {"mode": self.consumer.mode.name, "commit": self.consumer.commit}

    def prepare(self, site: Site) -> None:
        site.topic(PARTITIONS, self.payments)

    def measure(self, site: Site) -> Values:
        topic = site.topic(PARTITIONS, self.payments)
        with site.database(asynchronous=self.consumer.commit == ASYNCHRONOUS) as database:
            line = command(site, self.consumer, topic, database, database.url, follow=True)
            with Child(line, site.log(database.name)) as child:
                wait_for_payment([child], database)
                stop([child])
            first = database.numbers(
                "SELECT extract(epoch FROM min(entered_at)), max(entry_id) FROM ledger"
            )
            values = {"first_s": first[0] - child.began}
            if not self.consumer.mode.is_pawl:
                return values  # it knows no restart: it reads from the beginning
            later = f"FROM ledger WHERE entry_id > {first[1]:.0f}"
            with Child(line, site.log(f"{database.name}-again")) as child:
                wait_for(
                    "a payment after the restart", START_WITHIN, lambda: holds(database, later)
                )
                stop([child])
            again = database.numbers(f"SELECT extract(epoch FROM min(entered_at)) {later}")[0]
            require_correct(database, None, by_pawl=True)
            return {**values, "again_s": again - child.began}
