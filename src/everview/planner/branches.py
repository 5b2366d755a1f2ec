"""Branches: a monotone plan as a union of joins of base relations, by position (Streams §5).

Select, project, inner join and UNION ALL can always be brought into this form, because a join of unions is
the union of the joins. A row of the plan then stands for the tuples it was made from, one for each position
of its branch: that is its derivation, and it travels where the base relations do not. Two positions of one
relation are two positions; a branch that occurs twice is two branches, for duplicates count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from everview.language.expressions import (
    TRUE,
    Column,
    Expression,
    Or,
    columns_of,
    conjunction,
    shift,
    substitute,
    walk,
)
from everview.language.plan import Filter, Join, JoinKind, Plan, Project, Scan, UnionAll, Values
from everview.language.relations import Relation
from everview.planner.conditions import all_columns, conjuncts, has_subquery

__all__ = ["MOST_ATOMS", "MOST_BRANCHES", "Branch", "branch_plan", "branches_of", "passing"]

MOST_BRANCHES = 64
"""Joins of unions multiply; beyond this the plan is cut further down."""

MOST_ATOMS = 16
"""Positions in one branch: each is an index that a receiving site keeps."""

_MOST_NODES = 4_000
"""Parts of one branch's expressions: projections over projections can double them at every step."""


class _TooMuchError(Exception):
    """The form would be larger than the limits allow."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The rows `expressions` of all combinations of the atoms' rows for which every condition is true.

    Expressions are over the columns of all atoms, one after the other. Without atoms it is a constant row.
    """

    atoms: tuple[Scan, ...]
    conditions: tuple[Expression, ...]
    expressions: tuple[Expression, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the columns of each atom begin."""
        return tuple(accumulate((len(atom.schema) for atom in self.atoms[:-1]), initial=0))

    def alone(self, position: int) -> tuple[Expression, ...]:
        """Return the conditions on one atom alone, over its own columns."""
        start = self.offsets[position]
        own = range(start, start + len(self.atoms[position].schema))
        return tuple(
            shift(condition, -start)
            for condition in self.conditions
            if (reads := columns_of(condition)) and all(index in own for index in reads)
        )

    def known_columns(self, position: int) -> Iterator[tuple[int, int]]:
        """Pair columns of the branch's rows with those columns of an atom that they are copies of."""
        start = self.offsets[position]
        for shown, expression in enumerate(self.expressions):
            if isinstance(expression, Column) and 0 <= expression.index - start < len(
                self.atoms[position].schema
            ):
                yield shown, expression.index - start


def branches_of(plan: Plan) -> tuple[Branch, ...] | None:
    """Return the branches of a plan over base relations; None where it is not monotone, or too large."""
    try:
        return tuple(_branches(plan))
    except _TooMuchError:
        return None


def _branches(plan: Plan) -> list[Branch]:
    match plan:
        case Scan():
            return [Branch((plan,), (), all_columns(plan.schema))]
        case Values(_, rows):
            return _checked([Branch((), (), row) for row in rows])
        case Filter(child, predicate) if not has_subquery(predicate):
            return [_filtered(branch, predicate) for branch in _branches(child)]
        case Project(child, expressions, _) if not any(map(has_subquery, expressions)):
            return [_projected(branch, expressions) for branch in _branches(child)]
        case UnionAll(inputs):
            return _checked([branch for part in inputs for branch in _branches(part)])
        case Join(JoinKind.INNER, left, right, condition) if not has_subquery(condition):
            rights = _branches(right)
            pairs = [_joined(a, b) for a in _branches(left) for b in rights]
            return [_filtered(branch, condition) for branch in _checked(pairs)]
        case _:
            raise _TooMuchError


def _checked(found: list[Branch]) -> list[Branch]:
    if len(found) > MOST_BRANCHES or any(len(branch.atoms) > MOST_ATOMS for branch in found):
        raise _TooMuchError
    return found


def _over(expressions: Sequence[Expression]) -> Callable[[Expression], Expression]:
    """Return what puts these expressions in the place of columns."""

    def replaced(expression: Expression) -> Expression:
        found = substitute(expression, lambda column: expressions[column.index])
        if sum(1 for _ in walk(found)) > _MOST_NODES:
            raise _TooMuchError
        return found

    return replaced


def _filtered(branch: Branch, predicate: Expression) -> Branch:
    parts = tuple(map(_over(branch.expressions), conjuncts(predicate)))
    return Branch(branch.atoms, branch.conditions + parts, branch.expressions)


def _projected(branch: Branch, expressions: Sequence[Expression]) -> Branch:
    return Branch(branch.atoms, branch.conditions, tuple(map(_over(branch.expressions), expressions)))


def _joined(left: Branch, right: Branch) -> Branch:
    width = sum(len(atom.schema) for atom in left.atoms)
    return Branch(
        left.atoms + right.atoms,
        left.conditions + tuple(shift(condition, width) for condition in right.conditions),
        left.expressions + tuple(shift(expression, width) for expression in right.expressions),
    )


def branch_plan(branch: Branch, names: Sequence[str]) -> Plan:
    """Return a branch as a plan once more."""
    rows: Plan = Values((), ((),))
    for position, atom in enumerate(branch.atoms):
        rows = Join(JoinKind.INNER, rows, atom, TRUE) if position else atom
    if branch.conditions:
        rows = Filter(rows, conjunction(branch.conditions))
    return Project(rows, branch.expressions, tuple(names))


def passing(branches: Sequence[Branch], relation: Relation) -> Expression:
    """Return the condition on a relation's rows whose liveness must travel with derivations of the branches.

    A row that passes no predicate of its own is in no derivation. Of a keyed relation only predicates on the
    key count: when a row that passes is replaced by one that does not, this is news about its key.
    """
    keys = frozenset(relation.key_positions)
    keyed = relation.is_keyed
    either: list[Expression] = []
    for branch in branches:
        for position, atom in enumerate(branch.atoms):
            if atom.name != relation.name:
                continue
            parts = [part for part in branch.alone(position) if not keyed or columns_of(part) <= keys]
            either.append(conjunction(parts))
    either = list(dict.fromkeys(either))
    if TRUE in either or not either:
        return TRUE
    return either[0] if len(either) == 1 else Or(tuple(either))
