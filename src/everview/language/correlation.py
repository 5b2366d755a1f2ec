"""What a subquery's plan reads of the rows around it.

`OuterColumn(d, i)` written k subqueries further in names the row that `OuterColumn(d − k, i)` names
outside; these two functions keep that count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from everview.language.expressions import (
    Column,
    Exists,
    Expression,
    InSubquery,
    OuterColumn,
    ScalarSubquery,
    transform,
    walk,
)
from everview.language.plan import Plan, Scan, expressions_of, map_expressions, rewrite, walk_plan

__all__ = ["outer_columns", "replace_outer", "scans_of"]


def outer_columns(plan: Plan) -> Iterator[OuterColumn]:
    """The columns of rows outside that the plan reads, as seen from the plan: depth 1 is the next row out."""
    for node in walk_plan(plan):
        for expression in expressions_of(node):
            for part in walk(expression):
                match part:
                    case OuterColumn():
                        yield part
                    case Exists(inner) | ScalarSubquery(inner) | InSubquery(_, inner):
                        yield from (
                            replace(column, depth=column.depth - 1)
                            for column in outer_columns(inner)
                            if column.depth > 1
                        )
                    case _:
                        pass


def replace_outer(plan: Plan, columns: Callable[[Column], Expression], *, depth: int = 1) -> Plan:
    """The plan with each column it reads of the row `depth` out replaced by what `columns` says.

    `columns` sees and gives expressions of the row outside; only a column can be given, for a subquery
    reads rows, not expressions.
    """

    def one(node: Expression) -> Expression:
        match node:
            case OuterColumn() if node.depth == depth:
                image = columns(Column(node.index, node.type, node.name))
                match image:
                    case Column(index, kind, name):
                        return OuterColumn(depth, index, kind, name)
                    case OuterColumn():
                        return replace(image, depth=image.depth + depth)
                    case _:
                        raise ValueError(f"a subquery cannot read {image}")
            case Exists(inner) | ScalarSubquery(inner) | InSubquery(_, inner):
                return replace(node, plan=replace_outer(inner, columns, depth=depth + 1))
            case _:
                return node

    return rewrite(plan, lambda node: map_expressions(node, lambda e: transform(e, one)))


def scans_of(plan: Plan) -> Iterator[str]:
    """The names of all relations and views that the plan reads, inside subqueries too."""
    for node in walk_plan(plan):
        if isinstance(node, Scan):
            yield node.name
        for expression in expressions_of(node):
            for part in walk(expression):
                if isinstance(part, (Exists, ScalarSubquery, InSubquery)):
                    yield from scans_of(part.plan)
