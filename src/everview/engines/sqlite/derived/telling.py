"""Telling of derivations: in the order of their versions, for whoever has a cursor.

A core's derivations are told in several *runs*, each in an order of its own. A place in a run is a version
and dots; it goes to the reader with a page and comes back with the next question. What changes meanwhile gets
a later version, and comes after the place. To begin with the place is empty; where a run has ended, it is the
version that was told to the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

__all__ = ["NOBODY", "Most", "Place", "Run", "Teller", "Told"]

Place = tuple[int, ...]

NOBODY = -1
"""The number of no site."""


class Told(NamedTuple):
    """Derivations of a branch, dots last; and where to go on, None at the end."""

    branch: int
    rows: Sequence[Sequence[Any]]
    names: int
    """How many dots each has."""
    reached: Place | None
    size: int


class Most(NamedTuple):
    """At most so many rows, or about so many bytes of texts and blobs, for a reader: a site's number here."""

    rows: int
    size: int
    reader: int = NOBODY


class Run(Protocol):
    """Derivations of one branch, in an order."""

    @property
    def width(self) -> int:
        """How many values a derivation has, dots among them."""

    def read(self, connection: sqlite3.Connection, since: int, after: Place, most: Most) -> Told:
        """Return derivations of versions above `since`, from a place on; not those that the reader told."""


class Teller(Protocol):
    """What can tell of a core's derivations."""

    @property
    def runs(self) -> Sequence[Run]:
        """The runs that it is told in."""

    def has_news(self, connection: sqlite3.Connection, since: int) -> bool:
        """Whether there may be derivations of versions above one."""

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Create what it needs to be asked quickly."""
