"""Sets of rows that grow: which of some rows are known, found by their hashes and told by their values.

The hashes lie in sorted segments, each more than twice as long as the next, so that neither a question nor an
addition touches all of them each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.engines.spark.hashing import Hashes, hash_columns
from everview.engines.spark.types import arrow_schema
from everview.hub.runs import equal
from everview.language.plan import Schema

__all__ = ["RowSet"]

Places = NDArray[np.int64]
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class _Segment:
    """Hashes in their order, and where in the table the row of each is."""

    hashes: Hashes
    places: Places


class RowSet:
    """Rows of one schema, each once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._segments: list[_Segment] = []
        self._table = empty(schema)

    @property
    def table(self) -> pa.Table:
        """The rows, in the order in which they were added."""
        return self._table

    def add(self, rows: pa.Table) -> pa.Table:
        """Add rows; return those that were not there, each once."""
        hashes = self._hashes(rows)
        once = self._once(rows, hashes)
        rows, hashes = rows.take(pa.array(once)), hashes[once]
        missing = ~self._known(rows, hashes)
        if not missing.all():
            rows, hashes = rows.filter(pa.array(missing)), hashes[missing]
        if rows.num_rows:
            places = np.arange(self._table.num_rows, self._table.num_rows + rows.num_rows)
            self._segments.append(_Segment(hashes, places))
            self._table = pa.concat_tables([self._table, rows])
            self._merge()
        return rows

    def lacks(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that are not in the set."""
        return rows.filter(pa.array(~self._known(rows, self._hashes(rows))))

    def _hashes(self, rows: pa.Table) -> Hashes:
        return hash_columns(rows.columns[: len(self._schema)], self._schema, rows.num_rows)

    def _once(self, rows: pa.Table, hashes: Hashes) -> Places:
        """Where each of the rows stands for the first time, in the order of the hashes."""
        order: Places = np.argsort(hashes, kind="stable")
        left, found = order, []
        while len(left):
            # One row of each hash; those of the same hash that are not equal to it are looked at again.
            ordered = hashes[left]
            first = np.ones(len(left), dtype=bool)
            first[1:] = ordered[1:] != ordered[:-1]
            found.append(left[first])
            others = left[~first]
            leaders = left[np.flatnonzero(first)[np.cumsum(first) - 1]][~first]
            left = others[~self._same(rows, others, rows, leaders)]
        places = np.concatenate(found) if found else order
        return places[np.argsort(hashes[places], kind="stable")] if len(found) > 1 else places

    def _known(self, rows: pa.Table, hashes: Hashes) -> NDArray[np.bool_]:
        known = np.zeros(len(hashes), dtype=bool)
        for segment in self._segments:
            at = np.searchsorted(segment.hashes, hashes)
            asked = np.flatnonzero(~known)
            while len(asked):
                asked = asked[at[asked] < len(segment.hashes)]
                asked = asked[segment.hashes[at[asked]] == hashes[asked]]
                same = self._same(rows, asked, self._table, segment.places[at[asked]])
                known[asked[same]] = True
                asked = asked[~same]
                at[asked] += 1  # another row may have the same hash
        return known

    def _same(self, rows: pa.Table, mine: Places, others: pa.Table, theirs: Places) -> NDArray[np.bool_]:
        same = np.ones(len(mine), dtype=bool)
        if len(mine):
            for one, other in zip(rows.columns, others.columns, strict=True):
                same &= equal(one.take(pa.array(mine)), other.take(pa.array(theirs)))
        return same

    def _merge(self) -> None:
        while len(self._segments) > 1 and len(self._segments[-2].hashes) <= 2 * len(
            self._segments[-1].hashes
        ):
            last, before = self._segments.pop(), self._segments.pop()
            hashes = np.concatenate((before.hashes, last.hashes))
            order = np.argsort(hashes, kind="stable")
            places = np.concatenate((before.places, last.places))[order]
            self._segments.append(_Segment(hashes[order], places))
        if self._table.num_columns and self._table.column(0).num_chunks > 2 * len(self._segments) + 8:
            self._table = self._table.combine_chunks()


def empty(schema: Schema) -> pa.Table:
    """No rows; what has no columns has one that says nothing, for there may be rows."""
    if not schema:
        return pa.table({_NOTHING: pa.nulls(0, pa.bool_())})
    return arrow_schema(schema).empty_table()
