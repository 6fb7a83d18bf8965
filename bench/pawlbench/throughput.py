"""Experiments: messages per second and CPU time in every mode, held against the limit."""

from dataclasses import dataclass

from .consume import Consume, Work
from .experiment import Shown, Task, baseline, consumers, durable, pairs
from .limit import Limit
from .modes import ASYNCHRONOUS, NAIVE, SYNCHRONOUS, Known
from .options import Options
from .plots import Plot
from .records import Record, Spread, having, labels_in, spread, summed
from .tables import Table, cell, number, ratio, share


def limits(options: Options) -> list[Limit]:
    """Of those with the same commit, and with or without batches, the best one counts."""
    singles = [(8, 0)] if options.quick else [(4, 0), (8, 0), (16, 0), (32, 0)]
    batches = [(4, 500)] if options.quick else [(2, 500), (4, 500), (8, 500), (4, 100), (4, 2000)]
    return [
        Limit(commit, clients, options.seconds, size)
        for commit in (SYNCHRONOUS, ASYNCHRONOUS)
        for clients, size in singles + batches
    ]


@dataclass(frozen=True)
class Best:
    rate: Spread
    records: list[Record]

    @property
    def name(self) -> str:
        labels = self.records[0].labels
        size = int(labels["batch_size"])
        what = f"batches of {size}" if size else "a transaction a message"
        return f"limit, {what}, {labels['clients']} clients"


def best_limit(records: list[Record], batch: int, commit: str) -> Best | None:
    """Of all client counts and batch sizes the one with the highest median."""
    found = having(records, mode="limit", batch=batch, commit=durable(commit))
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
        table = Table(["mode", "commit", "messages/s", "to naive", "of the limit", "MiB"])
        naive = baseline(records, "rate")
        bars: dict[str, dict[str, Spread | None]] = {}
        for mode, commit in pairs(records):
            same = having(records, mode=mode, commit=commit)
            rate = spread(same, "rate")
            memory = spread(same, "memory_mib")
            best = best_limit(records, int(same[0].labels["batch"]), commit)
            table.rows.append(
                [
                    mode,
                    commit,
                    cell(rate),
                    ratio(rate, naive),
                    share(rate, best.rate if best else None),
                    number(memory.highest) if memory else "-",
                ]
            )
            bars.setdefault(mode, {})[durable(commit)] = rate
        for batch in (0, 1):
            for commit in (SYNCHRONOUS, ASYNCHRONOUS):
                best = best_limit(records, batch, commit)
                if best:
                    table.rows.append(
                        [best.name, commit, cell(best.rate), ratio(best.rate, naive), "100 %", "-"]
                    )
                    short = "limit, batches" if batch else "limit"
                    bars.setdefault(short, {})[durable(commit)] = best.rate
        table.notes.append("To naive: against the naive loop with synchronous commit")
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
        for batch in (0, 1):
            best = best_limit(records, batch, SYNCHRONOUS)
            if best:
                add(best.name, SYNCHRONOUS, best.records)
        table.notes.append(
            "User and system time divided by messages, of whole runs with start and stop; of all PostgreSQL's"
            " processes. The ratio repeats from machine to machine, the microseconds do not"
        )
        return Shown(table)
