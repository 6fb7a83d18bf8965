"""Tasks: how fast what is published in PostgreSQL reaches Kafka, how long a message takes, and how large
the table gets. All of it beside the relay that one would write by hand (bench/naive_relay.cpp)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .consume import START_WITHIN
from .processes import Child, Failure, run
from .records import Labels, Values
from .site import VALUE_BYTES, Database, Site, Topic, wait_for

PARTITIONS = 4
KEYS = 1000
NAIVE_TABLE = (
    "CREATE TABLE naive_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text NOT NULL,"
    " key text, value text, created_at timestamptz NOT NULL DEFAULT now())"
)
PUBLISH = "SELECT pawl.publish($1, $2::text, $3::text)"
NAIVE_PUBLISH = "INSERT INTO naive_outbox (topic, key, value) VALUES ($1, $2, $3)"


def several(topic: Topic, rows: int, naive: bool = False) -> str:
    """One statement that writes so many messages."""
    key, value = f"'key ' || n % {KEYS}", f"repeat('v', {VALUE_BYTES})"
    if naive:
        return (
            f"INSERT INTO naive_outbox (topic, key, value) SELECT '{topic.name}', {key}, {value}"
            f" FROM generate_series(1, {rows}) n"
        )
    return (
        f"SELECT count(pawl.publish('{topic.name}', {key}, {value}))"
        f" FROM generate_series(1, {rows}) n"
    )


def set_lanes(database: Database, lanes: int) -> None:
    database.query(
        f"UPDATE pawl.outbox_settings SET shards = {lanes};"
        f"DELETE FROM pawl.outbox_shards WHERE shard >= {lanes}"
    )


def relay_config(site: Site, database: Database) -> Path:
    file = site.work / f"{database.name}.toml"
    file.write_text(
        f'[kafka]\nbootstrap_servers = "{site.bootstrap}"\n[postgres]\nurl = "{database.url}"\n'
        '[log]\nlevel = "warn"\n'
    )
    return file


@contextmanager
def relay(site: Site, database: Database, naive_rows: int, follow: bool) -> Iterator[Child]:
    line: list[str | Path]
    if naive_rows:
        line = [
            site.programs / "pawl-bench-naive-relay",
            *(site.bootstrap, database.url, str(naive_rows)),
            *(["--follow"] if follow else []),
        ]
    else:
        line = [site.programs / "pawl", "relay", "--config", relay_config(site, database)]
    with Child(line, site.log(database.name)) as child:
        yield child


def published(database: Database) -> int:
    return database.number("SELECT sum(published_count) FROM pawl.outbox_shards")


def require_running(child: Child) -> None:
    if child.poll() is not None:
        child.require_success()
        raise Failure(f"{child.name} exited before its work was done")


@dataclass(frozen=True)
class Backlog:
    """Messages that are committed already, until Kafka has acknowledged them."""

    rows: int
    lanes: int  # 0: the hand-written relay
    naive_rows: int = 0  # how many that takes at once

    @property
    def labels(self) -> Labels:
        return {"mode": "backlog", "lanes": self.lanes, "naive_rows": self.naive_rows}

    def prepare(self, site: Site) -> None:
        """Nothing is needed beforehand."""

    def measure(self, site: Site) -> Values:
        topic = site.empty_topic(PARTITIONS)
        naive = self.lanes == 0
        with site.database() as database:
            database.query(NAIVE_TABLE)
            if not naive:
                set_lanes(database, self.lanes)
            database.query(several(topic, self.rows, naive))
            database.query("CHECKPOINT")
            before = site.server_cpu_seconds()
            with relay(site, database, self.naive_rows, follow=False) as child:
                rate = self._naive(site, child) if naive else self._pawl(child, database)
                if not naive:
                    child.end()
            server = site.server_cpu_seconds() - before
            return {
                "rate": rate,
                "program_cpu_us": child.cpu_seconds * 1e6 / self.rows,
                "server_cpu_us": server * 1e6 / self.rows,
            }

    def _naive(self, site: Site, child: Child) -> float:
        if not child.wait(600):
            raise Failure("the hand-written relay did not exit within 600 s")
        child.require_success()
        return float(child.log.read_text().rpartition("rate=")[2])

    def _pawl(self, child: Child, database: Database) -> float:
        """From the first batch that was seen to the last, by the database's clock."""
        samples: list[tuple[float, float]] = []

        def done() -> bool:
            require_running(child)
            at, rows = database.numbers(
                "SELECT extract(epoch FROM clock_timestamp()), sum(published_count) FROM pawl.outbox_shards"
            )
            if rows > 0:
                samples.append((at, rows))
            return rows >= self.rows

        end = time.monotonic() + 600
        while not done():
            if time.monotonic() > end:
                raise Failure(f"only {samples[-1:]} of {self.rows} messages within 600 s")
            time.sleep(0.02)
        (began, first), (ended, last) = samples[0], samples[-1]
        if last <= first:
            raise Failure("too few messages to measure")
        return (last - first) / (ended - began)


@dataclass(frozen=True)
class OutboxLatency:
    """From the commit of a message to a read_committed reader, at a steady rate."""

    per_second: int
    seconds: int
    naive_rows: int = 0

    @property
    def labels(self) -> Labels:
        return {
            "mode": "outbox-latency",
            "per_second": self.per_second,
            "naive_rows": self.naive_rows,
        }

    def prepare(self, site: Site) -> None:
        """Nothing is needed beforehand."""

    def measure(self, site: Site) -> Values:
        topic = site.empty_topic(PARTITIONS)
        with site.database() as database:
            database.query(NAIVE_TABLE)
            with relay(site, database, self.naive_rows, follow=True) as child:
                if not self.naive_rows:
                    wait_for(
                        "the shards to have an owner",
                        START_WITHIN,
                        lambda: database.number(
                            "SELECT count(*) FROM pawl.outbox_shards WHERE owner IS NULL"
                        )
                        == 0,
                    )
                printed = run(
                    [
                        site.programs / "pawl-bench-outbox-latency",
                        *(site.bootstrap, database.url, topic.name),
                        *(str(self.per_second), str(self.seconds)),
                        NAIVE_PUBLISH if self.naive_rows else PUBLISH,
                    ]
                )
                require_running(child)
                if not self.naive_rows:
                    child.end()
        values = dict(word.split("=") for word in printed.split())
        return {f"{name}_ms": float(values[name]) for name in ("p50", "p99", "p999")}


@dataclass(frozen=True)
class TableSize:
    """How large the table is while messages are written and published without an end."""

    rows: int

    AT_ONCE = 5000

    @property
    def labels(self) -> Labels:
        return {"mode": "outbox-table", "rows": self.rows}

    def prepare(self, site: Site) -> None:
        """Nothing is needed beforehand."""

    def measure(self, site: Site) -> Values:
        topic = site.empty_topic(PARTITIONS)
        values: Values = {}
        with site.database() as database, relay(site, database, 0, follow=True) as child:
            begun, written, parts = time.monotonic(), 0, 0
            while written < self.rows:
                written += self.AT_ONCE
                database.query(several(topic, self.AT_ONCE))

                def near(upto: int = written) -> bool:
                    require_running(child)
                    return published(database) >= upto - 4 * self.AT_ONCE

                wait_for("the relay to come near", 600, near)
                if written * 5 >= self.rows * (parts + 1):
                    parts += 1
                    values[f"mib_{parts}"] = self._mib(database)
            wait_for("the last message", 600, lambda: published(database) >= written)
            values["rate"] = written / (time.monotonic() - begun)
            child.end()
        return values

    def _mib(self, database: Database) -> float:
        bytes_now = database.number("SELECT pg_total_relation_size('pawl.outbox')")
        return bytes_now / 1048576
