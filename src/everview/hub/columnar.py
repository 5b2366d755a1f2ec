"""Plans over Arrow tables, node by node; a node that Arrow cannot do exactly is left to SQLite.

Columns go by position. A row is there as often as it occurs, so every result is a table of plain rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engines.spark.hashing import double_bits
from everview.engines.spark.types import arrow_schema, arrow_table
from everview.hub.vectors import NotHereError, vector
from everview.language.aggregates import AggregateCall
from everview.language.expressions import TRUE, Column, Expression, Literal
from everview.language.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    Schema,
    UnionAll,
    Values,
)
from everview.language.types import Kind, Type
from everview.language.values import EXACT
from everview.planner.facts import EquiKeys, equi_keys

__all__ = ["Columnar"]

_NOTHING = "nothing"
_JOINS = {JoinKind.SEMI: "left semi", JoinKind.ANTI: "left anti"}
_KEYS = (Kind.BIGINT, Kind.TEXT, Kind.BLOB, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.DECIMAL)
_MOST_PAIRS = 1 << 20
"""A join without a key pairs all rows with all, up to so many."""
_SUMS = {Kind.BIGINT: 2**63, Kind.DECIMAL: 10**38}


class Columnar:
    """Runs plans: `source` gives the table of a Scan, `otherwise` runs a node over tables."""

    def __init__(
        self,
        source: Callable[[Scan], pa.Table],
        otherwise: Callable[[Plan, Sequence[pa.Table]], pa.Table],
    ) -> None:
        self._source = source
        self._otherwise = otherwise
        self._done: dict[Plan, pa.Table] = {}

    def table(self, plan: Plan) -> pa.Table:
        """The rows of a plan; equal parts are computed once."""
        if plan not in self._done:
            self._done[plan] = self._node(plan)
        return self._done[plan]

    def _node(self, plan: Plan) -> pa.Table:
        if isinstance(plan, Scan):
            return self._source(plan)
        inputs = [self.table(child) for child in plan.inputs]
        try:
            return self._arrow(plan, inputs)
        except (NotHereError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return self._otherwise(plan, inputs)

    def _arrow(self, plan: Plan, inputs: Sequence[pa.Table]) -> pa.Table:
        match plan:
            case Filter(_, predicate):
                (table,) = inputs
                return table.filter(pc.fill_null(vector(predicate, table.columns, table.num_rows), False))
            case Project(_, expressions):
                (table,) = inputs
                made = [vector(expression, table.columns, table.num_rows) for expression in expressions]
                return _named(made, plan.schema, table.num_rows)
            case UnionAll():
                return pa.concat_tables(inputs)
            case Join():
                return _joined(plan, *inputs)
            case Distinct(child):
                (table,) = inputs
                keys = tuple(Column(i, field.type, field.name) for i, field in enumerate(child.schema))
                return _aggregated(Aggregate(child, keys, (), tuple(f.name for f in child.schema)), table)
            case Aggregate():
                return _aggregated(plan, inputs[0])
            case Values(schema, rows) if schema:
                return arrow_table(schema, [tuple(map(_constant, row)) for row in rows])
            case _:
                raise NotHereError(type(plan).__name__)


def _constant(cell: Expression) -> Any:
    if not isinstance(cell, Literal):
        raise NotHereError(type(cell).__name__)
    return cell.value


def _named(columns: Sequence[Any], schema: Schema, rows: int) -> pa.Table:
    if not columns:
        return pa.table({_NOTHING: pa.nulls(rows, pa.bool_())})
    return pa.Table.from_arrays(list(columns), schema=arrow_schema(schema))


def _joined(plan: Join, left: pa.Table, right: pa.Table) -> pa.Table:
    keys = equi_keys(plan)
    if plan.kind is JoinKind.INNER:
        return _met(plan, keys, left, right)
    if plan.kind not in _JOINS or keys.residual != TRUE or not keys.pairs:
        raise NotHereError("join")
    pairs = []
    for pair in keys.pairs:
        if pair.null_safe or not isinstance(pair.left, Column) or not isinstance(pair.right, Column):
            raise NotHereError("join")
        if pair.left.type.kind not in _KEYS:
            raise NotHereError("join")
        pairs.append((pair.left.index, pair.right.index))
    ours = left.rename_columns([f"l{i}" for i in range(left.num_columns)])
    theirs = right.select([other for _, other in pairs]).rename_columns([f"r{i}" for i in range(len(pairs))])
    joined = ours.join(
        theirs,
        [f"l{one}" for one, _ in pairs],
        list(theirs.column_names),
        _JOINS[plan.kind],
        use_threads=False,
    )
    return _named([joined.column(name) for name in ours.column_names], plan.schema, joined.num_rows)


def _met(plan: Join, keys: EquiKeys, left: pa.Table, right: pa.Table) -> pa.Table:
    """By the numbers of the rows that meet, so that no column is in the way of another; then by the rest."""
    if any(pair.null_safe or pair.left.type.kind not in _KEYS for pair in keys.pairs):
        raise NotHereError("join")
    if keys.pairs:
        names = [f"k{i}" for i in range(len(keys.pairs))]
        ours = [vector(pair.left, left.columns, left.num_rows) for pair in keys.pairs]
        theirs = [vector(pair.right, right.columns, right.num_rows) for pair in keys.pairs]
        one = pa.table([*ours, pa.array(np.arange(left.num_rows))], [*names, "l"])
        other = pa.table([*theirs, pa.array(np.arange(right.num_rows))], [*names, "r"])
        met = one.join(other, names, names, "inner", use_threads=False)
        here, there = met.column("l"), met.column("r")
    else:
        if left.num_rows * right.num_rows > _MOST_PAIRS:
            raise NotHereError("join")
        here = pa.array(np.repeat(np.arange(left.num_rows), right.num_rows))
        there = pa.array(np.tile(np.arange(right.num_rows), left.num_rows))
    found = _named([*left.take(here).columns, *right.take(there).columns], plan.schema, len(here))
    if keys.residual == TRUE:
        return found
    return found.filter(pc.fill_null(vector(keys.residual, found.columns, found.num_rows), False))


def _aggregated(plan: Aggregate, table: pa.Table) -> pa.Table:
    width = len(plan.keys)
    keys = [vector(key, table.columns, table.num_rows) for key in plan.keys]
    if not width:
        raise NotHereError("no keys")
    columns: dict[str, Any] = {f"k{i}": _comparable(key) for i, key in enumerate(keys)}
    asked: list[tuple[str, str]] = []
    for place, call in enumerate(plan.aggregates):
        columns[f"a{place}"] = _argument(call, table)
        asked.append((f"a{place}", "count" if call.function == "count" else call.function))
    grouped = pa.table(columns).group_by([f"k{i}" for i in range(width)], use_threads=False).aggregate(asked)
    results = [_compared(grouped.column(f"k{i}"), key.type) for i, key in enumerate(plan.keys)]
    for (name, function), field in zip(asked, plan.schema[width:], strict=True):
        results.append(grouped.column(f"{name}_{function}").cast(arrow_schema([field]).field(0).type))
    return _named(results, plan.schema, grouped.num_rows)


def _comparable(column: Any) -> Any:
    """A key that Arrow groups as we do: of DOUBLEs the bits, because its NaN is not equal to itself."""
    if not pa.types.is_floating(column.type):
        return column
    one = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    bits = pa.array(double_bits(one))
    return pc.if_else(one.is_valid(), bits, pa.scalar(None, pa.int64())) if one.null_count else bits


def _compared(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    if kind.kind is not Kind.DOUBLE:
        return column
    return pa.chunked_array([chunk.view(pa.float64()) for chunk in column.chunks], pa.float64())


def _argument(call: AggregateCall, table: pa.Table) -> Any:
    if call.distinct or call.filter is not None or call.function not in ("count", "sum", "min", "max"):
        raise NotHereError(call.function)
    if call.argument is None:
        return pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
    found = vector(call.argument, table.columns, table.num_rows)
    kind = call.argument.type.kind
    if call.function == "sum":
        _check_sum(found, kind)
    elif kind not in _KEYS:
        raise NotHereError(call.function)
    return found


def _check_sum(values: Any, kind: Kind) -> None:
    """Arrow's sums wrap around unseen; they are asked for only where they cannot."""
    if kind not in _SUMS:
        raise NotHereError("sum")
    least, most = pc.min_max(values).as_py().values()
    if least is None:
        return
    units = (
        max(abs(least), abs(most)) if kind is Kind.BIGINT else _units(max(abs(least), abs(most)), values.type)
    )
    if units * len(values) >= _SUMS[kind]:
        raise NotHereError("sum")


def _units(value: Any, kind: pa.Decimal128Type) -> int:
    return int(EXACT.scaleb(value, kind.scale))
