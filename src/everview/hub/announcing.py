"""Announcing: after a refresh the views whose authority is the hub are in the gate, for sites that host them.

The gate remembers of each view the refresh that it has, and the name of its contents then. What has changed
since is read from the runs that differ; the whole, where that refresh is no longer retained, or the gate has
begun a new life. All views go in at once. What a crash left undone the next refresh or opening does: that
names are the same is all there is to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from everview.engines.spark.types import column_names
from everview.errors import DataError, StoreError
from everview.hub.changes import difference
from everview.hub.exporting import CHUNK, stored_columns
from everview.hub.files import Files
from everview.hub.gate import Announced, Columns, Gate
from everview.hub.lookup import open_part, ranges
from everview.hub.record import Record
from everview.hub.shapes import Shape, shape_of
from everview.hub.tables import Catalog
from everview.language.relations import View

__all__ = ["announce"]

At = Callable[[int | None], Record]
"""The record of a retained refresh; DataError of another."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What a gate lacks of a view: all of it, where there is no record that it has."""

    view: View
    shape: Shape
    before: Record | None
    after: Record

    def chunks(self, files: Files) -> Iterator[tuple[Columns, list[int]]]:
        """Rows as SQLite is given them, and their weights."""
        found = difference(self.shape, self.before, self.after)
        if found is None:
            return
        opened = open_part(files)
        for low, high in ranges(max(1, found.rows // CHUNK)):
            rows = found.within(low, high).read(low, high, opened)
            if rows.num_rows:
                width = self.shape.width
                cells = stored_columns(rows.select(column_names(width)), self.view)
                yield cells, rows.column(f"c{width}").to_pylist()


def announce(gate: Gate, files: Files, catalog: Catalog, record: Record, at: At) -> int:
    """Bring the gate to a refresh; how many views had to be."""
    changes: list[tuple[_Change, Announced]] = []
    for view in gate.announces:
        shape = shape_of(catalog, view.name)
        name = record.changed.get(shape.table, "") if record.runs(shape.table) else "nothing"
        has = gate.announced(view.name)
        if has is None or not name or has.name != name:
            before = None if has is None else _record_of(has, shape, at)
            changes.append((_Change(view, shape, before, record), Announced(record.refresh, name)))
    if not changes:
        return 0
    gate.announce(
        (change.view.name, change.chunks(files), change.before is None, announced)
        for change, announced in changes
    )
    return len(changes)


def _record_of(has: Announced, shape: Shape, at: At) -> Record | None:
    """The record of the refresh that a gate has, if it is still there and says the same."""
    try:
        found = at(has.refresh)
    except (DataError, StoreError):
        return None
    return found if has.name and found.changed.get(shape.table) == has.name else None
