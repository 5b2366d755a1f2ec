"""Small questions about conditions, and small conditions, that several rules share.

A condition keeps a row when it is true; false and NULL both drop it. So a condition is the conjunction
of its parts, each of which may be checked where its columns are first known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from everview.language.correlation import outer_columns
from everview.language.expressions import (
    FALSE,
    TRUE,
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expression,
    InList,
    InSubquery,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    OuterColumn,
    ScalarSubquery,
    conjunction,
    transform,
    walk,
)
from everview.language.functions import FUNCTIONS
from everview.language.plan import Plan, Schema
from everview.language.types import BOOLEAN

__all__ = [
    "all_columns",
    "column",
    "conjuncts",
    "equal",
    "has_subquery",
    "is_correlated",
    "never_true",
    "not_null",
    "outer_reads",
    "rejects_null",
    "same",
    "simplify",
]


def column(schema: Schema, index: int) -> Column:
    """The column at a position of a schema."""
    return Column(index, schema[index].type, schema[index].name)


def all_columns(schema: Schema) -> tuple[Column, ...]:
    """Every column of a schema, in order."""
    return tuple(column(schema, index) for index in range(len(schema)))


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """The parts that must all be true for the predicate to be true; none for TRUE."""
    if isinstance(predicate, And):
        return tuple(part for argument in predicate.arguments for part in conjuncts(argument))
    return () if predicate == TRUE else (predicate,)


def equal(left: Expression, right: Expression) -> Expression:
    """`left = right`: NULL when either is."""
    return Call("=", (left, right), BOOLEAN)


def same(left: Expression, right: Expression) -> Expression:
    """`left IS NOT DISTINCT FROM right`: NULL is the same as NULL."""
    return Not(IsDistinct(left, right))


def not_null(operand: Expression) -> Expression:
    """`operand IS NOT NULL`."""
    return Not(IsNull(operand))


def has_subquery(expression: Expression) -> bool:
    """Whether a subquery stands anywhere in it."""
    return any(isinstance(part, (Exists, InSubquery, ScalarSubquery)) for part in walk(expression))


def is_correlated(plan: Plan) -> bool:
    """Whether the plan of a subquery reads the row next out."""
    return any(found.depth == 1 for found in outer_columns(plan))


def never_true(predicate: Expression) -> bool:
    """Whether it is the constant FALSE or NULL."""
    return isinstance(predicate, Literal) and predicate.value is not True


def _is_null(expression: Expression, columns: Callable[[int], bool]) -> bool:
    """Whether it surely is NULL when all these columns are."""
    match expression:
        case Column(index):
            return columns(index)
        case Literal(value):
            return value is None
        case Call(name, arguments):
            return FUNCTIONS[name].strict and any(_is_null(part, columns) for part in arguments)
        case Cast(operand) | Not(operand) | InList(operand):
            return _is_null(operand, columns)
        case And(arguments) | Or(arguments):
            return all(_is_null(part, columns) for part in arguments)
        case _:
            return False


def rejects_null(predicate: Expression, columns: Callable[[int], bool]) -> bool:
    """Whether it surely is not true when all these columns are NULL; when in doubt, no.

    Intuitively such a predicate above an outer join throws away the very rows the join had filled up.
    """
    match predicate:
        case And(arguments):
            return any(rejects_null(part, columns) for part in arguments)
        case Or(arguments):
            return all(rejects_null(part, columns) for part in arguments)
        case Not(IsNull(operand)):
            return _is_null(operand, columns)
        case _:
            return never_true(predicate) or _is_null(predicate, columns)


def simplify(expression: Expression) -> Expression:
    """The expression with truths that do not depend on any row worked out: no function is called.

    TRUE AND x is x, FALSE AND x is FALSE, NOT FALSE is TRUE, CASE drops branches that are never taken.
    """
    return transform(expression, _simplify_node)


def _flat(kind: type[And | Or], arguments: Iterable[Expression]) -> Iterator[Expression]:
    for argument in arguments:
        if isinstance(argument, kind):
            yield from argument.arguments
        else:
            yield argument


def _simplify_node(node: Expression) -> Expression:
    match node:
        case And(arguments):
            flat = dict.fromkeys(_flat(And, arguments))
            return FALSE if FALSE in flat else conjunction(tuple(flat))
        case Or(arguments):
            parts = [part for part in dict.fromkeys(_flat(Or, arguments)) if part != FALSE]
            if TRUE in parts:
                return TRUE
            return FALSE if not parts else parts[0] if len(parts) == 1 else Or(tuple(parts))
        case Not(Literal(value)):
            return Literal(None if value is None else not value, BOOLEAN)
        case Not(Not(operand)):
            return operand
        case IsNull(Literal(value)):
            return Literal(value is None, BOOLEAN)
        case Case(branches, default):
            return _simplify_case(branches, default)
        case _:
            return node


def _simplify_case(branches: tuple[tuple[Expression, Expression], ...], default: Expression) -> Expression:
    kept: list[tuple[Expression, Expression]] = []
    for condition, result in branches:
        if never_true(condition):
            continue
        if condition == TRUE:
            default = result
            break
        kept.append((condition, result))
    return Case(tuple(kept), default) if kept else default


def outer_reads(expression: Expression) -> frozenset[int]:
    """The columns of the next row out that an expression without subqueries reads."""
    return frozenset(
        part.index for part in walk(expression) if isinstance(part, OuterColumn) and part.depth == 1
    )
