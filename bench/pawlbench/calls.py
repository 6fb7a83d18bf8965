"""Tasks: handlers that make external calls under a lease of the message's key, next to the pool of threads
that one would write by hand (bench/naive_calls.cpp), which has no leases."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .consume import middle_rate
from .processes import Child, Command, Failure
from .records import Labels, Values
from .site import SCOPE, Database, Site, Topic, wait_for

# Who calls: the bench's C++ handler, whose calls only wait; the HTTP handler; by hand with HTTP, and only waiting.
CODE, HTTP, BY_HAND, BY_HAND_WAITS = "code", "http", "by hand", "by hand, waits"
AT_ONCE = 64  # calls of a partition
CONNECTIONS = 16  # to PostgreSQL for all calls, which is pawl's default
RUN_WITHIN = 600.0

# Where leases are kept.
POSTGRESQL, REDIS = "postgres", "redis"
STORES = (POSTGRESQL, REDIS)

RECORDED = {True: "pawl.idempotency_keys", False: "naive_calls"}


@dataclass(frozen=True)
class Calls:
    """Each message of a topic is called for once, and its response recorded."""

    who: str
    ms: int  # that a call takes; calls_consumer.cpp has a handler for each
    partitions: int
    payments: int
    connections: int = CONNECTIONS
    store: str = POSTGRESQL

    @property
    def is_pawl(self) -> bool:
        return self.who in (CODE, HTTP)

    @property
    def at_once(self) -> int:
        return AT_ONCE * self.partitions

    @property
    def labels(self) -> Labels:
        return {
            "mode": "calls",
            "who": self.who,
            "ms": self.ms,
            "partitions": self.partitions,
            "connections": self.connections,
            "store": self.store,
        }

    def prepare(self, site: Site) -> None:
        site.topic(self.partitions, self.payments)

    def measure(self, site: Site) -> Values:
        topic = site.topic(self.partitions, self.payments)
        with site.database() as database, self._api(site, database) as api:
            port = int(api.log.read_text()) if api else 0
            line = self._command(site, topic, database, port)
            before = counters(site, database)
            server_cpu = site.server_cpu_seconds()
            with Child(line, site.log(database.name)) as child:
                if not child.wait(RUN_WITHIN):
                    raise Failure(f"{child.name} did not exit within {RUN_WITHIN:.0f} s")
                child.require_success()
            wait_for("PostgreSQL to end the sessions", 30, lambda: sessions(site, database) == 0)
            server_cpu = site.server_cpu_seconds() - server_cpu
            after = counters(site, database)
            values = self._values(database, child, server_cpu)
            values["transactions"] = (after[0] - before[0]) / self.payments
            values["wal_bytes"] = (after[1] - before[1]) / self.payments
            if self.is_pawl:
                require_recorded(database, topic)
            if api:
                api.end()
                values |= self._of_api(api, database)
            return values

    @contextmanager
    def _api(self, site: Site, database: Database) -> Iterator[Child | None]:
        if self.who not in (HTTP, BY_HAND):
            yield None
            return
        log = site.log(f"{database.name}-api")
        with Child([site.programs / "pawl-bench-api", str(self.ms)], log) as api:
            wait_for("the API", 10, lambda: "\n" in log.read_text() or api.poll() is not None)
            if api.poll() is not None:
                api.require_success()
            yield api

    def _command(self, site: Site, topic: Topic, database: Database, port: int) -> Command:
        if not self.is_pawl:
            return [
                site.programs / "pawl-bench-naive-calls",
                *(site.bootstrap, topic.name, str(topic.partitions), database.url),
                *(str(self.at_once), str(self.connections)),
                *(("http", str(port)) if port else ("wait", str(self.ms))),
            ]
        config = site.work / f"{database.name}.toml"
        config.write_text(self._configuration(site, topic, database, port))
        program = "pawl" if self.who == HTTP else "pawl-bench-calls"
        return [site.programs / program, "run", "--config", config, "--drain"]

    def _configuration(self, site: Site, topic: Topic, database: Database, port: int) -> str:
        handler = f'name = "wait_{self.ms}"'
        if self.who == HTTP:
            body = '{ event = "{header:event-id}", account = "{/account}", amount = "{/amount}" }'
            handler = f'http = {{ url = "http://127.0.0.1:{port}/charges", json = {body} }}'
        return f"""[kafka]
bootstrap_servers = "{site.bootstrap}"
group = "{site.unique("group")}"
[postgres]
url = "{database.url}"
[consumer]
concurrency = {self.connections}
[calls]
max_in_flight = {self.at_once}
lease_store = "{self.store}"
{self._redis(site)}
[idempotency]
key = "{{header:event-id}}"
scope = "{SCOPE}"
[[handler]]
topics = ["{topic.name}"]
concurrency = {AT_ONCE}
order_by = "{{header:event-id}}"
{handler}
[outbox]
relay = "off"
[log]
level = "warn"
"""

    def _redis(self, site: Site) -> str:
        return f'[redis]\naddress = "{site.redis()}"' if self.store == REDIS else ""

    def _values(self, database: Database, child: Child, server_cpu: float) -> Values:
        table = RECORDED[self.is_pawl]
        recorded = database.number(f"SELECT count(*) FROM {table}")
        if recorded != self.payments:
            raise Failure(f"{recorded} responses are recorded, of {self.payments} payments")
        (rate,) = database.numbers(middle_rate(table, "created_at"))
        if rate <= 0:
            raise Failure("too few calls to measure")
        return {
            "rate": rate,
            "program_cpu_us": child.cpu_seconds * 1e6 / self.payments,
            "server_cpu_us": server_cpu * 1e6 / self.payments,
            "memory_mib": child.peak_kib / 1024,
        }

    def _of_api(self, api: Child, database: Database) -> Values:
        found = re.search(r"requests=(\d+) most_at_once=(\d+)", api.log.read_text())
        if not found:
            raise Failure(f"the API reported no requests: {api.log.read_text()}")
        requests, most = map(int, found.groups())
        answers = database.number(f"SELECT count(DISTINCT response) FROM {RECORDED[self.is_pawl]}")
        if self.is_pawl and (requests, answers) != (self.payments, self.payments):
            raise Failure(
                f"the API received {requests} requests for {self.payments} payments, {answers} responses are recorded"
            )
        return {
            "requests": requests / self.payments,
            "at_once": most,
            "api_cpu_us": api.cpu_seconds * 1e6 / requests,
        }


def sessions(site: Site, database: Database) -> int:
    return site.server.number(
        "SELECT count(*) FROM pg_stat_activity"
        f" WHERE datname = '{database.name}' AND backend_type = 'client backend'"
    )


def counters(site: Site, database: Database) -> list[float]:
    """Transactions that were committed in the database, and bytes of WAL. A session's count once it has ended."""
    return site.server.numbers(
        "SELECT xact_commit, pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
        f" FROM pg_stat_database WHERE datname = '{database.name}'"
    )


def require_recorded(database: Database, topic: Topic) -> None:
    """Each payment once, with a response; the rest of the messages are duplicates, and nothing is open."""
    responses, leases, losses, letters = database.numbers(
        "SELECT (SELECT count(response) FROM pawl.idempotency_keys), (SELECT count(*) FROM pawl.leases),"
        " (SELECT count(*) FROM pawl.lease_losses), (SELECT count(*) FROM pawl.dead_letters)"
    )
    if responses != topic.payments:
        raise Failure(f"{responses:.0f} of {topic.payments} payments have a response")
    if leases or losses or letters:
        raise Failure(
            f"{leases:.0f} leases are open, {losses:.0f} were lost, {letters:.0f} messages are dead letters"
        )
    read, applied, duplicates = database.numbers(
        "SELECT sum(last_processed_offset + 1), sum(applied_count), sum(duplicate_count)"
        " FROM pawl.processed_kafka_offsets"
    )
    wanted = (topic.messages, topic.payments, topic.messages - topic.payments)
    if (read, applied, duplicates) != wanted:
        raise Failure(
            f"of {read:.0f} messages {applied:.0f} count as applied and {duplicates:.0f} as duplicates,"
            f" instead of {wanted}"
        )
