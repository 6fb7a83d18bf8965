"""Children: run, watched, and never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

Command = Sequence[str | Path]

TICKS = os.sysconf("SC_CLK_TCK")
END_WITHIN = 40.0  # seconds; pawl waits 30 for messages in flight


class Failure(Exception):
    """An error for the user; the bench exits with it."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def stop_on_signals() -> None:
    """SIGINT, SIGTERM and SIGHUP unwind, so that every `with` and `finally` clears up."""

    def leave(number: int, _frame: object) -> None:
        for later in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(later, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def run(command: Command, text: str | None = None, cwd: Path | None = None) -> str:
    """Runs a program to its end and returns what it printed. Failure when it fails."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    try:
        output, errors = child.communicate(text)
    except BaseException:
        # scripts/services clears up on SIGTERM, not on SIGKILL.
        child.terminate()
        child.communicate()
        raise
    if child.returncode != 0:
        raise Failure(
            f"{Path(command[0]).name} exited with {child.returncode}:\n"
            + (errors + output)[-4000:].rstrip()
        )
    return output.strip()


def run_in_sight(command: Command, cwd: Path | None = None) -> None:
    """The same, but what it says is seen while it runs; on stderr, as everything but results."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=cwd) as child:
        try:
            child.wait()
        except BaseException:
            child.terminate()
            raise
    if child.returncode != 0:
        raise Failure(f"{Path(command[0]).name} failed. Its output is above")


class Child:
    """A program that runs beside the bench; ended at the latest when its `with` is left."""

    def __init__(self, command: Command, log: Path) -> None:
        self.name = Path(command[0]).name
        self.log = log
        self.began = time.time()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        self.pid = self._process.pid
        self.code: int | None = None
        self.cpu_seconds = 0.0  # user and system, once it has ended
        self.peak_kib = 0  # largest resident set that was seen

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.end()

    def poll(self) -> int | None:
        """Its exit code once it has ended, negative for a signal. Call it now and then."""
        if self.code is not None:
            return self.code
        self._see_memory()
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid != 0:
            self.code = os.waitstatus_to_exitcode(status)
            self._process.returncode = self.code
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return self.code

    def wait(self, seconds: float) -> bool:
        """True when it ended by then."""
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def end(self) -> None:
        self.signal(signal.SIGTERM)
        self.wait_or_kill()

    def wait_or_kill(self) -> None:
        """After SIGTERM; a second signal would make pawl abort messages in flight."""
        if not self.wait(END_WITHIN):
            self.signal(signal.SIGKILL)
            self.wait(10)

    def require_success(self) -> None:
        if self.code != 0:
            said = self.log.read_text(errors="replace")[-3000:].rstrip()
            raise Failure(f"{self.name} exited with {self.code}:\n{said}")

    def _see_memory(self) -> None:
        # Not ru_maxrss: that counts what the process was before exec, a copy of this one.
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return
        for line in lines:
            if line.startswith("VmHWM:"):
                self.peak_kib = max(self.peak_kib, int(line.split()[1]))


def cpu_seconds_of_server(postmaster: int) -> float:
    """User and system time of PostgreSQL so far: the processes that are there, and those that have
    ended, whose time the postmaster inherits."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()  # the command's name may hold anything
        parent, times = int(fields[1]), [int(field) for field in fields[11:15]]
        if int(entry.name) == postmaster:
            ticks += sum(times)
        elif parent == postmaster:
            ticks += times[0] + times[1]
    return ticks / TICKS
