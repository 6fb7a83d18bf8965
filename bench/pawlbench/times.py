"""Experiments about time and memory: end to end, hand-over, start, backlog."""

from dataclasses import dataclass

from .consume import Consume, Work
from .experiment import Shown, Task, consumers, is_baseline, pairs
from .modes import SYNCHRONOUS, Consumer, Known
from .options import Options
from .plots import Plot
from .records import Record, having, labels_in, spread
from .tables import Table, cell
from .timing import EndToEnd, Flush, Handover, Start


@dataclass(frozen=True)
class Latency:
    name: str = "end-to-end"
    title: str = "milliseconds from produce to commit, at a steady rate"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        seconds = 2 if options.quick else 3 * options.seconds
        found: list[Task] = [Flush(3)]
        for rate in (500, 2000):
            for consumer in consumers(known, options.workers):
                if consumer.mode.is_pawl or is_baseline(consumer):
                    found.append(EndToEnd(consumer, rate, seconds))
        return found

    def show(self, records: list[Record]) -> Shown:
        names = {"p50_ms": "p50, ms", "p99_ms": "p99, ms", "p999_ms": "p99.9, ms"}
        table = Table(["mode", "commit", "messages/s", *names.values()])
        plots = {}
        for rate in labels_in(records, "per_second"):
            plot = Plot(
                f"Produce to commit at {rate} messages/s", "", "ms", [], bars=True, logarithmic=True
            )
            plot.series = {name: [] for name in names.values()}
            for mode, commit in pairs(records):
                same = having(records, mode=mode, commit=commit, per_second=rate)
                found = {name: spread(same, value) for value, name in names.items()}
                table.rows.append([mode, commit, str(rate), *map(cell, found.values())])
                plot.places.append(mode if commit == SYNCHRONOUS else f"{mode}, {commit}")
                for name, value in found.items():
                    plot.series[name].append(value)
            plots[f"end-to-end-{rate}.svg"] = plot
        flush = having(records, mode="flush")
        table.rows.append(
            [
                "flush (one INSERT and COMMIT)",
                SYNCHRONOUS,
                "-",
                *(cell(spread(flush, v)) for v in names),
            ]
        )
        table.notes.append(
            "From the call that produces a message to the commit time of PostgreSQL, which precedes the flush of the"
            " commit. For the time at which the message is durable, add the flush"
        )
        return Shown(table, plots)


@dataclass(frozen=True)
class Pauses:
    name: str = "handover"
    title: str = "milliseconds without a commit while a partition is reassigned"

    SESSION_TIMEOUT = "6s"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        return [
            Handover(Consumer(mode, SYNCHRONOUS, options.workers, self.SESSION_TIMEOUT))
            for mode in known.modes
            if mode.is_pawl
        ]

    def show(self, records: list[Record]) -> Shown:
        table = Table(["mode", "a process joins", "one leaves (SIGTERM)", "one is killed"])
        for mode in labels_in(records, "mode"):
            same = having(records, mode=mode)
            table.rows.append(
                [mode, *(cell(spread(same, v)) for v in ("join_ms", "leave_ms", "kill_ms"))]
            )
        table.notes.append(
            "The longest time between two commits of a partition, with 500 messages/s in 8 partitions. Kafka detects"
            f" a killed process after kafka.session_timeout, here {self.SESSION_TIMEOUT}"
        )
        return Shown(table)


@dataclass(frozen=True)
class Starts:
    name: str = "startup"
    title: str = "seconds from the start of the process to its first payment"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        return [
            Start(consumer, options.payments)
            for consumer in consumers(known, options.workers)
            if consumer.commit == SYNCHRONOUS
        ]

    def show(self, records: list[Record]) -> Shown:
        table = Table(["mode", "first start, s", "restart, s"])
        for mode in labels_in(records, "mode"):
            same = having(records, mode=mode)
            table.rows.append([mode, cell(spread(same, "first_s")), cell(spread(same, "again_s"))])
        return Shown(table)


@dataclass(frozen=True)
class Memory:
    name: str = "memory"
    title: str = "resident memory with 1,000 partitions and a long backlog"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        backlog = min(options.backlog, 50_000) if options.quick else options.backlog
        work = Work(backlog, partitions=1000, seconds=3 * options.seconds)
        return [
            Consume(consumer, work)
            for consumer in consumers(known, options.workers)
            if consumer.mode.is_pawl and consumer.commit == SYNCHRONOUS
        ]

    def show(self, records: list[Record]) -> Shown:
        table = Table(["mode", "peak, MiB", "messages/s", "first payment after, s"])
        for mode in labels_in(records, "mode"):
            same = having(records, mode=mode)
            table.rows.append(
                [mode, *(cell(spread(same, v)) for v in ("memory_mib", "rate", "start_s"))]
            )
        table.notes.append("The largest resident set of the process (VmHWM)")
        return Shown(table)
