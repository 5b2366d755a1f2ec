"""Recursive plans as clauses: a union of joins of atoms, some of which are the relations of the group.

A plan may be part of a recursion when more rows of the group never take a row away from it: it is made of
select, project, join and union. What does not read the group may be anything, negation and aggregation too,
for it is complete before the recursion begins; a row of the group may also be kept for having no partner in
it. All rows are sets, so a semi join is a join, and DISTINCT says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from everview.language.expressions import (
    And,
    Column,
    Exists,
    Expression,
    InSubquery,
    IsDistinct,
    Literal,
    Not,
    ScalarSubquery,
    shift,
    substitute,
    walk,
)
from everview.language.plan import (
    Aggregate,
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
    Schema,
    TopK,
    UnionAll,
    Window,
    expressions_of,
    free_names,
    walk_plan,
)

__all__ = [
    "MOST_CLAUSES",
    "Absence",
    "Clause",
    "NotMonotoneError",
    "clauses_of",
    "group_clauses",
    "reads_group",
    "refuse_subqueries",
]

MOST_CLAUSES = 2_048
"""Joins of unions multiply; a relation with more clauses is better written in several."""


class NotMonotoneError(ValueError):
    """More rows of the group could take rows away from a plan; the message says how."""


@dataclass(frozen=True, slots=True)
class Absence:
    """No row of a plan that does not read the group may meet the clause's rows.

    The condition is over the columns of the clause's atoms, followed by those of the plan.
    """

    plan: Plan
    condition: Expression


@dataclass(frozen=True, slots=True)
class Clause:
    """The rows `head` of all combinations of the atoms' rows for which every condition is true.

    Atoms are RecursiveScans of the group, or plans that do not read it. Conditions and head are over the
    columns of all atoms, one after the other.
    """

    atoms: tuple[Plan, ...]
    conditions: tuple[Expression, ...]
    absences: tuple[Absence, ...]
    head: tuple[Expression, ...]

    @property
    def width(self) -> int:
        """How many columns the atoms have."""
        return sum(len(atom.schema) for atom in self.atoms)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the columns of each atom begin."""
        return tuple(accumulate((len(atom.schema) for atom in self.atoms[:-1]), initial=0))


def group_clauses(group: Fixpoint) -> dict[str, tuple[Clause, ...]]:
    """The clauses of every relation of a group."""
    named = zip(group.names, group.plans, strict=True)
    return {name: clauses_of(plan, group.names) for name, plan in named}


def clauses_of(plan: Plan, names: Collection[str]) -> tuple[Clause, ...]:
    """The clauses of a plan in a group of these names; NotMonotoneError where it has none."""
    found = _clauses(plan, frozenset(names))
    return tuple(dict.fromkeys(found))


def _reads(plan: Plan, names: Collection[str]) -> bool:
    return not free_names(plan).isdisjoint(names) or any(
        isinstance(part, Exists | ScalarSubquery | InSubquery) and _reads(part.plan, names)
        for expression in expressions_of(plan)
        for part in walk(expression)
    )


def reads_group(plan: Plan, names: Collection[str]) -> bool:
    """Whether the group is read here, below, or in a subquery of an expression."""
    return _reads(plan, names) or any(reads_group(child, names) for child in plan.inputs)


def _columns(schema: Schema, start: int = 0) -> tuple[Expression, ...]:
    return tuple(Column(start + index, field.type, field.name) for index, field in enumerate(schema))


def _clauses(plan: Plan, names: frozenset[str]) -> list[Clause]:
    if not reads_group(plan, names) or isinstance(plan, RecursiveScan):
        return [Clause((plan,), (), (), _columns(plan.schema))]
    _refuse_here(plan, names)
    match plan:
        case Filter(child, predicate):
            return [_filtered(clause, predicate) for clause in _clauses(child, names)]
        case Project(child, expressions):
            return [_projected(clause, expressions) for clause in _clauses(child, names)]
        case UnionAll(inputs):
            return _checked([clause for part in inputs for clause in _clauses(part, names)])
        case Distinct(child):
            return _clauses(child, names)
        case Join():
            return _join(plan, names)
        case Intersect(left, right, keep) if not keep:
            pairs = _join(Join(JoinKind.INNER, left, right, _same(left.schema, right.schema)), names)
            return [replace(clause, head=clause.head[: len(plan.schema)]) for clause in pairs]
        case Except(left, right, keep) if not keep:
            return _join(Join(JoinKind.ANTI, left, right, _same(left.schema, right.schema)), names)
        case Intersect() | Except():
            word = "INTERSECT ALL" if isinstance(plan, Intersect) else "EXCEPT ALL"
            raise NotMonotoneError(f"{word} counts rows, and recursive relations are sets")
        case Aggregate():
            raise NotMonotoneError("an aggregate over the recursion itself")
        case Window():
            raise NotMonotoneError("a window function over the recursion itself")
        case TopK():
            raise NotMonotoneError("LIMIT over the recursion itself")
        case Fixpoint():
            raise NotMonotoneError("a recursion inside another one, over its rows")
        case _:
            raise AssertionError(f"{type(plan).__name__} reads nothing")


def refuse_subqueries(plan: Plan, names: Collection[str]) -> None:
    """Refuse a plan with an expression in which a subquery reads the group."""
    for node in walk_plan(plan):
        _refuse_here(node, frozenset(names))


def _refuse_here(plan: Plan, names: frozenset[str]) -> None:
    for expression in expressions_of(plan):
        for part in walk(expression):
            if isinstance(part, Exists | ScalarSubquery | InSubquery) and reads_group(part.plan, names):
                raise NotMonotoneError("a subquery over the recursion itself, inside an expression")


def _checked(found: list[Clause]) -> list[Clause]:
    if len(found) > MOST_CLAUSES:
        raise NotMonotoneError(f"more than {MOST_CLAUSES} alternatives: joins of unions multiply")
    return found


def _over(head: Sequence[Expression]) -> Callable[[Expression], Expression]:
    return lambda expression: substitute(expression, lambda column: head[column.index])


def _conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    if isinstance(predicate, And):
        return tuple(part for argument in predicate.arguments for part in _conjuncts(argument))
    return () if predicate == Literal(True, predicate.type) else (predicate,)


def _filtered(clause: Clause, predicate: Expression) -> Clause:
    parts = tuple(map(_over(clause.head), _conjuncts(predicate)))
    return replace(clause, conditions=clause.conditions + parts)


def _projected(clause: Clause, expressions: Sequence[Expression]) -> Clause:
    return replace(clause, head=tuple(map(_over(clause.head), expressions)))


def _same(left: Schema, right: Schema) -> Expression:
    """The rows are equal, NULL to NULL."""
    pairs = zip(_columns(left), _columns(right, len(left)), strict=True)
    parts = tuple(Not(IsDistinct(one, other)) for one, other in pairs)
    return parts[0] if len(parts) == 1 else And(parts)


def _join(plan: Join, names: frozenset[str]) -> list[Clause]:
    left, right = plan.left, plan.right
    match plan.kind:
        case JoinKind.INNER:
            return _pairs(plan, names)
        case JoinKind.SEMI:
            width = len(left.schema)
            return [replace(clause, head=clause.head[:width]) for clause in _pairs(plan, names)]
        case JoinKind.ANTI:
            _check_lower(right, names, "NOT EXISTS, NOT IN or EXCEPT")
            return [_without(clause, right, plan.condition) for clause in _clauses(left, names)]
        case JoinKind.LEFT:
            _check_lower(right, names, "an outer join that fills up")
            alone = [_without(clause, right, plan.condition) for clause in _clauses(left, names)]
            nothing = tuple(Literal(None, field.type) for field in right.schema)
            return _checked(
                [*_pairs(plan, names), *(replace(clause, head=clause.head + nothing) for clause in alone)]
            )
        case JoinKind.RIGHT:
            turned = Join(JoinKind.LEFT, right, left, _turned(plan.condition, left.schema, right.schema))
            wide = len(right.schema)
            return [
                replace(clause, head=clause.head[wide:] + clause.head[:wide])
                for clause in _join(turned, names)
            ]
        case JoinKind.FULL:
            raise NotMonotoneError("FULL JOIN over the recursion itself")


def _check_lower(plan: Plan, names: frozenset[str], what: str) -> None:
    if reads_group(plan, names):
        raise NotMonotoneError(f"{what} over the recursion itself")


def _turned(condition: Expression, left: Schema, right: Schema) -> Expression:
    wide = len(left)
    return substitute(
        condition,
        lambda c: replace(c, index=c.index + len(right) if c.index < wide else c.index - wide),
    )


def _pairs(plan: Join, names: frozenset[str]) -> list[Clause]:
    rights = _clauses(plan.right, names)
    pairs = [_crossed(one, other) for one in _clauses(plan.left, names) for other in rights]
    return [_filtered(clause, plan.condition) for clause in _checked(pairs)]


def _crossed(left: Clause, right: Clause) -> Clause:
    wide, far = left.width, right.width
    moved = tuple(replace(absence, condition=shift(absence.condition, wide)) for absence in right.absences)
    return Clause(
        left.atoms + right.atoms,
        left.conditions + tuple(shift(condition, wide) for condition in right.conditions),
        tuple(_widened(absence, wide, far) for absence in left.absences) + moved,
        left.head + tuple(shift(expression, wide) for expression in right.head),
    )


def _widened(absence: Absence, width: int, by: int) -> Absence:
    """The absence after the clause got more atoms: the plan's columns come behind them."""
    condition = substitute(
        absence.condition, lambda c: replace(c, index=c.index + by) if c.index >= width else c
    )
    return replace(absence, condition=condition)


def _without(clause: Clause, plan: Plan, condition: Expression) -> Clause:
    """The clause's rows that no row of the plan meets; the condition is over rows of both."""
    width, shown = clause.width, len(clause.head)

    def placed(column: Column) -> Expression:
        if column.index < shown:
            return clause.head[column.index]
        return replace(column, index=column.index - shown + width)

    absence = Absence(plan, substitute(condition, placed))
    return replace(clause, absences=(*clause.absences, absence))
