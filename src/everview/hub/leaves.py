"""What a recursion reads, while it runs: the rows of its inputs, and those of its own relations.

Both are stored as they were before, and what has changed since lies beside it in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.engines.spark.hashing import hash_columns
from everview.engines.spark.types import arrow_schema
from everview.hub.finding import Finder
from everview.hub.memory import Memory
from everview.hub.rowset import Places, Rows, RowSet
from everview.language.plan import Schema
from everview.planner.circuit.parts import LEVEL, PLACE, WEIGHT, Leaf, changed_scan
from everview.planner.circuit.weighted import consolidated

__all__ = ["Found", "Input", "Own"]


@dataclass(frozen=True, slots=True)
class Found:
    """For each of some keys the rows that have it: the places of the keys, and the rows beside them."""

    mine: Places
    rows: pa.Table


def _met(rows: Rows, path: tuple[int, ...], keys: pa.Table) -> Found:
    met = rows.meet(path, keys.columns if path else [], keys.num_rows)
    return Found(met.mine, rows.table.take(pa.array(met.theirs)))


def _together(one: Found, other: Found) -> Found:
    """What both have found."""
    if not len(one.mine) or not len(other.mine):
        return one if len(one.mine) else other
    return Found(np.concatenate((one.mine, other.mine)), pa.concat_tables([one.rows, other.rows]))


class _Leaf(ABC):
    """The rows of a leaf as they were, found in the columns `schema`, and which of them went and came."""

    def __init__(self, leaf: Leaf, finder: Finder, schema: Schema) -> None:
        self._leaf = leaf
        self._finder = finder
        self._by = dict(leaf.by)
        self._width = len(leaf.schema)
        self._every = tuple(range(self._width))
        self.schema = schema
        self.gone, self.came = RowSet(schema, self._width), RowSet(schema, self._width)

    def before(self, path: tuple[int, ...], keys: pa.Table) -> Found:
        """What meets keys of the rows as they were."""
        return self._met(self._found(path, keys), path, keys)

    def now(self, path: tuple[int, ...], keys: pa.Table) -> Found:
        """What meets keys of the rows as they are."""
        left = self._met(self.gone.lacks(self._found(path, keys)), path, keys)
        return _together(left, _met(self.came, path, keys))

    def _met(self, rows: pa.Table, path: tuple[int, ...], keys: pa.Table) -> Found:
        found = Rows(self.schema)
        found.append(rows)
        return _met(found, path, keys)

    def _found(self, path: tuple[int, ...], keys: pa.Table) -> pa.Table:
        """At least all rows of these keys: all, where no column is known."""
        kept = self._by.get(path, self._leaf.kept)
        return self._shown(self._finder.find(kept, keys if path else None))

    @abstractmethod
    def _shown(self, kept: pa.Table) -> pa.Table:
        """Kept rows in the columns `schema`."""


class Input(_Leaf):
    """An input. A row that is there has the weight 1, however often it is."""

    def __init__(self, memory: Memory, leaf: Leaf, finder: Finder) -> None:
        super().__init__(leaf, finder, (*leaf.schema, WEIGHT))
        memory.run("@input", consolidated(changed_scan(leaf.kept)))
        changed = memory.table("@input")
        if not changed.num_rows:
            return
        rows = pa.Table.from_arrays(changed.columns, schema=arrow_schema(self.schema))
        weights = rows.column(self._width).to_numpy()
        keys = rows.select(self._every) if self._every else rows
        known = Rows(self.schema)
        known.append(finder.find(leaf.kept, keys if self._every else None))
        met = known.meet(self._every, rows.columns[: self._width], rows.num_rows)
        before = np.zeros(rows.num_rows, dtype=np.int64)
        before[met.mine] = known.table.column(self._width).to_numpy()[met.theirs]
        ones = pa.array(np.ones(rows.num_rows, dtype=np.int64))
        rows = rows.set_column(self._width, rows.schema.field(self._width), ones)
        was, there = before > 0, before + weights > 0
        self.gone.append(rows.filter(pa.array(was & ~there)))
        self.came.append(rows.filter(pa.array(there & ~was)))

    def _shown(self, kept: pa.Table) -> pa.Table:
        there = kept.filter(pc.greater(kept.column(self._width), 0))
        return pa.Table.from_arrays(there.columns, schema=arrow_schema(self.schema))


class Own(_Leaf):
    """A relation of the group: its rows with their levels and places."""

    def __init__(self, leaf: Leaf, finder: Finder) -> None:
        super().__init__(leaf, finder, (*leaf.schema, LEVEL, PLACE))

    def _shown(self, kept: pa.Table) -> pa.Table:
        return self.placed(kept)

    def placed(self, rows: pa.Table) -> pa.Table:
        """Rows and their levels, with their places behind them."""
        places = hash_columns(rows.columns[: self._width], self._leaf.schema, rows.num_rows)
        columns = [*rows.columns[: self._width + 1], pa.array(places)]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.schema))

    def left(self, rows: pa.Table) -> Found:
        """Which of these rows were there and have not gone."""
        keys = rows.select(self._every) if self._every else rows
        return self._met(self.gone.lacks(self._found(self._every, keys)), self._every, keys)

    def levels(self, rows: pa.Table) -> NDArray[np.int64]:
        """The levels of rows that have them."""
        found: NDArray[np.int64] = rows.column(self._width).to_numpy()
        return found
