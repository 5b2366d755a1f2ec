"""The parameters of a plan, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator

from everview.language.expressions import Exists, Expression, InSubquery, Parameter, ScalarSubquery, walk
from everview.language.plan import Plan, TopK, expressions_of, walk_plan

__all__ = ["parameters_of"]


def parameters_of(plan: Plan) -> tuple[Parameter, ...]:
    """Each parameter once per type it is used with, positional ones in order, named ones by name."""
    found = dict.fromkeys(_in_plan(plan))
    return tuple(sorted(found, key=lambda p: (not p.name.isdigit(), p.name.zfill(9), str(p.type))))


def _in_plan(plan: Plan) -> Iterator[Parameter]:
    for node in walk_plan(plan):
        for expression in expressions_of(node):
            yield from _in_expression(expression)
        if isinstance(node, TopK):
            yield from (count for count in (node.limit, node.offset) if isinstance(count, Parameter))


def _in_expression(expression: Expression) -> Iterator[Parameter]:
    for node in walk(expression):
        match node:
            case Parameter():
                yield node
            case Exists(plan) | ScalarSubquery(plan) | InSubquery(_, plan):
                yield from _in_plan(plan)
            case _:
                pass
