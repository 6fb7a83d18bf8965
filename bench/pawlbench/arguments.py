"""The command line."""

import argparse
from pathlib import Path

from .experiments import EXPERIMENTS
from .modes import MODES
from .options import Options
from .site import ROOT

WRITTEN = ROOT / "docs/performance"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 999_999_999:
        raise argparse.ArgumentTypeError(f"use a whole number of at least 1, not '{text}'")
    return int(text)


def _modes(text: str) -> list[str]:
    names = text.split(",")
    known = [mode.name for mode in MODES]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"unknown mode '{name}'. Use {', '.join(known)}")
    return names


def _described() -> str:
    lines = [f"  {experiment.name:<12} {experiment.title}" for experiment in EXPERIMENTS]
    return "experiments:\n" + "\n".join([*lines, "  all          all of them"])


def parse(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="bench",
        usage="scripts/bench [EXPERIMENT]... [options]",
        description=(
            "Measures pawl next to a hand-written loop and to the limit of PostgreSQL, on a private\n"
            "PostgreSQL and Kafka, all runs in turn. Prints tables with the median of the runs\n"
            "(lowest..highest), and writes tables, plots, and raw results. Checks after each run that\n"
            "every payment was entered once and that the balances match. Stops and removes everything\n"
            "that it started, also after Ctrl-C."
        ),
        epilog=_described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("experiments", nargs="*", metavar="EXPERIMENT", help="experiments to run (default: throughput)")
    add("--payments", type=_count, metavar="N", help="different payments (default: 200000)")
    add("--runs", type=_count, metavar="N", help="runs of each task, in turn (default: 3)")
    add("--workers", type=_count, default=8, metavar="N", help="workers of pawl (default: 8)")
    add(
        "--seconds",
        type=_count,
        metavar="N",
        help="duration of pgbench, and of runs that do not apply all payments (default: 10)",
    )
    add(
        "--keys",
        type=_count,
        default=20_000_000,
        metavar="N",
        help="idempotency keys in the full table (keys, ordered-keys; default: 20000000)",
    )
    add(
        "--dead-letters",
        type=_count,
        default=1_000_000,
        metavar="N",
        help="dead letters in the full table (state; default: 1000000)",
    )
    add(
        "--backlog",
        type=_count,
        default=10_000_000,
        metavar="N",
        help="payments (memory; default: 10000000)",
    )
    add(
        "--outbox-rows",
        type=_count,
        default=5_000_000,
        metavar="N",
        help="messages (outbox-table; default: 5000000)",
    )
    add(
        "--modes",
        type=_modes,
        default=[],
        metavar="MODE,...",
        help="only these modes and the naive loop (default: all)",
    )
    add("--bin", type=Path, metavar="DIR", help="use the programs in DIR; do not set up or build")
    add(
        "--migrations",
        type=Path,
        metavar="DIR",
        help="the migrations of the programs in --bin (default: those of this folder)",
    )
    add(
        "--quick",
        action="store_true",
        help="a small run of about a minute: 2000 payments, 1 run, 1 second",
    )
    into = parser.add_mutually_exclusive_group().add_argument
    into("--write", action="store_true", help="write the results to docs/performance")
    into(
        "--output",
        type=Path,
        default=ROOT / "build/bench",
        metavar="DIR",
        help="write the results to DIR, and keep other experiments there (default: build/bench)",
    )
    add(
        "--report",
        action="store_true",
        help="create tables and plots from the raw results, and measure nothing",
    )
    given = parser.parse_args(arguments)

    known = [experiment.name for experiment in EXPERIMENTS]
    for name in given.experiments:
        if name not in [*known, "all"]:
            parser.error(
                f"unknown experiment '{name}'. Use {', '.join(known)}, or all"
            )
    wanted = known if "all" in given.experiments else given.experiments or ["throughput"]
    if given.bin is not None and not given.bin.is_dir():
        parser.error(f"the folder {given.bin} does not exist")
    if given.migrations is not None and not given.migrations.is_dir():
        parser.error(f"the folder {given.migrations} does not exist")
    return Options(
        experiments=[name for name in known if name in wanted],
        payments=given.payments or (2000 if given.quick else 200_000),
        runs=given.runs or (1 if given.quick else 3),
        workers=given.workers,
        seconds=given.seconds or (1 if given.quick else 10),
        keys=given.keys,
        dead_letters=given.dead_letters,
        backlog=given.backlog,
        outbox_rows=given.outbox_rows,
        modes=given.modes,
        programs=given.bin.resolve() if given.bin is not None else None,
        migrations=(given.migrations or ROOT / "migrations").resolve(),
        output=WRITTEN if given.write else given.output.resolve(),
        quick=given.quick,
        report=given.report,
    )
