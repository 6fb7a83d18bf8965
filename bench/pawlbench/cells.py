"""Experiments: the same modes where messages are larger, and where one partition has all of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from .consume import Consume, Work
from .experiment import Shown, Task, baseline, consumed, consumers, pairs
from .modes import SYNCHRONOUS, Known
from .options import Options
from .plots import Plot
from .records import Record, having, spread
from .site import VALUE_BYTES
from .tables import Table, cell, ratio

KB = 1000
# Of one topic: what more payments would cost is time to produce them.
MOST_BYTES = 1_200_000 * KB
QUICK_BYTES = 20_000 * KB
SECONDS = 4.0
# What a mode would do if memory were no matter.
UNBOUNDED = "batch-sql"


def sizes(options: Options) -> list[Work]:
    return [
        work(options, partitions, size)
        for size in (VALUE_BYTES, 5 * KB, 100 * KB)
        for partitions in (1, 8)
    ]


def skews(options: Options) -> list[Work]:
    return [
        replace(work(options, partitions, size), one_hot=True)
        for size, partitions in ((VALUE_BYTES, 8), (VALUE_BYTES, 1000), (5 * KB, 1000))
    ]


def work(options: Options, partitions: int, size: int) -> Work:
    fit = (QUICK_BYTES if options.quick else MOST_BYTES) // size
    seconds = min(SECONDS, float(options.seconds))
    return Work(min(options.payments, fit), partitions, value_bytes=size, seconds=seconds)


def named(place: Work) -> str:
    size = f"{place.value_bytes // KB} KB" if place.value_bytes >= KB else "200 B"
    where = "partition" if place.partitions == 1 else "partitions"
    of = f"1 of {place.partitions:,}" if place.one_hot else f"{place.partitions:,}"
    return f"{size}, {of} {where}"


@dataclass(frozen=True)
class Cells:
    """Each message on disk before the next; a run ends after some seconds."""

    name: str
    title: str
    places: Callable[[Options], list[Work]]

    def tasks(self, known: Known, options: Options) -> list[Task]:
        found: list[Task] = []
        for place in self.places(options):
            for consumer in consumers(known, options.workers):
                if consumer.commit != SYNCHRONOUS:
                    continue
                found.append(Consume(consumer, place))
                if consumer.mode.name == UNBOUNDED:
                    mode = replace(
                        consumer.mode, name=f"{UNBOUNDED}-unbounded", kafka='buffer = "4GiB"'
                    )
                    found.append(Consume(replace(consumer, mode=mode), place))
        return found

    def show(self, records: list[Record]) -> Shown:
        places = {
            (r.labels["value_bytes"], r.labels["partitions"], r.labels["one_hot"]): named(
                Work(
                    0,
                    int(r.labels["partitions"]),
                    value_bytes=int(r.labels["value_bytes"]),
                    one_hot=bool(r.labels["one_hot"]),
                )
            )
            for r in consumed(records)
        }
        table = Table(["messages/s", "commit", *places.values(), "MiB at most"])
        plot = Plot(self.title, "", "messages/s", list(places.values()), bars=True, logarithmic=True)
        for mode, commit in pairs(records):
            same = having(records, mode=mode, commit=commit)
            rates, cells = [], []
            for value_bytes, partitions, one_hot in places:
                where = {"value_bytes": value_bytes, "partitions": partitions, "one_hot": one_hot}
                rates.append(spread(having(same, **where), "rate"))
                cells.append(f"{cell(rates[-1])} x{ratio(rates[-1], baseline(records, 'rate', **where))}")
            memory = spread(same, "memory_mib")
            table.rows.append([mode, commit, *cells, f"{memory.highest:,.0f}" if memory else "-"])
            plot.series[mode] = rates
        table.notes.append("After x: relative to the naive loop in the same column")
        table.notes.append(
            f'{UNBOUNDED}-unbounded: with kafka.buffer = "4GiB", so that memory is no limit'
        )
        return Shown(table, {f"{self.name}.svg": plot})
