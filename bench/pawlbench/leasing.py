"""Experiments about handlers that make external calls, and about concurrent messages of one partition."""

from dataclasses import dataclass, replace

from .calls import AT_ONCE, BY_HAND, BY_HAND_WAITS, CODE, CONNECTIONS, HTTP, POSTGRESQL, STORES, Calls
from .consume import Consume, RoundTrip, Work
from .experiment import Shown, Task
from .modes import SYNCHRONOUS, Consumer, Known, Mode
from .options import Options
from .records import Record, having, spread
from .tables import Table, cell, ratio, share

PLACES = (1, 8)  # partitions
CALL_MS = 200
MANY_CONNECTIONS = 64  # what waits for the disk at once shares its flushes
NAMES = {
    CODE: "pawl, C++",
    HTTP: "pawl, http",
    BY_HAND: "by hand, HTTP",
    BY_HAND_WAITS: "by hand",
}


Kind = dict[str, str | int | float]


def kinds(records: list[Record]) -> list[Kind]:
    """Who called, where and how, in the order of the rows."""
    names = ("partitions", "connections", "who", "store")
    found = {tuple(r.labels[name] for name in names) for r in records}
    order = list(NAMES)
    return [
        dict(zip(names, kind, strict=True))
        for kind in sorted(found, key=lambda kind: (*kind[:2], order.index(str(kind[2])), kind[3]))
    ]


def place_text(kind: Kind) -> str:
    several = "s" if kind["partitions"] != 1 else ""
    more = f", {kind['connections']} connections" if kind["connections"] != CONNECTIONS else ""
    return f"{kind['partitions']} partition{several}{more}"


@dataclass(frozen=True)
class LeasedCalls:
    name: str = "calls"
    title: str = f"calls per second, of {CALL_MS} ms each"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        seconds = 3 if options.quick else 3 * options.seconds
        found: list[Task] = []
        for partitions in PLACES:
            payments = AT_ONCE * partitions * seconds * 1000 // CALL_MS
            for who in (CODE, HTTP, BY_HAND):
                found.append(Calls(who, CALL_MS, partitions, payments))
            if partitions > 1:
                found.append(Calls(CODE, CALL_MS, partitions, payments, MANY_CONNECTIONS))
        return found

    def show(self, records: list[Record]) -> Shown:
        columns = ["calls/s", "of the most", "to by hand", "at once", "requests"]
        table = Table(["caller", *columns, "program, us", "PostgreSQL, us", "API, us", "MiB"])
        for kind in kinds(records):
            same = having(records, **kind)
            by_hand = having(records, partitions=kind["partitions"], who=BY_HAND)
            rate, at_once = spread(same, "rate"), spread(same, "at_once")
            most = AT_ONCE * int(kind["partitions"]) * 1000 / CALL_MS
            others = ("program_cpu_us", "server_cpu_us", "api_cpu_us", "memory_mib")
            table.rows.append(
                [
                    f"{NAMES[str(kind['who'])]}, {place_text(kind)}",
                    cell(rate),
                    f"{100 * rate.middle / most:.0f} %" if rate else "-",
                    ratio(rate, spread(by_hand, "rate")),
                    f"{at_once.highest:.0f}" if at_once else "-",
                    cell(spread(same, "requests")),
                    *(cell(spread(same, of)) for of in others),
                ]
            )
        table.notes.append(
            f"{AT_ONCE} concurrent calls per partition, so at most {AT_ONCE * 1000 // CALL_MS} per second and"
            " partition. By hand: a pool of the same number of threads without leases. It calls twice for a"
            " duplicate, and for messages in flight during a crash. Requests: received by the API per payment."
            " Microseconds are CPU time per call, for PostgreSQL of all its processes"
        )
        return Shown(table)


@dataclass(frozen=True)
class Leases:
    """Calls that take no time, so only the cost of leases remains."""

    name: str = "leases"
    title: str = "leases per second, of calls that take no time"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        found: list[Task] = []
        payments = (4000 if options.quick else 6000) * options.seconds
        for partitions in PLACES:
            many = () if options.quick and partitions > 1 else (MANY_CONNECTIONS,)
            for connections in (CONNECTIONS, *many):
                of_pawl = Calls(CODE, 0, partitions, payments, connections)
                found += [replace(of_pawl, store=store) for store in STORES]
                found.append(replace(of_pawl, who=BY_HAND_WAITS))
        return found

    def show(self, records: list[Record]) -> Shown:
        columns = ["leases/s", "to by hand", "transactions", "WAL, bytes"]
        table = Table(["caller", *columns, "program, us", "PostgreSQL, us"])
        for kind in kinds(records):
            same = having(records, **kind)
            by_hand = having(records, **{**kind, "who": BY_HAND_WAITS, "store": POSTGRESQL})
            kept = str(kind["store"]) if kind["who"] == CODE else "no leases"
            rate = spread(same, "rate")
            others = ("transactions", "wal_bytes", "program_cpu_us", "server_cpu_us")
            table.rows.append(
                [
                    f"{NAMES[str(kind['who'])]}, {kept}, {place_text(kind)}",
                    cell(rate),
                    ratio(rate, spread(by_hand, "rate")),
                    *(cell(spread(same, of)) for of in others),
                ]
            )
        table.notes.append(
            f"{AT_ONCE} concurrent calls per partition, synchronous commits. By hand: an INSERT of each response with a"
            " unique key by a pool of the same number of threads. Transactions and bytes of WAL per payment, including"
            " those of the process without a message, and full pages after a checkpoint"
        )
        return Shown(table)


SIDE_BY_SIDE = 16
ROUND_TRIP_MS = 2.0
SIDE_MODES = ("sql", "sql-single", "code")
# With concurrency, consumer.pipeline is not used.
SAME_BESIDE = {"sql-single": "sql"}


def side_by_side(mode: Mode) -> Mode:
    return replace(mode, handler=f"concurrency = {SIDE_BY_SIDE}\n{mode.handler}")


@dataclass(frozen=True)
class Concurrency:
    name: str = "concurrency"
    title: str = f"messages per second from one partition, {SIDE_BY_SIDE} concurrently"

    # Partitions, and whether the handler has the option.
    PLACES = ((1, False), (1, True), (SIDE_BY_SIDE, False))

    def tasks(self, known: Known, options: Options) -> list[Task]:
        found: list[Task] = [RoundTrip(ROUND_TRIP_MS)]
        for mode in known.modes:
            if mode.name not in SIDE_MODES:
                continue
            for partitions, option in self.PLACES:
                if option and mode.name in SAME_BESIDE:
                    continue
                payments = min(options.payments, 3000 * options.seconds)
                # Alone a partition waits for each answer: less is enough to see how fast it is.
                if partitions == 1 and not option:
                    payments = max(payments // 4, 500)
                used = side_by_side(mode) if option else mode
                if option:
                    used = replace(used, name=f"{mode.name}, concurrent")
                consumer = Consumer(used, SYNCHRONOUS, SIDE_BY_SIDE)
                place = Work(payments, partitions, round_trip_ms=ROUND_TRIP_MS, middle=True)
                found.append(Consume(consumer, place))
        return found

    def show(self, records: list[Record]) -> Shown:
        many = f"{SIDE_BY_SIDE} partitions"
        table = Table(["mode", "1 partition", "1, concurrent", many, f"concurrent, of {many}"])
        for mode in SIDE_MODES:
            alone = spread(having(records, mode=mode, partitions=1), "rate")
            beside = SAME_BESIDE.get(mode, mode)
            side = spread(having(records, mode=f"{beside}, concurrent"), "rate")
            apart = spread(having(records, mode=mode, partitions=SIDE_BY_SIDE), "rate")
            if alone or apart:
                table.rows.append([mode, *map(cell, (alone, side, apart)), share(side, apart)])
        trip = cell(spread(having(records, mode="round-trip"), "ms"))
        table.notes.append(
            f"Over a network of {ROUND_TRIP_MS:g} ms to PostgreSQL, where a SELECT 1 took {trip} ms, with"
            f" {SIDE_BY_SIDE} workers. Concurrent: with concurrency = {SIDE_BY_SIDE}. Each message of sql is then a"
            " separate transaction in flight, like those of sql-single in any partition"
        )
        return Shown(table)
