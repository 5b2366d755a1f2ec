"""The join of set relations in one pass over sorted hashes: what the plans of `sets` say, and much faster.

A hash nearly always says which row it is. Where two rows have the same one, this way gives up and the plans
are run.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.hub.runs import HASH, equal

__all__ = ["join_by_hash"]


def join_by_hash(
    come: pa.Table, stored: pa.Table | None, width: int, version: int
) -> tuple[pa.Table, pa.Table] | None:
    """What is stored anew, sorted, hashes first; and the change. None when two rows have one hash.

    `come` has hashes, `width` columns and marks; `stored` hashes, columns, causal lengths and versions.
    """
    hashes = come.column(HASH).to_numpy()
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    leaders = order[starts]
    if len(leaders) < len(order):
        again = np.delete(order, starts)
        firsts = leaders[np.searchsorted(ordered[starts], hashes[again])]
        if not _same(come, again, come, firsts, width):
            return None
    # The last write of a row counts.
    marks = np.maximum.reduceat(come.column(width + 1).to_numpy()[order], starts)
    before = np.zeros(len(starts), dtype=np.int64)
    if stored is not None:
        found = _found(ordered[starts], stored)
        if found is None:
            return None
        met, places = found
        if not _same(come, leaders[met], stored, places, width):
            return None
        before[met] = stored.column(width + 1).to_numpy()[places]
    turned = np.flatnonzero(marks % 2 != before % 2)
    after = before[turned] + 1
    rows = come.select(range(1, width + 1)).take(pa.array(leaders[turned]))
    names = [f"c{place}" for place in range(width + 2)]
    versions = np.full(len(turned), version)
    grown = [pa.array(ordered[starts][turned]), *rows.columns, pa.array(after), pa.array(versions)]
    change = [*rows.columns, pa.array(np.where(after % 2, 1, -1))]
    return (
        pa.Table.from_arrays(grown, names=[HASH, *names]),
        pa.Table.from_arrays(change, names=names[: width + 1]),
    )


def _found(hashes: NDArray[np.int64], stored: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Which of the hashes are stored, and where; None when one is stored twice."""
    theirs = stored.column(HASH).to_numpy()
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    if np.any(ordered[1:] == ordered[:-1]):
        return None
    places = np.searchsorted(ordered, hashes)
    places[places == len(ordered)] = 0
    met = np.flatnonzero(ordered[places] == hashes) if len(ordered) else np.empty(0, dtype=np.int64)
    return met, order[places[met]] if len(ordered) else met


def _same(
    one: pa.Table, ours: NDArray[np.int64], other: pa.Table, theirs: NDArray[np.int64], width: int
) -> bool:
    for place in range(1, width + 1):
        left = pc.take(one.column(place), pa.array(ours))
        right = pc.take(other.column(place), pa.array(theirs))
        if not equal(left, right).all():
            return False
    return True
