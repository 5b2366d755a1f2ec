"""A refresh by few rows: lookups are Spark jobs, and the arithmetic is the driver's.

It goes in rounds. In each, all kept rows whose keys are known by then are looked up together. The first round
knows the rows that have arrived, and with them the keys of all operators next to the relations; each operator
further up may need a round more.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.engines.spark.types import arrow_schema
from everview.hub.asking import Wanted, request, wanted_by
from everview.hub.files import Files
from everview.hub.finding import Stored
from everview.hub.inbox import Arrival, read_arrivals
from everview.hub.lookup import collect, open_part
from everview.hub.memory import Memory
from everview.hub.operating import found_table, is_too_little, operate, put_change, put_found
from everview.hub.outcome import Change, Outcome, weights
from everview.hub.record import Record
from everview.hub.relations import LatticeTable
from everview.hub.runs import FOLDER, Part, Run, packed, sealed
from everview.hub.searching import Request, TooManyError
from everview.hub.tables import Catalog
from everview.planner.circuit import Kept, Operator
from everview.planner.circuit.parts import changed_scan, delta_scan, sources

__all__ = ["SmallRefresh", "TooManyRowsError"]


class TooManyRowsError(Exception):
    """The driver cannot take what was found; `jobs` were run in vain."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        self.jobs = jobs


class SmallRefresh:
    """The refresh after a record, on the driver; it takes no more than `most` rows from a lookup."""

    def __init__(
        self, spark: SparkSession, files: Files, catalog: Catalog, record: Record, tasks: int, most: int
    ) -> None:
        self._spark = spark
        self._files = files
        self._catalog = catalog
        self._circuit = catalog.circuit
        self._before = record
        self._tasks = tasks
        self._most = most
        self._memory = Memory()
        self._known: set[str] = set()
        self._changed: set[str] = set()
        self._found: dict[tuple[str, str], pa.Table | None] = {}
        self._pending: list[tuple[str, pa.Table]] = []
        self._hashed = {name: catalog.hashed(name) for name in catalog.names}
        self._outcome = Outcome()
        opened = lru_cache(maxsize=None)(open_part(files))
        self._finder = Stored(self._parts, catalog.layouts, self._hashed, opened, most)

    def _parts(self, table: str) -> tuple[Part, ...]:
        return tuple(part for run in self._before.runs(table) for part in run.parts)

    def run(self, arrivals: Sequence[Arrival]) -> Outcome:
        """Write new runs of every table that changes, and say what did; TooManyRowsError when it cannot."""
        try:
            self._relations(arrivals)
            self._rounds()
            self._keep()
            self._finish()
        finally:
            self._memory.close()
        return self._outcome

    def _relations(self, arrivals: Sequence[Arrival]) -> None:
        """Bring what has come into the relations."""
        touched: dict[LatticeTable, list[Arrival]] = {}
        for table in self._catalog.relations:
            relation = table.relation
            mine = [arrival for arrival in arrivals if arrival.relation == relation.name]
            if mine:
                touched[table] = mine
            else:
                schema = delta_scan(relation.name, relation.schema).schema
                self._put_delta(relation.name, arrow_schema(schema).empty_table())
        self._first_round(touched)
        for table in touched:
            self._join(table)

    def _put_delta(self, name: str, rows: pa.Table) -> None:
        scan = delta_scan(name, self._catalog.source_schema(name))
        self._memory.put(scan.name, scan.schema, rows)
        self._known.add(name)

    def _delta(self, name: str) -> pa.Table:
        return self._memory.table(delta_scan(name, ()).name)

    def _first_round(self, touched: Mapping[LatticeTable, Sequence[Arrival]]) -> None:
        """Look up what has arrived, and all that operators over relations alone may need.

        Until it is joined, all that has come may be the change of a relation.
        """
        guessed = {table.relation.name for table in self._catalog.relations}
        for table, arrivals in touched.items():
            scan = table.arrived
            self._memory.put(scan.name, scan.schema, read_arrivals(self._files, scan.schema, arrivals))
            candidates = table.candidates()
            if candidates is None:
                guessed.discard(table.relation.name)
            else:
                self._memory.run(delta_scan(table.relation.name, ()).name, candidates)
        names = {table.relation.name for table in touched}
        wanted = [
            Wanted(
                (table.relation.name, table.name),
                table.name,
                table.layout,
                self._hashed[table.name],
                table.lookups(),
            )
            for table in touched
        ]
        for operator in self._circuit.operators.values():
            if operator.reads <= guessed and operator.reads & names:
                self._put_changes(operator.kept)
                wanted += self._wanted(operator)
        self._look_up(wanted)
        self._changed.clear()

    def _join(self, table: LatticeTable) -> None:
        """Join what has come with what is stored, and keep what grew."""
        name = table.relation.name
        put_found(self._memory, table.found, self._found.pop((name, table.name)))
        for step, plan in table.steps():
            self._memory.run(step, plan)
        self._memory.run("@change", table.change())
        self._put_delta(name, self._memory.table("@change"))
        self._memory.run("@growth", table.growth(self._before.refresh + 1))
        self._write(table.name, self._memory.table("@growth"))

    def _rounds(self) -> None:
        """Carry the changes through the operators, with as few rounds of lookups as there can be."""
        waiting = list(self._circuit.operators.values())
        while waiting:
            wanted: list[Wanted] = []
            for operator in waiting:
                if operator.reads <= self._known and self._is_touched(operator):
                    self._put_changes(operator.kept)
                    wanted += [one for one in self._wanted(operator) if one.known not in self._found]
            self._look_up(wanted)
            blocked = []
            for operator in waiting:
                if operator.reads <= self._known and self._is_ready(operator):
                    self._compute(operator)
                else:
                    blocked.append(operator)
            waiting = blocked

    def _wanted(self, operator: Operator) -> list[Wanted]:
        return wanted_by(operator, self._catalog.layouts, self._hashed)

    def _put_changes(self, kept: Sequence[Kept]) -> None:
        for one in kept:
            if one.name not in self._changed:
                put_change(self._memory, one)
                self._changed.add(one.name)

    def _is_touched(self, operator: Operator) -> bool:
        return any(self._delta(name).num_rows for name in operator.reads)

    def _is_ready(self, operator: Operator) -> bool:
        if not self._is_touched(operator):
            return True
        return all((operator.name, lookup.kept.name) in self._found for lookup in operator.lookups)

    def _compute(self, operator: Operator) -> None:
        """One operator's delta."""
        touched = self._is_touched(operator)
        if touched and operator.recursion is not None:
            self._put_changes(operator.kept)  # it may have become ready within this round
        for wanted in self._wanted(operator) if touched else ():
            put_found(self._memory, found_table(wanted), self._found.pop(wanted.known))
            if is_too_little(self._memory, wanted):
                self._look_up([replace(wanted, spared=False)])
                put_found(self._memory, found_table(wanted), self._found.pop(wanted.known))
        begun = not self._before.refresh
        try:
            change = operate(
                self._memory,
                operator,
                touched=touched,
                first=begun,
                finder=self._finder,
                most=self._most,
            )
        except TooManyError:
            raise TooManyRowsError(self._outcome.jobs) from None
        if change is None:
            change = arrow_schema(delta_scan(operator.name, operator.schema).schema).empty_table()
        self._put_delta(operator.name, change)

    def _look_up(self, wanted: Sequence[Wanted]) -> None:
        """Find kept rows in one Spark job."""
        asked: list[tuple[tuple[str, str], Request]] = []
        tables = []
        for one in wanted:
            parts = self._parts(one.table)
            found = request(self._memory, parts, one)
            self._found[one.known] = None
            if found.hashes is None and sum(part.rows for part in parts) > self._most:
                raise TooManyRowsError(self._outcome.jobs)
            if parts and (found.hashes is None or len(found.hashes)):
                asked.append((one.known, found))
                tables.append(one.table)
        if not asked:
            return
        self._outcome.jobs += 1
        requests = [found for _, found in asked]
        what = f"looks up {self._catalog.words.of_tables(tables)}"
        rows = collect(self._spark, self._files, requests, self._tasks, self._most, what)
        if rows is None:
            raise TooManyRowsError(self._outcome.jobs)
        self._found.update({known: table for (known, _), table in zip(asked, rows, strict=True)})

    def _keep(self) -> None:
        """New runs of all that is kept, and what happened to each relation and view."""
        for kept in self._circuit.kept.values():
            if any(self._delta(name).num_rows for name in sources(kept.change)):
                self._put_changes([kept])
                self._write(kept.name, self._memory.table(changed_scan(kept).name))
        inner: dict[str, Change] = {}
        shown = dict.fromkeys([*self._catalog.program.relations, *self._catalog.program.views])
        for name in {**shown, **dict.fromkeys(self._circuit.operators)}:
            delta = self._delta(name)
            change = weights(delta) if delta.num_rows else None
            if change is not None:
                (self._outcome.changes if name in shown else inner)[name] = change
        self._outcome.operators = inner

    def _write(self, table: str, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        hashes = self._hashed[table].of(self._catalog.schemas[table], rows)
        self._pending.append((table, sealed(rows, hashes, self._catalog.layouts[table])))

    def _finish(self) -> None:
        """All runs go into one file."""
        path = f"{FOLDER}/{uuid.uuid4().hex}.arrow"
        content, parts = packed(path, [table for _, table in self._pending])
        if parts:
            self._files.create(path, content)
        for (name, _), part in zip(self._pending, parts, strict=True):
            self._outcome.written[name] = Run(part.rows, (part,))
