"""Recursion: all relations that are defined by each other are one operator, kept by rounds of derivations.

Every row of the group is kept with a level, one above those of the group's rows that it was first derived
from. So each row has a derivation from rows that come before it: by level, then by relation, then by a place
that its values give it. A row that loses a derivation and has another one from earlier rows is proved; where
there is none it goes, and so on with what it was used for. What went and can still be derived comes back, and
what is new derives more (see `everview.hub.recursing`).

The bodies are clauses: joins of atoms, which are relations of the group or inputs that do not read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from everview.errors import ProgramError
from everview.language.expressions import Literal
from everview.language.plan import Filter, Fixpoint, Plan, Project, RecursiveScan, Scan, Schema
from everview.language.recursion import Absence, Clause, NotMonotoneError, group_clauses
from everview.language.types import BIGINT, Field
from everview.planner.circuit.derivations import Derivations
from everview.planner.circuit.parts import LEVEL, Keeping, Kept, Leaf, Operator, Recursion
from everview.planner.circuit.stability import stable_columns
from everview.planner.circuit.weighted import columns, compare

if TYPE_CHECKING:
    from everview.planner.circuit.build import Builder

__all__ = ["recursion", "shown"]

_TAG = Field("relation", BIGINT, nullable=False)


def shown(plan: Fixpoint, name: str) -> Plan:
    """The rows of the relation that a Fixpoint shows, of all rows that the operator of its group has."""
    rows = _rows_of(plan, name, plan.names.index(plan.result))
    names = tuple(column.name for column in plan.schema)
    return Project(rows, columns(rows)[: len(plan.schema)], names)


def _schema(plan: Fixpoint) -> Schema:
    """Of one relation its own columns; of several which one it is, then those of all; and the level."""
    if len(plan.names) == 1:
        return (*plan.schema, LEVEL)
    every = (replace(column, nullable=True) for schema in plan.schemas for column in schema)
    return (_TAG, *every, LEVEL)


def _rows_of(plan: Fixpoint, name: str, place: int) -> Plan:
    """The rows of one relation, and their levels."""
    rows = Scan(name, _schema(plan))
    if len(plan.names) == 1:
        return rows
    every, start = columns(rows), 1 + sum(map(len, plan.schemas[:place]))
    schema = plan.schemas[place]
    mine = Filter(rows, compare(every[0], "=", Literal(place, BIGINT)))
    names = tuple(column.name for column in (*schema, LEVEL))
    return Project(mine, (*every[start : start + len(schema)], every[-1]), names)


def _title(plan: Fixpoint, stable: Sequence[int]) -> str:
    apart = (schema[place].name for schema, place in zip(plan.schemas, stable, strict=False))
    return f"Recursion, apart by {', '.join(dict.fromkeys(apart))}" if stable else "Recursion"


def recursion(builder: Builder, name: str, plan: Fixpoint) -> Operator:
    """The operator of a group: it reads changes of its inputs, and finds what meets them."""
    try:
        clauses = group_clauses(plan)
    except NotMonotoneError as error:
        raise ProgramError(
            f"the recursion over {', '.join(plan.names)} cannot be kept: {error}",
            hint="let it read a view that is not part of the recursion",
        ) from None
    stable = stable_columns(plan)
    leaves = _Leaves(builder, name, plan, clauses, apart=bool(stable))
    made = [
        Derivations(clause, number, schema, leaves.number, leaves.numbers)
        for number, (relation, schema) in enumerate(zip(plan.names, plan.schemas, strict=True))
        for clause in clauses[relation]
    ]
    from_rows = tuple(found for one in made for found in one.by_atoms())
    from_forbidden = tuple(found for one in made for found in one.by_absences())
    support, returns = tuple(one.support() for one in made), tuple(one.returns() for one in made)
    every = (*(found for _, found in (*from_rows, *from_forbidden)), *support, *returns)
    for derivation in every:
        for step in (*derivation.steps, *derivation.absences):
            leaves.find(step.leaf, step.path)
    found = Recursion(leaves.made(), len(plan.names), from_rows, from_forbidden, support, returns, stable)
    return Operator(name, _schema(plan), _title(plan, stable), Keeping.DELTA, (), (), None, recursion=found)


@dataclass(slots=True)
class _Leaves:
    """What the clauses of a group read, each once, and how it is found."""

    builder: Builder
    name: str
    plan: Fixpoint
    clauses: dict[str, tuple[Clause, ...]]
    apart: bool
    numbers: dict[str, int] = field(init=False)
    """The relations of the group."""
    _inputs: dict[Plan, int] = field(default_factory=dict)
    _paths: dict[int, dict[tuple[int, ...], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.numbers = {name: number for number, name in enumerate(self.plan.names)}
        for found in self.clauses.values():
            for clause in found:
                for part in (*clause.atoms, *(absence.plan for absence in clause.absences)):
                    if not isinstance(part, RecursiveScan):
                        flat = self.builder.flat(part)
                        self._inputs.setdefault(flat, len(self.numbers) + len(self._inputs))

    def number(self, part: Plan | Absence) -> int:
        """The leaf that an atom or an absence reads."""
        if isinstance(part, RecursiveScan):
            return self.numbers[part.name]
        plan = part.plan if isinstance(part, Absence) else part
        return self._inputs[self.builder.flat(plan)]

    def find(self, leaf: int, path: tuple[int, ...]) -> None:
        """Let a leaf's rows be found by some of their columns."""
        self._paths.setdefault(leaf, {})[path] = None

    def made(self) -> tuple[Leaf, ...]:
        """All of them, those of the group first."""
        relations = (
            self._leaf(number, _rows_of(self.plan, self.name, number), schema, None)
            for number, schema in enumerate(self.plan.schemas)
        )
        inputs = (self._leaf(number, flat, flat.schema, flat) for flat, number in self._inputs.items())
        return (*relations, *inputs)

    def _leaf(self, number: int, rows: Plan, schema: Schema, given: Plan | None) -> Leaf:
        every = tuple(range(len(schema)))
        if given is None:
            kept = self._by(rows, every)
        else:
            kept = self.builder.keep_everywhere(given) if self.apart else self.builder.keep(given, ())
        paths = [path for path in self._paths.get(number, {}) if path not in ((), every)]
        return Leaf(schema, kept, tuple((path, self._by(rows, path)) for path in paths))

    def _by(self, rows: Plan, path: Sequence[int]) -> Kept:
        return self.builder.keep(rows, [columns(rows)[place] for place in path])
