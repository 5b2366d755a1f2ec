"""Plans over lists of rows, node by node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never

from everview.engines.reference.aggregates import aggregate
from everview.engines.reference.scalars import Row, Rows, Run, truth
from everview.engines.reference.windows import sort_indices, window_column
from everview.language.expressions import And, Call, Column, Expression, Literal, Parameter, can_fail
from everview.language.plan import (
    Aggregate,
    AggregateCall,
    Distinct,
    Except,
    Filter,
    Fixpoint,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
)

if TYPE_CHECKING:
    from everview.language.program import Program  # it brings the parser, which no task needs

__all__ = ["Result", "Tables", "evaluate", "evaluate_views"]

Tables = Mapping[str, Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Result:
    """The rows, duplicates repeated, sorted if the plan says so; and how many calls failed, giving NULL."""

    rows: Rows
    failures: int


def evaluate(
    plan: Plan, tables: Tables, *, parameters: Mapping[Parameter, Any] | None = None, strict: bool = False
) -> Result:
    """The bag of rows that a plan denotes over these tables.

    A failing expression is NULL and counted, as in a view; with `strict` it is a DataError, as in a query.
    """
    evaluation = _Evaluation(tables)
    return evaluation.result(plan, parameters or {}, strict=strict)


def evaluate_views(program: Program, tables: Tables) -> dict[str, Result]:
    """Every view of a program, over the contents of its relations; a view that is given has those rows."""
    known = {name: list(tables.get(name, ())) for name in program.relations}
    evaluation = _Evaluation(known)
    results: dict[str, Result] = {}
    for name, view in program.views.items():
        given = name in tables
        results[name] = Result(list(tables[name]), 0) if given else evaluation.result(view.plan, {})
        known[name] = results[name].rows
    return results


def _possible(plan: Join, left: Rows, right: Rows) -> Iterator[tuple[int, int]]:
    """The pairs that a join has to look at: all of them, but for those that differ in a column it equates."""
    width = len(plan.left.schema)
    places = [
        sorted((one.index, other.index))
        for part in _conjuncts(plan.condition)
        if isinstance(part, Call) and part.function == "="
        for one, other in [part.arguments]
        if isinstance(one, Column) and isinstance(other, Column)
    ]
    keys = [(mine, theirs - width) for mine, theirs in places if mine < width <= theirs]
    meeting: defaultdict[Row, list[int]] = defaultdict(list)
    for j, row in enumerate(right):
        meeting[tuple(row[theirs] for _, theirs in keys)].append(j)
    for i, row in enumerate(left):
        for j in meeting.get(tuple(row[mine] for mine, _ in keys), ()):
            yield i, j


def _conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a condition; of one that can fail it matters for which rows it does, so none."""
    if can_fail(condition):
        return ()
    return condition.arguments if isinstance(condition, And) else (condition,)


class _Evaluation:
    run: Run

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._recursive: Mapping[str, Mapping[Row, None]] = {}
        self._groups: dict[object, tuple[Mapping[str, Mapping[Row, None]], int]] = {}

    def result(self, plan: Plan, parameters: Mapping[Parameter, Any], *, strict: bool = False) -> Result:
        """The rows of a plan with nothing around it."""
        self.run = Run(self.rows, parameters, strict)
        return Result(self.rows(plan, ()), self.run.failures)

    def rows(self, plan: Plan, outer: tuple[Row, ...]) -> Rows:
        """The rows of a plan; `outer` are the rows around it, inside first."""
        match plan:
            case Scan(name):
                return list(self._tables[name])
            case Values():
                return [tuple(self.run.value(cell, (), outer) for cell in row) for row in plan.rows]
            case Filter(child, predicate):
                return [
                    row for row in self.rows(child, outer) if truth(self.run.value(predicate, row, outer))
                ]
            case Project(child, expressions):
                return self._cells(expressions, self.rows(child, outer), outer)
            case Join():
                return self._join(plan, outer)
            case UnionAll(inputs):
                return [row for child in inputs for row in self.rows(child, outer)]
            case Distinct(child):
                return list(dict.fromkeys(self.rows(child, outer)))
            case Intersect(left, right, keep):
                both = Counter(self.rows(left, outer)) & Counter(self.rows(right, outer))
                return list(both.elements()) if keep else list(both)
            case Except(left, right, keep):
                mine, theirs = Counter(self.rows(left, outer)), Counter(self.rows(right, outer))
                return list((mine - theirs).elements()) if keep else [row for row in mine if not theirs[row]]
            case Aggregate():
                return self._aggregate(plan, outer)
            case TopK():
                return self._top(plan, outer)
            case Window(child, calls):
                rows = self.rows(child, outer)

                def value(expression: Expression, row: Row) -> Any:
                    return self.run.value(expression, row, outer)

                columns = [window_column(call, rows, value, self.run) for call in calls]
                return [(*row, *extra) for row, *extra in zip(rows, *columns, strict=True)]
            case RecursiveScan(name):
                return list(self._recursive[name])
            case Fixpoint():
                return self._fixpoint(plan, outer)
            case _:
                assert_never(plan)

    def _cells(self, expressions: tuple[Expression, ...], rows: Rows, outer: tuple[Row, ...]) -> Rows:
        """What the expressions are over each row; columns alone are picked out, which is much faster."""
        if expressions and all(isinstance(expression, Column) for expression in expressions):
            columns = [[row[e.index] for row in rows] for e in expressions if isinstance(e, Column)]
            return list(zip(*columns, strict=True))
        return [tuple(self.run.value(expression, row, outer) for expression in expressions) for row in rows]

    def _fixpoint(self, plan: Fixpoint, outer: tuple[Row, ...]) -> Rows:
        """All plans are applied to all rows, again and again, until none has another one (naively)."""
        around, failed = self._recursive, self.run.failures
        group = plan.names, plan.plans
        if not around and group in self._groups:  # another view shows another relation of it
            sets, failures = self._groups[group]
            self.run.failures += failures
            return list(sets[plan.result])
        sets = dict.fromkeys(plan.names, MappingProxyType({}))
        while True:
            self._recursive = {**around, **sets}
            self.run.failures = failed  # those of the last time count: it sees all rows
            found = [dict.fromkeys(self.rows(child, outer)) for child in plan.plans]
            grown = {name: {**sets[name], **more} for name, more in zip(plan.names, found, strict=True)}
            if all(len(grown[name]) == len(sets[name]) for name in plan.names):
                self._recursive = around
                if not around:
                    self._groups[group] = sets, self.run.failures - failed
                return list(sets[plan.result])
            sets = grown

    def _join(self, plan: Join, outer: tuple[Row, ...]) -> Rows:
        left, right = self.rows(plan.left, outer), self.rows(plan.right, outer)
        matches = [
            (i, j)
            for i, j in _possible(plan, left, right)
            if truth(self.run.value(plan.condition, left[i] + right[j], outer))
        ]
        with_left, with_right = {i for i, _ in matches}, {j for _, j in matches}
        if plan.kind is JoinKind.SEMI:
            return [row for i, row in enumerate(left) if i in with_left]
        if plan.kind is JoinKind.ANTI:
            return [row for i, row in enumerate(left) if i not in with_left]
        rows = [left[i] + right[j] for i, j in matches]
        if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
            nothing = (None,) * len(plan.right.schema)
            rows += [row + nothing for i, row in enumerate(left) if i not in with_left]
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            nothing = (None,) * len(plan.left.schema)
            rows += [nothing + row for j, row in enumerate(right) if j not in with_right]
        return rows

    def _aggregate(self, plan: Aggregate, outer: tuple[Row, ...]) -> Rows:
        groups: dict[Row, Rows] = {} if plan.keys else {(): []}
        rows = self.rows(plan.input, outer)
        for key, row in zip(self._cells(plan.keys, rows, outer), rows, strict=True):
            groups.setdefault(key, []).append(row)
        return [
            (*key, *(self._aggregated(call, rows, outer) for call in plan.aggregates))
            for key, rows in groups.items()
        ]

    def _aggregated(self, call: AggregateCall, rows: Rows, outer: tuple[Row, ...]) -> Any:
        if call.filter is not None:
            rows = [row for row in rows if truth(self.run.value(call.filter, row, outer))]
        if call.argument is None:
            return len(rows)
        values = [value for (value,) in self._cells((call.argument,), rows, outer) if value is not None]
        if call.distinct:
            values = list(dict.fromkeys(values))
        try:
            return aggregate(call.function, values, call.type)
        except (ArithmeticError, ValueError) as error:
            return self.run.failed(error)

    def _top(self, plan: TopK, outer: tuple[Row, ...]) -> Rows:
        rows = self.rows(plan.input, outer)
        order = sort_indices(
            rows, (*plan.order, *plan.ties), lambda expression, row: self.run.value(expression, row, outer)
        )
        start = self._count(plan.offset) or 0
        limit = self._count(plan.limit)
        chosen = order[start:] if limit is None else order[start : start + limit]
        return [rows[index] for index in chosen]

    def _count(self, count: Literal | Parameter | None) -> int | None:
        if count is None:
            return None
        value = self.run.value(count, (), ())
        if value is not None and value < 0:
            raise ValueError("LIMIT and OFFSET are not negative")
        return None if value is None else int(value)
