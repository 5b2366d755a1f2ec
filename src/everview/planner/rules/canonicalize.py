"""Canonicalize: what means the same is written the same.

a > b is b < a; the arguments of =, <>, + and *, of AND and OR, the items of IN and the two sides of IS
DISTINCT FROM may stand in any order, and doubled ones of AND, OR and IN say nothing. So each is put in
one order, and equal sub-plans of different views become equal values (`share`).

AND and OR are read from the left only for the sake of failures, and a failure is NULL: the order of
arguments does not change a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from everview.language.expressions import (
    And,
    Call,
    Column,
    Expression,
    InList,
    IsDistinct,
    Literal,
    Or,
    OuterColumn,
    transform,
)
from everview.language.plan import Intersect, Plan, UnionAll
from everview.planner.conditions import simplify
from everview.planner.walking import over, restated

__all__ = ["canonicalize", "sort_key"]

_TURNED = {">": "<", ">=": "<="}
_COMMUTATIVE = frozenset(["=", "<>", "+", "*"])


def canonicalize(plan: Plan) -> Plan:
    """The plan with every expression in its one order, and the inputs of unions too."""
    plan = restated(over(plan, canonicalize), lambda e: transform(simplify(e), _expression))
    match plan:
        case UnionAll(inputs) if _same_names(inputs):
            return UnionAll(tuple(sorted(inputs, key=repr)))
        case Intersect(left, right, keep) if _same_names(plan.inputs) and repr(right) < repr(left):
            return Intersect(right, left, keep)
        case _:
            return plan


def _same_names(inputs: tuple[Plan, ...]) -> bool:
    """Whether the names of the result do not depend on which input is first."""
    return len({tuple(field.name for field in plan.schema) for plan in inputs}) == 1


def sort_key(expression: Expression) -> tuple[int, int, str]:
    """An order that does not look at names of columns; columns first, constants last."""

    def bare(node: Expression) -> Expression:
        return replace(node, name="") if isinstance(node, (Column, OuterColumn)) else node

    match expression:
        case Column(index):
            return 0, index, ""
        case Literal():
            return 2, 0, repr(expression)
        case _:
            return 1, 0, repr(transform(expression, bare))


def _ordered(arguments: Iterable[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(dict.fromkeys(arguments), key=sort_key))


def _expression(node: Expression) -> Expression:
    match node:
        case And(arguments):
            return And(_ordered(arguments))
        case Or(arguments):
            return Or(_ordered(arguments))
        case InList(operand, items):
            return InList(operand, _ordered(items))
        case IsDistinct(left, right) if sort_key(right) < sort_key(left):
            return IsDistinct(right, left)
        case Call(name, (left, right), kind) if name in _TURNED:
            return Call(_TURNED[name], (right, left), kind)
        case Call(name, (left, right), kind) if (
            name in _COMMUTATIVE and left.type == right.type and sort_key(right) < sort_key(left)
        ):
            return Call(name, (right, left), kind)
        case _:
            return node
