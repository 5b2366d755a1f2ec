"""Window calls: `f(…) OVER (PARTITION BY … ORDER BY … frame)`.

Functions whose result depends on the order of rows with equal sort keys get `ties`: all columns of the
input, ascending, so that the result is a function of the rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from everview.language.aggregates import (
    AGGREGATES,
    RANKINGS,
    SHIFTS,
    Frame,
    SortKey,
    WindowCall,
    aggregate_type,
)
from everview.language.expressions import Column, Expression, Literal
from everview.language.functions import NoSignatureError
from everview.language.plan import Schema
from everview.language.sql.coerce import unify
from everview.language.sql.scalars import Scalars
from everview.language.sql.source import Source, words
from everview.language.types import BIGINT, UNKNOWN, Type

__all__ = ["bind_sort_key", "bind_window", "ties_after", "with_ties"]

_WHOLE = Frame("rows", None, None)
_UP_TO_PEERS = Frame("range", None, 0)


def bind_sort_key(source: Source, node: exp.Expr, expression: Expression) -> SortKey:
    """ASC, DESC, NULLS FIRST or LAST around an expression; sqlglot has filled in PostgreSQL's defaults."""
    source.only(node, ("this", "desc", "nulls_first"), {"with_fill": ("WITH FILL", "")})
    return SortKey(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def ties_after(order: Sequence[SortKey], schema: Schema) -> tuple[SortKey, ...]:
    """Every column of the input that is not sorted by already, ascending."""
    sorted_by = {key.expression for key in order}
    columns = (Column(index, field.type, field.name) for index, field in enumerate(schema))
    return tuple(SortKey(column) for column in columns if column not in sorted_by)


def with_ties(call: WindowCall, schema: Schema) -> WindowCall:
    """The call with ties over its input's columns, if its result depends on them."""
    by_rows = call.frame is not None and call.frame.mode == "rows" and call.frame != _WHOLE
    if call.function == "row_number" or call.function in SHIFTS or by_rows:
        return replace(call, ties=ties_after(call.order, schema))
    return call


def bind_window(self: Scalars, node: exp.Expr, name: str, arguments: Sequence[exp.Expr]) -> Expression:
    """The stand-in column for a window call (see `grouping`)."""
    source = self.context.source
    source.only(
        node,
        ("this", "partition_by", "order", "spec", "over"),
        {"alias": ("OVER", "write the window out in parentheses after OVER"), "first": ("FIRST", "")},
    )
    call_node = node.this
    if not isinstance(call_node, exp.Anonymous):
        what = words(call_node)
        raise source.error(node, f"{what} is not supported in a window function", hint="write CASE inside it")
    if self.collector is None:
        raise source.error(node, f"window functions are not allowed in {self.clause}")
    # Aggregates may stand inside a window call, which then runs over the groups; window calls may not.
    inner = replace(self, clause="a window function", windows=False)
    partition = tuple(inner.typed(part) for part in node.args.get("partition_by") or ())
    order_node = node.args.get("order")
    order = tuple(
        bind_sort_key(source, part, inner.typed(part.this))
        for part in (order_node.expressions if order_node is not None else ())
    )
    bound, kind = _arguments(inner, call_node, name, arguments)
    frame = _frame(self, node, name, ordered=bool(order))
    return self.collector.window(WindowCall(name, bound, partition, order, (), frame, kind))


def _arguments(
    self: Scalars, node: exp.Expr, name: str, arguments: Sequence[exp.Expr]
) -> tuple[tuple[Expression, ...], Type]:
    source = self.context.source
    if name in RANKINGS:
        if arguments:
            raise source.error(node, f"{name} takes no arguments")
        return (), BIGINT
    if name in ("lag", "lead"):
        return _shift(self, node, name, arguments)
    if name not in AGGREGATES and name not in SHIFTS:
        raise source.error(
            node,
            f"there is no window function {name}",
            hint=f"there are {', '.join((*RANKINGS, *SHIFTS, *AGGREGATES))}",
        )
    if len(arguments) != 1:
        raise source.error(node, f"{name} takes one argument, not {len(arguments)}")
    if isinstance(arguments[0], exp.Distinct):
        raise source.error(node, "DISTINCT is not supported in a window function")
    star = isinstance(arguments[0], exp.Star)
    if star and name != "count":
        raise source.error(node, f"{name} does not take *", hint="name the column")
    if star:
        return (), BIGINT
    value = self.typed(arguments[0])
    try:
        return (value,), value.type if name in SHIFTS else aggregate_type(name, value.type)
    except NoSignatureError as error:
        raise source.error(node, str(error)) from None


def _shift(
    self: Scalars, node: exp.Expr, name: str, arguments: Sequence[exp.Expr]
) -> tuple[tuple[Expression, ...], Type]:
    source = self.context.source
    if not 1 <= len(arguments) <= 3:
        raise source.error(node, f"{name} takes a value, an offset and a default")
    offset: Expression = self.bind(arguments[1]) if len(arguments) > 1 else Literal(1, BIGINT)
    if not isinstance(offset, Literal) or offset.type != BIGINT:
        raise source.error(arguments[1], f"the offset of {name} is written as a whole number")
    default = self.bind(arguments[2]) if len(arguments) > 2 else Literal(None, UNKNOWN)
    nodes = (arguments[0], arguments[2] if len(arguments) > 2 else arguments[0])
    value, otherwise = unify(source, nodes, (self.bind(arguments[0]), default), what=name)
    return (value, offset, otherwise), value.type


def _frame(self: Scalars, node: exp.Expr, name: str, *, ordered: bool) -> Frame | None:
    source = self.context.source
    spec = node.args.get("spec")
    has_frame = name in AGGREGATES or name in ("first_value", "last_value")
    if not has_frame:
        return None  # PostgreSQL, too, lets these functions have a frame and does not look at it
    if spec is None:
        return _UP_TO_PEERS if ordered else _WHOLE
    source.only(
        spec,
        ("kind", "start", "start_side", "end", "end_side"),
        {"exclude": ("EXCLUDE", "leave it out")},
    )
    mode = str(spec.args.get("kind")).lower()
    start = _bound(self, spec, "start")
    end = _bound(self, spec, "end") if spec.args.get("end") is not None else 0
    if mode == "rows":
        if start is not None and end is not None and start > end:
            raise source.error(node, "the frame ends before it starts", word="ROWS")
        return Frame("rows", start, end)
    if mode == "range" and not start and not end:
        return Frame("range", start, end) if ordered else _WHOLE
    raise source.error(
        node,
        f"{mode.upper()} frames reach to UNBOUNDED or CURRENT ROW only"
        if mode == "range"
        else f"{mode.upper()} frames are not supported",
        hint="write ROWS",
        word=mode.upper(),
    )


def _bound(self: Scalars, spec: exp.Expr, which: str) -> int | None:
    """Rows from the current one, or None for UNBOUNDED."""
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side")).upper()
    if value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        if side != ("PRECEDING" if which == "start" else "FOLLOWING"):
            raise self.context.source.error(spec, f"a frame cannot {which} at UNBOUNDED {side}")
        return None
    bound = self.bind(value) if isinstance(value, exp.Expr) else None
    if not isinstance(bound, Literal) or bound.type != BIGINT or bound.value < 0:
        raise self.context.source.error(spec, "a frame's bounds are written as whole numbers")
    return int(bound.value) if side == "FOLLOWING" else -int(bound.value)
