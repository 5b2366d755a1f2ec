"""Messages: what two sites say to each other, as plain data (docs/PROTOCOL.md has the bytes).

An exchange is a conversation of messages of one form. Each may ask (`request`), answer what the other asked
(`page`), tell what is known of members (`gossip`), or say why nothing else is said (`refusal`). So one
round trip serves both directions, and a site that can only dial out still gives and gets everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from everview.language.evolution import Shape
from everview.language.limits import LONGEST, WIDEST_NAME

PROTOCOL = 2
"""The version of the protocol in which messages are written."""

PROTOCOL_3 = 3
"""The one for messages that say what their sender's program declares."""

PROTOCOLS = (1, 2, 3)
"""Those that are read; a message in another one is refused."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number of something, or of a commit: what a store's INTEGER holds, and not negative."""

Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Whatever a store's INTEGER holds."""


Name = Annotated[str, msgspec.Meta(max_length=WIDEST_NAME)]
"""Of a site, a group or a stream: a store keeps those that it hears of, and tells them everybody."""

Site = Annotated[str, msgspec.Meta(min_length=1, max_length=WIDEST_NAME)]
"""An incarnation."""

Length = Annotated[int, msgspec.Meta(ge=0, le=LONGEST)]
"""How often a member has come and gone; to give it up leaves it within."""


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How far a reader has read a sender's stream: up to this commit, and the commit's random tag."""

    head: Count
    tag: Number


START = Cursor(0, 0)


class Request(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Ask for streams from these cursors, or for the next page of a cut that has begun.

    `sender` is the incarnation that is asked, empty at the first contact. `after` is what the last page's
    `reached` was, empty at the beginning; only the sender knows what is in it.
    """

    sender: str
    streams: dict[str, Cursor]
    joined: list[str]
    """Those of the streams in which the reader is a member already."""
    cut: Number
    after: bytes


class Section(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Rows of one part of a stream, column by column, as they are stored.

    A base relation is a stream of one part; the stream of a view has one for the liveness of each input and
    one for each branch. Columns that name sites hold positions in the message's `sites`.
    """

    stream: str
    part: Count
    count: Count
    columns: list[Sequence[Any]]


class Page(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Part of a cut: rows of versions above `froms`; `done` when it reaches `head`, its own snapshot's head.

    `tags` has the tags of commits at which batches ended, among them those of the cursors it answers to and
    of `head`.
    """

    cut: Number
    after: bytes
    reached: bytes
    done: bool
    head: Count
    froms: dict[str, Count]
    tags: dict[Count, Number]
    sections: list[Section]


class Member(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A site that holds a stream while `length` is odd; `sponsor` is the site whose snapshot it joined from.

    Both sites are positions in the message's `sites`; a sponsor of −1 is none. `group` is the incarnation
    that founded the group in which it holds the stream.
    """

    site: Count
    stream: Name
    group: Name
    length: Length
    sponsor: Number


class Known(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a member is known to have: of `whole`, every growth up to these commits, and its clock's reading.

    A whole is a relation, or `view>relation`: the relation's liveness as that view receives it. The
    vector lists pairs of a position in `sites` and a commit, one after the other.
    """

    site: Count
    whole: Name
    vector: list[Count]
    reading: Number


class Gossip1(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Everything about members that travels with every request and with the last page of every cut.

    So it was in protocol 1.
    """

    members: list[Member]
    known: list[Known]
    floors: dict[Name, Count]
    cursors: dict[Count, Cursor]
    """The sender's furthest cursor on each site."""
    groups: dict[Name, Annotated[list[Name], msgspec.Meta(min_length=1)]]
    """Stream → the group whose member the sender is, and then the groups that it has absorbed."""
    collected: dict[Name, Count]
    """Stream → the sender's commit at its last collection."""
    provisional: dict[Name, Cursor]
    """Streams that the sender has from a snapshot that did not list it, with its cursor on the sponsor."""


class Gossip(Gossip1, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The same, and the names of the parts of the sender's roll: who holds what, and of whom it knows what.

    What the reader has, or has no use for, is `omitted`: then no members are listed, or of what others have
    of a relation there is only what is more than a mention.
    """

    rolls: dict[str, Annotated[bytes, msgspec.Meta(max_length=64)]]
    """Part → the digest of the sender's: the members under "", and of each relation of whom it knows what."""
    omitted: list[str]
    """The parts that are left out."""


class Refusal(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Why nothing is answered: a word for programs, a sentence for people, and whether to try again."""

    code: str
    text: str
    retry: bool


OTHER_PROGRAM = "program"
"""The code of a refusal to who runs another program, and has not said what it declares."""


class Versions(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a program declares, for a reader that may run another: by this they know what they share."""

    relations: dict[str, Shape]
    published: dict[str, str]
    """Stream of a published view → the digest of its definition, and of all that it is made from."""
    inputs: dict[str, list[str]]
    """Stream of a view that members are listed for → the base relations it tells of."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One message. `sites` lists incarnations, and `names` their labels; the first is the sender's own."""

    protocol: int
    program: str
    sites: list[str]
    names: list[str]
    request: Request | None = None
    page: Page | None = None
    gossip: Gossip | None = None
    refusal: Refusal | None = None
    versions: Versions | None = None
    untaken: frozenset[str] = frozenset()
    """Noted by the reader: relations whose rows it does not take from this sender (see `versions`)."""
