"""approx_count_distinct and approx_percentile: an aggregate that sketches, a function that reads the sketch.

So several percentiles of one column share a sketch, and what travels from site to site is the sketch.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from everview.language.aggregates import AggregateCall
from everview.language.casts import can_cast
from everview.language.expressions import Call, Cast, Expression, Literal, OuterColumn, columns_of, walk
from everview.language.sql.scalars import Scalars
from everview.language.types import BIGINT, DOUBLE, TEXT, Kind, Type

__all__ = ["bind_approximate", "refuse_outer"]

_NUMBERS = (Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)


def bind_approximate(
    self: Scalars,
    node: exp.Expr,
    name: str,
    arguments: Sequence[exp.Expr],
    condition: exp.Expr | None,
    *,
    distinct: bool,
) -> Expression:
    """What reads the sketch, over the stand-in of the aggregate that makes it."""
    source, collector = self.context.source, self.collector
    if collector is None:
        raise source.error(node, f"aggregates are not allowed in {self.clause}")
    counting = name == "approx_count_distinct"
    wanted = "one argument" if counting else "a number and a part from 0 to 1"
    if len(arguments) != (1 if counting else 2) or isinstance(arguments[0], exp.Star):
        raise source.error(node, f"{name} takes {wanted}", hint=_EXAMPLES[name])
    if distinct:
        raise source.error(node, f"DISTINCT is not supported in {name}", hint="leave it out")
    inside = self.without_aggregates("an aggregate")
    value = inside.typed(arguments[0])
    filter_ = None if condition is None else inside.truth(condition, "FILTER")
    refuse_outer(self, node, [part for part in (value, filter_) if part is not None])
    target = TEXT if counting else DOUBLE
    if not can_cast(value.type, target) or (not counting and value.type.kind not in _NUMBERS):
        raise source.error(arguments[0], f"{name} does not take a {value.type}")
    if counting:
        marks = Call("sketch_mark", (_as(value, TEXT),), BIGINT)
        sketch = collector.aggregate(AggregateCall("sketch_marks", marks, filter=filter_))
        return Call("coalesce", (Call("sketch_distinct", (sketch,), BIGINT), Literal(0, BIGINT)), BIGINT)
    steps = Call("sketch_step", (_as(value, DOUBLE),), BIGINT)
    sketch = collector.aggregate(AggregateCall("sketch_counts", steps, filter=filter_))
    return Call("sketch_percentile", (sketch, _part(self, arguments[1])), DOUBLE)


_EXAMPLES = {
    "approx_count_distinct": "write approx_count_distinct(a)",
    "approx_percentile": "write approx_percentile(a, 0.5)",
}


def refuse_outer(self: Scalars, node: exp.Expr, parts: Sequence[Expression]) -> None:
    """In PostgreSQL an aggregate over columns of an outer query belongs to that query."""
    outer = any(isinstance(inner, OuterColumn) for part in parts for inner in walk(part))
    if outer and not any(columns_of(part) for part in parts):
        raise self.context.source.error(
            node, "this aggregate is over columns of the query around it", hint="aggregate there, in FROM"
        )


def _as(value: Expression, target: Type) -> Expression:
    return value if value.type == target else Cast(value, target)


def _part(self: Scalars, node: exp.Expr) -> Literal:
    found = self.bind(node)
    if not isinstance(found, Literal) or found.type.kind not in _NUMBERS or not 0 <= found.value <= 1:
        raise self.context.source.error(
            node, "the second argument of approx_percentile is written as a number from 0 to 1"
        )
    return Literal(float(found.value), DOUBLE)
