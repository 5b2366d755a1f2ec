"""One refresh: what has arrived goes into the relations, and their changes through all views.

Few rows are the driver's, with lookups by Spark (`small`); many are the executors' (`large`). When few rows
touch many, the driver gives up before anything is written, and the executors begin again. Views that many
rows change may be cheaper to compute anew (`costs`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from pyspark.sql import SparkSession

from everview.hub.compact import Compactor
from everview.hub.costs import Arriving, Choice, Costs, Sampler
from everview.hub.files import Files
from everview.hub.groups import Group
from everview.hub.inbox import Arrival
from everview.hub.large import LargeRefresh
from everview.hub.outcome import Change, Outcome
from everview.hub.record import Record
from everview.hub.screening import Rejected
from everview.hub.small import SmallRefresh, TooManyRowsError
from everview.hub.tables import Catalog

__all__ = ["EACH_ARRIVAL", "Change", "RefreshReport", "Refreshing"]

EACH_ARRIVAL = 8
"""How many rows a lookup may find for a row that has arrived, before the driver is not even tried."""


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did: its number, the writes it took in, the tables that changed, Spark's jobs.

    `choices` says of each view that was touched how it was kept, and what each way was estimated to cost;
    `rejected` are the writes that could not be read and were set aside.
    """

    refresh: int
    arrivals: int
    changes: Mapping[str, Change] = field(default_factory=dict)
    jobs: int = 0
    seconds: float = 0.0
    choices: Mapping[str, Choice] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict)
    """What each part of it took, in seconds (see `timing`)."""
    operators: Mapping[str, Change] | None = None
    """What happened to operators that are no views, where the driver saw all of it."""


class Refreshing:
    """A refresh under way; `record` becomes the next one. The driver takes up to `most` rows."""

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        catalog: Catalog,
        compactor: Compactor,
        record: Record,
        sampler: Sampler,
        *,
        tasks: int,
        most: int,
    ) -> None:
        self._spark = spark
        self._files = files
        self._catalog = catalog
        self._compactor = compactor
        self._before = record
        self._costs = Costs(catalog, record, sampler)
        self._tasks = tasks
        self._most = most
        self.merged_away: set[str] = set()
        """Files that were written, and merged with others before any record could name them."""
        self.record = record

    def run(self, arrivals: Sequence[Arrival]) -> RefreshReport:
        """Write new runs of every table that changes, and say what did."""
        started = time.perf_counter()
        outcome, choices = self._outcome(arrivals)
        tables = {
            name: () if name in outcome.replaced else self._before.runs(name) for name in self._catalog.names
        }
        for name, run in outcome.written.items():
            tables[name] = (*tables[name], run)
        changed = sorted({*outcome.written, *outcome.replaced})
        tables = self._compactor.merge_small(self._compactor.adopt(tables))
        self.record = msgspec.structs.replace(
            self._before,
            number=self._before.number + 1,
            refresh=self._before.refresh + 1,
            arrived=max([self._before.arrived, *(arrival.number for arrival in arrivals)]),
            made_us=time.time_ns() // 1000,
            levels=True,
            changed={**self._before.changed, **dict.fromkeys(changed, uuid.uuid4().hex)},
            tables=tables,
        )
        written = {part.path for run in outcome.written.values() for part in run.parts}
        self.merged_away = written - self.record.paths()
        seconds = time.perf_counter() - started
        return RefreshReport(
            self.record.refresh,
            len(arrivals),
            outcome.changes,
            outcome.jobs,
            seconds,
            choices,
            operators=outcome.operators,
        )

    def _outcome(self, arrivals: Sequence[Arrival]) -> tuple[Outcome, dict[str, Choice]]:
        arrived: dict[str, Arriving] = {}
        for arrival in arrivals:
            come = arrived.get(arrival.relation, Arriving())
            arrived[arrival.relation] = (
                replace(come, inserted=come.inserted + arrival.rows)
                if arrival.present
                else replace(come, deleted=come.deleted + arrival.rows)
            )
        choices = {
            group: self._costs.choice(group, arrived)
            for group in self._catalog.groups
            if group.relations & arrived.keys()
        }
        common = self._spark, self._files, self._catalog, self._before, self._tasks
        vain = 0
        anew = [group for group, choice in choices.items() if choice.recomputed]
        anew += [group for group in self._without_levels() if group not in anew]
        if not anew and EACH_ARRIVAL * sum(arrival.rows for arrival in arrivals) <= self._most:
            try:
                return SmallRefresh(*common, self._most).run(arrivals), _told(choices)
            except TooManyRowsError as error:
                vain = error.jobs
        outcome = LargeRefresh(*common).run(arrivals, anew)
        outcome.jobs += vain
        return outcome, _told(choices)

    def _without_levels(self) -> list[Group]:
        """What an older version has kept by other tables."""
        if self._before.levels or not self._before.refresh:
            return []
        recursive = {
            name for name, one in self._catalog.circuit.operators.items() if one.recursion is not None
        }
        return [group for group in self._catalog.groups if group.operators & recursive]


def _told(choices: Mapping[Group, Choice]) -> dict[str, Choice]:
    """What was chosen for each view."""
    return {view: choice for group, choice in choices.items() for view in sorted(group.views)}
