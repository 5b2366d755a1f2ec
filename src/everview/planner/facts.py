"""Facts about a plan that engines ask for: keys, sets, monotone plans, the equalities of a join.

A key of a plan is a set of columns of which no two of its rows (occurrences, not values) have the same
values, NULL being the same as NULL. So a plan with a key is a set: no row occurs twice. The empty key
says that there is at most one row. Facts hold for all contents that the catalog allows; what is not
found is not denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from everview.language.expressions import (
    Call,
    Column,
    Expression,
    IsDistinct,
    Literal,
    Not,
    Parameter,
    columns_of,
    conjunction,
    shift,
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
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    expressions_of,
    walk_plan,
)
from everview.language.relations import Semantics
from everview.planner.conditions import conjuncts, has_subquery

if TYPE_CHECKING:
    from everview.language.program import Program  # it brings the parser, which no task needs

__all__ = [
    "NOTHING_KNOWN",
    "Catalog",
    "EquiKeys",
    "EquiPair",
    "Facts",
    "Key",
    "Keys",
    "catalog_of",
    "equi_keys",
    "is_monotone",
]

Key: TypeAlias = frozenset[int]
Keys: TypeAlias = frozenset[Key]
Catalog: TypeAlias = Mapping[str, Keys]
"""The keys of each relation and view by name; none for one that may hold a row twice."""

_NO_ROW_TWICE: Keys = frozenset([frozenset()])
_MOST_KEYS = 8
"""Joins multiply keys; the smallest ones are the useful ones."""
_MOST_PLANS = 10_000
"""How many answers are remembered: far more than the nodes of a program."""


def catalog_of(program: Program) -> dict[str, Keys]:
    """The keys of all relations and views of a program."""
    catalog: dict[str, Keys] = {}
    for name, relation in program.relations.items():
        match relation.semantics:
            case Semantics.KEYED | Semantics.MERGED | Semantics.GREATEST | Semantics.LEAST:
                catalog[name] = frozenset([frozenset(relation.key_positions)])
            case Semantics.SET | Semantics.ADD_WINS:
                catalog[name] = frozenset([frozenset(range(len(relation.schema)))])
            case Semantics.BAG:
                catalog[name] = frozenset()
            case _:
                assert_never(relation.semantics)
    for name, view in program.views.items():
        catalog[name] = Facts(catalog).keys(view.plan)
    return catalog


@dataclass(frozen=True, slots=True)
class EquiPair:
    """`left = right`, each over its own side's columns; with `null_safe`, NULL also meets NULL."""

    left: Expression
    right: Expression
    null_safe: bool


@dataclass(frozen=True, slots=True)
class EquiKeys:
    """A join's condition as equalities between the sides, and the rest over both (TRUE for none)."""

    pairs: tuple[EquiPair, ...]
    residual: Expression


def equi_keys(join: Join) -> EquiKeys:
    """The condition of a join, taken apart."""
    width = len(join.left.schema)
    pairs: list[EquiPair] = []
    rest: list[Expression] = []
    for part in conjuncts(join.condition):
        found = _pair(part, width)
        if found is None:
            rest.append(part)
        else:
            pairs.append(found)
    return EquiKeys(tuple(pairs), conjunction(rest))


def _pair(part: Expression, width: int) -> EquiPair | None:
    match part:
        case Call("=", (one, other)):
            null_safe = False
        case Not(IsDistinct(one, other)):
            null_safe = True
        case _:
            return None
    if has_subquery(part):
        return None
    sides = columns_of(one), columns_of(other)
    if not all(sides):
        return None
    if max(sides[0]) < width <= min(sides[1]):
        return EquiPair(one, shift(other, -width), null_safe)
    if max(sides[1]) < width <= min(sides[0]):
        return EquiPair(other, shift(one, -width), null_safe)
    return None


def is_monotone(plan: Plan) -> bool:
    """Whether it is made of select, project, inner join, union and DISTINCT only.

    Then more input rows never take an output row away, and an output row stands for the input rows it was
    made from. (A semi join and INTERSECT only grow as well, but their rows do not stand for such sets.)
    """
    for node in walk_plan(plan):
        match node:
            case Scan() | Values() | Filter() | Project() | UnionAll() | Distinct():
                pass
            case Join(kind):
                if kind is not JoinKind.INNER:
                    return False
            case Intersect() | Except() | Aggregate() | TopK() | Window():
                return False
            case RecursiveScan() | Fixpoint():
                return False  # monotone, but how often a row can be derived has no bound
            case _:
                assert_never(node)
        if any(map(has_subquery, expressions_of(node))):
            return False
    return True


class Facts:
    """Answers for plans over a catalog, each worked out once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._keys: dict[Plan, Keys] = {}

    def is_set(self, plan: Plan) -> bool:
        """Whether no row of the plan ever occurs twice."""
        return bool(self.keys(plan))

    def keys(self, plan: Plan) -> Keys:
        """The least column sets that are known to be unique."""
        found = self._keys.get(plan)
        if found is None:
            found = _least(self._find(plan))
            if len(self._keys) >= _MOST_PLANS:
                self._keys.clear()
            self._keys[plan] = found
        return found

    def _find(self, plan: Plan) -> Iterable[Key]:
        everything = frozenset(range(len(plan.schema)))
        match plan:
            case Scan(name):
                return self._catalog.get(name, frozenset())
            case Values(_, rows):
                if len(rows) <= 1:
                    return _NO_ROW_TWICE
                literal = all(isinstance(cell, Literal) for row in rows for cell in row)
                return [everything] if literal and len(set(rows)) == len(rows) else []
            case Filter(child, predicate):
                fixed = _fixed(predicate)
                return [key - fixed for key in self.keys(child)]
            case Project(child, expressions):
                return _projected(self.keys(child), expressions)
            case Join():
                return self._join(plan)
            case UnionAll(inputs):
                return self._union(inputs, everything)
            case Distinct(child):
                return [*self.keys(child), everything - _constant(child)]
            case Intersect(left, right, keep):
                both = [*self.keys(left), *self.keys(right)]
                return both if keep else [*both, everything]
            case Except(left, _, keep):
                return self.keys(left) if keep else [*self.keys(left), everything]
            case Aggregate(_, keys):
                return [frozenset(range(len(keys)))]
            case TopK(child, _, _, limit):
                one = isinstance(limit, Literal) and limit.value <= 1
                return _NO_ROW_TWICE if one else self.keys(child)
            case Window():
                return self._window(plan)
            case RecursiveScan() | Fixpoint():
                return [everything]
            case _:
                assert_never(plan)

    def _union(self, inputs: tuple[Plan, ...], everything: Key) -> Iterable[Key]:
        """Sets whose rows differ in a constant column never hold the same row."""
        if len(inputs) == 1:
            return self.keys(inputs[0])
        if not all(self.is_set(child) for child in inputs):
            return []
        for index in everything:
            constants = [child.expressions[index] for child in inputs if isinstance(child, Project)]
            told = len(constants) == len(inputs) and all(isinstance(c, Literal) for c in constants)
            if told and len(set(constants)) == len(inputs):
                return [everything]
        return []

    def _window(self, plan: Window) -> Iterable[Key]:
        found = list(self.keys(plan.input))
        width = len(plan.input.schema)
        for index, call in enumerate(plan.calls):
            columns = [part.index for part in call.partition if isinstance(part, Column)]
            if call.function == "row_number" and len(columns) == len(call.partition):
                found.append(frozenset([*columns, width + index]))
        return found

    def _join(self, plan: Join) -> Iterable[Key]:
        width = len(plan.left.schema)
        left = self.keys(plan.left)
        if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return left
        right = self.keys(plan.right)
        moved = [frozenset(index + width for index in key) for key in right]
        pairs = [one | other for one in left for other in moved]
        if plan.kind is JoinKind.FULL:
            # A row of NULLs on either side could meet a filled-up one: a column that is never NULL tells.
            never = {i for i, f in enumerate((*plan.left.schema, *plan.right.schema)) if not f.nullable}
            return [pair for pair in pairs if pair & never]
        equalities = equi_keys(plan).pairs
        lefts = {pair.left.index for pair in equalities if isinstance(pair.left, Column)}
        rights = {pair.right.index for pair in equalities if isinstance(pair.right, Column)}
        if plan.kind in (JoinKind.INNER, JoinKind.LEFT) and any(key <= rights for key in right):
            pairs.extend(left)
        if plan.kind in (JoinKind.INNER, JoinKind.RIGHT) and any(key <= lefts for key in left):
            pairs.extend(moved)
        return pairs


NOTHING_KNOWN = Facts({})
"""What holds of a plan whatever the relations hold."""


def _least(keys: Iterable[Key]) -> Keys:
    ordered = sorted(set(keys), key=lambda key: (len(key), sorted(key)))
    kept: list[Key] = []
    for key in ordered:
        if not any(less <= key for less in kept):
            kept.append(key)
    return frozenset(kept[:_MOST_KEYS])


def _fixed(predicate: Expression) -> Key:
    """The columns that a condition holds to one value."""
    found: set[int] = set()
    for part in conjuncts(predicate):
        match part:
            case Call("=", (Column(index), Literal() | Parameter())) | Call(
                "=", (Literal() | Parameter(), Column(index))
            ):
                found.add(index)
            case _:
                pass
    return frozenset(found)


def _constant(plan: Plan) -> Key:
    """The columns that have one value in all rows."""
    if not isinstance(plan, Project):
        return frozenset()
    return frozenset(at for at, e in enumerate(plan.expressions) if isinstance(e, Literal))


def _projected(keys: Keys, expressions: tuple[Expression, ...]) -> Iterable[Key]:
    """The keys all of whose columns are still there."""
    places = {e.index: at for at, e in reversed(list(enumerate(expressions))) if isinstance(e, Column)}
    for key in keys:
        if key <= places.keys():
            yield frozenset(places[index] for index in key)
