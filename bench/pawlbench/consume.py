"""Task: one mode applies the payments of a topic to a new database."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .modes import ASYNCHRONOUS, Consumer, command
from .pgbench import part, waits_ms
from .processes import Child, Failure
from .records import Labels, Values
from .site import VALUE_BYTES, Database, Site, Topic, wait_for

START_WITHIN = 120.0


@dataclass(frozen=True)
class Work:
    """What is to be applied, and under which circumstances."""

    payments: int
    partitions: int = 8
    processes: int = 1
    round_trip_ms: float = 0.0  # to PostgreSQL, on top of what it is
    keys: int = 0  # that are there before
    dead_letters: int | None = None  # too; None: it is not what is compared
    random_ids: bool = False
    commit_delay_us: int = 0  # PostgreSQL waits so long for others to share a flush
    value_bytes: int = VALUE_BYTES
    one_hot: bool = False  # the first partition has everything, the others wait for something
    steady: bool = False  # measured once every process has partitions, and only then
    seconds: float = 0.0  # ends after so many, counted from the first payment; 0: all of them
    middle: bool = False  # the rate is that of the middle, where every partition has messages yet


@dataclass(frozen=True)
class Sample:
    """How far a run has come."""

    at: float  # the database's clock
    messages: int


@dataclass(frozen=True)
class Consume:
    consumer: Consumer
    work: Work
    under: tuple[str | Path, ...] = ()  # a command that runs it

    @property
    def labels(self) -> Labels:
        return {
            "mode": self.consumer.mode.name,
            "commit": self.consumer.commit,
            "batch": int(self.consumer.mode.batch),
            "workers": self.consumer.workers,
            "partitions": self.work.partitions,
            "processes": self.work.processes,
            "round_trip_ms": self.work.round_trip_ms,
            "keys": self.work.keys,
            "random_ids": int(self.work.random_ids),
            "commit_delay_us": self.work.commit_delay_us,
            "value_bytes": self.work.value_bytes,
            "one_hot": int(self.work.one_hot),
            **({} if self.work.dead_letters is None else {"dead_letters": self.work.dead_letters}),
        }

    def prepare(self, site: Site) -> None:
        self._topic(site)

    def _topic(self, site: Site) -> Topic:
        work = self.work
        return site.topic(
            work.partitions, work.payments, work.random_ids, work.value_bytes, work.one_hot
        )

    def measure(self, site: Site) -> Values:
        topic = self._topic(site)
        asynchronous = self.consumer.commit == ASYNCHRONOUS
        with ExitStack() as stack:
            database = stack.enter_context(
                site.database(
                    self.work.keys,
                    asynchronous,
                    self.work.commit_delay_us,
                    self.work.dead_letters or 0,
                    self.work.random_ids,
                )
            )
            url = stack.enter_context(delayed(site, database, self.work.round_trip_ms))
            # One of several that has no partitions yet would take them for drained.
            follow = self.work.processes > 1
            line = [
                *self.under,
                *command(site, self.consumer, topic, database, url, follow, self.work.one_hot),
            ]
            before = site.server_cpu_seconds()
            children = [
                stack.enter_context(Child(line, site.log(f"{database.name}-{i}")))
                for i in range(self.work.processes)
            ]
            if self.work.steady:
                wait_for_owners(children, database)
            begun = sample(database) if self.work.steady else None
            complete = self._wait(children, database)
            server_cpu = site.server_cpu_seconds() - before
            return self._values(children, database, topic, complete, server_cpu, begun)

    def _wait(self, children: list[Child], database: Database) -> bool:
        """True when the consumers came to the topic's end by themselves."""
        ends = float("inf")
        if self.work.seconds:
            wait_for_payment(children, database)
            ends = time.monotonic() + self.work.seconds
        while any(child.poll() is None for child in children):
            for child in children:
                if child.poll() is not None:
                    child.require_success()
            if time.monotonic() > ends:
                stop(children)
                return False
            time.sleep(0.02)
        for child in children:
            child.require_success()
        return True

    def _values(
        self,
        children: list[Child],
        database: Database,
        topic: Topic,
        complete: bool,
        server_cpu: float,
        begun: Sample | None,
    ) -> Values:
        # From the first payment to the last: what it takes to start is an experiment of its own.
        first, last = database.numbers(
            "SELECT extract(epoch FROM min(entered_at)), extract(epoch FROM max(entered_at)) FROM ledger"
        )
        messages = processed(database, self.consumer.mode.is_pawl)
        if messages == 0 or last <= first:
            raise Failure(f"{self.consumer.mode.name} did not get far enough to be measured")
        require_correct(database, topic if complete else None, self.consumer.mode.is_pawl)
        rate = messages / (last - first)
        if begun is not None:
            if last <= begun.at:
                raise Failure("all payments were applied before every process had partitions")
            rate = (messages - begun.messages) / (last - begun.at)
        if self.work.middle:
            (payments,) = database.numbers(middle_rate("ledger", "entered_at"))
            rate = payments * messages / topic.payments
        return {
            "rate": rate,
            "messages": messages,
            "seconds": last - first,
            "program_cpu_us": sum(child.cpu_seconds for child in children) * 1e6 / messages,
            "server_cpu_us": server_cpu * 1e6 / messages,
            "memory_mib": sum(child.peak_kib for child in children) / 1024,
            "start_s": first - children[0].began,
        }


def middle_rate(table: str, at: str) -> str:
    """A query: rows a second, without the end, where some partitions are through. What begins together ends
    together, so the rate is the slope of a line through all of these rows."""
    return (
        f"WITH n AS (SELECT row_number() OVER (ORDER BY {at}) AS n, count(*) OVER () AS total,"
        f" extract(epoch FROM {at} - min({at}) OVER ())::float8 AS at FROM {table})"
        " SELECT regr_slope(n, at) FROM n WHERE n BETWEEN 0.1 * total AND 0.75 * total"
    )


def sample(database: Database) -> Sample:
    at, messages = database.numbers(
        "SELECT extract(epoch FROM clock_timestamp()), sum(last_processed_offset + 1)"
        " FROM pawl.processed_kafka_offsets"
    )
    return Sample(at, int(messages))


def wait_for_owners(children: list[Child], database: Database) -> None:
    """Each process has taken over partitions: the rebalance that it came with is behind."""
    wanted = len(children)

    def owned() -> bool:
        for child in children:
            if child.poll() is not None:
                child.require_success()
        found = database.number(
            "SELECT count(DISTINCT owner) FROM pawl.processed_kafka_offsets WHERE NOT released"
        )
        return found == wanted

    wait_for(f"{wanted} processes with partitions", START_WITHIN, owned)


def stop(children: list[Child]) -> None:
    """All at once; each must take it well. Only the naive loop dies of it."""
    for child in children:
        child.signal(signal.SIGTERM)
    for child in children:
        child.wait_or_kill()
        if child.code != -signal.SIGTERM:
            child.require_success()


def wait_for_payment(children: list[Child], database: Database) -> None:
    def entered() -> bool:
        for child in children:
            if child.poll() is not None:
                child.require_success()
        return database.query("SELECT EXISTS (SELECT FROM ledger)") == "t"

    wait_for("the first payment in the ledger", START_WITHIN, entered)


def processed(database: Database, by_pawl: bool) -> int:
    if by_pawl:
        return database.number(
            "SELECT sum(last_processed_offset + 1) FROM pawl.processed_kafka_offsets"
        )
    return database.number("SELECT sum(processed + 1) FROM naive_offsets")


def require_correct(database: Database, complete: Topic | None, by_pawl: bool) -> None:
    """Each payment once, the accounts agree with the ledger, and all payments where all were read."""
    entries, different, total = database.numbers(
        "SELECT count(*), count(DISTINCT event_id), sum(amount) FROM ledger"
    )
    if entries != different:
        raise Failure(f"{entries - different:.0f} payments were entered more than once")
    if complete and (entries, total) != (complete.payments, complete.total):
        raise Failure(
            f"the ledger holds {entries:.0f} payments of {total:.0f} in all"
            f" instead of {complete.payments} of {complete.total}"
        )
    wrong = database.number(
        "SELECT count(*) FROM accounts a FULL JOIN"
        " (SELECT account AS id, sum(amount) AS balance, count(*) AS entries FROM ledger GROUP BY 1) l USING (id)"
        " WHERE (a.balance, a.entries) IS DISTINCT FROM (coalesce(l.balance, 0), coalesce(l.entries, 0))"
    )
    if wrong:
        raise Failure(f"{wrong} accounts differ from the ledger")
    if by_pawl:
        applied = database.number("SELECT sum(applied_count) FROM pawl.processed_kafka_offsets")
        if applied != entries:
            raise Failure(f"{applied} messages count as applied, {entries:.0f} are in the ledger")


@contextmanager
def delayed(site: Site, database: Database, round_trip_ms: float) -> Iterator[str]:
    """The database's URL over a network of that latency."""
    if round_trip_ms == 0:
        yield database.url
        return
    log = site.log(f"{database.name}-delay")
    microseconds = str(round(round_trip_ms * 1000))
    with Child([site.programs / "pawl-bench-delay", database.url, microseconds], log) as proxy:
        wait_for("the delay proxy", 10, lambda: "\n" in log.read_text() or proxy.poll() is not None)
        if proxy.poll() is not None:
            proxy.require_success()
        yield log.read_text().splitlines()[0]


@dataclass(frozen=True)
class RoundTrip:
    """What a `SELECT 1` takes over such a network: that the delay is what it says."""

    added_ms: float

    @property
    def labels(self) -> Labels:
        return {"mode": "round-trip", "round_trip_ms": self.added_ms}

    def prepare(self, site: Site) -> None:
        """Nothing is needed beforehand."""

    def measure(self, site: Site) -> Values:
        with site.database() as database, delayed(site, database, self.added_ms) as url:
            return {"ms": part(waits_ms(site, url, "SELECT 1;", "--transactions=200"), 0.5)}
