"""Experiments about the outbox."""

from dataclasses import dataclass, replace

from .consume import Consume, Work
from .experiment import Shown, Task, pairs
from .modes import MODES, SYNCHRONOUS, Consumer, Known, Mode
from .options import Options
from .outbox import Backlog, OutboxLatency, TableSize
from .records import Record, having, labels_in, spread
from .tables import Table, cell, ratio
from .timing import Flush

NAIVE_ROWS = (100, 1000)
TOLD = {
    "payment_without_receipt": "payment_told",
    "payment_unread": "payment_unread_told",
    "payment_statements": "payment_statements_told",
    "payment_batch": "payment_batch_told",
}
PUBLISHES = "  '''SELECT pawl.publish('payments-booked', {key}, {value})''',\n]"
PUBLISHES_BATCH = (
    "  '''SELECT count(pawl.publish('payments-booked', k, v))\n"
    "       FROM unnest({key}::text[], {value}::text[]) AS u (k, v)''',\n]"
)


@dataclass(frozen=True)
class Outbox:
    name: str = "outbox"
    title: str = "from the outbox to Kafka"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        rows = max(options.payments, 40_000)  # of less the first batches are all
        seconds = 2 if options.quick else 2 * options.seconds
        found: list[Task] = [Flush(3)]
        found += [Backlog(rows, lanes) for lanes in (1, 4)]
        found += [Backlog(rows, 0, at_once) for at_once in NAIVE_ROWS]
        found += [OutboxLatency(rate, seconds) for rate in (20, 500)]
        found.append(OutboxLatency(500, seconds, NAIVE_ROWS[0]))
        return found

    def show(self, records: list[Record]) -> Shown:
        table = Table(
            ["relay", "messages/s", "to by hand", "program, us", "PostgreSQL, us", "p50, ms", "p99, ms"]
        )
        backlog = having(records, mode="backlog")
        by_hand = spread(having(backlog, naive_rows=NAIVE_ROWS[0]), "rate")
        for lanes, at_once in [(1, 0), (4, 0), *((0, rows) for rows in NAIVE_ROWS)]:
            same = having(backlog, lanes=lanes, naive_rows=at_once)
            name = f"pawl, {lanes} shard{'s' if lanes > 1 else ''}" if lanes else f"by hand, {at_once} at once"
            figures = [spread(same, of) for of in ("rate", "program_cpu_us", "server_cpu_us")]
            cells = [cell(figures[0]), ratio(figures[0], by_hand), *map(cell, figures[1:])]
            table.rows.append([name, *cells, "-", "-"])
        timed = having(records, mode="outbox-latency")
        for at_once in labels_in(timed, "naive_rows"):
            for rate in labels_in(having(timed, naive_rows=at_once), "per_second"):
                same = having(timed, naive_rows=at_once, per_second=rate)
                name = f"by hand, {at_once} at once" if at_once else "pawl, 4 shards"
                times = [cell(spread(same, of)) for of in ("p50_ms", "p99_ms")]
                table.rows.append([f"{name}, at {rate}/s", *["-"] * 4, *times])
        flush = having(records, mode="flush")
        times = [cell(spread(flush, of)) for of in ("p50_ms", "p99_ms")]
        table.rows.append(["flush (one INSERT and COMMIT)", *["-"] * 4, *times])
        table.notes.append(
            "Messages/s: of a committed backlog, until Kafka has acknowledged it. Milliseconds: from the COMMIT to"
            " a read_committed reader. By hand: SELECT ... FOR UPDATE SKIP LOCKED, produce, flush, DELETE, which"
            " publishes messages in flight twice after a crash"
        )
        return Shown(table)


def telling(mode: Mode) -> Mode:
    """The same mode with a handler that also publishes a message for each payment."""
    if mode.program == "payments":
        handler = mode.handler
        for plain, told in TOLD.items():
            handler = handler.replace(f'"{plain}"', f'"{told}"')
    else:
        statement = PUBLISHES_BATCH if mode.batch else PUBLISHES
        handler = mode.handler.removesuffix("]") + statement
    return replace(mode, name=f"{mode.name}, tells", handler=handler)


@dataclass(frozen=True)
class PublishCost:
    """No relay runs meanwhile: the cost of the handlers, without other load on the machine."""

    name: str = "publish"
    title: str = "cost of a pawl.publish in the transaction of each message"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        work = Work(options.payments)
        found: list[Task] = []
        for mode in known.modes:
            if mode.is_pawl:
                both = (mode, telling(mode))
                found += [Consume(Consumer(of, SYNCHRONOUS, options.workers), work) for of in both]
        return found

    def show(self, records: list[Record]) -> Shown:
        table = Table(
            ["mode", "messages/s", "and publish", "rate", "PostgreSQL, us", "and publish"]
        )
        known = [mode.name for mode in MODES]
        for mode, commit in pairs(records):
            if mode not in known:
                continue
            plain = having(records, mode=mode, commit=commit)
            told = having(records, mode=f"{mode}, tells", commit=commit)
            rates = spread(plain, "rate"), spread(told, "rate")
            table.rows.append(
                [
                    mode,
                    *map(cell, rates),
                    ratio(rates[1], rates[0]),
                    cell(spread(plain, "server_cpu_us")),
                    cell(spread(told, "server_cpu_us")),
                ]
            )
        return Shown(table)


@dataclass(frozen=True)
class OutboxTable:
    name: str = "outbox-table"
    title: str = "MiB of pawl.outbox while messages are written and published"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        return [TableSize(50_000 if options.quick else options.outbox_rows)]

    def show(self, records: list[Record]) -> Shown:
        table = Table(["messages", "20 %", "40 %", "60 %", "80 %", "100 %", "messages/s"])
        for rows in labels_in(records, "rows"):
            same = having(records, rows=rows)
            sizes = [cell(spread(same, f"mib_{part}")) for part in range(1, 6)]
            table.rows.append([f"{rows:,}", *sizes, cell(spread(same, "rate"))])
        table.notes.append("With indexes and TOAST, after this share of the messages")
        return Shown(table)
