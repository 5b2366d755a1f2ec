"""What a circuit is made of, independent of any engine.

A circuit keeps views by rules that are plans themselves. So whoever runs plans runs circuits: the
reference in a test, SQLite where the rows are few, Spark where they are many. Rows travel in tables whose
last columns add up (a weight, or the sums of a group); a plan reads them by these names:

- `x@delta`: how a relation or an operator `x` changes; the weight last.
- `k@delta`: how the kept rows `k` change, made of the deltas of relations and operators, row by row.
- `k@found`: what lookups found of the kept rows `k`, each once; the columns that add up last.
- `x@s`: what a step `s` of the operator `x` made; of a recursion, the rows of a leaf (see `recursion`).

An operator reads no more than changes of kept rows and what was found of them. All of it goes by the same
keys, so an operator may be run apart for each part of the keys.

A name with `@rows` at its end reads the same table as a bag: the weight says how often a row is there.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from everview.language.aggregates import SortKey
from everview.language.plan import Plan, Scan, Schema, walk_plan
from everview.language.types import BIGINT, Field

__all__ = [
    "WEIGHT",
    "Circuit",
    "Given",
    "Keeping",
    "Kept",
    "Lookup",
    "Operator",
    "Recursion",
    "Relation",
    "Variant",
    "changed_scan",
    "delta_scan",
    "found_scan",
    "leaf_scan",
    "plans_of",
    "rows_scan",
    "source_of",
    "sources",
    "table_of",
    "tables_of",
]

WEIGHT = Field("weight", BIGINT, nullable=False)
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
class Relation:
    """A relation of a recursion."""

    leaf: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Given:
    """An input of a recursion: its rows, 1 or 0 for whether each was there, and the same for whether it is.

    When it is `watched`, rows that come may take away what was derived; rows that go always may.
    """

    leaf: str
    kept: Kept
    counted: Plan
    watched: bool


@dataclass(frozen=True, slots=True)
class Variant:
    """What a relation, by its place in the group, derives from new rows of the leaf `changed`."""

    relation: int
    changed: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Recursion:
    """A group of relations that are defined by each other (see `recursion`); `own` keeps their rows.

    `stable` is a column of each relation, by which the group may be run apart (see `stability`), or nothing.
    """

    relations: tuple[Relation, ...]
    inputs: tuple[Given, ...]
    variants: tuple[Variant, ...]
    own: Kept
    stable: tuple[int, ...] = ()


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
    def own(self) -> tuple[Kept, ...]:
        """The kept rows that it makes itself, and looks up as they were."""
        return (self.recursion.own,) if self.recursion is not None else ()

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The kept rows whose changes it reads, and which it looks up."""
        found = dict.fromkeys(lookup.kept for lookup in self.lookups)
        return tuple(kept for kept in found if kept not in self.own)

    @property
    def reads(self) -> frozenset[str]:
        """The relations and operators whose deltas it reads."""
        if not self.lookups:
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


def leaf_scan(leaf: str, schema: Schema, when: str) -> Scan:
    """The rows of a leaf of a recursion: `old` ones, `new` ones, or `all`."""
    return Scan(f"{leaf}@{when}", schema)


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
            yield from (given.counted for given in operator.recursion.inputs)
            yield from (variant.plan for variant in operator.recursion.variants)
        wanted += [source for source in operator.reads if source not in circuit.views]
