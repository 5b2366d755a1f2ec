"""Finding kept rows by the hashes of their keys, in one range of hashes: what one task of a lookup does.

Rows that several runs have are added up. Of ranked rows only the first or last of a key are taken from each
run, and what is certain of them is kept: beyond the farthest place that all runs were read to, a run that was
not read to its end may have more to say. Keys for which that is too little are read further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.engines.spark.hashing import Hashes
from everview.hub.runs import HASH, RANK, Layout, Part, equal, merged, shared_hashes

__all__ = ["Request", "TooManyError", "search"]

Places = NDArray[np.int64]
Edges = NDArray[Any]
Open = Callable[[Part], pa.Table]

_AT_ONCE = 8
"""How many times more ranked rows than are found in the end a task may look at."""

_AHEAD = 2
"""How many times more ranked rows are read at first than are needed: some of them are gone."""


class TooManyError(Exception):
    """More rows were found than the asker can take."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of one table: the rows of these hashes, or all; of each only the `first`, or the `last`.

    `needed` says of how many rows of each hash the ranked ones are.
    """

    parts: tuple[Part, ...]
    layout: Layout
    hashes: Hashes | None
    needed: Places | None = None
    first: bool = False
    last: bool = False


def search(request: Request, low: int, high: int, open_part: Open, most: int | None) -> pa.Table | None:
    """The rows whose hashes lie between two, both included; None when there are none."""
    parts = [part for part in request.parts if part.low <= high and part.high >= low]
    if not parts:
        return None
    if request.hashes is None:
        tables = [_between(open_part(part), low, high) for part in parts]
        return _together([table for table in tables if table.num_rows], request.layout, most)
    within = slice(np.searchsorted(request.hashes, low), np.searchsorted(request.hashes, high, side="right"))
    hashes = request.hashes[within]
    if not len(hashes):
        return None
    tables = [open_part(part) for part in parts]
    if request.needed is not None:
        return _ranked(request, tables, hashes, request.needed[within], most)
    found = []
    rows = 0
    for table in tables:
        starts, ends = _ranges(table, hashes)
        rows += int((ends - starts).sum())
        _check(rows, most)
        if rows:
            found.append(table.take(pa.array(_expanded(starts, ends)[0])))
    return _together([table for table in found if table.num_rows], request.layout, most)


def _check(rows: int, most: int | None) -> None:
    if most is not None and rows > most:
        raise TooManyError


def _between(table: pa.Table, low: int, high: int) -> pa.Table:
    hashes = _hashes(table)
    start, end = np.searchsorted(hashes, low), np.searchsorted(hashes, high, side="right")
    return table.slice(start, end - start)


def _hashes(table: pa.Table) -> Hashes:
    found: Hashes = table.column(HASH).chunk(0).to_numpy()
    return found


def _ranges(table: pa.Table, wanted: Hashes) -> tuple[Places, Places]:
    hashes = _hashes(table)
    return np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, side="right")


def _expanded(starts: Places, ends: Places) -> tuple[Places, Places]:
    """All places from each start to its end, and which of the ranges each belongs to."""
    counts = ends - starts
    owners = np.repeat(np.arange(len(starts)), counts)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return starts[owners] + within, owners


def _together(tables: Sequence[pa.Table], layout: Layout, most: int | None) -> pa.Table | None:
    _check(sum(table.num_rows for table in tables), most)
    if not tables:
        return None
    return merged(tables, layout) if len(tables) > 1 else tables[0].replace_schema_metadata(None)


def _ranked(
    request: Request, tables: Sequence[pa.Table], hashes: Hashes, needed: Places, most: int | None
) -> pa.Table | None:
    shared = _shared(request.layout, tables, hashes)
    found = [_plain(table, hashes[shared]) for table in tables] if shared.any() else []
    found = [merged(found, request.layout)] if found else []
    for last, wanted in ((False, request.first), (True, request.last)):
        if wanted:
            found += _ends(request.layout, tables, hashes[~shared], needed[~shared], last=last, most=most)
    found = [table.replace_schema_metadata(None) for table in found if table.num_rows]
    if len(found) < 2:
        return found[0] if found else None
    # A row that both ends have has the same sum in both.
    both = pa.concat_tables(found)
    names = both.column_names
    once = both.group_by(names, use_threads=False).aggregate([])
    return pa.Table.from_arrays([once.column(name) for name in names], schema=both.schema)


def _plain(table: pa.Table, hashes: Hashes) -> pa.Table:
    starts, ends = _ranges(table, hashes)
    return table.take(pa.array(_expanded(starts, ends)[0]))


def _shared(layout: Layout, tables: Sequence[pa.Table], hashes: Hashes) -> NDArray[np.bool_]:
    """The hashes that two keys share: within a run, where that is noted, or between runs."""
    noted = [value for table in tables for value in shared_hashes(table)]
    found = np.isin(hashes, np.array(noted, dtype=np.int64))
    leaders: pa.Table | None = None
    owners = np.full(len(hashes), -1)
    for table in tables:
        starts, ends = _ranges(table, hashes)
        here = np.flatnonzero(ends > starts)
        keys = table.select([2 + place for place in layout.key or ()]).take(pa.array(starts[here]))
        met = np.flatnonzero(owners[here] >= 0)
        if leaders is not None and len(met):
            theirs = leaders.take(pa.array(owners[here[met]]))
            for mine, other in zip(keys.take(pa.array(met)).columns, theirs.columns, strict=True):
                found[here[met]] |= ~equal(mine, other)
        fresh = np.flatnonzero(owners[here] < 0)
        owners[here[fresh]] = np.arange(len(fresh)) + (leaders.num_rows if leaders is not None else 0)
        more = keys.take(pa.array(fresh))
        leaders = more if leaders is None else pa.concat_tables([leaders, more])
    return found


def _ends(
    layout: Layout,
    tables: Sequence[pa.Table],
    hashes: Hashes,
    needed: Places,
    *,
    last: bool,
    most: int | None,
) -> list[pa.Table]:
    found: list[pa.Table] = []
    rows = 0
    depth = _AHEAD * needed
    while len(hashes):
        taken, cut, edges = _taken(tables, hashes, depth, last=last)
        if taken is None:
            break
        # Of what several runs have of a key, most is not needed; but a task has to hold it for a moment.
        _check(taken.num_rows // _AT_ONCE, most)
        joined = merged([taken], layout)
        owners = np.searchsorted(hashes, joined.column(HASH).to_numpy())
        certain = ~cut[owners]
        doubtful = np.flatnonzero(~certain)
        if len(doubtful):
            certain[doubtful] = _before(
                joined.column(RANK).take(pa.array(doubtful)), edges, owners[doubtful], last=last
            )
        counts = np.bincount(owners[certain], minlength=len(hashes))
        enough = ~cut | (counts >= needed)
        found.append(joined.filter(pa.array(certain & enough[owners])))
        rows += found[-1].num_rows
        _check(rows, most)
        hashes, needed, depth = hashes[~enough], needed[~enough], 4 * depth[~enough]
    return [table for table in found if table.num_rows]


def _taken(
    tables: Sequence[pa.Table], hashes: Hashes, depth: Places, *, last: bool
) -> tuple[pa.Table | None, NDArray[np.bool_], Edges]:
    """The rows at one end of each hash, whether some run was cut off, and the nearest place where one was."""
    pieces: list[pa.Table] = []
    cut = np.zeros(len(hashes), dtype=bool)
    edges: Edges = np.empty(len(hashes), dtype=_rank_type(tables[0]))
    for table in tables:
        starts, ends = _ranges(table, hashes)
        shorter = np.minimum(ends - starts, depth)
        cut_here = np.flatnonzero(ends - starts > shorter)
        starts, ends = (ends - shorter, ends) if last else (starts, starts + shorter)
        if len(cut_here):
            found = _ranks(table.column(RANK).take(pa.array((starts if last else ends - 1)[cut_here])))
            known = edges[cut_here]
            nearer = ~cut[cut_here]
            again = np.flatnonzero(~nearer)
            nearer[again] = found[again] > known[again] if last else found[again] < known[again]
            edges[cut_here] = np.where(nearer, found, known)
            cut[cut_here] = True
        places, _ = _expanded(starts, ends)
        if len(places):
            pieces.append(table.take(pa.array(places)))
    return (pa.concat_tables(pieces) if pieces else None), cut, edges


def _rank_type(table: pa.Table) -> type:
    return np.int64 if pa.types.is_integer(table.schema.field(RANK).type) else object


def _ranks(column: pa.ChunkedArray) -> Edges:
    found: Edges = column.to_numpy(zero_copy_only=False)
    return found


def _before(column: pa.ChunkedArray, edges: Edges, owners: Places, *, last: bool) -> NDArray[np.bool_]:
    """Whether each row stands nearer to its end than where a run was cut off."""
    ranks = _ranks(column)
    return np.asarray(ranks > edges[owners] if last else ranks < edges[owners], dtype=bool)
