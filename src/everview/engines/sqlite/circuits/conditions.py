"""Conditions of a join or filter, taken apart so that equalities can lead to an index."""

from __future__ import annotations

from collections.abc import Sequence

from everview.engines.sqlite.circuits.select import Condition, equality
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import Call, Expression, IsDistinct, Not
from everview.planner.conditions import conjuncts


def conditions(expression: Expression, columns: Sequence[str]) -> list[Condition]:
    """Compile a predicate over the given columns, one condition for each conjunct."""
    found = []
    for part in conjuncts(expression):
        match part:
            case Call("=", (left, right)):
                found.append(_equal(left, right, columns, null_safe=False))
            case Not(IsDistinct(left, right)):
                found.append(_equal(left, right, columns, null_safe=True))
            case Call("<" | "<=" as name, (left, right)):
                found.append(_bounded(part, name, left, right, columns))
            case _:
                found.append(Condition(compile_expression(part, columns)))
    return found


def _bounded(
    part: Expression, name: str, left: Expression, right: Expression, columns: Sequence[str]
) -> Condition:
    """An inequality; an index serves it where values are compared as they are stored."""
    text = compile_expression(part, columns)
    sides = compile_expression(left, columns), compile_expression(right, columns)
    return Condition(text, bounds=sides if text == f"({sides[0]} {name} {sides[1]})" else None)


def _equal(left: Expression, right: Expression, columns: Sequence[str], *, null_safe: bool) -> Condition:
    """Values of one type are equal exactly when they are stored equal, so a bare comparison is right."""
    return equality(
        compile_expression(left, columns), compile_expression(right, columns), null_safe=null_safe
    )
