"""Parts: the lattice tables of a store, as replication sees them.

A stream is what a reader has one cursor for: a base relation, or a view that travels. It consists of parts,
each a lattice table whose rows carry the version of the local commit that last grew them. A base relation
has one part; the stream of a view has one part for the liveness of each input and one for each branch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from everview.language.sizes import LARGEST_ROW
from everview.language.types import Field

Row = tuple[Any, ...]

CHUNK_BYTES = LARGEST_ROW // 2
"""So many bytes of texts and blobs are read at once, and the row that makes it so many or more."""


class Position(NamedTuple):
    """A place in the order in which a part is read: a version, and the key of the last row of it."""

    version: int
    key: Row = ()


class Brought(NamedTuple):
    """How many rows a local commit wrote or brought that are of one origin: a site, and its commit."""

    version: int
    site: int
    commit: int
    rows: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a part, in the order of positions; `reached` is where to go on, None at the end.

    `size` is how many bytes their texts and blobs have.
    """

    rows: list[Row]
    reached: Position | None
    size: int = 0


@dataclass(frozen=True, slots=True)
class PartColumn:
    """A column on the wire: a value of a field's type as it is stored, or one of the words below.

    `site` is a number from the store's table of sites; `count` is an integer that
    is not negative; `integer` any integer; `id` is 16 bytes, and so is an `optional id` that is not NULL.
    """

    word: str
    field: Field | None = None


SITE = PartColumn("site")
COUNT = PartColumn("count")
INTEGER = PartColumn("integer")
ID = PartColumn("id")
OPTIONAL_ID = PartColumn("optional id")


def value(field: Field) -> PartColumn:
    """Return the column of a field's stored values."""
    return PartColumn("value", field)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that came with a cut, column by column as the part has them, sites numbered as in this store.

    `covered` is True when some of them may lie below the reader's own vector, which is then in the temporary
    table `everview_vector (site, seq)`: a row that is not held although the vector covers its origin was
    collected here and is ignored. `joining` is True when the reader joins by this cut: then nothing is
    ignored; what was collected here is dead, and that is told anew, but for bags, of which each site may have
    collected other entries. `returning` is True when the reader also holds rows already: the sender's
    snapshot decides.
    """

    columns: Sequence[Sequence[Any]]
    version: int
    covered: bool = False
    joining: bool = False
    returning: bool = False
    limit: int = 0
    """The greatest stamp whose time has come."""
    owners: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Owner → the origin under which the reader tells that rows of it are dead which it has collected."""
    floor: int = 0
    """The reader's floor before the cut: what it has collected died at no greater length."""
    founded_again: bool = False
    """Whether the sender's group may have been put back to before what was collected in the reader's."""

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def rows(self) -> list[Row]:
        """The rows one by one; where it matters, columns are several times faster."""
        return list(zip(*self.columns, strict=True))


class Part(Protocol):
    """One lattice table."""

    @property
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of its rows on the wire."""

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        """Return rows of versions above `since`, those up to `after` left out.

        They are at most about `limit`, or have about `room` bytes of texts and blobs.
        """

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Join rows into the table, and leave what appeared or went in the delta; return how many grew."""

    def version_ddl(self) -> list[str]:
        """Return what creates the indexes by which changes are found, once there are peers."""


class Held(Part, Protocol):
    """A lattice table of rows that have origins: of a relation, or of ids."""

    @property
    def delta(self) -> str:
        """The temporary table that holds what a growth changed."""

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """Forget what is dead and stable; return how many rows, and the floor that this leaves."""

    def garbage(self, connection: sqlite3.Connection) -> int:
        """Return how many dead rows are held."""

    def brought(self, connection: sqlite3.Connection, since: int, most: int) -> list[Brought]:
        """Return what commits after `since` brought, the newest first, of about `most` rows."""
