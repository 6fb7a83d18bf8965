"""Experiments: messages per second and CPU time in every mode, held against the limit."""

from dataclasses import dataclass

from .consume import Consume, Work
from .experiment import Shown, Task, baseline, consumers, durable, pairs
from .limit import Limit
from .modes import ASYNCHRONOUS, MODES, NAIVE, SYNCHRONOUS, Known
from .options import Options
from .plots import Plot
from .records import Record, Spread, having, labels_in, spread, summed
from .tables import Table, cell, number, ratio, share


def limits(options: Options) -> list[Limit]:
    """Of those with the same commit, and with or without batches, the best one counts."""
    singles = [(8, 0)] if options.quick else [(4, 0), (8, 0), (16, 0), (32, 0)]
    reading = [8] if options.quick else [8, 16]
    batches = [(4, 500)] if options.quick else [(2, 500), (4, 500), (8, 500), (4, 100), (4, 2000)]
    both = (SYNCHRONOUS, ASYNCHRONOUS)
    return [
        Limit(commit, clients, options.seconds, size)
        for commit in both
        for clients, size in singles + batches
    ] + [
        Limit(commit, clients, options.seconds, flights=2) for commit in both for clients in reading
    ]


READING_MODES = [mode.name for mode in MODES if mode.reads]
# As in the plot, with batches, flights of a transaction.
LIMITS = (("limit", 0, 1), ("limit that reads", 0, 2), ("limit, batches", 1, 1))


@dataclass(frozen=True)
class Best:
    rate: Spread
    records: list[Record]

    @property
    def name(self) -> str:
        labels = self.records[0].labels
        size = int(labels["batch_size"])
        what = f"batches of {size}" if size else "one transaction per message"
        if int(self.records[0].labels["flights"]) > 1:
            what += ", with a read"
        return f"limit, {what}, {labels['clients']} clients"


def best_limit(
    records: list[Record], batch: int, commit: str, flights: int = 1
) -> Best | None:
    """Of all client counts and batch sizes the one with the highest median."""
    found = having(records, mode="limit", batch=batch, commit=durable(commit), flights=flights)
    best: Best | None = None
    for clients in labels_in(found, "clients"):
        for size in labels_in(found, "batch_size"):
            same = having(found, clients=clients, batch_size=size)
            rate = spread(same, "rate")
            if rate and (best is None or rate.middle > best.rate.middle):
                best = Best(rate, same)
    return best


@dataclass(frozen=True)
class Throughput:
    name: str = "throughput"
    title: str = "messages per second, in every mode"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        work = Work(options.payments)
        every: list[Task] = [
            Consume(consumer, work) for consumer in consumers(known, options.workers)
        ]
        return every + limits(options)

    def show(self, records: list[Record]) -> Shown:
        columns = ["messages/s", "to naive", "of the limit", "of the limit that reads", "MiB"]
        table = Table(["mode", "commit", *columns])
        naive = baseline(records, "rate")
        bars: dict[str, dict[str, Spread | None]] = {}
        for mode, commit in pairs(records):
            same = having(records, mode=mode, commit=commit)
            rate = spread(same, "rate")
            memory = spread(same, "memory_mib")
            best = best_limit(records, int(same[0].labels["batch"]), commit)
            reading = best_limit(records, 0, commit, flights=2)
            table.rows.append(
                [
                    mode,
                    commit,
                    cell(rate),
                    ratio(rate, naive),
                    share(rate, best.rate if best else None),
                    share(rate, reading.rate) if reading and mode in READING_MODES else "-",
                    number(memory.highest) if memory else "-",
                ]
            )
            bars.setdefault(mode, {})[durable(commit)] = rate
        for short, batch, flights in LIMITS:
            for commit in (SYNCHRONOUS, ASYNCHRONOUS):
                best = best_limit(records, batch, commit, flights)
                if best:
                    shares = ["100 %", "-"] if flights == 1 else ["-", "100 %"]
                    to_naive = ratio(best.rate, naive)
                    table.rows.append([best.name, commit, cell(best.rate), to_naive, *shares, "-"])
                    bars.setdefault(short, {})[durable(commit)] = best.rate
        table.notes.append("To naive: relative to the naive loop with synchronous commit")
        kinds = (SYNCHRONOUS, ASYNCHRONOUS)
        plot = Plot("Payments applied", "", "messages/s", list(bars), bars=True, logarithmic=True)
        plot.series = {kind: [bars[mode].get(kind) for mode in bars] for kind in kinds}
        return Shown(table, {"throughput.svg": plot})


@dataclass(frozen=True)
class Cpu:
    name: str = "cpu"
    title: str = "CPU time per message, of the program and of PostgreSQL"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        return Throughput().tasks(known, options)

    def show(self, records: list[Record]) -> Shown:
        table = Table(["mode", "commit", "program, us", "PostgreSQL, us", "both", "both, to naive"])

        def both(same: list[Record]) -> Spread | None:
            return summed(same, "program_cpu_us", "server_cpu_us")

        naive = both(having(records, mode=NAIVE.name, commit=SYNCHRONOUS))

        def add(name: str, commit: str, same: list[Record]) -> None:
            table.rows.append(
                [
                    name,
                    commit,
                    cell(spread(same, "program_cpu_us")),
                    cell(spread(same, "server_cpu_us")),
                    cell(both(same)),
                    ratio(both(same), naive),
                ]
            )

        for mode, commit in pairs(records):
            add(mode, commit, having(records, mode=mode, commit=commit))
        for _, batch, flights in LIMITS:
            best = best_limit(records, batch, SYNCHRONOUS, flights)
            if best:
                add(best.name, SYNCHRONOUS, best.records)
        table.notes.append(
            "User and system time divided by messages, for whole runs with start and stop, and for all processes of"
            " PostgreSQL. The ratio is similar on other machines, the microseconds are not"
        )
        return Shown(table)
