"""Experiment: the same modes at several places of one dimension."""

from collections.abc import Callable
from dataclasses import dataclass

from .consume import Consume, Work
from .experiment import Shown, Task, baseline, consumed, consumers, is_baseline, pairs
from .modes import SYNCHRONOUS, Known
from .options import Options
from .plots import Plot
from .records import Record, having, labels_in, spread
from .tables import Table, cell, number, ratio


@dataclass(frozen=True)
class Dimension:
    """A run ends after some seconds: what is slow at one place need not apply all payments."""

    name: str
    title: str
    label: str  # under which records have the place
    unit: str
    places: Callable[[Options], list[float]]
    changed: Callable[[Work, float], Work]  # the usual work at a place
    to_naive: bool = True  # else to the first place: what the naive loop has no equal of
    proof: Callable[[float], Task] | None = None  # a task at each place beside the modes
    flushed_singly: bool = False  # only what waits for the disk with every message

    def tasks(self, known: Known, options: Options) -> list[Task]:
        found: list[Task] = []
        usual = Work(options.payments, seconds=options.seconds)
        for place in self.places(options):
            if self.proof:
                found.append(self.proof(place))
            workers = int(place) if self.label == "workers" else options.workers
            for consumer in consumers(known, workers):
                if self.flushed_singly and (consumer.commit != SYNCHRONOUS or consumer.mode.batch):
                    continue
                if consumer.mode.is_pawl or (self.to_naive and is_baseline(consumer)):
                    found.append(Consume(consumer, self.changed(usual, place)))
        return found

    def show(self, records: list[Record]) -> Shown:
        places = sorted(labels_in(consumed(records), self.label))
        names = [number(place) if place % 1 else f"{place:,.0f}" for place in places]
        table = Table([f"messages/s, by {self.unit}", "commit", *names])
        plot = Plot(self.title, self.unit, "messages/s", names, logarithmic=True)
        rows = [
            (mode, commit, having(records, mode=mode, commit=commit))
            for mode, commit in pairs(records)
        ]
        for mode, commit, same in rows:
            rates = [spread(having(same, **{self.label: place}), "rate") for place in places]
            bases = [
                baseline(records, "rate", **{self.label: place}) if self.to_naive else rates[0]
                for place in places
            ]
            cells = [
                f"{cell(rate)} x{ratio(rate, base)}"
                for rate, base in zip(rates, bases, strict=True)
            ]
            table.rows.append([mode, commit, *cells])
            plot.series[f"{mode}, {commit}"] = rates
        base = "the naive loop in the same column" if self.to_naive else "the first column"
        table.notes.append(f"After x: relative to {base}")
        trips = having(records, mode="round-trip")
        if trips:
            said = [
                f"{cell(spread(having(trips, round_trip_ms=place), 'ms'))} ms at {place:g}"
                for place in places
            ]
            table.notes.append(f"A SELECT 1 took {', '.join(said)}")
        return Shown(table, {f"{self.name}.svg": plot})
