"""Experiment: instructions that a message costs. Counted and not timed, they are the same whatever
else the machine does. Only what runs in the programs themselves counts, not the kernel's part."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .consume import Consume, Work
from .experiment import Shown, Task, consumers, pairs
from .modes import NAIVE, SYNCHRONOUS, Consumer, Known
from .options import Options
from .processes import say
from .records import Labels, Record, Spread, Values, having, spread, summed
from .site import Site
from .tables import Table, cell, ratio

# What it takes to start and to warm up is in both, and not in their difference.
FEW, MANY = 1000, 3000
PARTITIONS = 4  # valgrind runs one thread of a process at a time


def counter(into: Path) -> list[str | Path]:
    return ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={into}/%p"]


def counted(folder: Path) -> int:
    """Of all processes that left their count there."""
    total = 0
    for file in folder.iterdir():
        lines = file.read_text(errors="replace").splitlines()
        totals = [int(line.split()[1]) for line in lines if line.startswith("totals:")]
        total += sum(totals)
    return total


@contextmanager
def folder_for_all(site: Site, name: str) -> Iterator[Path]:
    """PostgreSQL may run as another user."""
    folder = site.work / name
    folder.mkdir()
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Instructions:
    consumer: Consumer

    @property
    def labels(self) -> Labels:
        return {
            "mode": self.consumer.mode.name,
            "commit": self.consumer.commit,
            "batch": int(self.consumer.mode.batch),
            **({"watched": 1} if self.consumer.listen else {}),
        }

    def prepare(self, site: Site) -> None:
        for payments in (FEW, MANY):
            site.topic(PARTITIONS, payments)

    def measure(self, site: Site) -> Values:
        few, many = self._count(site, FEW), self._count(site, MANY)
        messages = many["messages"] - few["messages"]
        return {
            name: (many[name] - few[name]) / messages / 1000 for name in ("server_k", "program_k")
        }

    def _count(self, site: Site, payments: int) -> Values:
        with ExitStack() as stack:
            by_server = stack.enter_context(folder_for_all(site, "server-count"))
            by_program = stack.enter_context(folder_for_all(site, "program-count"))
            # A run of autovacuum would add up to a fifth to the count.
            with site.server_under(counter(by_server), "-c", "autovacuum=off"):
                work = Work(payments, PARTITIONS)
                values = Consume(self.consumer, work, tuple(counter(by_program))).measure(site)
            return {
                "messages": values["messages"],
                "server_k": counted(by_server),
                "program_k": counted(by_program),
            }


@dataclass(frozen=True)
class PerMessage:
    name: str = "instructions"
    title: str = "instructions per message, of the program and of PostgreSQL"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        if shutil.which("valgrind") is None:
            say("  instructions: skipped, because valgrind is not installed: apt-get install valgrind")
            return []
        return [
            Instructions(consumer)
            for consumer in consumers(known, PARTITIONS)
            if consumer.commit == SYNCHRONOUS
        ]

    def show(self, records: list[Record]) -> Shown:
        table = Table(["mode", "program, thousands", "PostgreSQL, thousands", "both, to naive"])

        def both(same: list[Record]) -> Spread | None:
            return summed(same, "program_k", "server_k")

        naive = both(having(records, mode=NAIVE.name, commit=SYNCHRONOUS))
        for mode, commit in pairs(records):
            same = having(records, mode=mode, commit=commit)
            table.rows.append(
                [
                    mode,
                    cell(spread(same, "program_k")),
                    cell(spread(same, "server_k")),
                    ratio(both(same), naive),
                ]
            )
        table.notes.append(
            "Counted by valgrind's callgrind, without the kernel's part and autovacuum: round trips and flushes of the"
            f" disk cost more than they do here. The difference between {MANY} and {FEW} payments"
        )
        return Shown(table)
