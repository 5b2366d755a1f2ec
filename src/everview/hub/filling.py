"""Filling a gate that was just made with what the hub has: its last refresh becomes the gate's own rows.

A key's row counts as written when the refresh was made by which it came, so that what a site has written
since is the later write. Refreshes that are no longer retained count as made with the oldest that is. Rows
that belong to another site (`WITH (owner = …)`) are left out: only that site can tell others of them, and
it will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.engines.spark.types import column_names
from everview.hub.exporting import CHUNK, stored_columns
from everview.hub.files import Files
from everview.hub.gate import Gate
from everview.hub.lookup import open_part, ranges
from everview.hub.record import Record, read, refreshes
from everview.hub.relations import LatticeTable
from everview.hub.searching import Request, search
from everview.hub.tables import Catalog
from everview.language.relations import Relation, Semantics

__all__ = ["fill"]

Times = NDArray[np.int64]


def fill(
    gate: Gate, files: Files, catalog: Catalog, record: Record, name: str, on_rows: Callable[[int], object]
) -> None:
    """Put the rows of the last refresh into the gate of the hub of that name.

    `on_rows` is told now and then how many rows are in.
    """
    versions, times = _times(files, record)
    done = 0
    for table in catalog.relations:
        relation = table.relation
        for found in _scanned(files, record, table):
            often = table.weights(found.column(len(relation.schema)).to_numpy())
            own = (often > 0) & _own(relation, found, name)
            made = np.full(len(often), times[-1])
            if relation.semantics is Semantics.KEYED:
                came = found.column(len(relation.schema) + 1).to_numpy()
                made = times[np.searchsorted(versions, came).clip(0, len(times) - 1)]
            places = np.repeat(np.arange(len(often)), np.where(own, often, 0))
            for moment in np.unique(made[places]):
                some = places[made[places] == moment]
                for start in range(0, len(some), CHUNK):
                    rows = found.select(range(len(relation.schema))).take(
                        pa.array(some[start : start + CHUNK])
                    )
                    gate.fill(relation, stored_columns(rows, relation), int(moment))
                    done += rows.num_rows
                    on_rows(done)


def _scanned(files: Files, record: Record, table: LatticeTable) -> Iterator[pa.Table]:
    """All that is stored of a relation, in ranges of hashes with about a chunk each."""
    runs = record.runs(table.name)
    parts = tuple(part for run in runs for part in run.parts)
    if not parts:
        return
    request, opened = Request(parts, table.layout, None), open_part(files)
    for low, high in ranges(max(1, sum(run.rows for run in runs) // CHUNK)):
        found = search(request, low, high, opened, None)
        if found is not None and found.num_rows:
            yield found.select(column_names(len(table.schema)))


def _own(relation: Relation, found: pa.Table, name: str) -> NDArray[np.bool_]:
    if relation.owner is None:
        return np.ones(found.num_rows, dtype=np.bool_)
    owner = found.column(relation.columns.index(relation.owner))
    return np.asarray(pc.fill_null(pc.equal(owner, name), False))


def _times(files: Files, record: Record) -> tuple[Times, Times]:
    """The refreshes that there are records of, and when each was made."""
    made: dict[int, int] = {}
    for number in refreshes(files):
        found = read(files, number)
        made.setdefault(found.refresh, found.refreshed_us or found.made_us)
    made.setdefault(record.refresh, record.refreshed_us or record.made_us)
    pairs = sorted(made.items())
    return np.array([v for v, _ in pairs], dtype=np.int64), np.array([t for _, t in pairs], dtype=np.int64)
