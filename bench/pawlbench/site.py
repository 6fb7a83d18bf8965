"""The private servers, their databases and topics."""

import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .processes import Command, Failure, cpu_seconds_of_server, run, say

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
ACCOUNTS = 1000
SCOPE = "bench"  # of the idempotency keys, in every mode
VALUE_BYTES = 150  # and about 50 of record key, header and framing

# More memory than the default, and no checkpoint in the middle of a run that the next does not have.
POSTGRES = ("shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min")


@dataclass(frozen=True)
class Topic:
    name: str
    partitions: int
    payments: int
    messages: int = 0
    total: int = 0  # sum of the payments' amounts


class Database:
    """A database of one run."""

    def __init__(self, name: str, server: str) -> None:
        self.name = name
        self.url = server.rpartition("/")[0] + "/" + name

    def query(self, text: str) -> str:
        return run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url], text=text)

    def number(self, text: str) -> int:
        return int(self.query(text) or 0)

    def numbers(self, text: str) -> list[float]:
        """The columns of the one row that is asked for; 0 for NULL."""
        return [float(column or 0) for column in self.query(text).split("|")]


class Site:
    """Everything that is started for the bench. Its `with` stops and removes all of it."""

    def __init__(self, programs: Path, migrations: Path) -> None:
        self.programs = programs
        self.migrations = migrations
        self.work = Path(tempfile.mkdtemp(prefix="pawl-bench."))
        self.work.chmod(0o755)  # PostgreSQL may run as another user
        self._topics: dict[Topic, Topic] = {}
        self._templates: set[str] = set()
        self._counter = 0
        self._commit_timestamps = False
        self._redis = ""

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            run([SCRIPTS / "services", "stop-all", self.work])
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def start(self) -> None:
        conf = [word for setting in POSTGRES for word in ("--conf", setting)]
        self._server = run(
            [SCRIPTS / "services", "postgres", "start", self.work / "postgres", *conf]
        )
        self.bootstrap = run([SCRIPTS / "services", "kafka", "start", self.work / "kafka"])
        self.postgres_programs = Path((self.work / "postgres/programs_folder").read_text().strip())
        self.server = Database("postgres", self._server)
        self._make_template("bench_empty")

    def redis(self) -> str:
        """The address of an empty Redis without a disk, started when it is first asked for. Databases of one template
        share their identity, so that leases of the run before would be known to the next."""
        if not self._redis:
            command = [SCRIPTS / "services", "redis", "start", self.work / "redis"]
            self._redis = run([*command, "--mode", "server", "--conf", 'save=""'])
        host, _, port = self._redis.rpartition(":")
        run(["redis-cli", "-h", host, "-p", port, "flushall"])
        return self._redis

    def record_commit_times(self) -> None:
        """From now on PostgreSQL keeps the time of each commit; not while throughput is measured."""
        if not self._commit_timestamps:
            run(
                [
                    SCRIPTS / "services",
                    "postgres",
                    "restart",
                    self.work / "postgres",
                    "--conf",
                    "track_commit_timestamp=on",
                ]
            )
            self._commit_timestamps = True

    @contextmanager
    def server_under(self, wrapper: Command, *arguments: str) -> Iterator[None]:
        """Restarts the server with `arguments`, each of its processes run by `wrapper`; restores it
        in the end."""
        folder, programs = self.work / "postgres", self.work / "wrapped"
        real = folder.joinpath("programs_folder").read_text()
        programs.mkdir(exist_ok=True)
        script = programs / "postgres"
        line = shlex.join(str(word) for word in [*wrapper, f"{real.strip()}/postgres"])
        script.write_text(f'#!/bin/sh\nexec {line} "$@" {shlex.join(arguments)}\n')
        script.chmod(0o755)
        service = [SCRIPTS / "services", "postgres"]
        run([*service, "stop", folder])
        folder.joinpath("programs_folder").write_text(f"{programs}\n")
        try:
            run([*service, "start", folder])
            yield
        finally:
            # Also after a failure: the measurements behind it need the server as it was.
            run([*service, "stop", folder])
            folder.joinpath("programs_folder").write_text(real)
            run([*service, "start", folder])

    def server_cpu_seconds(self) -> float:
        return cpu_seconds_of_server(
            int((self.work / "postgres/service.pid").read_text().split()[0])
        )

    def unique(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}_{self._counter}"

    def log(self, name: str) -> Path:
        return self.work / f"{name}.log"

    # ---- databases -------------------------------------------------------------------------------

    @contextmanager
    def database(
        self,
        keys: int = 0,
        asynchronous: bool = False,
        commit_delay_us: int = 0,
        dead_letters: int = 0,
        random_ids: bool = False,
    ) -> Iterator[Database]:
        """A new database with pawl's tables, the payments' and `keys` idempotency keys, which are random or ordered,
        or `dead_letters`."""
        template = "bench_empty"
        if keys:
            template = self._filled_template(keys, random_ids)
        elif dead_letters:
            template = self._template_with_dead_letters(dead_letters)
        database = Database(self.unique("run"), self._server)
        self.server.query(f"CREATE DATABASE {database.name} TEMPLATE {template} STRATEGY file_copy")
        if asynchronous:
            self.server.query(f"ALTER DATABASE {database.name} SET synchronous_commit = off")
        if commit_delay_us:
            self.server.query(
                f"ALTER DATABASE {database.name} SET commit_delay = {commit_delay_us}"
            )
        self.server.query("CHECKPOINT")
        yield database
        # Not after a failure: the server goes away then, and the failure must be heard.
        self.server.query(f"DROP DATABASE {database.name} WITH (FORCE)")

    def _make_template(self, name: str) -> Database:
        self.server.query(f"CREATE DATABASE {name}")
        database = Database(name, self._server)
        migrate: list[str | Path] = [SCRIPTS / "migrate", "up", "--database", database.url]
        run([*migrate, "--name", "pawl", "--dir", self.migrations])
        run([*migrate, "--name", "payments", "--dir", ROOT / "apps/payments/migrations"])
        database.query(
            "INSERT INTO accounts (id) SELECT 'account-' || lpad(n::text, 4, '0')"
            f" FROM generate_series(0, {ACCOUNTS - 1}) AS n;"
            f"INSERT INTO pawl.idempotency_scopes (name) VALUES ('{SCOPE}');"
            "CREATE TABLE naive_keys (key text);"
        )
        if name == "bench_empty":
            database.query("ALTER TABLE naive_keys ADD PRIMARY KEY (key)")
        return database

    def _filled_template(self, keys: int, random_ids: bool) -> str:
        name = f"bench_keys_{keys}" + "_random" * random_ids
        if name not in self._templates:
            say(f"  filling two tables with {keys:,} {'random' if random_ids else 'ordered'} keys")
            # Like those that the payments of this experiment come with; ordered ones come before all of them.
            key = "gen_random_uuid()::text" if random_ids else "'earlier-' || lpad(g::text, 10, '0')"
            self._make_template(name).query(
                "ALTER TABLE pawl.idempotency_keys DROP CONSTRAINT idempotency_keys_pkey;"
                "INSERT INTO pawl.idempotency_keys"
                " (scope_id, key, payload_hash, source_id, partition, kafka_offset)"
                f" SELECT s.scope_id, {key}, 0, 1, 0, g"
                f" FROM pawl.idempotency_scopes s, generate_series(1, {keys}) AS g;"
                "ALTER TABLE pawl.idempotency_keys ADD PRIMARY KEY (scope_id, key);"
                "INSERT INTO naive_keys SELECT key FROM pawl.idempotency_keys;"
                "ALTER TABLE naive_keys ADD PRIMARY KEY (key);"
                "VACUUM (ANALYZE)"
            )
            self._templates.add(name)
        return name

    def _template_with_dead_letters(self, dead_letters: int) -> str:
        name = f"bench_dead_letters_{dead_letters}"
        if name not in self._templates:
            say(f"  filling a table with {dead_letters:,} dead letters")
            # Half of them are resolved; they are another group's.
            database = self._make_template(name)
            database.query("ALTER TABLE naive_keys ADD PRIMARY KEY (key)")
            database.query(
                "INSERT INTO pawl.consumers (cluster, group_id) VALUES ('bench', 'another');"
                "INSERT INTO pawl.dead_letters"
                " (consumer_id, topic, partition, kafka_offset, message_digest, status, reason, handler,"
                " idempotency_key, error, record_key_hash, payload, resolved_at)"
                " SELECT c.consumer_id, 'payments', g % 8, g, sha256(g::text::bytea),"
                " CASE WHEN g % 2 = 0 THEN 'dead' ELSE 'replayed' END, 'error', 'payment', g::text,"
                " 'bench', sha256(g::text::bytea), 'omitted', CASE WHEN g % 2 = 1 THEN now() END"
                f" FROM pawl.consumers c, generate_series(1, {dead_letters}) AS g;"
                "VACUUM (ANALYZE)"
            )
            self._templates.add(name)
        return name

    # ---- topics ----------------------------------------------------------------------------------

    def topic(
        self,
        partitions: int,
        payments: int,
        random_ids: bool = False,
        value_bytes: int = VALUE_BYTES,
        one_hot: bool = False,
    ) -> Topic:
        """A topic with that many payments in it, in one partition only where one is hot; produced when
        it is asked for first."""
        wanted = Topic(
            f"payments-{partitions}-{payments}-{value_bytes}"
            + "-random" * random_ids
            + "-hot" * one_hot,
            partitions,
            payments,
        )
        if wanted not in self._topics:
            into = f"one of {partitions} partitions" if one_hot else f"{partitions} partitions"
            say(f"  producing {payments:,} payments of {value_bytes:,} bytes into {into}")
            how = ["--random-ids"] if random_ids else []
            how += ["--only-partition", "0"] if one_hot else []
            printed = run(self.producer(wanted, payments, *how, value_bytes=value_bytes))
            numbers = dict(line.split("=", 1) for line in printed.splitlines())
            self._topics[wanted] = Topic(
                wanted.name, partitions, payments, int(numbers["messages"]), int(numbers["sum"])
            )
        return self._topics[wanted]

    def empty_topic(self, partitions: int) -> Topic:
        topic = Topic(self.unique("empty"), partitions, 0)
        run(self.producer(topic, 0))
        return topic

    def producer(
        self, topic: Topic, payments: int, *options: str, value_bytes: int = VALUE_BYTES
    ) -> Command:
        return [
            self.programs / "payments-produce",
            *("--bootstrap-servers", self.bootstrap, "--topic", topic.name),
            *("--partitions", str(topic.partitions), "--payments", str(payments)),
            *("--accounts", str(ACCOUNTS), "--value-bytes", str(value_bytes), *options),
        ]


def wait_for(what: str, seconds: float, done: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise Failure(f"waited {seconds:.0f} s for {what}, without success")
        time.sleep(0.1)
