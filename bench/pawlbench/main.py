"""Runs the selected experiments: the tasks of all runs in turn, so that other load on the machine affects all
of them alike."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from . import records as store
from .arguments import parse
from .calls import CONNECTIONS, POSTGRESQL
from .experiment import Experiment, Task
from .experiments import EXPERIMENTS
from .modes import MODES, find_known
from .options import Options
from .plots import HINT, draw
from .processes import Failure, run, run_in_sight, say, stop_on_signals
from .records import Outcome, Record
from .site import ROOT, SCRIPTS, VALUE_BYTES, Site
from .timing import EndToEnd, Flush, Handover

HEADING = """# Measured

Written by `scripts/bench --write`. [Performance](../performance.md) explains the figures.
"""
OWN_PROGRAMS = (
    "payments",
    "payments-produce",
    "pawl-bench-naive",
    "pawl-bench-delay",
    "pawl-bench-naive-relay",
    "pawl-bench-outbox-latency",
)
# Not asked of builds from before there were leases, unless these experiments are.
OF_LEASES = ("pawl-bench-naive-calls", "pawl-bench-calls", "pawl-bench-api")
LEASES = ("calls", "leases")
PROGRAMS = ("pawl", *OWN_PROGRAMS)
TARGETS = ("pawl-cli", *OWN_PROGRAMS, *OF_LEASES)
# Need a PostgreSQL that records commit times. They run last, because the others must not pay for that.
TIMED = (EndToEnd, Flush, Handover)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    stop_on_signals()
    if shutil.which("gnuplot") is None:
        say(HINT)
    try:
        if options.report:
            outcomes = store.load(options.output)
            if not outcomes:
                raise Failure(f"{options.output} has no {store.JSON_NAME}. Measure first")
            show(outcomes, options.output)
            return 0
        programs = options.programs or build()
        require_programs(programs, options)
        with Site(programs, options.migrations) as site:
            site.start()
            failed = measure(site, options)
        if failed:
            raise Failure(
                f"{failed} measurements failed and have no figure. The reasons are above"
            )
        return 0
    except Failure as failure:
        say(f"bench: {failure}")
        return 1


def build() -> Path:
    say("bench: building")
    run_in_sight([SCRIPTS / "setup"])
    run_in_sight(["cmake", "--preset", "release"], cwd=ROOT)
    run_in_sight(["cmake", "--build", "--preset", "release", "--target", *TARGETS], cwd=ROOT)
    return ROOT / "build/release/bin"


def require_programs(folder: Path, options: Options) -> None:
    needed = [*PROGRAMS, *(OF_LEASES if set(LEASES) & set(options.experiments) else ())]
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise Failure(f"{folder} lacks {', '.join(missing)}. Omit --bin to build them")


def chosen(options: Options) -> list[Experiment]:
    return [experiment for experiment in EXPERIMENTS if experiment.name in options.experiments]


def measure(site: Site, options: Options) -> int:
    """Returns the number of failed measurements, which it prints. The others continue."""
    known = find_known(site).only(options.modes)
    earlier = store.load(options.output)
    outcomes: dict[str, Outcome] = {}
    wanted: dict[Task, list[str]] = {}  # and the experiments that need it
    measured = store.circumstances(versions(site), how(options))
    for experiment in chosen(options):
        outcomes[experiment.name] = Outcome(measured)
        for task in experiment.tasks(known, options):
            wanted.setdefault(task, []).append(experiment.name)
    say(f"bench: {len(wanted)} measurements, {options.runs} times each")
    failed = 0
    for number, task in in_turn(list(wanted), options.runs):
        try:
            if number == 0:
                task.prepare(site)
                continue
            values = task.measure(site)
        except Failure as failure:
            say(f"  {number}: {described(task)}: FAILED: {failure}")
            failed += 1
            continue
        say(f"  {number}: {described(task)}: {summary(values)}")
        for name in wanted[task]:
            outcomes[name].records.append(Record(task.labels, number, values))
        # Now and not at the end, so that an interrupted run keeps what it has.
        begun = {name: outcome for name, outcome in outcomes.items() if outcome.records}
        store.save(options.output, {**earlier, **begun})
    show({**earlier, **outcomes}, options.output, options.experiments)
    return failed


def in_turn(tasks: list[Task], runs: int) -> Iterator[tuple[int, Task]]:
    """Each task in each run, in run 0 to be prepared."""
    for timed in (False, True):
        these = [task for task in tasks if isinstance(task, TIMED) == timed]
        for number in range(runs + 1):
            for task in these:
                yield number, task


def described(task: Task) -> str:
    usual = {
        "batch": 0,
        "processes": 1,
        "round_trip_ms": 0.0,
        "keys": 0,
        "commit_delay_us": 0,
        "batch_size": 0,
        "value_bytes": VALUE_BYTES,
        "one_hot": 0,
        "connections": CONNECTIONS,
        "store": POSTGRESQL,
    }
    return " ".join(
        str(of) if name in ("mode", "commit") else f"{name}={of}"
        for name, of in task.labels.items()
        if usual.get(name) != of
    )


def summary(values: store.Values) -> str:
    if "rate" in values:
        return f"{values['rate']:,.0f} messages/s"
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def versions(site: Site) -> dict[str, str]:
    pom = (ROOT / "scripts/lib/kafka-pom.xml").read_text()
    return {
        "pawl": run([site.programs / "pawl", "--version"]).splitlines()[0],
        "postgresql": site.server.query("SHOW server_version"),
        "kafka": pom.partition("<kafka.version>")[2].partition("<")[0],
    }


def how(options: Options) -> dict[str, str]:
    return {
        "payments": f"{options.payments:,}",
        "runs": str(options.runs),
        "seconds": str(options.seconds),
    }


def show(outcomes: dict[str, Outcome], folder: Path, printed: list[str] | None = None) -> None:
    """Prints the tables, and writes all of them and the plots beside the raw results."""
    parts = [HEADING, *(f"* *{mode.name}*: {mode.what}" for mode in MODES), ""]
    drawn = 0
    for experiment in EXPERIMENTS:
        outcome = outcomes.get(experiment.name)
        if outcome is None or not outcome.records:
            continue
        shown = experiment.show(outcome.records)
        if printed is None or experiment.name in printed:
            print(f"\n{experiment.name}: {experiment.title}\n\n{shown.table.as_text()}", flush=True)
        title = experiment.title[0].upper() + experiment.title[1:]
        parts.append(
            f"## {title}\n\n`scripts/bench {experiment.name}`\n\n{shown.table.as_markdown()}\n"
        )
        for name, plot in shown.plots.items():
            if draw(plot, folder / name):
                drawn += 1
                parts.append(f"![{plot.title}]({name})\n")
        under = "; ".join(f"{key}: {of}" for key, of in outcome.measured.items())
        parts.append(f"<sub>{under}</sub>\n")
    (folder / "results.md").write_text("\n".join(parts))
    say(f"\nbench: tables, {drawn} plots, and raw results are in {folder}")
