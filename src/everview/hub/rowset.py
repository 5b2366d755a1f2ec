"""Rows that grow: found by the hashes of some of their columns, and told by their values.

The hashes lie in sorted segments, each more than twice as long as the next, so that neither a question nor an
addition touches all of them each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.engines.spark.hashing import Hashes, hash_columns
from everview.engines.spark.types import arrow_schema
from everview.hub.runs import equal
from everview.language.plan import Schema

__all__ = ["Meeting", "RowSet", "Rows", "without_null"]

Places = NDArray[np.int64]
_NOWHERE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Which rows meet: the places of `mine`, and of `theirs` beside them."""

    mine: Places
    theirs: Places


@dataclass(frozen=True, slots=True)
class _Segment:
    """Hashes in their order, and where in the table the row of each is."""

    hashes: Hashes
    places: Places


class Rows:
    """A table that grows; `schema` has at least one column."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.table = arrow_schema(schema).empty_table()
        self._segments: dict[tuple[int, ...], list[_Segment]] = {}

    def append(self, rows: pa.Table) -> None:
        """Add rows behind those that there are."""
        if not rows.num_rows:
            return
        start = self.table.num_rows
        named = pa.Table.from_arrays(rows.columns, schema=self.table.schema)
        self.table = pa.concat_tables([self.table, named])
        for path, segments in self._segments.items():
            segments.append(self._segment(path, start))
            _merge(segments)
        if self.table.column(0).num_chunks > 32:
            self.table = self.table.combine_chunks()

    def hashes(self, path: Sequence[int], columns: Sequence[pa.ChunkedArray], rows: int) -> Hashes:
        """The hashes of keys of these columns."""
        return hash_columns(columns, [self.schema[place] for place in path], rows)

    def meet(self, path: tuple[int, ...], keys: Sequence[pa.ChunkedArray], rows: int) -> Meeting:
        """The rows whose columns `path` are equal to each of so many keys, NULL to NULL."""
        if path not in self._segments:
            self._segments[path] = [self._segment(path, 0)] if self.table.num_rows else []
        asked = self.hashes(path, keys, rows)
        mine, theirs = [_NOWHERE], [_NOWHERE]
        for segment in self._segments[path]:
            starts = np.searchsorted(segment.hashes, asked)
            ends = np.searchsorted(segment.hashes, asked, side="right")
            owners = np.repeat(np.arange(rows), ends - starts)
            first = np.cumsum(ends - starts) - (ends - starts)
            within = np.arange(len(owners)) - first[owners]
            mine.append(owners)
            theirs.append(segment.places[starts[owners] + within])
        here, there = np.concatenate(mine), np.concatenate(theirs)
        same = np.ones(len(here), dtype=bool)
        for place, key in zip(path, keys, strict=True) if len(here) else ():
            same &= equal(key.take(pa.array(here)), self.table.column(place).take(pa.array(there)))
        return Meeting(here, there) if same.all() else Meeting(here[same], there[same])

    def _segment(self, path: Sequence[int], start: int) -> _Segment:
        new = self.table.slice(start)
        hashes = self.hashes(path, [new.column(place) for place in path], new.num_rows)
        order = np.argsort(hashes, kind="stable")
        return _Segment(hashes[order], start + order)


class RowSet(Rows):
    """Rows of which the first `width` columns say which row it is; each is there once."""

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__(schema)
        self._identity = tuple(range(width))

    def add(self, rows: pa.Table) -> pa.Table:
        """Add rows, of several that are the same the first; return those that were not there."""
        fresh = self.lacks(self.once(rows))
        self.append(fresh)
        return fresh

    def lacks(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that are not in the set."""
        return rows.filter(pa.array(~self.has(rows))) if self.table.num_rows else rows

    def has(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Which of the rows are in the set."""
        found = np.zeros(rows.num_rows, dtype=bool)
        if self.table.num_rows and rows.num_rows:
            found[self.meet(self._identity, self._keys(rows), rows.num_rows).mine] = True
        return found

    def once(self, rows: pa.Table) -> pa.Table:
        """Each of the rows once, the first of it."""
        keys = self._keys(rows)
        hashes = self.hashes(self._identity, keys, rows.num_rows)
        left, found = np.argsort(hashes, kind="stable"), []
        while len(left):
            # One row of each hash; those of the same hash that are not equal to it are looked at again.
            ordered = hashes[left]
            first = np.ones(len(left), dtype=bool)
            first[1:] = ordered[1:] != ordered[:-1]
            found.append(left[first])
            others = left[~first]
            leaders = left[np.flatnonzero(first)[np.cumsum(first) - 1]][~first]
            same = np.ones(len(others), dtype=bool)
            for key in keys if len(others) else ():
                same &= equal(key.take(pa.array(others)), key.take(pa.array(leaders)))
            left = others[~same]
        if not found or len(found[0]) == rows.num_rows:
            return rows
        return rows.take(pa.array(np.sort(np.concatenate(found))))

    def _keys(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        return rows.columns[: len(self._identity)]


def without_null(keys: Sequence[pa.ChunkedArray], places: Places) -> NDArray[np.bool_]:
    """Which of the places have no NULL in any of the keys."""
    valid = np.ones(len(places), dtype=bool)
    for key in keys:
        if key.null_count:
            valid &= pc.is_valid(key).to_numpy()[places]
    return valid


def _merge(segments: list[_Segment]) -> None:
    while len(segments) > 1 and len(segments[-2].hashes) <= 2 * len(segments[-1].hashes):
        last, before = segments.pop(), segments.pop()
        hashes = np.concatenate((before.hashes, last.hashes))
        order = np.argsort(hashes, kind="stable")
        places = np.concatenate((before.places, last.places))[order]
        segments.append(_Segment(hashes[order], places))
