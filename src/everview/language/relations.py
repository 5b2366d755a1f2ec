"""What a program declares: relations, which sites write, and views, which they read."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from everview.language.plan import Plan, Schema
from everview.language.types import Field

__all__ = ["KEYED", "MERGING", "RETENTION_US", "WHOLE", "Relation", "Semantics", "View"]


class Semantics(enum.Enum):
    """How concurrent writes to a relation meet (see the table of lattice tables in the design)."""

    SET = "set"
    KEYED = "keyed"
    BAG = "bag"
    ADD_WINS = "add_wins"
    MERGED = "merged"
    """Keyed, and merged column by column: of each the value that was changed last is shown."""
    GREATEST = "greatest"
    """Keyed, and merged column by column: of each the greatest value is shown."""
    LEAST = "least"
    """Keyed, and merged column by column: of each the least value is shown."""


MERGING = {"column": Semantics.MERGED, "max": Semantics.GREATEST, "min": Semantics.LEAST}
"""What `WITH (merge = …)` makes of a relation with a key: how the rows of concurrent writers are joined."""

KEYED = frozenset({Semantics.KEYED, *MERGING.values()})
"""Semantics of relations with a key: a write replaces the row of its key."""

WHOLE = frozenset(MERGING.values())
"""Semantics of relations that a view's host gets whole: what they show is joined of rows, and has no name."""


RETENTION_US = 90 * 86_400_000_000
"""How long a set remembers that a tuple was deleted, unless it says otherwise: 90 days."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A replicated relation. `key` is not empty exactly when it is keyed; `owner` names a TEXT column.

    A windowed one has an `event_time`, a TIMESTAMP column, and its `sources`, the sites that own its rows;
    `lateness`, in microseconds, says how far behind its latest event each closes; `retention` how long a set
    remembers its deletions. A `system` relation is not written by users, and a `local` one does not travel.
    Every value of the columns that a relation is `partitioned` by is replicated by itself.
    """

    name: str
    schema: Schema
    semantics: Semantics = Semantics.SET
    key: tuple[str, ...] = ()
    owner: str | None = None
    event_time: str | None = None
    sources: tuple[str, ...] = ()
    lateness: int | None = None
    retention: int = RETENTION_US
    system: bool = False
    local: bool = False
    partitioned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [field.name for field in self.schema]
        if (self.semantics in KEYED) != bool(self.key):
            raise ValueError("a relation is keyed exactly when it has a key")
        if not set(self.key) <= set(names) or len(set(names)) != len(names):
            raise ValueError("columns are named once, and keys are columns")
        if not set(self.partitioned) <= set(self.key or names):
            raise ValueError("a relation is partitioned by columns, of a keyed one by columns of the key")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.schema)

    @property
    def is_keyed(self) -> bool:
        """Whether it has one row a key."""
        return bool(self.key)

    @property
    def key_positions(self) -> tuple[int, ...]:
        """Where the key's columns stand, in the order of the key."""
        return tuple(self.columns.index(name) for name in self.key)

    @property
    def partition_positions(self) -> tuple[int, ...]:
        """Where the columns stand that it is partitioned by, in their order; none where it is not."""
        return tuple(self.columns.index(name) for name in self.partitioned)

    def field(self, name: str) -> Field:
        """The column of that name."""
        return self.schema[self.columns.index(name)]


@dataclass(frozen=True, slots=True)
class View:
    """A view: its plan over relations and other views, and who publishes it if not every site keeps it.

    `reads` are the relations and views it names, each once, in the order of the names.
    """

    name: str
    plan: Plan
    reads: tuple[str, ...]
    authority: str | None = None

    @property
    def schema(self) -> Schema:
        """The columns of its rows."""
        return self.plan.schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.schema)
