"""Attach: the value of a subquery as a further column of the outer rows.

An outer row keeps its multiplicity: what is joined to it has at most one row for it. A row of marks is
joined from the left, so that a row without one stays, with NULL.

- EXISTS: the distinct outer columns for which there is a row, with TRUE beside them; EXISTS is "IS NOT
  NULL" of that.
- x IN S: TRUE if some row equals x; else NULL if x is NULL and there is any row, or if some row is NULL;
  else FALSE. So it is a CASE over three EXISTS, each of which joins by equality.
- A scalar subquery: NULL without rows; with several it fails. Per outer row the number of rows and the
  least value are kept; `CASE WHEN rows > 1 THEN <fails> ELSE value END`, where `<fails>` is a cast that
  fails, so that an engine treats it as it treats every failure: NULL in a view, DataError in a query.
- A scalar subquery that has a key among the outer columns has no second row: it is joined as it is.
- A scalar subquery that is a global aggregate has exactly one row; its value over nothing is written out
  (`count` is 0), so neither a count of rows nor a domain is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from everview.language.aggregates import AggregateCall
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
    InSubquery,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    ScalarSubquery,
    is_nullable,
    map_children,
    substitute,
)
from everview.language.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    expressions_of,
)
from everview.language.types import BIGINT, BOOLEAN, TEXT, Type
from everview.planner.conditions import all_columns, column, equal, not_null, outer_reads
from everview.planner.facts import Facts
from everview.planner.unnest.lift import close, same_existence
from everview.planner.unnest.spread import count_or_zero, join_on, spread

__all__ = ["SEVERAL_ROWS", "Attached", "failure"]

SEVERAL_ROWS = "a subquery used as a value has more than one row"


def failure(kind: Type) -> Expression:
    """An expression of a type that always fails, saying why."""
    fails = Cast(Cast(Literal(SEVERAL_ROWS, TEXT), BIGINT), TEXT)
    return Cast(fails, kind) if kind != TEXT else fails


@dataclass(slots=True)
class Attached:
    """Outer rows while the subqueries of their expressions are attached, one after the other.

    `plan` starts with the columns of `base`. Domains are taken from `base` where that has the columns, so
    that several subqueries beside each other do not nest.
    """

    base: Plan
    facts: Facts
    plan: Plan = field(init=False)
    _known: dict[Expression, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = self.base

    def value(self, expression: Expression) -> Expression:
        """The expression without subqueries, over `plan`; the plans in it have none already."""
        if isinstance(expression, (Exists, ScalarSubquery)):
            if expression not in self._known:
                found = (
                    self._exists(expression.plan)
                    if isinstance(expression, Exists)
                    else self._scalar(expression.plan)
                )
                self._known[expression] = found
            return self._known[expression]
        rebuilt = map_children(expression, self.value)
        if isinstance(rebuilt, InSubquery):
            return self._in(rebuilt.operand, rebuilt.plan)
        return rebuilt

    def as_column(self, expression: Expression) -> Column:
        """The expression as a column of `plan`, added if it is not one."""
        if isinstance(expression, Column):
            return expression
        columns = all_columns(self.plan.schema)
        names = tuple(found.name for found in columns)
        self.plan = Project(self.plan, (*columns, expression), (*names, "operand"))
        return column(self.plan.schema, len(columns))

    def outer(self, reads: frozenset[int]) -> Plan:
        """Where the distinct values of these outer columns come from."""
        return self.base if all(read < len(self.base.schema) for read in reads) else self.plan

    def _join(self, kind: JoinKind, right: Plan, condition: Expression) -> int:
        """Join a plan to the rows, and say where its columns begin."""
        width = len(self.plan.schema)
        self.plan = Join(kind, self.plan, right, condition)
        return width

    def _here(self, outers: dict[int, Column]) -> dict[int, Column]:
        return {outer: column(self.plan.schema, outer) for outer in outers}

    def _exists(self, plan: Plan) -> Expression:
        found = same_existence(plan)
        if found is None:
            return TRUE
        wide = spread(found, self.outer(_reads(found)))
        places = wide.columns()
        marked = tuple(places[outer] for outer in sorted(places))
        names = (*(c.name for c in marked), "exists")
        marks = Distinct(Project(wide.plan, (*marked, TRUE), names))
        width = len(self.plan.schema)
        right = {outer: Column(width + i, places[outer].type) for i, outer in enumerate(sorted(places))}
        self._join(JoinKind.LEFT, marks, join_on(self._here(right), right, wide.strict))
        return not_null(Column(width + len(marked), BOOLEAN, "exists"))

    def _in(self, operand: Expression, plan: Plan) -> Expression:
        value = self.as_column(operand)
        item = column(plan.schema, 0)
        subject = OuterColumn(1, value.index, value.type, value.name)
        found = self.value(Exists(Filter(plan, equal(item, subject))))
        unknown: list[Expression] = []
        if is_nullable(value, self.plan.schema):
            unknown.append(And((IsNull(value), self.value(Exists(plan)))))
        if plan.schema[0].nullable:
            unknown.append(self.value(Exists(Filter(plan, IsNull(item)))))
        if not unknown:
            return found
        null = Literal(None, BOOLEAN)
        either = unknown[0] if len(unknown) == 1 else Or(tuple(unknown))
        return Case(((found, TRUE), (either, null)), FALSE)

    def _scalar(self, plan: Plan) -> Expression:
        aggregate = _global_aggregate(plan)
        if aggregate is not None:
            return self._aggregate(*aggregate)
        value = column(plan.schema, 0)
        wide = spread(plan, self.outer(_reads(plan)))
        if any(key <= set(wide.at.values()) for key in self.facts.keys(wide.plan)):
            width = len(self.plan.schema)
            right = wide.columns(shifted=width)
            self._join(JoinKind.LEFT, wide.plan, join_on(self._here(right), right, wide.strict))
            return Column(width, value.type, value.name)
        calls = (AggregateCall("count", None), AggregateCall("min", value))
        start = self._grouped(wide.plan, wide.columns(), wide.strict, calls)
        rows, least = Column(start, BIGINT, "rows"), Column(start + 1, value.type, "value")
        several = Call(">", (rows, Literal(1, BIGINT)), BOOLEAN)
        return Case(((several, failure(value.type)),), least)

    def _grouped(
        self, plan: Plan, places: dict[int, Column], strict: frozenset[int], calls: tuple[AggregateCall, ...]
    ) -> int:
        """Join one row of aggregates per outer columns, and say where the aggregates begin."""
        keys = tuple(places[outer] for outer in sorted(places))
        names = (*(key.name for key in keys), *(call.function for call in calls))
        grouped = Aggregate(plan, keys, calls, names)
        width = len(self.plan.schema)
        right = {outer: Column(width + i, places[outer].type) for i, outer in enumerate(sorted(places))}
        kind = JoinKind.LEFT if keys else JoinKind.INNER
        self._join(kind, grouped, join_on(self._here(right), right, strict))
        return width + len(keys)

    def _aggregate(self, value: Expression, node: Aggregate) -> Expression:
        """The value of an expression over a global aggregate, for each outer row."""
        own = frozenset(read for part in expressions_of(node) for read in outer_reads(part))
        wide = spread(node.input, self.outer(_reads(node)), own)
        places = wide.columns()
        calls = tuple(call.map_expressions(lambda e: close(e, places)) for call in node.aggregates)
        start = self._grouped(wide.plan, places, wide.strict, calls)
        columns = tuple(Column(start + i, call.type, call.function) for i, call in enumerate(calls))
        if places:
            shown = tuple(count_or_zero(call, one) for call, one in zip(calls, columns, strict=True))
        else:
            shown = columns
        outers = {read: column(self.plan.schema, read) for read in outer_reads(value)}
        # First the aggregate's columns, then the outer row's: the latter are columns of this plan already.
        return close(substitute(value, lambda one: shown[one.index]), outers)


def _reads(plan: Plan) -> frozenset[int]:
    return frozenset(found.index for found in outer_columns(plan) if found.depth == 1)


def _global_aggregate(plan: Plan) -> tuple[Expression, Aggregate] | None:
    """The expression over a global aggregate that the one column of a plan is, if it is one."""
    match plan:
        case Aggregate(keys=()):
            return column(plan.schema, 0), plan
        case Project(Project(child, below), (expression,), names):
            merged = substitute(expression, lambda one: below[one.index])
            return _global_aggregate(Project(child, (merged,), names))
        case Project(Aggregate(keys=()) as node, (expression,)):
            return expression, node
        case _:
            return None
