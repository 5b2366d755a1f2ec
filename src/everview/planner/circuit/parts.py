"""What a circuit is made of, independent of any engine.

A circuit keeps views by rules that are plans themselves. So whoever runs plans runs circuits: the
reference in a test, SQLite where the rows are few, Spark where they are many. Rows travel in tables whose
last columns add up (a weight, or the sums of a group); a plan reads them by these names:

- `x@delta`: how a relation or an operator `x` changes; the weight last.
- `k@delta`: how the kept rows `k` change, made of the deltas of relations and operators, row by row.
- `k@found`: what lookups found of the kept rows `k`, each once; the columns that add up last.
- `x@s`: what a step `s` of the operator `x` made.
- `@bound`, `@met`: what a derivation of a recursion knows so far (see `derivations`).

An operator reads no more than changes of kept rows and what was found of them. All of it goes by the same
keys, so an operator may be run apart for each part of the keys.

A name with `@rows` at its end reads the same table as a bag: the weight says how often a row is there.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from everview.language.aggregates import SortKey
from everview.language.plan import Plan, Scan, Schema, walk_plan
from everview.language.types import BIGINT, Field

__all__ = [
    "BOUND",
    "LEVEL",
    "MET",
    "NUMBER",
    "PLACE",
    "WEIGHT",
    "Circuit",
    "Derivation",
    "Keeping",
    "Kept",
    "Leaf",
    "Lookup",
    "Operator",
    "Recursion",
    "Step",
    "changed_scan",
    "delta_scan",
    "found_scan",
    "plans_of",
    "rows_scan",
    "source_of",
    "sources",
    "table_of",
    "tables_of",
]

WEIGHT = Field("weight", BIGINT, nullable=False)
LEVEL = Field("level", BIGINT, nullable=False)
"""One above the levels of the rows of its group that a row of a recursion was derived from, when it came."""
PLACE = Field("place", BIGINT, nullable=False)
"""The place of a row among those of its level."""
NUMBER = Field("number", BIGINT, nullable=False)
BOUND, MET = "@bound", "@met"
_DELTA, _FOUND, _ROWS = "@delta", "@found", "@rows"


class Keeping(enum.Enum):
    """How much is read to carry a change through an operator."""

    DELTA = "by delta"
    PARTITION = "by touched partition"
    FULL = "in full"


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows that are kept from change to change, found again by some of their columns.

    `change` is how they change: `width` columns, then those that add up. A row all of whose sums are 0 is
    gone. `order` ranks the rows of one key, so that a lookup may take only the first or the last of them;
    every expression in it is a column.
    """

    name: str
    change: Plan
    width: int
    keys: tuple[int, ...]
    order: tuple[SortKey, ...] = ()
    nulls: bool = True
    """Whether what it is ordered by may be NULL."""
    everywhere: bool = False
    """Whether an operator that is run apart for parts of other keys reads all of these rows in each part."""

    @property
    def schema(self) -> Schema:
        """The columns, and those that add up."""
        return self.change.schema


@dataclass(frozen=True, slots=True)
class Lookup:
    """Ask for kept rows by the keys that a plan over deltas gives; None asks for all.

    With `take`, only for so many rows of each key, and one more for each row that the keys have of it: as
    many may go, and enough must be left. They are the first in the order, or the `last`.
    """

    kept: Kept
    keys: Plan | None
    take: int | None = None
    last: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows that a recursion reads: those of an input, or of a relation of its own.

    They are `kept` as a whole, and once more for each set of columns that they are found `by`. An input has
    the weight behind its columns, a relation of the group the level of a row.
    """

    schema: Schema
    kept: Kept
    by: tuple[tuple[tuple[int, ...], Kept], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Rows of a leaf that meet those so far: the columns `path` are equal to `keys`, and a condition holds.

    `keys` is a plan over the rows so far (`BOUND`), `safe` says where NULL meets NULL; the condition is a
    plan over those rows, followed by what the leaf's have (`MET`).
    """

    leaf: int
    keys: Plan
    path: tuple[int, ...]
    safe: tuple[bool, ...]
    condition: Plan | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """What follows for the relation `head` from rows that are given (see `derivations`).

    Those that `begin` leaves go through all steps, and stay if no row meets one of the absences; `made` is a
    plan over what is known in the end.
    """

    head: int
    begin: Plan | None
    steps: tuple[Step, ...]
    absences: tuple[Step, ...]
    made: Plan


@dataclass(frozen=True, slots=True)
class Recursion:
    """A group of relations that are defined by each other: the first of its leaves, before the inputs.

    `stable` is a column of each relation, by which the group may be run apart (see `stability`), or nothing.
    """

    leaves: tuple[Leaf, ...]
    relations: int
    from_rows: tuple[tuple[int, Derivation], ...]
    """What rows of a leaf derive: rows of the head, and their levels."""
    from_forbidden: tuple[tuple[int, Derivation], ...]
    """What rows of an input, which may not be there, would derive if they were not."""
    support: tuple[Derivation, ...]
    """Of rows of the head, the numbers of those that earlier rows derive."""
    returns: tuple[Derivation, ...]
    """Of rows of the head, those that can be derived, and their levels."""
    stable: tuple[int, ...] = ()

    @property
    def own(self) -> tuple[Kept, ...]:
        """Where the rows of its relations are kept."""
        return _tables(self.leaves[: self.relations])

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        """What it reads."""
        return self.leaves[self.relations :]

    @property
    def searched(self) -> tuple[Kept, ...]:
        """Where the rows of its inputs are kept, those among them whose changes it reads."""
        return _tables(self.inputs)

    def plans(self) -> Iterator[Plan]:
        """All plans that its rounds run."""
        started = (derivation for _, derivation in (*self.from_rows, *self.from_forbidden))
        for derivation in (*started, *self.support, *self.returns):
            steps = (*derivation.steps, *derivation.absences)
            yield from (step.keys for step in steps)
            yield from (step.condition for step in steps if step.condition is not None)
            yield from (plan for plan in (derivation.begin, derivation.made) if plan is not None)


def _tables(leaves: Iterable[Leaf]) -> tuple[Kept, ...]:
    found = (kept for leaf in leaves for kept in (leaf.kept, *(kept for _, kept in leaf.by)))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator that remembers: lookups, then steps, then its delta, the weight last.

    `first` is what is there before anything has come: constants, the one group of an aggregate without
    keys. A `recursion` has rounds in place of steps and delta.
    """

    name: str
    schema: Schema
    title: str
    keeping: Keeping
    lookups: tuple[Lookup, ...]
    steps: tuple[tuple[str, Plan], ...]
    change: Plan | None
    first: Plan | None = None
    recursion: Recursion | None = None

    @property
    def remembers(self) -> bool:
        """Whether it needs to know more than what changes."""
        return bool(self.lookups) or self.recursion is not None

    @property
    def searched(self) -> tuple[Kept, ...]:
        """The kept rows that a recursion finds by itself, round by round."""
        return (*self.recursion.own, *self.recursion.searched) if self.recursion is not None else ()

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The kept rows whose changes it reads."""
        if self.recursion is not None:
            return tuple(dict.fromkeys(leaf.kept for leaf in self.recursion.inputs))
        return tuple(dict.fromkeys(lookup.kept for lookup in self.lookups))

    @property
    def reads(self) -> frozenset[str]:
        """The relations and operators whose deltas it reads."""
        if not self.remembers:
            return sources(self.change) if self.change is not None else frozenset()
        return frozenset(source for kept in self.kept for source in sources(kept.change))


@dataclass(slots=True)
class Circuit:
    """Operators, views among them, each after those it reads; what is kept; which of it is a view."""

    operators: dict[str, Operator] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    views: dict[str, Kept] = field(default_factory=dict)
    recursions: dict[Plan, str] = field(default_factory=dict)
    """The operators of recursive groups, each by a Fixpoint that shows the first relation."""


def delta_scan(name: str, schema: Schema) -> Scan:
    """The change of a relation or an operator."""
    return Scan(name + _DELTA, (*schema, WEIGHT))


def changed_scan(kept: Kept) -> Scan:
    """The change of kept rows."""
    return Scan(kept.name + _DELTA, kept.schema)


def found_scan(kept: Kept) -> Scan:
    """What was found of kept rows."""
    return Scan(kept.name + _FOUND, kept.schema)


def rows_scan(table: Scan) -> Scan:
    """The same table as a bag of rows."""
    return Scan(table.name + _ROWS, table.schema[:-1])


def table_of(name: str) -> tuple[str, bool]:
    """The table that a scan reads, and whether as a bag."""
    return name.removesuffix(_ROWS), name.endswith(_ROWS)


def tables_of(plan: Plan) -> frozenset[str]:
    """The tables that a plan reads."""
    return frozenset(table_of(node.name)[0] for node in walk_plan(plan) if isinstance(node, Scan))


def source_of(table: str) -> str | None:
    """The relation or operator whose delta this table is."""
    return table.removesuffix(_DELTA) if table.endswith(_DELTA) else None


def sources(plan: Plan) -> frozenset[str]:
    """The relations and operators whose deltas a plan reads."""
    return frozenset(source for table in tables_of(plan) if (source := source_of(table)) is not None)


def plans_of(circuit: Circuit, view: str) -> Iterator[Plan]:
    """All plans that run to keep a view, from the view down; other views that it reads are left out."""
    wanted, seen = [view], set()
    while wanted:
        name = wanted.pop()
        if name in seen or name not in circuit.operators:
            continue
        seen.add(name)
        operator = circuit.operators[name]
        for lookup in operator.lookups:
            yield lookup.kept.change
            if lookup.keys is not None:
                yield lookup.keys
        yield from (plan for _, plan in operator.steps)
        yield from (plan for plan in (operator.change, operator.first) if plan is not None)
        if operator.recursion is not None:
            yield from operator.recursion.plans()
        wanted += [source for source in operator.reads if source not in circuit.views]
