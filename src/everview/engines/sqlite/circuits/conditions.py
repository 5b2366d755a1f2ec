"""Conditions of a join or filter, taken apart so that equalities can lead to an index."""

from __future__ import annotations

from collections.abc import Sequence

from everview.engines.sqlite.circuits.select import Condition, equality
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import TRUE, And, Call, Column, Expression, IsDistinct, Not, columns_of


def conjuncts(expression: Expression) -> list[Expression]:
    """Return the parts that must all be true."""
    if isinstance(expression, And):
        return [part for argument in expression.arguments for part in conjuncts(argument)]
    return [] if expression == TRUE else [expression]


def conditions(expression: Expression, columns: Sequence[str]) -> list[Condition]:
    """Compile a predicate over the given columns, one condition for each conjunct."""
    found = []
    for part in conjuncts(expression):
        match part:
            case Call("=", (left, right)):
                found.append(_equal(left, right, columns, null_safe=False))
            case Not(IsDistinct(left, right)):
                found.append(_equal(left, right, columns, null_safe=True))
            case _:
                found.append(Condition(compile_expression(part, columns)))
    return found


def _equal(left: Expression, right: Expression, columns: Sequence[str], *, null_safe: bool) -> Condition:
    """Values of one type are equal exactly when they are stored equal, so a bare comparison is right."""
    return equality(
        compile_expression(left, columns), compile_expression(right, columns), null_safe=null_safe
    )


def equal_pairs(condition: Expression, width: int) -> list[tuple[Expression, Expression]]:
    """Return the (left, right) sides that a join's condition equates; right sides over the right's own row.

    `width` is the number of columns of the left input.
    """
    pairs = []
    for part in conjuncts(condition):
        match part:
            case Call("=", (a, b)) | Not(IsDistinct(a, b)):
                for left, right in ((a, b), (b, a)):
                    if _within(left, 0, width) and _within(right, width, None):
                        pairs.append((left, right))
                        break
            case _:
                pass
    return pairs


def _within(expression: Expression, start: int, stop: int | None) -> bool:
    used = columns_of(expression)
    return bool(used) and all(index >= start and (stop is None or index < stop) for index in used)


def is_column(expression: Expression) -> bool:
    """Say whether an expression is a column as it stands."""
    return isinstance(expression, Column)
