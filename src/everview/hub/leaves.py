"""What a recursion reads, while it runs: the rows of its inputs, and those of its own relations.

Both are stored as they were before, and what has changed since lies beside it in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engines.spark.hashing import hash_columns
from everview.engines.spark.types import arrow_schema
from everview.hub.finding import Finder
from everview.hub.memory import Memory
from everview.hub.rowset import Places, Rows, RowSet
from everview.language.plan import Schema
from everview.planner.circuit.parts import LEVEL, PLACE, WEIGHT, Leaf, changed_scan
from everview.planner.circuit.weighted import consolidated

__all__ = ["Found", "Input", "Own", "joined"]


@dataclass(frozen=True, slots=True)
class Found:
    """For each of some keys the rows that have it: the places of the keys, and the rows beside them."""

    mine: Places
    rows: pa.Table


def _met(rows: Rows, path: tuple[int, ...], keys: pa.Table) -> Found:
    met = rows.meet(path, keys.columns if path else [], keys.num_rows)
    return Found(met.mine, rows.table.take(pa.array(met.theirs)))


def joined(one: Found, other: Found) -> Found:
    """What both have found."""
    if not len(one.mine) or not len(other.mine):
        return one if len(one.mine) else other
    return Found(np.concatenate((one.mine, other.mine)), pa.concat_tables([one.rows, other.rows]))


class _Stored:
    """The rows of a leaf as they were, in the columns `schema`; what cannot be found by a path is not there."""

    def __init__(self, leaf: Leaf, finder: Finder, schema: Schema) -> None:
        self._leaf = leaf
        self._finder = finder
        self._by = dict(leaf.by)
        self.schema = schema
        self._width = len(leaf.schema)

    def find(self, path: tuple[int, ...], keys: pa.Table) -> pa.Table:
        """At least all rows of these keys."""
        kept = self._by.get(path, self._leaf.kept)
        # A path of no columns asks for all of them, one of all columns by whole rows.
        return self._shown(self._finder.find(kept, keys if path else None))

    def _shown(self, rows: pa.Table) -> pa.Table:
        raise NotImplementedError


class Input(_Stored):
    """An input: its rows, and which of them went and came. A row that is there has the weight 1."""

    def __init__(self, memory: Memory, leaf: Leaf, finder: Finder) -> None:
        super().__init__(leaf, finder, (*leaf.schema, WEIGHT))
        self.lost, self.gained = Rows(self.schema), Rows(self.schema)
        memory.run("@input", consolidated(changed_scan(leaf.kept)))
        changed = memory.table("@input")
        changed = pa.Table.from_arrays(changed.columns, schema=arrow_schema(self.schema))
        if not changed.num_rows:
            return
        width = self._width
        every = tuple(range(width))
        known = Rows(self.schema)
        known.append(self._finder.find(leaf.kept, changed.select(every) if width else None))
        met = known.meet(every, changed.columns[:width], changed.num_rows)
        before = np.zeros(changed.num_rows, dtype=np.int64)
        before[met.mine] = known.table.column(width).to_numpy()[met.theirs]
        after = before + changed.column(width).to_numpy()
        ones = pa.array(np.ones(changed.num_rows, dtype=np.int64))
        rows = changed.set_column(width, changed.schema.field(width), ones)
        self.lost.append(rows.filter(pa.array((before > 0) & (after <= 0))))
        self.gained.append(rows.filter(pa.array((before <= 0) & (after > 0))))

    def _shown(self, rows: pa.Table) -> pa.Table:
        there = rows.filter(pc.greater(rows.column(self._width), 0))
        return pa.Table.from_arrays(there.columns, schema=arrow_schema(self.schema))

    def before(self, path: tuple[int, ...], keys: pa.Table) -> Found:
        """What meets keys of the rows as they were."""
        rows = Rows(self.schema)
        rows.append(self.find(path, keys))
        return _met(rows, path, keys)

    def now(self, path: tuple[int, ...], keys: pa.Table) -> Found:
        """What meets keys of the rows as they are."""
        rows = Rows(self.schema)
        found = self.find(path, keys)
        if found.num_rows and self.lost.table.num_rows:
            every = tuple(range(self._width))
            gone = self.lost.meet(every, found.columns[: self._width], found.num_rows).mine
            left = np.ones(found.num_rows, dtype=bool)
            left[gone] = False
            found = found.filter(pa.array(left))
        rows.append(found)
        return joined(_met(rows, path, keys), _met(self.gained, path, keys))


class Own(_Stored):
    """A relation of the group: its rows with their levels and places, which went, and which came."""

    def __init__(self, leaf: Leaf, finder: Finder) -> None:
        super().__init__(leaf, finder, (*leaf.schema, LEVEL, PLACE))
        self.gone, self.added = RowSet(self.schema, self._width), RowSet(self.schema, self._width)

    def _shown(self, rows: pa.Table) -> pa.Table:
        return self.placed(rows.select(range(self._width + 1)))

    def placed(self, rows: pa.Table) -> pa.Table:
        """Rows and their levels, with their places behind them."""
        places = hash_columns(rows.columns[: self._width], self._leaf.schema, rows.num_rows)
        columns = [*rows.columns[: self._width + 1], pa.array(places)]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.schema))

    def before(self, path: tuple[int, ...], keys: pa.Table) -> Found:
        """What meets keys of the rows as they were."""
        rows = Rows(self.schema)
        rows.append(self.find(path, keys))
        return _met(rows, path, keys)

    def now(self, path: tuple[int, ...], keys: pa.Table) -> Found:
        """What meets keys of the rows as they are."""
        rows = Rows(self.schema)
        rows.append(self.gone.lacks(self.find(path, keys)))
        return joined(_met(rows, path, keys), _met(self.added, path, keys))

    def levels(self, rows: pa.Table) -> Found:
        """The rows among these that were there, and have not gone."""
        every = tuple(range(self._width))
        keys = rows.select(every) if every else rows
        found = Rows(self.schema)
        found.append(self.gone.lacks(self.find(every, keys)))
        return _met(found, every, keys)
