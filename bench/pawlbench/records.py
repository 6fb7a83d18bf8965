"""What was measured. Kept as JSON, from which tables and plots can be made again."""

import json
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Labels = dict[str, str | int | float]
Values = dict[str, float]

JSON_NAME = "results.json"


@dataclass(frozen=True)
class Record:
    """One run of one task: `labels` say what ran, `values` what came out."""

    labels: Labels
    run: int
    values: Values


@dataclass(frozen=True)
class Spread:
    """The middle of several runs, and how far they lie apart."""

    middle: float
    lowest: float
    highest: float
    by_run: dict[int, float] = field(default_factory=dict)


def spread(records: list[Record], value: str) -> Spread | None:
    found = {r.run: r.values[value] for r in records if value in r.values}
    if not found:
        return None
    numbers = found.values()
    return Spread(median(numbers), min(numbers), max(numbers), found)


def summed(records: list[Record], *values: str) -> Spread | None:
    """Of several values together; one that a record does not have counts as nothing."""
    return spread(
        [Record({}, r.run, {"sum": sum(r.values.get(of, 0) for of in values)}) for r in records],
        "sum",
    )


def quotient(of: Spread | None, to: Spread | None) -> float | None:
    """The median of what each run says: a machine that gets slower from run to run does not count."""
    if of is None or to is None:
        return None
    both = [of.by_run[run] / to.by_run[run] for run in of.by_run if to.by_run.get(run)]
    return median(both) if both else None


def having(records: list[Record], **labels: str | int | float) -> list[Record]:
    return [r for r in records if all(r.labels.get(name) == of for name, of in labels.items())]


def labels_in(records: list[Record], name: str) -> list[Any]:
    """The values of a label, in the order in which they came."""
    return list(dict.fromkeys(r.labels[name] for r in records if name in r.labels))


@dataclass
class Outcome:
    """The records of one experiment, and where and how they were measured."""

    measured: dict[str, str]
    records: list[Record] = field(default_factory=list)


def circumstances(versions: dict[str, str], options: dict[str, str]) -> dict[str, str]:
    processor = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{len(_processors())} x {processor}, {int(memory) // 1048576} GiB",
        "system": f"Linux {platform.release()}",
        **versions,
        **options,
    }


def _processors() -> list[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return [line for line in lines if line.startswith("processor")]


def load(folder: Path) -> dict[str, Outcome]:
    file = folder / JSON_NAME
    if not file.exists():
        return {}
    return {
        name: Outcome(outcome["measured"], [Record(**record) for record in outcome["records"]])
        for name, outcome in json.loads(file.read_text()).items()
    }


def save(folder: Path, outcomes: dict[str, Outcome]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    written = json.dumps({name: asdict(outcome) for name, outcome in outcomes.items()}, indent=1)
    (folder / JSON_NAME).write_text(written + "\n")
