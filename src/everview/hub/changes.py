"""How the rows of a relation or view differ between two refreshes: rows with weights, read from the runs.

Runs that both records name say the same in both. Where runs add up they cancel, so the rest alone gives the
change, whatever was merged in between. Where the latest version counts, the rest says which hashes may have
changed; of these both states are looked up, and the difference of what is there is the change. It is taken
range by range of the hashes: by this process, or by as many tasks as there are ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.engines.spark.hashing import Hashes
from everview.engines.spark.types import arrow_schema, column_names
from everview.hub.files import Files
from everview.hub.lookup import open_part, ranges
from everview.hub.runs import HASH, Layout, Part, Run, distinct, equal, merged
from everview.hub.searching import Open, Request, search
from everview.language.plan import Schema
from everview.language.types import BIGINT, Field

if TYPE_CHECKING:
    # They bring the codec of records, which no task needs.
    from everview.hub.record import Record
    from everview.hub.shapes import Shape

__all__ = ["WEIGHT", "Difference", "changed_rows", "difference"]

WEIGHT = Field("_weight", BIGINT, nullable=False)
"""How many more copies of a row there are; below 0, how many fewer."""

Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to be read for the change of a relation or view from one record to another."""

    fields: Schema
    layout: Layout
    by_parity: bool
    old: Parts
    new: Parts
    common: Parts
    """Empty where it cancels."""
    rows: int
    """How many rows the runs have that differ: at least so many as change, and merged runs far more."""

    def within(self, low: int, high: int) -> Difference:
        """The same for the hashes between two, both included, without the files that have none of them."""

        def met(parts: Parts) -> Parts:
            return tuple(part for part in parts if part.low <= high and part.high >= low)

        old, new = met(self.old), met(self.new)
        rows = sum(part.rows for part in (*old, *new))
        return Difference(self.fields, self.layout, self.by_parity, old, new, met(self.common), rows)

    def read(self, low: int, high: int, opened: Open) -> pa.Table:
        """The rows that change, of the hashes between two: their columns, each row once, and its weight."""
        width = len(self.fields)
        before, after = self._states(low, high, opened)
        signed = [_weighted(before, width, -1, parity=self.by_parity)] if before is not None else []
        signed += [_weighted(after, width, 1, parity=self.by_parity)] if after is not None else []
        signed = [table for table in signed if table.num_rows]
        if not signed:
            return arrow_schema((*self.fields, WEIGHT)).empty_table()
        return merged(signed, Layout(width)).select(column_names(width + 1))

    def _states(self, low: int, high: int, opened: Open) -> tuple[pa.Table | None, pa.Table | None]:
        """What the runs that differ say; where the latest counts, both states of what may have changed."""
        old = search(Request(self.old, self.layout, None), low, high, opened, None)
        new = search(Request(self.new, self.layout, None), low, high, opened, None)
        if not self.layout.latest:
            return old, new
        doubtful = _doubtful(old, new, self.layout)
        if not len(doubtful):
            return None, None
        known = search(Request(self.common, self.layout, doubtful), low, high, opened, None)
        return _state(old, known, doubtful, self.layout), _state(new, known, doubtful, self.layout)


def difference(shape: Shape, before: Record | None, after: Record) -> Difference | None:
    """What has to be read for a change, from nothing where there is no record; None when there is none."""
    table = shape.table
    if before is not None and table in after.changed and before.changed.get(table) == after.changed[table]:
        return None
    ours = before.runs(table) if before is not None else ()
    theirs = after.runs(table)
    both = {*ours} & {*theirs}
    old = [run for run in ours if run not in both]
    new = [run for run in theirs if run not in both]
    if not old and not new:
        return None
    common = _parts(both) if shape.layout.latest else ()
    rows = sum(run.rows for run in (*old, *new))
    return Difference(shape.fields, shape.layout, shape.by_parity, _parts(old), _parts(new), common, rows)


def changed_rows(
    files: Files, shape: Shape, before: Record | None, after: Record, most: int
) -> pa.Table | None:
    """The change, read by this process; None when more than `most` rows would have to be."""
    found = difference(shape, before, after)
    if found is None:
        return arrow_schema((*shape.fields, WEIGHT)).empty_table()
    if found.rows > most:
        return None
    low, high = ranges(1)[0]
    return found.read(low, high, open_part(files))


def _parts(runs: Iterable[Run]) -> Parts:
    return tuple(part for run in runs for part in run.parts)


def _weighted(state: pa.Table, width: int, sign: int, *, parity: bool) -> pa.Table:
    """The rows that are there, each with its weight."""
    values = state.column(f"c{width}").to_numpy()
    weights = sign * (values % 2 if parity else values)
    rows = state.select([HASH, *column_names(width)]).append_column(f"c{width}", pa.array(weights))
    return rows.filter(pa.array(weights != 0)) if parity else rows


def _doubtful(old: pa.Table | None, new: pa.Table | None, layout: Layout) -> Hashes:
    """The hashes of rows that only one side has, or that are of other versions there; sorted, each once."""
    if old is None or new is None:
        one = old if old is not None else new
        return distinct(_hashes(one)) if one is not None else np.empty(0, dtype=np.int64)
    ours, theirs = _hashes(old), _hashes(new)
    if _repeats(ours) or _repeats(theirs):
        # Two rows have one hash: which belongs to which is left to those who compare the rows.
        return distinct(np.concatenate((ours, theirs)))
    places = np.searchsorted(theirs, ours)
    places[places == len(theirs)] = 0
    met = theirs[places] == ours if len(theirs) else np.zeros(len(ours), dtype=bool)
    mine, others = pa.array(np.flatnonzero(met)), pa.array(places[met])
    names = [old.column_names[1 + place] for place in layout.identity]
    same = np.ones(len(mine), dtype=bool)
    for name in (old.column_names[-1], *names):
        same &= equal(old.column(name).take(mine), new.column(name).take(others))
    alone = np.ones(len(theirs), dtype=bool)
    alone[places[met][same]] = False
    kept = np.ones(len(ours), dtype=bool)
    kept[np.flatnonzero(met)[same]] = False
    return distinct(np.concatenate((ours[kept], theirs[alone])))


def _hashes(table: pa.Table) -> Hashes:
    found: Hashes = table.column(HASH).to_numpy()
    return found


def _repeats(hashes: Hashes) -> bool:
    return bool(np.any(hashes[1:] == hashes[:-1]))


def _state(own: pa.Table | None, known: pa.Table | None, hashes: Hashes, layout: Layout) -> pa.Table | None:
    """What is there of these hashes, by the runs of one record alone and those of both."""
    tables = [] if own is None else [own.filter(pa.array(_are_in(_hashes(own), hashes)))]
    tables += [] if known is None else [known]
    tables = [table for table in tables if table.num_rows]
    if len(tables) < 2:
        return tables[0] if tables else None
    return merged(tables, layout)


def _are_in(ours: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    places = np.searchsorted(hashes, ours)
    places[places == len(hashes)] = 0
    found: NDArray[np.bool_] = hashes[places] == ours
    return found
