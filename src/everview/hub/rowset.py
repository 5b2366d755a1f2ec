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
_NEAR = 1 << 15
"""So many hashes are near enough to be asked for in any order."""


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
        asked = self.hashes(path, keys, rows)
        if all(len(segment.hashes) <= _NEAR for segment in self._found_by(path)):
            return self._met(path, keys, asked, None)
        order = np.argsort(asked)  # neighbours are found in the same place
        return self._met(path, keys, asked[order], order)

    def _found_by(self, path: tuple[int, ...]) -> list[_Segment]:
        if path not in self._segments:
            self._segments[path] = [self._segment(path, 0)] if self.table.num_rows else []
        return self._segments[path]

    def _met(
        self, path: tuple[int, ...], keys: Sequence[pa.ChunkedArray], asked: Hashes, order: Places | None
    ) -> Meeting:
        """What meets keys with these hashes; `order` is where each of them stands among the keys."""
        mine, theirs = [_NOWHERE], [_NOWHERE]
        for segment in self._found_by(path):
            owners, places = _places(segment.hashes, asked)
            mine.append(owners if order is None else order[owners])
            theirs.append(segment.places[places])
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
        fresh = self.fresh(rows)
        self.append(fresh)
        return fresh

    def fresh(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that are not in the set, each once, the first of it."""
        keys = self._keys(rows)
        hashes = self.hashes(self._identity, keys, rows.num_rows)
        once = _once(keys, hashes)
        known = np.zeros(rows.num_rows, dtype=bool)
        known[self._met(self._identity, keys, hashes[once], once).mine] = True
        return rows.take(pa.array(once[~known[once]]))

    def lacks(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that are not in the set."""
        if not self.table.num_rows or not rows.num_rows:
            return rows
        known = np.zeros(rows.num_rows, dtype=bool)
        known[self.meet(self._identity, self._keys(rows), rows.num_rows).mine] = True
        return rows.filter(pa.array(~known))

    def _keys(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        keys: list[pa.ChunkedArray] = rows.columns[: len(self._identity)]
        return keys


def _once(keys: Sequence[pa.ChunkedArray], hashes: Hashes) -> Places:
    """Where each key stands for the first time, in the order of the hashes."""
    order: Places = np.argsort(hashes, kind="stable")
    left, found = order, [_NOWHERE]
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
    places = np.concatenate(found)
    return places[np.argsort(hashes[places], kind="stable")] if len(found) > 2 else places


def without_null(keys: Sequence[pa.ChunkedArray], places: Places) -> NDArray[np.bool_]:
    """Which of the places have no NULL in any of the keys."""
    valid = np.ones(len(places), dtype=bool)
    for key in keys:
        if key.null_count:
            valid &= pc.is_valid(key).to_numpy()[places]
    return valid


def _places(hashes: Hashes, asked: Hashes) -> tuple[Places, Places]:
    """Where hashes, both in their order, are the same: the places of those asked for, and of the others."""
    starts = np.searchsorted(hashes, asked)
    inside = starts < len(hashes)
    known = np.flatnonzero(inside)[hashes[starts[inside]] == asked[inside]]
    starts = starts[known]
    counts = np.searchsorted(hashes, asked[known], side="right") - starts
    if counts.all() and len(counts) == counts.sum():
        return known, starts
    owners = np.repeat(np.arange(len(known)), counts)
    within = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
    return known[owners], starts[owners] + within


def _merge(segments: list[_Segment]) -> None:
    while len(segments) > 1 and len(segments[-2].hashes) <= 2 * len(segments[-1].hashes):
        last, before = segments.pop(), segments.pop()
        hashes = np.concatenate((before.hashes, last.hashes))
        order = np.argsort(hashes, kind="stable")
        places = np.concatenate((before.places, last.places))[order]
        segments.append(_Segment(hashes[order], places))
