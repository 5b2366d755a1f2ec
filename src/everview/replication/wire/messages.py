"""Messages: what two sites say to each other.

A message may greet, name what has changed, ask for it, and answer what the other has asked. The side that is
dialled keeps nothing between messages but its store, so an exchange survives either side's death.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from everview.engines.sqlite.rows.dots import NUMBERS
from everview.language.evolution import Shape
from everview.language.limits import WIDEST_NAME

PROTOCOL = 4
"""The version of the protocol: that of rows under dots."""

INCARNATION_BYTES = 8

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A version or a number of things: what a store's INTEGER holds, and not negative."""

Tag = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBERS)]
"""The number of a row."""

Name = Annotated[str, msgspec.Meta(max_length=WIDEST_NAME)]

Incarnation = Annotated[bytes, msgspec.Meta(min_length=INCARNATION_BYTES, max_length=INCARNATION_BYTES)]

MOST_ENDED = 1 << 16
"""So many endings are in a message at most."""

Pairs = list[Number]
"""A vector: positions in the message's `sites` and numbers, in turn."""


MOST_CHOSEN = 256
"""So many choices are said; who wants more of a relation is told of all its values that have changed."""

MOST_RUNS = 1 << 10
"""The runs of a core: one for each position of each branch (`planner.branches`), at most."""

Spot = Annotated[list[Tag], msgspec.Meta(max_length=17)]
"""A place in a run: a version and dots, in the sender's own numbers."""


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How far a store was read: up to this version of it, and the version's random tag."""

    version: Count
    tag: Tag


START = Cursor(0, 0)


class Place(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition: its stream, and the value of its PARTITION BY columns."""

    stream: Name
    value: Name = ""


class Chosen(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Which values of a relation a site wants: its choices, or of many only what tells them from others."""

    stream: Name
    choices: Annotated[list[Name], msgspec.Meta(max_length=MOST_CHOSEN)]
    tag: Count


class Greeting(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who speaks, how far it is, and how far it has read the other; `reads` are the streams that it wants."""

    head: Cursor
    read: Cursor
    scope: Count
    """What the other called the streams that `read` is true of."""
    to: bytes
    """The incarnation of which `read` speaks; empty if the other is not known."""
    reads: list[Name] | None
    """None where it hosts all of the program."""
    chosen: list[Chosen] = []
    """Of relations that it does not want whole, which values."""


class Ended(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A store is lost for good, and this is the last number of a relation that any holder has of it."""

    stream: Name
    incarnation: Incarnation
    last: Number


class News(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The partitions that have changed since a cursor: the reader's, or the start where that is void."""

    since: Cursor
    scope: Count
    places: list[Place]
    head: Count = 0
    """The last commit that this takes into account."""
    ended: Annotated[list[Ended], msgspec.Meta(max_length=MOST_ENDED)] = []
    """Stores that were given up since then."""


class Wish(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition that is asked for: the reader's vector, and what it has staged of a cut that goes on."""

    place: Place
    had: Pairs
    has: Pairs
    whole: bool = False
    """Whether it is read again whole, to be repaired: then what lives is told, and not what went."""


class Resume(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where to go on with the derivations of a core: of each run a place, as the sender has said it.

    `head` is that of the page that said so; places count only where the sender remembers having said it.
    """

    core: Name
    head: Cursor
    places: Annotated[list[Spot], msgspec.Meta(max_length=MOST_RUNS)]


class Ask(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Ask for partitions, from where a cursor is; `cut` tells the answer from that to another question."""

    cut: Tag
    since: Cursor
    wishes: list[Wish]
    cores: list[Resume] = []
    passed: list[Place] = []
    """What was named as changed and is not wanted."""
    scope: Count = 0
    told: Count = 0
    """The scope and the head of the news that is answered."""


class Share(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition in a page: how many rows it has there, and the reader's vector once it has them.

    In the last page, with `mode`: the sender's vector, its digest, and so many dots of what went.
    """

    place: Place
    rows: Count
    vector: Pairs
    mode: Count = 0
    gone: Count = 0
    digest: tuple[Count, Count] = (0, 0)
    lengths: list[Count] = []
    """How many bytes each of its columns has behind the header."""
    whole: bool = False
    """Whether it is of an input of a view, told by a holder of the relation."""


class Derived(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Derivations of a core in a page: of which branch, and how many."""

    core: Name
    branch: Count
    rows: Count
    lengths: list[Count] = []


class Page(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Part of a cut; the last one is `done`, and ends it at the sender's `head`."""

    cut: Tag
    done: bool
    head: Cursor
    shares: list[Share]
    derived: list[Derived] = []
    resumes: list[Resume] = []
    """Where to go on with derivations, unless it is the last page."""


class Refusal(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Why nothing is answered: a word for programs, a sentence for people, and whether to try again."""

    code: str
    text: str
    retry: bool


class Undone(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row that its taker has refused, and removed again: its stream, its dot, and why."""

    stream: Name
    site: Count
    number: Number
    why: Annotated[str, msgspec.Meta(max_length=1000)]
    row: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    """What it says, where the sender cannot find it by its dot: a row that it has removed, and may read."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One message. `sites` are incarnations, the sender's own first; `names` are what they are called."""

    program: bytes
    sites: list[Incarnation]
    names: list[Name]
    greeting: Greeting | None = None
    news: News | None = None
    ask: Ask | None = None
    page: Page | None = None
    refusal: Refusal | None = None
    shapes: dict[Name, Shape] | None = None
    """What the sender's program declares, for a reader that may run another."""
    refused: Annotated[list[Undone], msgspec.Meta(max_length=1000)] = []
    """Rows of the other's last cut that were not accepted."""


class Columns(msgspec.Struct, frozen=True):
    """The columns of a share: of its rows, then sites and numbers of their dots, then of what went."""

    rows: Sequence[Sequence[Any]] = ()
    sites: Sequence[int] = ()
    numbers: Sequence[int] = ()
    gone: Sequence[Sequence[int]] = ()
    """Sites and numbers; of intervals also the numbers of their ends."""

    @property
    def all(self) -> tuple[Sequence[Any], ...]:
        """The columns in the order in which they travel."""
        return (*self.rows, self.sites, self.numbers, *self.gone)


class DerivedColumns(Columns, frozen=True):
    """The columns of derivations: of their rows, then sites and numbers of the dots, position by position."""

    @property
    def all(self) -> tuple[Sequence[Any], ...]:
        """The columns in the order in which they travel."""
        return tuple(self.rows)
