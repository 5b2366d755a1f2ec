"""One refresh: what has arrived goes into the relations, and their changes through all views.

It goes in rounds. In each, all kept rows whose keys are known by then are looked up together. The first round
knows the rows that have arrived, and with them the keys of all operators next to the relations; each operator
further up may need a round more. Who does the work, the driver or the executors, is the workshop's business:
few rows stay on the driver, and when they turn out to be many, all tables move to the executors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from everview.hub.cluster import ClusterWorkshop
from everview.hub.compact import Compactor
from everview.hub.deepening import is_spared, too_few
from everview.hub.inbox import Arrival
from everview.hub.record import Record
from everview.hub.relations import LatticeTable
from everview.hub.runs import Run
from everview.hub.screening import Rejected
from everview.hub.tables import Catalog
from everview.hub.workshop import DriverWorkshop, Found, TooManyRowsError, Wanted, Workshop
from everview.language.plan import Plan, Scan
from everview.planner.circuit import Kept, Lookup, Operator
from everview.planner.circuit.parts import found_scan, sources, table_of
from everview.planner.circuit.weighted import consolidated, united

__all__ = ["Change", "RefreshReport", "Refreshing"]


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows of a table appeared and disappeared, copies counted."""

    appeared: int
    disappeared: int


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did: its number, the writes it took in, the tables that changed, Spark's jobs.

    `rejected` are the writes that could not be read and were set aside.
    """

    refresh: int
    arrivals: int
    changes: Mapping[str, Change] = field(default_factory=dict)
    jobs: int = 0
    seconds: float = 0.0
    rejected: tuple[Rejected, ...] = ()


def _delta(name: str) -> str:
    return f"{name}@delta"


class Refreshing:
    """A refresh under way; `record` becomes the next one."""

    def __init__(
        self,
        catalog: Catalog,
        workshop: Workshop,
        enlarge: Callable[[Workshop], Workshop],
        compactor: Compactor,
        record: Record,
    ) -> None:
        self._enlarge = enlarge
        self._compactor = compactor
        self._catalog = catalog
        self._circuit = catalog.circuit
        self._shop = workshop
        self._before = record
        self._first = not record.refresh
        self._known: set[str] = set()
        self._found: dict[tuple[str, str], Found] = {}
        self._written: dict[str, Run] = {}
        self._rows = 0
        self.merged_away: set[str] = set()
        """Files that were written, and merged with others before any record could name them."""
        self.record = record
        self.changes: dict[str, Change] = {}

    def run(self, arrivals: Sequence[Arrival]) -> RefreshReport:
        """Write new runs of every table that changes, and say what did."""
        started = time.perf_counter()
        self._rows = sum(arrival.rows for arrival in arrivals)
        self._relations(arrivals)
        self._rounds()
        self._keep()
        taken = max([self._before.arrived, *(arrival.number for arrival in arrivals)])
        self._shop.finish()
        tables = {name: self._before.runs(name) for name in self._catalog.names}
        written: set[str] = set()
        for name, run in self._written.items():
            placed = self._shop.placed(run)
            written |= {part.path for part in placed.parts}
            tables[name] = (*tables[name], placed)
        tables = self._compactor.merge_small(self._compactor.adopt(tables))
        self.record = msgspec.structs.replace(
            self._before,
            number=self._before.number + 1,
            refresh=self._before.refresh + 1,
            arrived=taken,
            made_us=time.time_ns() // 1000,
            tables=tables,
        )
        self.merged_away = written - self.record.paths()
        seconds = time.perf_counter() - started
        return RefreshReport(self.record.refresh, len(arrivals), self.changes, self._shop.jobs, seconds)

    def _relations(self, arrivals: Sequence[Arrival]) -> None:
        """Bring what has come into the relations."""
        touched: dict[LatticeTable, list[Arrival]] = {}
        for table in self._catalog.relations:
            name = table.relation.name
            mine = [arrival for arrival in arrivals if arrival.relation == name]
            if mine:
                touched[table] = mine
            else:
                self._shop.empty(_delta(name), table.change().schema)
                self._known.add(name)
        if isinstance(self._shop, DriverWorkshop):
            try:
                self._first_round(self._shop, touched)
            except TooManyRowsError:
                self._shop = self._enlarge(self._shop)
        for table, mine in touched.items():
            if isinstance(self._shop, ClusterWorkshop):
                self._written_as(table.name, self._shop.merge(self._before, table, mine))
            else:
                self._join(table)
            self._known.add(table.relation.name)

    def _first_round(self, shop: DriverWorkshop, touched: Mapping[LatticeTable, Sequence[Arrival]]) -> None:
        """Look up what has arrived, and all that operators over relations alone may need.

        Until it is joined, all that has come may be the change of a relation.
        """
        for table, arrivals in touched.items():
            shop.arrive(table.arrived, arrivals)
            candidates = table.candidates()
            if candidates is not None:
                shop.run(_delta(table.relation.name), candidates)
        names = {table.relation.name for table in touched}
        unknown = {table.relation.name for table in touched if table.candidates() is None}
        wanted = [
            Wanted((table.relation.name, table.name), table.name, table.layout, table.schema, table.lookups())
            for table in touched
        ]
        relations = {table.relation.name for table in self._catalog.relations}
        for operator in self._circuit.operators.values():
            if operator.reads <= relations - unknown and operator.reads & names:
                wanted += self._wanted(operator)
        self._found.update(shop.look_up(self._before, wanted))

    def _join(self, table: LatticeTable) -> None:
        """Join what has come with what is stored, and keep what grew."""
        name = table.relation.name
        self._shop.put_found(table.found, self._found.pop((name, table.name)))
        for step, plan in table.steps():
            self._shop.run(step, plan)
        self._shop.run(_delta(name), table.change())
        self._write(table.name, table.growth(self._before.refresh + 1))

    def _rounds(self) -> None:
        """Carry the changes through the operators, with as few rounds of lookups as there can be."""
        waiting = list(self._circuit.operators.values())
        while waiting:
            wanted = [
                request
                for operator in waiting
                if operator.reads <= self._known and self._is_touched(operator)
                for request in self._wanted(operator)
                if request.known not in self._found
            ]
            self._look_up(wanted)
            blocked = []
            for operator in waiting:
                if operator.reads <= self._known and self._is_ready(operator):
                    self._compute(operator)
                else:
                    blocked.append(operator)
            waiting = blocked

    def _is_touched(self, operator: Operator) -> bool:
        return any(not self._shop.is_empty(_delta(name)) for name in operator.reads)

    def _is_ready(self, operator: Operator) -> bool:
        if not self._is_touched(operator):
            return True
        return all((operator.name, lookup.kept.name) in self._found for lookup in operator.lookups)

    def _compute(self, operator: Operator) -> None:
        """One operator's delta."""
        plans: list[Plan | None] = []
        if operator.change is not None and self._is_touched(operator):
            for wanted in self._wanted(operator):
                self._put_found(wanted)
            for name, plan in operator.steps:
                self._shop.run(name, plan)
            plans.append(operator.change)
        if self._first:
            plans.append(operator.first)
        change = united(plans)
        if isinstance(change, Scan) and table_of(change.name) == (change.name, False):
            self._shop.alias(_delta(operator.name), change.name)
        elif change is None:
            self._shop.empty(_delta(operator.name), self._catalog.delta_schema(operator))
        else:
            self._shop.run(_delta(operator.name), consolidated(change))
        self._known.add(operator.name)

    def _put_found(self, wanted: Wanted) -> None:
        """The table of what was found; where that turns out to be too little, of all that may be needed."""
        table = found_scan(wanted.lookups[0].kept)
        self._shop.put_found(table, self._found.pop(wanted.known))
        if wanted.spared and self._shop.has_rows(too_few(wanted.lookups[0])):
            self._look_up([replace(wanted, spared=False)])
            self._shop.put_found(table, self._found.pop(wanted.known))

    def _wanted(self, operator: Operator) -> list[Wanted]:
        """The lookups of an operator, those in one table together."""
        by_table: dict[Kept, list[Lookup]] = {}
        for lookup in operator.lookups:
            by_table.setdefault(lookup.kept, []).append(lookup)
        return [
            Wanted(
                (operator.name, kept.name),
                kept.name,
                self._catalog.layout(kept),
                kept.schema,
                lookups,
                is_spared(lookups),
            )
            for kept, lookups in by_table.items()
        ]

    def _look_up(self, wanted: Sequence[Wanted]) -> None:
        if not wanted:
            return
        try:
            self._found.update(self._shop.look_up(self._before, wanted))
        except TooManyRowsError:
            self._shop = self._enlarge(self._shop)
            self._found.update(self._shop.look_up(self._before, wanted))

    def _keep(self) -> None:
        """New runs of all that is kept, and what happened to each view."""
        for kept in self._circuit.kept.values():
            if all(self._shop.is_empty(_delta(name)) for name in sources(kept.change)):
                continue
            self._write(kept.name, kept.change)
        self._count([*self._catalog.program.relations, *self._catalog.program.views])

    def _write(self, table: str, change: Plan) -> None:
        hashed = self._catalog.hashed(table)
        run = self._shop.write(self._catalog.layouts[table], hashed, change, self._rows)
        self._written_as(table, run)

    def _written_as(self, table: str, run: Run | None) -> None:
        if run is not None:
            self._written[table] = run

    def _count(self, names: Sequence[str]) -> None:
        counts = self._shop.weights([_delta(name) for name in names])
        for name, (appeared, disappeared) in zip(names, counts, strict=True):
            if appeared or disappeared:
                self.changes[name] = Change(appeared, disappeared)
