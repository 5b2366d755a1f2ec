"""Aggregates and window functions inside expressions, and GROUP BY.

While a SELECT is bound, an aggregate in an expression is noted here and stands in the expression as a
column with a negative position; so does a window call, further below. When all clauses are bound, the
Aggregate and Window nodes are built and the stand-ins become their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.language.aggregates import AggregateCall, WindowCall
from everview.language.correlation import replace_outer
from everview.language.expressions import (
    Column,
    Exists,
    Expression,
    InSubquery,
    ScalarSubquery,
    map_children,
    substitute,
)

__all__ = ["Collector", "UngroupedError", "regroup", "window_columns"]

_WINDOWS = -1_000_000


@dataclass(slots=True)
class Collector:
    """The aggregates and window calls of one SELECT; equal ones are kept once."""

    aggregates: list[AggregateCall] = field(default_factory=list)
    windows: list[WindowCall] = field(default_factory=list)
    final: exp.Expr | None = None
    """Where `window_final()` stands."""

    def aggregate(self, call: AggregateCall) -> Column:
        """The stand-in for an aggregate."""
        if call not in self.aggregates:
            self.aggregates.append(call)
        return Column(-1 - self.aggregates.index(call), call.type, call.function)

    def window(self, call: WindowCall) -> Column:
        """The stand-in for a window call."""
        if call not in self.windows:
            self.windows.append(call)
        return Column(_WINDOWS - self.windows.index(call), call.type, call.function)


class UngroupedError(Exception):
    """A column is neither a group key nor inside an aggregate."""

    def __init__(self, column: Column) -> None:
        self.column = column
        super().__init__(column.name)


def regroup(keys: Sequence[Expression]) -> Callable[[Expression], Expression]:
    """How an expression over the input reads over the groups: keys first, then aggregates."""
    positions = {key: index for index, key in reversed(list(enumerate(keys)))}

    def column(node: Column) -> Expression:
        if node.index <= _WINDOWS:
            return node
        if node.index < 0:
            return Column(len(keys) - 1 - node.index, node.type, node.name)
        if node in positions:
            return Column(positions[node], node.type, node.name)
        raise UngroupedError(node)

    def one(node: Expression) -> Expression:
        if node in positions:
            name = node.name if isinstance(node, Column) else ""
            return Column(positions[node], node.type, name)
        match node:
            case Column():
                return column(node)
            case Exists(plan) | ScalarSubquery(plan):
                return replace(node, plan=replace_outer(plan, column))
            case InSubquery(operand, plan):
                return InSubquery(one(operand), replace_outer(plan, column))
            case _:
                return map_children(node, one)

    return one


def window_columns(width: int) -> Callable[[Expression], Expression]:
    """How an expression reads over a Window node whose input has `width` columns."""

    def column(node: Column) -> Expression:
        if node.index <= _WINDOWS:
            return Column(width + _WINDOWS - node.index, node.type, node.name)
        return node

    return lambda expression: substitute(expression, column)
