"""Plans over rows whose last column is a weight, put together from small parts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from everview.language.aggregates import AggregateCall
from everview.language.expressions import Call, Case, Column, Expression, Literal, Or, substitute
from everview.language.plan import Aggregate, Filter, Plan, Project, UnionAll
from everview.language.types import BIGINT, BOOLEAN, Kind, Type
from everview.planner.circuit.parts import WEIGHT

__all__ = [
    "ONE",
    "ZERO",
    "add",
    "columns",
    "compare",
    "consolidated",
    "difference",
    "minus",
    "moved",
    "negated",
    "or_zero",
    "positive",
    "present",
    "project",
    "sum_up",
    "times",
    "total",
    "united",
    "weighted",
    "without",
    "zero",
]

ZERO = Literal(0, BIGINT)
ONE = Literal(1, BIGINT)


def columns(plan: Plan, *, start: int = 0) -> tuple[Column, ...]:
    """The columns of a plan, as they are seen `start` places further right."""
    return tuple(Column(start + i, field.type, field.name) for i, field in enumerate(plan.schema))


def project(plan: Plan, expressions: Sequence[Expression]) -> Plan:
    """These expressions under names that do not matter."""
    return Project(plan, tuple(expressions), tuple(f"x{i}" for i in range(len(expressions))))


def times(left: Expression, right: Expression) -> Expression:
    """The product of two whole numbers."""
    return Call("*", (left, right), BIGINT)


def add(left: Expression, right: Expression) -> Expression:
    """The sum of two whole numbers."""
    return Call("+", (left, right), BIGINT)


def minus(left: Expression, right: Expression) -> Expression:
    """The difference of two whole numbers."""
    return Call("-", (left, right), BIGINT)


def compare(left: Expression, operator: str, right: Expression) -> Expression:
    """A comparison."""
    return Call(operator, (left, right), BOOLEAN)


def zero(kind: Type) -> Literal:
    """The 0 of a type that adds up."""
    return Literal(Decimal((0, (0,), -kind.digits[1])) if kind.kind is Kind.DECIMAL else 0, kind)


def or_zero(value: Expression) -> Expression:
    """A sum over no rows is 0 here."""
    return Call("coalesce", (value, zero(value.type)), value.type)


def positive(count: Expression) -> Expression:
    """1 where a count is above 0, else 0."""
    return Case(((compare(count, ">", ZERO), ONE),), ZERO)


def weighted(plan: Plan, weight: int) -> Plan:
    """The rows of a plan, each with this weight."""
    return Project(
        plan,
        (*columns(plan), Literal(weight, BIGINT)),
        (*(field.name for field in plan.schema), WEIGHT.name),
    )


def without(plan: Plan, count: int = 1) -> Plan:
    """The rows without their last columns."""
    return project(plan, columns(plan)[: len(plan.schema) - count])


def negated(plan: Plan) -> Plan:
    """The same rows with their weights turned."""
    *kept, weight = columns(plan)
    return project(plan, (*kept, minus(ZERO, weight)))


def united(terms: Sequence[Plan | None]) -> Plan | None:
    """All terms that there are."""
    present = tuple(term for term in terms if term is not None)
    if len(present) < 2:
        return present[0] if present else None
    return UnionAll(present)


def difference(after: Plan, before: Plan) -> Plan:
    """The rows of two bags as one change."""
    return UnionAll((weighted(after, 1), weighted(before, -1)))


def total(argument: Expression) -> AggregateCall:
    """The sum of a column."""
    return AggregateCall("sum", argument)


def sum_up(plan: Plan, width: int) -> Plan:
    """Each row of `width` columns once, what stands behind them summed."""
    every = columns(plan)
    names = tuple(f"x{i}" for i in range(len(every)))
    return Aggregate(plan, every[:width], tuple(map(total, every[width:])), names)


def consolidated(plan: Plan) -> Plan:
    """Each row once, with its weights summed, those that cancel left out."""
    summed = sum_up(plan, len(plan.schema) - 1)
    return Filter(summed, compare(columns(summed)[-1], "<>", ZERO))


def present(plan: Plan, width: int) -> Plan:
    """The rows of which some sum behind the first `width` columns is not 0."""
    every = columns(plan)
    there = [compare(column, "<>", zero(column.type)) for column in every[width:]]
    return Filter(plan, there[0] if len(there) == 1 else Or(tuple(there)))


def moved(condition: Expression, width: int, by: int) -> Expression:
    """A condition over two rows, the left of which has `by` more columns at its end."""
    return substitute(condition, lambda c: c if c.index < width else Column(c.index + by, c.type, c.name))
