"""Top-k and window functions: computed again where a change touches them, and compared with before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.engines.sqlite.circuits.circuit import Changed, Circuit, Statement, live, named, united
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, equality, from_table
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.scalars.expressions import compile_expression, sort_key_sql
from everview.language.aggregates import AGGREGATES, Frame, SortKey, WindowCall
from everview.language.expressions import Column, Expression, Literal
from everview.language.plan import Project, Schema, TopK, Window
from everview.language.types import Field, Kind

if TYPE_CHECKING:
    from everview.engines.sqlite.circuits.compiler import Compiler


def compile_top_k(compiler: Compiler, plan: TopK) -> Node:
    """Keep the chosen rows; after a change choose again, which an index on the order makes cheap."""
    circuit = compiler.circuit
    source = compiler.readable(plan.input)
    assert source.contents is not None
    selects = source.contents()
    sort = (*plan.order, *plan.ties)
    limit, offset = (_count(bound) for bound in (plan.limit, plan.offset))
    enough = None if limit is None else limit + (offset or 0)
    if len(selects) == 1:
        _request_order(circuit, selects[0], sort)
    chosen = _first_rows(selects, sort, enough, plan.schema)
    names = columns(len(plan.schema))
    order = ", ".join(sort_key_sql(key, names) for key in sort)
    rows = in_places(chosen, names, order, limit, offset)
    return _replaced(
        compiler,
        f"k{compiler.number()}",
        plan.schema,
        source,
        rows,
        is_set=source.is_set,
        title="top rows",
        how="chosen again, along an index in their order",
    )


def in_places(rows: str, names: Sequence[str], order: str, limit: int | None, offset: int | None) -> str:
    """Return the rows that take the places after `offset`, at most `limit`, in the given order.

    A row that occurs several times takes several places: `reach` is the place of its last copy.
    """
    listed, low = ", ".join(names), offset or 0
    reach = f"sum(w) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)" if order else "sum(w) OVER ()"
    top = "reach" if limit is None else f"min(reach, {low + limit})"
    kept = f"{top} - max(reach - w, {low})"
    places = f"SELECT {listed}, w, {reach} AS reach FROM ({rows})"
    return f"SELECT {listed}, {kept} AS w FROM ({places}) WHERE {kept} > 0"


def _count(bound: Expression | None) -> int | None:
    assert bound is None or isinstance(bound, Literal)
    return None if bound is None else int(bound.value)


def _first_rows(selects: list[Select], sort: Sequence[SortKey], enough: int | None, schema: Schema) -> str:
    """The first rows, each once with its multiplicity; `enough` of them fill all places."""
    names = columns(len(schema))
    limit = "" if enough is None else f" LIMIT {enough}"
    if len(selects) == 1:
        (select,) = selects
        order = ", ".join(sort_key_sql(key, select.columns) for key in _telling(sort, select.columns))
        tail = f"ORDER BY {order}{limit}" if order else limit.strip()
        return f"{named(select, schema)} {tail}"
    order = ", ".join(sort_key_sql(key, names) for key in sort)
    rows = united(selects, schema)
    return f"SELECT * FROM ({rows})" + (f" ORDER BY {order}" if order else "") + limit


def _telling(sort: Sequence[SortKey], given: Sequence[str]) -> list[SortKey]:
    """The sort keys without those that repeat an earlier one; an index must not name a column twice."""
    texts = [compile_expression(key.expression, given) for key in sort]
    return [key for place, key in enumerate(sort) if texts[place] not in texts[:place]]


def _request_order(circuit: Circuit, select: Select, sort: Sequence[SortKey]) -> None:
    """Ask for an index in the order of the leading sort keys that are plain columns of one stored table."""
    if len(select.sources) != 1 or not select.sources[0].stored:
        return
    (source,) = select.sources
    by = []
    for key in _telling(sort, select.columns):
        alias, _, column = compile_expression(key.expression, select.columns).partition(".")
        if alias != source.alias or not column.isidentifier():
            break
        by.append(f"{column} DESC" if key.descending else column)
    if by:
        circuit.request_index(source, tuple(by))


def compile_window(compiler: Compiler, plan: Window) -> Node:
    """Compute the touched partitions again: those that all calls agree on; without one, everything."""
    common = [key for key in plan.calls[0].partition if all(key in call.partition for call in plan.calls)]
    if not all(isinstance(key, Column) for key in common):
        return compiler.node(_with_keys(plan, common))
    source, keys = compiler.keyed(plan.input, common)
    assert source.contents is not None
    width = len(plan.input.schema)
    names = columns(width)
    circuit = compiler.circuit
    number = compiler.number()
    touched = circuit.scratch(f"q_w{number}", [Field("", key.type) for key in keys], ()) if keys else None
    rows = []
    for select in source.contents():
        narrow = select
        if touched is not None:
            marks = from_table(circuit.names, touched, columns(len(keys)), stored=False, delta=True)
            found = [compile_expression(key, select.columns) for key in keys]
            led = [equality(a, b, null_safe=True) for a, b in zip(found, marks.columns, strict=True)]
            narrow = marks.cross(select).filter(*led).project(select.columns)
            narrow.sql(on_index=circuit.request_index)
        shown = [f"{sql} AS {name}" for sql, name in zip(narrow.columns[:width], names, strict=False)]
        rows.append(narrow.sql(columns=[*shown, f"{narrow.weight} AS w"]))
    given = " UNION ALL ".join(rows)
    given = given if source.is_set else copies(given, names)
    calls = [window_sql(call, names) for call in plan.calls]
    shown_calls = [f"{sql} AS c{width + index}" for index, sql in enumerate(calls)]
    computed = f"SELECT {', '.join([*names, *shown_calls])}, 1 AS w FROM ({given})"
    every = ", ".join(columns(len(plan.schema)))
    computed = f"SELECT {every}, sum(w) AS w FROM ({computed}) GROUP BY {every}"
    return _replaced(
        compiler,
        f"w{number}",
        plan.schema,
        source,
        computed,
        is_set=source.is_set,
        title="window functions",
        how="the touched partitions again"
        if touched is not None
        else "all rows again: there is no common partition",
        partition=(touched, keys) if touched is not None else None,
    )


def _with_keys(plan: Window, keys: Sequence[Expression]) -> Project:
    """The same, with the computed keys as columns: the kept rows are found by them when they go stale."""
    width = len(plan.input.schema)
    computed = [key for key in dict.fromkeys(keys) if not isinstance(key, Column)]
    own = [Column(index, f.type, f.name) for index, f in enumerate(plan.input.schema)]
    names = [*(f.name for f in plan.input.schema), *(f"key{index}" for index in range(len(computed)))]
    wide = Project(plan.input, (*own, *computed), tuple(names))
    place: dict[Expression, Expression] = {
        key: Column(width + index, key.type) for index, key in enumerate(computed)
    }
    calls = tuple(
        replace(call, partition=tuple(place.get(key, key) for key in call.partition)) for call in plan.calls
    )
    window = Window(wide, calls, plan.names)
    results = range(width + len(computed), len(window.schema))
    shown = [*own, *(Column(index, window.schema[index].type) for index in results)]
    return Project(window, tuple(shown), tuple(f.name for f in plan.schema))


def copies(rows: str, names: Sequence[str]) -> str:
    """Each row as often as it occurs: the functions number copies apart."""
    listed = ", ".join(names)
    return (
        f"WITH RECURSIVE given AS ({rows}), copy ({listed}, w) AS (SELECT {listed}, w FROM given UNION ALL "
        f"SELECT {listed}, w - 1 FROM copy WHERE w > 1) SELECT {listed}, 1 AS w FROM copy"
    )


def _by_rows(call: WindowCall) -> WindowCall:
    """first_value and last_value of a RANGE frame, as a frame of rows that may be sorted by ties as well.

    Peers come in the order of their ties. Where the frame is unbounded, the wanted row is the partition's
    first or last; where it stops at the current row, it is the first or last of its peers.
    """
    first = call.function == "first_value"
    if call.frame is None or call.frame.mode != "range" or call.function not in ("first_value", "last_value"):
        return call
    whole = Frame("rows", None, None)
    if (call.frame.start if first else call.frame.end) is None:
        return replace(call, frame=whole)
    peers = tuple(key.expression for key in call.order)
    return replace(call, partition=(*call.partition, *peers), order=(), frame=whole)


def window_sql(call: WindowCall, names: Sequence[str]) -> str:
    """Return a window call over rows of these columns."""
    call = _by_rows(call)
    arguments = [compile_expression(argument, names) for argument in call.arguments]
    # Peers are rows equal by `order` alone, so ties may only enter where they cannot make a difference.
    by_peers = call.function in ("rank", "dense_rank") or (
        call.frame is not None and call.frame.mode == "range"
    )
    order = call.order if by_peers else (*call.order, *call.ties)
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(compile_expression(key, names) for key in call.partition))
    if order:
        parts.append("ORDER BY " + ", ".join(sort_key_sql(key, names) for key in order))
    if call.frame is not None:
        parts.append(_frame(call.frame))
    return f"{_function(call, arguments)} OVER ({' '.join(parts)})"


def _function(call: WindowCall, arguments: list[str]) -> str:
    listed = ", ".join(arguments)
    if call.function in ("sum", "avg"):
        kind = call.arguments[0].type.kind
        if call.function == "avg" and kind is Kind.DECIMAL:
            listed += f", {call.type.digits[1] - call.arguments[0].type.digits[1]}"
        return f"ev_frame_{call.function}_{kind.name.lower()}({listed})"
    if call.function in ("bool_and", "bool_or"):
        return f"{'min' if call.function == 'bool_and' else 'max'}({listed})"
    if call.function == "count" and not arguments:
        return "count(*)"
    assert call.function in AGGREGATES or call.frame is None or call.function.endswith("_value")
    return f"{call.function}({listed})"


def _frame(frame: Frame) -> str:
    def end(bound: int | None, unbounded: str) -> str:
        if bound is None:
            return f"UNBOUNDED {unbounded}"
        if bound == 0:
            return "CURRENT ROW"
        return f"{abs(bound)} {'PRECEDING' if bound < 0 else 'FOLLOWING'}"

    start, stop = end(frame.start, "PRECEDING"), end(frame.end, "FOLLOWING")
    return f"{frame.mode.upper()} BETWEEN {start} AND {stop}"


def _replaced(
    compiler: Compiler,
    name: str,
    schema: Schema,
    source: Node,
    rows: str,
    *,
    is_set: bool,
    title: str,
    how: str,
    partition: tuple[str, Sequence[Expression]] | None = None,
) -> Node:
    """Keep `rows` in a table: after a change of the source the new ones replace the old ones.

    With a partition only rows of the touched partitions are replaced; their keys are collected first.
    """
    circuit = compiler.circuit
    table = StateTable(internal(name), schema)
    circuit.declare(table)
    change = circuit.scratch(f"d_{name}", schema)
    fresh = circuit.scratch(f"f_{name}", schema)
    branches = source.delta()
    names = columns(len(schema))
    listed = ", ".join(names)

    def stale() -> Select:
        stored = from_table(circuit.names, table.name, names, weight="w")
        if partition is None:
            return stored
        touched, keys = partition
        marks = from_table(circuit.names, touched, columns(len(keys)), stored=False, delta=True)
        mine = [compile_expression(key, stored.columns) for key in keys]
        led = [equality(a, b, null_safe=True) for a, b in zip(mine, marks.columns, strict=True)]
        return marks.cross(stored).filter(*led).project(stored.columns)

    if partition is not None:
        stale().sql(on_index=circuit.request_index)

    def statements(changed: Changed) -> list[Statement]:
        made = []
        if partition is not None:
            touched, keys = partition
            parts = [
                branch.sql(columns=[compile_expression(key, branch.columns) for key in keys])
                for branch in live(branches, changed)
            ]
            made.append(
                Statement(
                    f"INSERT INTO {touched} SELECT DISTINCT * FROM ({' UNION ALL '.join(parts)})", touched
                )
            )
        old = stale().negated()
        both = f"{named(old, schema)} UNION ALL SELECT * FROM {fresh}"
        made.append(Statement(f"INSERT INTO {fresh} SELECT * FROM ({rows})", fresh))
        net = f"SELECT {listed}, sum(w) AS w FROM ({both}) GROUP BY {listed} HAVING sum(w) <> 0"
        made.append(Statement(f"INSERT INTO {change} {net}", change))
        made.append(Statement(table.upsert(f"SELECT * FROM {change}", ["w = w + excluded.w"])))
        made.append(Statement(table.sweep()))
        return made

    circuit.step(title, how, branches, statements, makes=change, table=table.name)

    def delta() -> list[Select]:
        return [from_table(circuit.names, change, names, weight="w", stored=False, delta=True)]

    def contents() -> list[Select]:
        return [from_table(circuit.names, table.name, names, weight="1" if is_set else "w")]

    return Node(schema, delta, contents, is_set=is_set)
