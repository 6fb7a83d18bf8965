"""What was asked for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    experiments: list[str]
    payments: int
    runs: int
    workers: int
    seconds: int
    keys: int
    dead_letters: int
    backlog: int
    outbox_rows: int
    modes: list[str]  # none: all of them
    programs: Path | None
    migrations: Path
    output: Path
    quick: bool
    report: bool
