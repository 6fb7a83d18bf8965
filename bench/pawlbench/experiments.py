"""All experiments, in the order in which they are shown."""

from dataclasses import replace

from .cells import Cells, sizes, skews
from .chains import Chains
from .consume import RoundTrip
from .dimension import Dimension
from .experiment import Experiment
from .instructions import PerMessage
from .leasing import Concurrency, LeasedCalls, Leases
from .monitored import Monitoring
from .publishing import Outbox, OutboxTable, PublishCost
from .throughput import Cpu, Throughput
from .times import Latency, Memory, Pauses, Starts

EXPERIMENTS: tuple[Experiment, ...] = (
    Throughput(),
    Dimension(
        name="partitions",
        title="messages per second from 1, 8 and 64 partitions",
        label="partitions",
        unit="partitions",
        places=lambda _: [1, 8, 64],
        changed=lambda work, n: replace(work, partitions=int(n)),
    ),
    Cells(name="size", title="messages per second by the size of messages", places=sizes),
    Cells(name="skew", title="messages per second of one partition with a backlog", places=skews),
    Dimension(
        name="workers",
        title="messages per second with 1 to 32 workers, from 64 partitions",
        label="workers",
        unit="workers",
        places=lambda _: [1, 4, 8, 12, 32],
        changed=lambda work, _: replace(work, partitions=64),
        to_naive=False,
    ),
    Dimension(
        name="group-commit",
        title="messages per second with PostgreSQL's commit_delay",
        label="commit_delay_us",
        unit="microseconds",
        places=lambda _: [0, 100, 400, 1000],
        changed=lambda work, us: replace(work, commit_delay_us=int(us)),
        flushed_singly=True,
    ),
    Dimension(
        name="latency",
        title="messages per second over a network to PostgreSQL",
        label="round_trip_ms",
        unit="ms round trip",
        places=lambda _: [0, 0.5, 2, 20],
        changed=lambda work, ms: replace(work, round_trip_ms=ms),
        proof=RoundTrip,
    ),
    Dimension(
        name="processes",
        title="messages per second of one process and of two",
        label="processes",
        unit="processes",
        places=lambda _: [1, 2],
        changed=lambda work, n: replace(
            work, processes=int(n), payments=3 * work.payments, steady=True
        ),
        to_naive=False,
    ),
    Dimension(
        name="keys",
        title="messages per second with no keys in the table and with many",
        label="keys",
        unit="keys",
        places=lambda options: [0, options.keys],
        changed=lambda work, n: replace(work, keys=int(n), random_ids=True),
    ),
    Dimension(
        name="ordered-keys",
        title="messages per second with no keys in the table and with many, in ascending order",
        label="keys",
        unit="keys",
        places=lambda options: [0, options.keys],
        changed=lambda work, n: replace(work, keys=int(n)),
    ),
    Dimension(
        name="state",
        title="messages per second with no dead letters in the database and with many",
        label="dead_letters",
        unit="dead letters",
        places=lambda options: [0, options.dead_letters],
        changed=lambda work, n: replace(work, dead_letters=int(n)),
        to_naive=False,
    ),
    Chains(),
    Latency(),
    Pauses(),
    Starts(),
    Memory(),
    Cpu(),
    PerMessage(),
    Monitoring(),
    Outbox(),
    PublishCost(),
    OutboxTable(),
    LeasedCalls(),
    Leases(),
    Concurrency(),
)
