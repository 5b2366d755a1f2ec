"""Widening: the runs of a relation that gets nullable columns, written anew with NULLs in them.

A row is found by the hash of its id, which leaves NULLs out, or of its key. So every row keeps its hash, and
every run its order; each part is read and written by itself, by the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.engines.spark.types import arrow_schema
from everview.hub.compact import PLACE_NAMES, PLACES, write_part
from everview.hub.files import Files
from everview.hub.jobs import entitled, job
from everview.hub.lookup import open_part
from everview.hub.relations import LatticeTable
from everview.hub.runs import HASH, Part, Run

__all__ = ["widened_runs"]


def widened_runs(
    spark: SparkSession, files: Files, table: LatticeTable, runs: Sequence[Run], width: int
) -> tuple[Run, ...]:
    """The runs of a relation that had only so many columns, as runs of the table that it has now."""
    parts = [part for run in runs for part in run.parts]
    if not parts:
        return ()
    what = f"adds columns to {table.relation.name}"
    task = entitled(_widening(files, parts, table, width), what)
    with job(spark.sparkContext, what):
        places = (
            spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, f"number BIGINT, {PLACES}").toArrow()
        )
    written = {row.pop("number"): Part(**row) for row in places.to_pylist()}
    found, place = [], 0
    for run in runs:
        found.append(Run(run.rows, tuple(written[place + n] for n in range(len(run.parts)))))
        place += len(run.parts)
    return tuple(found)


def _widening(
    files: Files, parts: Sequence[Part], table: LatticeTable, width: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    types = arrow_schema(table.schema).types
    more = types[width : len(table.relation.schema)]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = open_part(files)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = opened(parts[number])
                head, *own = rows.columns
                nothing = [pa.nulls(rows.num_rows, kind) for kind in more]
                columns = [head, *own[:width], *nothing, *own[width:]]
                names = [HASH, *(f"c{place}" for place in range(len(columns) - 1))]
                (place,) = write_part(files, pa.Table.from_arrays(columns, names=names)).to_pylist()
                yield pa.RecordBatch.from_pylist(
                    [{"number": number, **{name: place[name] for name in PLACE_NAMES}}]
                )

    return run
