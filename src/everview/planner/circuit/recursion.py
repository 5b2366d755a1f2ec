"""Recursion: all relations that are defined by each other are one operator, kept by semi-naive rounds.

The bodies of the group are plans over leaves: the relations of the group, and inputs that do not read it. A
leaf has three tables: its rows as they were (`@old`), those that came last (`@new`), and both (`@all`). A
body treats every combination of rows by itself, so it has a variant for each place where a leaf stands: new
rows there, all in the places after it, old ones in those before it. Together the variants derive all that
follows from new rows and not from old ones alone, from each combination once.

A round runs the variants of the leaves that have new rows. In the first these are inputs, with all their rows
when it begins from nothing; what a round derives and was not known is new in the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from everview.errors import ProgramError
from everview.language.expressions import Call, Column, Expression, Literal, conjunction
from everview.language.plan import (
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
    Schema,
    UnionAll,
    map_inputs,
    rewrite,
    walk_plan,
)
from everview.language.recursion import NotMonotoneError, group_clauses, reads_group
from everview.language.types import BIGINT, Field
from everview.planner.circuit.parts import (
    Given,
    Keeping,
    Kept,
    Lookup,
    Operator,
    Recursion,
    Relation,
    Variant,
    changed_scan,
    found_scan,
    leaf_scan,
)
from everview.planner.circuit.stability import stable_columns
from everview.planner.circuit.weighted import ZERO, columns, compare, positive, project, sum_up
from everview.planner.conditions import conjuncts

if TYPE_CHECKING:
    from everview.planner.circuit.build import Builder

__all__ = ["recursion", "shown"]

_TAG = Field("relation", BIGINT, nullable=False)


def shown(plan: Fixpoint, name: str) -> Plan:
    """The rows of the relation that a Fixpoint shows, of all rows that the operator of its group has."""
    rows = Scan(name, _schema(plan))
    if len(plan.names) == 1:
        return rows
    place = plan.names.index(plan.result)
    start = 1 + sum(map(len, plan.schemas[:place]))
    mine = Filter(rows, compare(columns(rows)[0], "=", Literal(place, BIGINT)))
    names = tuple(column.name for column in plan.schema)
    return Project(mine, columns(rows)[start : start + len(plan.schema)], names)


def _schema(plan: Fixpoint) -> Schema:
    """The columns of a group: of one relation its own; of several which one it is, then those of all."""
    if len(plan.names) == 1:
        return plan.schema
    every = (replace(column, nullable=True) for schema in plan.schemas for column in schema)
    return (_TAG, *every)


def _places(plan: Fixpoint, stable: Sequence[int]) -> list[int]:
    """Where the group has the stable columns of its relations."""
    start, places = 0 if len(plan.names) == 1 else 1, []
    for schema, place in zip(plan.schemas, stable, strict=False):
        places.append(start + place)
        start += len(schema)
    return places


def _title(plan: Fixpoint, stable: Sequence[int]) -> str:
    apart = (schema[place].name for schema, place in zip(plan.schemas, stable, strict=False))
    return f"Recursion, apart by {', '.join(dict.fromkeys(apart))}" if stable else "Recursion"


def recursion(builder: Builder, name: str, plan: Fixpoint) -> Operator:
    """The operator of a group: it reads all rows of its inputs, and all of its own."""
    try:
        group_clauses(plan)
    except NotMonotoneError as error:
        raise ProgramError(
            f"the recursion over {', '.join(plan.names)} cannot be kept: {error}",
            hint="let it read a view that is not part of the recursion",
        ) from None
    bodies = _Bodies(builder, name, plan)
    opened = [bodies.opened(body) for body in plan.plans]
    variants = [
        Variant(head, leaf, changed) for head, body in enumerate(opened) for leaf, changed in _variants(body)
    ]
    watched = frozenset(leaf for body in opened for leaf in _watched(body))
    stable = stable_columns(plan)
    rows = Scan(name, _schema(plan))
    own = builder.keep(rows, [columns(rows)[place] for place in _places(plan, stable)])
    inputs = tuple(
        _given(leaf, builder.keep_everywhere(scan) if stable else builder.keep(scan, ()), leaf in watched)
        for scan, leaf in bodies.inputs.items()
    )
    relations = tuple(
        Relation(leaf, schema) for leaf, schema in zip(bodies.relations.values(), plan.schemas, strict=True)
    )
    return Operator(
        name,
        _schema(plan),
        _title(plan, stable),
        Keeping.FULL,
        (*(Lookup(given.kept, None) for given in inputs), Lookup(own, None)),
        (),
        None,
        recursion=Recursion(relations, inputs, tuple(variants), own, stable),
    )


def _given(leaf: str, kept: Kept, watched: bool) -> Given:  # noqa: FBT001  (one of three)
    width = kept.width
    found, changed = found_scan(kept), changed_scan(kept)
    *own, weight = columns(found)
    both = UnionAll((project(found, (*own, weight, weight)), project(changed, (*own, ZERO, weight))))
    counted = sum_up(both, width)
    before, after = columns(counted)[width:]
    return Given(leaf, kept, project(counted, (*own, positive(before), positive(after))), watched)


@dataclass(slots=True)
class _Bodies:
    """The bodies of a group, opened down to leaves."""

    builder: Builder
    name: str
    plan: Fixpoint
    inputs: dict[Scan, str] = field(default_factory=dict)
    """The relations and operators that are read, each with its leaf."""
    relations: dict[str, str] = field(init=False)
    """The leaves of the group's relations."""

    def __post_init__(self) -> None:
        self.relations = {name: f"{self.name}@r{place}" for place, name in enumerate(self.plan.names)}

    def opened(self, plan: Plan) -> Plan:
        """The plan over leaves. All rows are sets here, so DISTINCT says nothing."""
        match plan:
            case RecursiveScan(name, schema) if name in self.relations:
                return Scan(self.relations[name], schema)
            case Distinct(child):
                return self.opened(child)
            case Join(JoinKind.INNER):
                return _by_columns(replace(plan, left=self.opened(plan.left), right=self.opened(plan.right)))
            case Filter() | Project() | UnionAll():
                return map_inputs(plan, self.opened)
            case _ if reads_group(plan, self.plan.names):
                return map_inputs(plan, self.opened)
            case _:
                return rewrite(self.builder.flat(plan), self._leaf)

    def _leaf(self, node: Plan) -> Plan:
        if not isinstance(node, Scan):
            return node
        return Scan(self.inputs.setdefault(node, f"{self.name}@i{len(self.inputs)}"), node.schema)


def _by_columns(join: Join) -> Plan:
    """An inner join by the columns that it equates, what else it asks for above it: so columns can do it."""
    width = len(join.left.schema)
    equated: list[Expression] = []
    others: list[Expression] = []
    for part in conjuncts(join.condition):
        match part:
            case Call("=", (Column(one), Column(other))) if (one < width) != (other < width):
                equated.append(part)
            case _:
                others.append(part)
    if not equated or not others:
        return join
    return Filter(replace(join, condition=conjunction(equated)), conjunction(others))


def _variants(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The plan with new rows in one place, for each place: the leaf there, and the plan."""
    match plan:
        case Scan(leaf, schema):
            yield leaf, leaf_scan(leaf, schema, "new")
        case Filter() | Project():
            for leaf, changed in _variants(plan.input):
                yield leaf, replace(plan, input=changed)
        case UnionAll(inputs):
            for part in inputs:
                yield from _variants(part)
        case Join() | Intersect() | Except():
            left, right = _changing(plan)
            if left:
                for leaf, changed in _variants(plan.left):
                    yield leaf, replace(plan, left=changed, right=_at(plan.right, "all"))
            if right:
                for leaf, changed in _variants(plan.right):
                    yield leaf, replace(plan, left=_at(plan.left, "old"), right=changed)
        case _:
            raise AssertionError(f"{type(plan).__name__} is no part of a recursion")


def _changing(plan: Join | Intersect | Except) -> tuple[bool, bool]:
    """On which sides more rows give more rows; on the others they may also take rows away."""
    match plan:
        case Join(JoinKind.INNER | JoinKind.SEMI) | Intersect():
            return True, True
        case Join(JoinKind.RIGHT):
            return False, True
        case _:
            return True, False


def _watched(plan: Plan) -> Iterator[str]:
    """The leaves of which new rows may take rows away."""
    for node in walk_plan(plan):
        if isinstance(node, Join | Intersect | Except):
            sides = zip(_changing(node), (node.left, node.right), strict=True)
            for side in (side for changes, side in sides if not changes):
                yield from (leaf.name for leaf in walk_plan(side) if isinstance(leaf, Scan))


def _at(plan: Plan, when: str) -> Plan:
    return rewrite(
        plan, lambda node: leaf_scan(node.name, node.schema, when) if isinstance(node, Scan) else node
    )
