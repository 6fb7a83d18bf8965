"""Experiment: the replay of dead letters of one record key, which wait for each other."""

import time
from dataclasses import dataclass

from .experiment import Shown, Task
from .modes import Consumer, Known, Mode, configuration
from .options import Options
from .plots import Plot
from .processes import Failure, run
from .records import Labels, Record, Values, having, labels_in, spread
from .site import Database, Site, Topic
from .tables import Table, cell, ratio

PARKS = '[failures]\non_failure = "park"\nmax_attempts = 1\ncircuit_breaker = 0\n'
# Messages behind the one that failed, as they are stored for its record key.
BEHIND = """
INSERT INTO pawl.dead_letters
       (consumer_id, topic, topic_id, partition, kafka_offset, leader_epoch, timestamp_ms, status, reason,
        handler, error, record_key, record_key_hash, record_value, value_bytes, headers, payload)
SELECT consumer_id, topic, topic_id, partition, kafka_offset + n, leader_epoch, timestamp_ms, 'parked', reason,
       handler, error, record_key, record_key_hash, record_value, value_bytes,
       jsonb_build_array(jsonb_build_object('name', 'event-id',
           'value', encode(convert_to('behind-' || n, 'UTF8'), 'base64'))), payload
  FROM pawl.dead_letters, generate_series(1, {}) AS n
"""


@dataclass(frozen=True)
class Chain:
    """`pawl dlq replay --all` of so many dead letters, all of one record key."""

    mode: Mode
    dead_letters: int

    @property
    def labels(self) -> Labels:
        return {"mode": "chain", "dead_letters": self.dead_letters}

    def prepare(self, site: Site) -> None:
        self._topic(site)

    def _topic(self, site: Site) -> Topic:
        return site.topic(1, 1)

    def measure(self, site: Site) -> Values:
        topic = self._topic(site)
        with site.database() as database:
            config = site.work / f"{database.name}.toml"
            group = site.unique("group")
            text = configuration(site, Consumer(self.mode), topic.name, group, database.url)
            config.write_text(text + PARKS)
            database.query("ALTER TABLE ledger ADD CONSTRAINT none CHECK (false)")
            run([site.programs / "pawl", "run", "--config", config, "--drain"])
            database.query("ALTER TABLE ledger DROP CONSTRAINT none")
            database.query(BEHIND.format(self.dead_letters - 1))
            database.query("VACUUM (ANALYZE)")
            begun = time.monotonic()
            run([site.programs / "pawl", "dlq", "replay", "--all", "--config", config])
            seconds = time.monotonic() - begun
            self._require_all(database)
            return {"rate": self.dead_letters / seconds}

    def _require_all(self, database: Database) -> None:
        entered = database.number("SELECT count(*) FROM ledger")
        replayed = database.number(
            "SELECT count(*) FROM pawl.dead_letters WHERE status = 'replayed'"
        )
        if (entered, replayed) != (self.dead_letters, self.dead_letters):
            raise Failure(
                f"of {self.dead_letters} dead letters {replayed} were replayed, {entered} entered"
            )


@dataclass(frozen=True)
class Chains:
    name: str = "chain"
    title: str = "dead letters per second that are replayed, all of one record key"

    def tasks(self, known: Known, options: Options) -> list[Task]:
        places = (100, 1000) if options.quick else (1000, 10_000)
        modes = [mode for mode in known.modes if mode.name == "sql"]
        return [Chain(mode, place) for mode in modes for place in places]

    def show(self, records: list[Record]) -> Shown:
        places = sorted(labels_in(records, "dead_letters"))
        names = [f"{place:,}" for place in places]
        rates = [spread(having(records, dead_letters=place), "rate") for place in places]
        table = Table(["dead letters/s, by dead letters of the key", *names])
        cells = [f"{cell(rate)} x{ratio(rate, rates[0])}" for rate in rates]
        table.rows.append(["pawl dlq replay --all", *cells])
        table.notes.append("After x: relative to the first column")
        plot = Plot(self.title, "dead letters", "dead letters/s", names)
        plot.series["pawl dlq replay --all"] = rates
        return Shown(table, {f"{self.name}.svg": plot})
