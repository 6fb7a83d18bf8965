"""pgbench, of the same version as the private server."""

import tempfile
from pathlib import Path

from .processes import Failure, run
from .site import Site


def pgbench(
    site: Site, url: str, scripts: list[str], *options: str, cwd: Path | None = None
) -> str:
    """Runs the scripts, each as often as the others, and returns pgbench's report."""
    files: list[str | Path] = []
    for number, text in enumerate(scripts):
        file = site.work / f"pgbench-{number}.sql"
        file.write_text(text)
        files += ["-f", file]
    line = [
        site.postgres_programs / "pgbench",
        "--no-vacuum",
        "--protocol=prepared",
        *options,
        *files,
        url,
    ]
    return run(line, cwd=cwd)


def waits_ms(site: Site, url: str, script: str, *options: str) -> list[float]:
    """How long each transaction of one client took, sorted."""
    with tempfile.TemporaryDirectory(dir=site.work) as folder:
        pgbench(site, url, [script], "--log", *options, cwd=Path(folder))
        (log,) = Path(folder).iterdir()
        return sorted(int(line.split()[2]) / 1000 for line in log.read_text().splitlines())


def part(ordered: list[float], of: float) -> float:
    """A percentile, as of 0.99."""
    return ordered[min(int(len(ordered) * of), len(ordered) - 1)]


def value_in(report: str, name: str) -> str:
    """The first word behind NAME in the report, which has "name: value" and "name = value"."""
    for line in report.splitlines():
        if line.startswith(name):
            return line[len(name) :].lstrip(" :=").split()[0]
    raise Failure(f"pgbench did not report '{name}':\n{report}")
