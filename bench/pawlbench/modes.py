"""What is compared. A mode is an entry of MODES; one that a build does not know (its programs refuse
the configuration) is left out of the runs, and the bench says so."""

import subprocess
from dataclasses import dataclass

from .processes import Command, Failure, say
from .site import SCOPE, Database, Site, Topic

# When a transaction is on disk before the next begins, when it is not, and when that is pawl's doing.
SYNCHRONOUS, ASYNCHRONOUS, REPLAYABLE = "synchronous", "asynchronous", "replayable"


@dataclass(frozen=True)
class Mode:
    name: str
    what: str
    program: str
    handler: str = ""  # its [[handler]] without the topics
    consumer: str = ""  # its [consumer] without the workers
    kafka: str = ""  # its [kafka] without server and group
    reads: bool = False  # the handler reads a result of the database
    batch: bool = False  # many messages in a transaction: held against the limit of batches

    @property
    def is_pawl(self) -> bool:
        return self.handler != ""


_SQL = """sql = [
  '''INSERT INTO ledger (event_id, account, amount)
     VALUES ({header:event-id}, {/account}, {/amount}::bigint)''',
  '''UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1
      WHERE id = {/account}''',
]"""

# Batches of different partitions share accounts: locked in sorted order they wait for each other
# instead of deadlocking. limit.py has the same statements.
_BATCH_SQL = """batch = true
sql = [
  '''INSERT INTO ledger (event_id, account, amount)
     SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], {/amount}::bigint[])''',
  '''WITH s AS (
       SELECT account, sum(amount) AS amount, count(*) AS n
         FROM unnest({/account}::text[], {/amount}::bigint[]) AS u (account, amount)
        GROUP BY account
     ), locked AS MATERIALIZED (
       SELECT a.id FROM accounts a JOIN s ON s.account = a.id ORDER BY a.id FOR NO KEY UPDATE OF a
     )
     UPDATE accounts a SET balance = a.balance + s.amount, entries = a.entries + s.n
       FROM s, locked l
      WHERE a.id = s.account AND l.id = a.id''',
]"""

MODES = (
    Mode(
        "naive", "a hand-written loop (bench/naive_loop.cpp)", "pawl-bench-naive"
    ),
    Mode(
        "code",
        "C++ handler that reads a result, one transaction per message",
        "payments",
        'name = "payment_without_receipt"',
        reads=True,
    ),
    Mode(
        "code-unread",
        "C++ handler that reads no result (pawl::defer), one transaction per message",
        "payments",
        'name = "payment_unread"',
    ),
    Mode(
        "code-statements",
        "C++ handler that returns its statements (statement_handler), one transaction per message",
        "payments",
        'name = "payment_statements"',
    ),
    Mode("sql", "SQL handler, one transaction per message", "pawl", _SQL),
    Mode("sql-single", "the same, one transaction in flight", "pawl", _SQL, "pipeline = 1"),
    Mode(
        "batch-code",
        "C++ handler, one transaction for many messages",
        "payments",
        'name = "payment_batch"',
        batch=True,
    ),
    Mode(
        "batch-sql", "SQL handler, one transaction for many messages", "pawl", _BATCH_SQL, batch=True
    ),
)
NAIVE = MODES[0]
assert NAIVE.name == "naive"


@dataclass(frozen=True)
class Consumer:
    """Everything that decides how the payments are consumed, but for the topic."""

    mode: Mode
    commit: str = SYNCHRONOUS
    workers: int = 8
    session_timeout: str = ""
    listen: str = ""  # where [monitoring] is served; empty: nowhere


def command(
    site: Site,
    consumer: Consumer,
    topic: Topic,
    database: Database,
    url: str,
    follow: bool = False,
    one_hot: bool = False,
) -> Command:
    """Consumes to the end of the topic, or on and on. Where one partition is hot the naive loop, which
    has a thread and a connection for each, looks at that one only. Each call is a group of its own: offsets that a
    group has in Kafka belong to one database, and pawl refuses them in another."""
    program = site.programs / consumer.mode.program
    if not consumer.mode.is_pawl:
        arguments = [site.bootstrap, topic.name, str(1 if one_hot else topic.partitions), url]
        return [program, *arguments, *(["--follow"] if follow else [])]
    config = site.work / f"{database.name}.toml"
    config.write_text(configuration(site, consumer, topic.name, site.unique("group"), url))
    return [program, "run", "--config", config, *([] if follow else ["--drain"])]


def configuration(site: Site, consumer: Consumer, topic: str, group: str, url: str) -> str:
    durability = 'durability = "replayable"' if consumer.commit == REPLAYABLE else ""
    monitoring = f'[monitoring]\nlisten = "{consumer.listen}"' if consumer.listen else ""
    timeout = f'session_timeout = "{consumer.session_timeout}"' if consumer.session_timeout else ""
    return f"""[kafka]
bootstrap_servers = "{site.bootstrap}"
group = "{group}"
{timeout}
{consumer.mode.kafka}
[postgres]
url = "{url}"
[consumer]
workers = {consumer.workers}
{consumer.mode.consumer}
{durability}
[idempotency]
key = "{{header:event-id}}"
scope = "{SCOPE}"
[[handler]]
topics = ["{topic}"]
{consumer.mode.handler}
[outbox]
relay = "off"
{monitoring}
[log]
level = "warn"
"""


@dataclass(frozen=True)
class Known:
    """What this build can do."""

    modes: tuple[Mode, ...]
    replayable: bool

    def mode(self, name: str) -> Mode:
        return next(mode for mode in self.modes if mode.name == name)

    def only(self, names: list[str]) -> "Known":
        """Of these modes, and the one that they are held against; all where none is named."""
        modes = [mode for mode in self.modes if not names or mode.name in names or mode == NAIVE]
        return Known(tuple(modes), self.replayable)

    def commits(self, mode: Mode) -> tuple[str, str]:
        relaxed = REPLAYABLE if mode.is_pawl and self.replayable else ASYNCHRONOUS
        return SYNCHRONOUS, relaxed


def find_known(site: Site) -> Known:
    """Asks the programs: `check` takes the configuration, or refuses it."""
    topic = site.topic(1, 1)

    def why_not(consumer: Consumer) -> str:
        file = site.work / "probe.toml"
        file.write_text(configuration(site, consumer, topic.name, "probe", probe.url))
        program = site.programs / consumer.mode.program
        asked = subprocess.run(
            [program, "check", "--config", file], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            return ""
        wrong = [line for line in asked.stdout.splitlines() if " FAIL  " in line]
        if not wrong:
            raise Failure(f"{program.name} check ended with {asked.returncode}:\n{asked.stderr}")
        return wrong[0].partition(f"{file}:")[2] or wrong[0]

    modes = []
    with site.database() as probe:
        for mode in MODES:
            reason = why_not(Consumer(mode)) if mode.is_pawl else ""
            if reason:
                say(f"  {mode.name}: skipped, because this build rejects its configuration ({reason})")
            else:
                modes.append(mode)
        pawl = next((mode for mode in modes if mode.is_pawl), None)
        if pawl is None:
            raise Failure("this build rejects all configurations. The reasons are above")
        reason = why_not(Consumer(pawl, REPLAYABLE))
        if reason:
            say(f"  replayable: skipped, asynchronous commits of the database instead ({reason})")
    return Known(tuple(modes), not reason)
