"""What an experiment is, and what several of them have in common."""

from dataclasses import dataclass, field
from typing import Protocol

from .modes import ASYNCHRONOUS, NAIVE, SYNCHRONOUS, Consumer, Known
from .options import Options
from .plots import Plot
from .records import Labels, Record, Spread, Values, having, spread
from .site import Site
from .tables import Table


class Task(Protocol):
    """One thing that can be measured. Equal tasks are measured once for all experiments."""

    @property
    def labels(self) -> Labels: ...

    def prepare(self, site: Site) -> None: ...

    def measure(self, site: Site) -> Values: ...


@dataclass
class Shown:
    table: Table
    plots: dict[str, Plot] = field(default_factory=dict)  # by file name


class Experiment(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def tasks(self, known: Known, options: Options) -> list[Task]: ...

    def show(self, records: list[Record]) -> Shown: ...


def consumers(known: Known, workers: int) -> list[Consumer]:
    """Every mode with every way to commit."""
    return [
        Consumer(mode, commit, workers) for mode in known.modes for commit in known.commits(mode)
    ]


def is_baseline(consumer: Consumer) -> bool:
    return consumer.mode == NAIVE and consumer.commit == SYNCHRONOUS


def baseline(records: list[Record], value: str, **labels: str | int | float) -> Spread | None:
    return spread(having(records, mode=NAIVE.name, commit=SYNCHRONOUS, **labels), value)


def pairs(records: list[Record]) -> list[tuple[str, str]]:
    """Mode and way to commit, as they came; without the limit."""
    return list(
        dict.fromkeys((str(r.labels["mode"]), str(r.labels["commit"])) for r in consumed(records))
    )


def consumed(records: list[Record]) -> list[Record]:
    return [r for r in records if "commit" in r.labels and r.labels["mode"] != "limit"]


def durable(commit: str) -> str:
    """Replayable is asynchronous for PostgreSQL."""
    return SYNCHRONOUS if commit == SYNCHRONOUS else ASYNCHRONOUS
