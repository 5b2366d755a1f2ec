"""Tables in memory and plans over them, in Arrow and by SQLite: on the driver, and in every task.

Arrow does what it can do exactly (see `columnar`); every other node is the device's engine's, which agrees
with the reference value by value.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from everview.engines.spark.types import arrow_schema, arrow_type
from everview.engines.sqlite.batch import Batch
from everview.engines.sqlite.circuits import totals
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.scalars import functions
from everview.engines.sqlite.scalars.storage import NAN_TEXT, is_long, load_value, store_value
from everview.hub.columnar import Columnar
from everview.language.expressions import Column as ColumnOf
from everview.language.plan import Join, Plan, Scan, Schema, map_inputs
from everview.language.types import Kind, Type
from everview.language.values import NAN
from everview.planner.circuit.parts import table_of
from everview.planner.facts import equi_keys

__all__ = ["Memory", "loaded_column", "stored_column"]


class Memory:
    """Named tables in memory, as Arrow columns; SQLite gets those that it has work with."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self.failures = 0
        functions.register(self._connection, self._failed)
        totals.register(self._connection, self._failed)
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._tables: dict[str, tuple[Schema, pa.Table]] = {}
        self._numbers = itertools.count()

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def _failed(self, _what: str) -> None:
        self.failures += 1

    def put(self, name: str, schema: Schema, table: pa.Table) -> None:
        """A table from columns."""
        self._tables[name] = schema, table

    def run(self, name: str, plan: Plan) -> None:
        """Keep the rows of a plan under a name."""
        self._tables[name] = plan.schema, Columnar(self._source, self._by_sqlite).table(plan)

    def names(self) -> list[str]:
        """The tables that there are."""
        return list(self._tables)

    def schema(self, name: str) -> Schema:
        """The columns of a table."""
        return self._tables[name][0]

    def count(self, name: str) -> int:
        """How many rows a table has."""
        return int(self._tables[name][1].num_rows)

    def table(self, name: str) -> pa.Table:
        """A table as columns."""
        return self._tables[name][1]

    def _source(self, scan: Scan) -> pa.Table:
        name, bag = table_of(scan.name)
        table = self._tables[name][1]
        if not bag:
            return table
        often = np.maximum(table.columns[-1].to_numpy(), 0)
        rows = table.select(range(table.num_columns - 1))
        if not rows.num_columns:
            return pa.table({"nothing": pa.nulls(int(often.sum()), pa.bool_())})
        if np.all(often == 1):
            return rows
        return rows.take(pa.array(np.repeat(np.arange(len(often)), often)))

    def _by_sqlite(self, plan: Plan, inputs: Sequence[pa.Table]) -> pa.Table:
        """One node over tables."""
        made: dict[str, str] = {}
        scans = []
        for child, table in zip(plan.inputs, inputs, strict=True):
            name = f"d{next(self._numbers)}"
            self._load(name, child.schema, table)
            made[name] = f"SELECT {', '.join([*columns(len(child.schema)), '1 AS w'])} FROM {name}"
            scans.append(Scan(name, child.schema))
        given = iter(scans)
        node = map_inputs(plan, lambda _: next(given))
        if isinstance(node, Join):
            self._index(node, [scan.name for scan in scans])
        found = self._connection.execute(Batch(made.__getitem__).sql(node)).fetchall()
        for name in made:
            self._connection.execute(f"DROP TABLE {name}")
        return _columns(plan.schema, found)

    def _load(self, name: str, schema: Schema, table: pa.Table) -> None:
        listed = ", ".join(columns(len(schema))) or "none"
        self._connection.execute(f"CREATE TABLE {name} ({listed})")
        given = [stored_column(column, f.type) for column, f in zip(table.columns, schema, strict=False)]
        rows: Iterable[Sequence[Any]] = zip(*given, strict=True) if schema else [(None,)] * table.num_rows
        marks = ", ".join("?" * max(1, len(schema)))
        self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    def _index(self, join: Join, tables: Sequence[str]) -> None:
        """Whether there is a partner is asked row by row: by an index, or it takes both sides' product."""
        pairs = equi_keys(join).pairs
        for table, sides in zip(tables, zip(*((p.left, p.right) for p in pairs), strict=True), strict=False):
            places = [side.index for side in sides if isinstance(side, ColumnOf)]
            if places:
                listed = ", ".join(columns(max(places) + 1)[place] for place in places)
                self._connection.execute(f"CREATE INDEX {table}_keys ON {table} ({listed})")


def _columns(schema: Schema, found: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows as SQLite gave them, each with how often it is there."""
    often = [row[-1] for row in found]
    if any(count != 1 for count in often):
        found = [row for row in found for _ in range(row[-1])]
    if not schema:
        return pa.table({"nothing": pa.nulls(len(found), pa.bool_())})
    cells: Sequence[Sequence[Any]] = list(zip(*found, strict=True)) if found else [()] * (len(schema) + 1)
    arrays = [loaded_column(column, field.type) for column, field in zip(cells, schema, strict=False)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def stored_column(column: pa.ChunkedArray, kind: Type) -> Sequence[Any]:
    """A column as SQLite is given it."""
    match kind.kind:
        case Kind.DATE:
            return _list(column.cast(pa.int32()))
        case Kind.TIMESTAMP:
            return _list(column.cast(pa.int64()))
        case Kind.DOUBLE:
            values = _list(column)
            if pa.compute.any(pa.compute.is_nan(column)).as_py():
                return [NAN_TEXT if value != value else value for value in values]  # noqa: PLR0124  (NaN)
            return values
        case Kind.DECIMAL if not is_long(kind):
            return _units(column)
        case Kind.DECIMAL:
            return [store_value(value, kind) for value in _list(column)]
        case _:
            return _list(column)


def _list(column: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = column.to_pylist()
    return found


def _units(column: pa.ChunkedArray) -> list[Any]:
    """The units of short DECIMALs: the lower half of Arrow's 16 bytes, little end first."""
    found: list[Any] = []
    for chunk in column.chunks:
        halves = np.frombuffer(chunk.buffers()[1], dtype=np.int64)
        units = halves[2 * chunk.offset : 2 * (chunk.offset + len(chunk)) : 2].tolist()
        valid = chunk.is_valid().to_pylist() if chunk.null_count else None
        found += units if valid is None else [u if ok else None for u, ok in zip(units, valid, strict=True)]
    return found


def loaded_column(cells: Sequence[Any], kind: Type) -> pa.Array:
    """A column as SQLite gave it."""
    match kind.kind:
        case Kind.BOOLEAN:
            return pa.array(cells, pa.int64()).cast(pa.bool_())
        case Kind.DATE:
            return pa.array(cells, pa.int32()).cast(pa.date32())
        case Kind.TIMESTAMP:
            return pa.array(cells, pa.int64()).cast(arrow_type(kind))
        case Kind.DOUBLE:
            if NAN_TEXT in cells:
                cells = [NAN if isinstance(cell, str) else cell for cell in cells]
            return pa.array(cells, pa.float64())
        case Kind.DECIMAL:
            return pa.array([load_value(cell, kind) for cell in cells], arrow_type(kind))
        case _:
            return pa.array(cells, arrow_type(kind))
