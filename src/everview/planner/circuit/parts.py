"""What a circuit is made of, independent of any engine.

A circuit keeps views by rules that are plans themselves. So whoever runs plans runs circuits: the
reference in a test, SQLite where the rows are few, Spark where they are many. Rows travel in tables whose
last columns add up (a weight, or the sums of a group); a plan reads them by these names:

- `x@delta`: how a relation or an operator `x` changes; the weight last.
- `k@delta`: how the kept rows `k` change, made of the deltas of relations and operators, row by row.
- `k@found`: what lookups found of the kept rows `k`, each once; the columns that add up last.
- `x@s`: what a step `s` of the operator `x` made.

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
    "Keeping",
    "Kept",
    "Lookup",
    "Operator",
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
class Operator:
    """One operator that remembers: lookups, then steps, then its delta, the weight last.

    `first` is what is there before anything has come: constants, the one group of an aggregate without
    keys.
    """

    name: str
    schema: Schema
    title: str
    keeping: Keeping
    lookups: tuple[Lookup, ...]
    steps: tuple[tuple[str, Plan], ...]
    change: Plan | None
    first: Plan | None = None

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The kept rows whose changes it reads, and which it looks up."""
        return tuple(dict.fromkeys(lookup.kept for lookup in self.lookups))

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
        wanted += [source for source in operator.reads if source not in circuit.views]
