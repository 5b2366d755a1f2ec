"""What travels: a reader asks, a sender answers with pages, and the pages together are a cut.

A cut is the difference between what the reader has seen and one snapshot of the sender.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from spec.replication.relations import START, Cursor
from spec.replication.rows import Rows
from spec.replication.vectors import Dot, Vector
from spec.replication.views import Derivation, Monomial


@dataclass(frozen=True, slots=True)
class Ask:
    """What the reader has of one relation."""

    vector: Vector = field(default_factory=dict)
    """What it has seen."""
    staged: Vector = field(default_factory=dict)
    """How far it has staged each incarnation in this transfer. It has not seen what went meanwhile."""
    cursor: Cursor = START
    """How far it had read the sender when the transfer began."""


@dataclass(frozen=True, slots=True)
class ViewAsk:
    """What the reader has of the derivations of one view."""

    cursor: Cursor = START
    position: tuple[int, Monomial] | None = None
    """The version and monomial of the last derivation that it has staged in this transfer."""


@dataclass(frozen=True, slots=True)
class Request:
    """A question for the next page. The sender stores nothing of it."""

    reader: str
    sender: str
    """The incarnation that the cursors belong to; the sender may have another one by now."""
    relations: Mapping[str, Ask]
    views: Mapping[str, ViewAsk] = field(default_factory=dict)
    limit: int | None = None
    """The greatest number of rows and derivations in the page."""
    heard: Cursor = START
    """The latest version of the sender that the reader has heard of, in this transfer or another."""


class Mode(Enum):
    """How a part says which rows went."""

    SINCE = "the removals after the reader's cursor"
    LOG = "the whole log"
    LIVE = "the dots of all live rows"


@dataclass(frozen=True, slots=True)
class Part:
    """One relation's share of a cut."""

    mode: Mode
    required: Vector
    """What the reader must have seen."""
    start: int
    """The version of the sender that the reader must have read."""
    vector: Vector
    """What the reader will have seen."""
    rows: Rows
    gone: frozenset[Dot] = frozenset()
    live: frozenset[Dot] = frozenset()
    digest: int = 0
    """The sender's digest at the vector."""
    whole: bool = False
    """Whether the sender holds the relation, and not only its hollow form."""

    def drops(self, dot: Dot) -> bool:
        """Whether the removals say that a row that was staged is gone."""
        return dot not in self.live if self.mode is Mode.LIVE else dot in self.gone


@dataclass(frozen=True, slots=True)
class ViewPart:
    """One view's share of a cut: derivations that became news after the reader's cursor."""

    start: int
    derivations: Mapping[Monomial, Derivation]


@dataclass(frozen=True, slots=True)
class Cut:
    """All that a reader lacks of one snapshot of the sender."""

    sender: str
    end: Cursor
    parts: Mapping[str, Part]
    views: Mapping[str, ViewPart] = field(default_factory=dict)
    ended: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows and derivations of the sender's present snapshot; the last page also has the removals."""

    sender: str
    at: Cursor
    """The version of the snapshot."""
    rows: Mapping[str, Rows]
    derivations: Mapping[str, Mapping[Monomial, Derivation]]
    read: Cursor
    """How far the sender has read the reader; so the reader can find that it went back itself."""
    last: Cut | None = None
