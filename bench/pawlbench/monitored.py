"""Experiment: the cost of [monitoring], with a request for /metrics every second."""

import shutil
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from .consume import Consume, Work
from .experiment import Shown, Task, pairs
from .instructions import Instructions
from .modes import SYNCHRONOUS, Consumer, Known
from .options import Options
from .processes import Failure, say
from .records import Labels, Record, Values, having, spread, summed
from .site import Site
from .tables import Table, cell, ratio

EVERY = 1.0  # seconds
UNTIL_FIRST = 0.01  # seconds; a short measurement may be over within one EVERY


def free_address() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def split(records: list[Record], value: str) -> list[list[Record]]:
    """Those that have such a value: without [monitoring], and with it."""
    found = [record for record in records if value in record.values]
    return [[r for r in found if r.labels.get("watched", 0) == watched] for watched in (0, 1)]


class Asked:
    """How many answers came so far."""

    def __init__(self) -> None:
        self.answers = 0


@contextmanager
def scraped(address: str) -> Iterator[Asked]:
    """Sends requests until the `with` is left; without a server a request fails."""
    asked, ended = Asked(), threading.Event()

    def ask() -> None:
        while not ended.wait(EVERY if asked.answers else UNTIL_FIRST):
            try:
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=EVERY) as answer:
                    answer.read()
                asked.answers += 1
            except OSError:
                continue

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield asked
    finally:
        ended.set()
        thread.join()


@dataclass(frozen=True)
class Watched:
    """As Consume, with or without."""

    consumer: Consumer
    work: Work
    watched: bool

    @property
    def labels(self) -> Labels:
        usual = Consume(self.consumer, self.work).labels
        return {**usual, **({"watched": 1} if self.watched else {})}

    def prepare(self, site: Site) -> None:
        Consume(self.consumer, self.work).prepare(site)

    def measure(self, site: Site) -> Values:
        if not self.watched:
            return Consume(self.consumer, self.work).measure(site)
        listen = free_address()
        with scraped(listen) as asked:
            values = Consume(replace(self.consumer, listen=listen), self.work).measure(site)
        if asked.answers == 0:
            raise Failure("no request for /metrics was answered: use more payments or seconds")
        return values


@dataclass(frozen=True)
class Monitoring:
    name: str = "monitoring"
    title: str = "cost of [monitoring] per message"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        consumers = [Consumer(mode, SYNCHRONOUS) for mode in known.modes if mode.is_pawl]
        work = Work(options.payments, seconds=options.seconds)
        tasks: list[Task] = [
            Watched(consumer, work, watched) for consumer in consumers for watched in (False, True)
        ]
        if options.quick:
            return tasks
        if shutil.which("valgrind") is None:
            say("  monitoring: valgrind counts instructions. Install it: apt-get install valgrind")
            return tasks
        # One that is asked while it is counted differs by how long that takes.
        listen = free_address()
        counts: list[Task] = [
            Instructions(replace(consumer, listen=where))
            for consumer in consumers
            for where in ("", listen)
        ]
        return tasks + counts

    def show(self, records: list[Record]) -> Shown:
        table = Table(
            [
                "mode",
                "messages/s without",
                "with",
                "to without",
                "CPU us without",
                "with",
                "thousand instructions without",
                "with",
                "to without",
            ]
        )
        for mode, commit in pairs(records):
            same = having(records, mode=mode, commit=commit)
            timed = split(same, "rate")
            rates = [spread(found, "rate") for found in timed]
            cpu = [summed(found, "program_cpu_us", "server_cpu_us") for found in timed]
            counts = [summed(found, "program_k", "server_k") for found in split(same, "program_k")]
            table.rows.append(
                [
                    mode,
                    *[cell(rate) for rate in rates],
                    ratio(rates[1], rates[0]),
                    *[cell(one) for one in cpu],
                    *[cell(one) for one in counts],
                    ratio(counts[1], counts[0]),
                ]
            )
        table.notes.append(
            "CPU and instructions are those of the program and of PostgreSQL together. /metrics is requested"
            " every second, but not while instructions are counted"
        )
        return Shown(table)
