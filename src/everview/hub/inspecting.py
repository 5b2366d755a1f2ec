"""Inspecting: what a console shows of a hub beside what `hub.status` says, as of the last refresh."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from everview.engines.spark.types import rows_of
from everview.engines.sqlite.inspecting import Rows
from everview.engines.sqlite.trials import Turn, deletion, stand_in
from everview.engines.sqlite.writing import Writing
from everview.errors import LimitError
from everview.hub.contents import contents, local_rows, stored_table
from everview.hub.jobs import job, working
from everview.hub.store import Store
from everview.language.order import sorted_rows
from everview.planner.circuit import Operator

__all__ = ["Inspection"]

Row = tuple[Any, ...]

TRIED = 20_000
"""So many rows of relations are taken into memory to try what a deletion would do."""

COUNTED = 5_000
"""So many rows are read to count them; more are counted by what was written of them."""

SHOWN = 1_000
"""So many rows are fetched, by Spark, of what has more than the driver takes."""


class Inspection:
    """Looks at the last refresh of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[int, int, bool]] = {}
        self._tried: tuple[int, Writing] | None = None

    def count(self, name: str) -> tuple[int, bool]:
        """How many rows there are, and whether that is exact.

        Of many it is what the runs have: copies once, and what has gone since as long as it is not merged.
        """
        store = self._store
        store.require_open()
        record = store.record
        known = self._counts.get(name)
        if known is None or known[0] != record.refresh:
            few = local_rows(store.files, store.catalog, record, name, COUNTED)
            told = self._written(name) if few is None else len(few)
            known = self._counts[name] = record.refresh, told, few is not None
        return known[1:]

    def _written(self, name: str) -> int:
        store = self._store
        return sum(run.rows for run in store.record.runs(stored_table(store.catalog, name)))

    def rows(self, name: str, offset: int, limit: int) -> Rows:
        """Some rows of a relation or view: in order where the driver takes all, else whichever come first."""
        store = self._store
        store.require_open()
        record = store.record
        few = local_rows(store.files, store.catalog, record, name, store.driver_rows)
        if few is not None:
            found = Counter(sorted_rows(few))
            return Rows(list(found.items())[offset : offset + limit], len(few), len(found), ordered=True)
        schema = store.catalog.program.schema(name)
        with working(store.name, f"show refresh {record.refresh}"), job(store.spark.sparkContext, name):
            frame = contents(store.spark, store.files, store.catalog, record, name).limit(SHOWN)
            some = rows_of(frame, schema)
        total = self._written(name)
        return Rows([(row, 1) for row in some[offset : offset + limit]], total, len(some), ordered=False)

    def operators(self, view: str) -> Mapping[str, Operator]:
        """The operators of a view, its own first; other views that it reads are left out."""
        circuit, found, waiting = self._store.catalog.circuit, dict[str, Operator](), [view]
        while waiting:
            name = waiting.pop()
            if name in found or name not in circuit.operators or (name in circuit.views and name != view):
                continue
            found[name] = circuit.operators[name]
            waiting += sorted(found[name].reads, reverse=True)
        return found

    def without(self, relation: str, row: Row, names: Iterable[str]) -> dict[str, Turn]:
        """What would change if a row were deleted, tried on a copy in memory; LimitError if it is too big."""
        with self._lock:
            writing = self._copy()
            here = writing.store.engine.nodes
            known = [name for name in names if name in here]
            return deletion(writing, self._store.catalog.program.relations[relation], row, known)

    def _copy(self) -> Writing:
        store = self._store
        store.require_open()
        record = store.record
        if self._tried is not None and self._tried[0] == record.refresh:
            return self._tried[1]
        program, left = store.catalog.program, TRIED
        rows: dict[str, list[Row]] = {}
        for name in program.relations:
            found = local_rows(store.files, store.catalog, record, name, left)
            if found is None or len(found) > left:
                raise LimitError(
                    f"the relations of {store.name} have more than {TRIED:,} rows together, and a hub tries "
                    "a deletion on a copy of them in memory; ask the same in the console of a site that "
                    "hosts them (`everview serve`), where there is no such limit",
                    limit=TRIED,
                )
            rows[name] = found
            left -= len(found)
        if self._tried is not None:
            self._tried[1].store.close()
        self._tried = record.refresh, stand_in(program, store.name, rows)
        return self._tried[1]
