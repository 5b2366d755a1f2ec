"""The header: everything of a message but its columns, as MessagePack.

It differs from `Message` in the sections: here they say how long each encoded column is, and the columns
follow the header. What MessagePack's types cannot say (positions in the list of sites) is checked here.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from everview.errors import WireError
from everview.replication.messages import (
    PROTOCOL_3,
    Count,
    Gossip,
    Gossip1,
    Message,
    Name,
    Number,
    Page,
    Refusal,
    Request,
    Section,
    Site,
    Versions,
)

__all__ = ["Header", "PageHeader", "SectionHeader", "header_of", "message_of", "read_header", "write_header"]


class SectionHeader(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A section's place and size: rows, and the length of each of its columns in bytes."""

    stream: str
    part: Count
    count: Count
    lengths: list[Count]


class PageHeader(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A page without the columns of its sections."""

    cut: Number
    after: bytes
    reached: bytes
    done: bool
    head: Count
    froms: dict[str, Count]
    tags: dict[Count, Number]
    sections: list[SectionHeader]


Telling = TypeVar("Telling", bound=Gossip1)


class Header(msgspec.Struct, Generic[Telling], frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message without its columns; `ids` is how many ids its table has. The frame has the protocol."""

    program: str
    sites: list[Site]
    names: list[Name]
    request: Request | None
    page: PageHeader | None
    gossip: Telling | None
    refusal: Refusal | None
    ids: Count


class Header3(Header[Gossip], frozen=True, array_like=True, forbid_unknown_fields=True):
    """The same in protocol 3, with what the sender's program declares."""

    versions: Versions


_DECODER = msgspec.msgpack.Decoder(Header[Gossip])
_DECODER_3 = msgspec.msgpack.Decoder(Header3)
_DECODER_1 = msgspec.msgpack.Decoder(Header[Gossip1])
_ENCODER = msgspec.msgpack.Encoder()


def header_of(message: Message, sections: list[SectionHeader], ids: int) -> Header[Gossip]:
    """Return the header of a message whose columns have been encoded."""
    page = message.page
    outline = None
    if page is not None:
        outline = PageHeader(
            page.cut, page.after, page.reached, page.done, page.head, page.froms, page.tags, sections
        )
    fields = (
        message.program,
        message.sites,
        message.names,
        message.request,
        outline,
        message.gossip,
        message.refusal,
        ids,
    )
    return Header(*fields) if message.versions is None else Header3(*fields, message.versions)


def message_of(header: Header[Gossip], sections: list[Section], protocol: int) -> Message:
    """Return the message of a header, with the sections that have been decoded."""
    outline = header.page
    page = None
    if outline is not None:
        page = Page(
            outline.cut,
            outline.after,
            outline.reached,
            outline.done,
            outline.head,
            outline.froms,
            outline.tags,
            sections,
        )
    return Message(
        protocol,
        header.program,
        header.sites,
        header.names,
        header.request,
        page,
        header.gossip,
        header.refusal,
        header.versions if isinstance(header, Header3) else None,
    )


def write_header(header: Header[Gossip]) -> bytes:
    """Return the header's bytes."""
    try:
        return _ENCODER.encode(header)
    except (OverflowError, TypeError, ValueError) as error:
        raise WireError(f"the message cannot be written ({error})", where="header") from error


def read_header(data: memoryview, protocol: int) -> Header[Gossip]:
    """Return the header in these bytes; WireError unless they are one, and it is in order."""
    try:
        header: Header[Gossip]
        if protocol == PROTOCOL_3:
            header = _DECODER_3.decode(data)
        else:
            header = _DECODER.decode(data) if protocol > 1 else _newer(_DECODER_1.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"the header is malformed ({error})", where="header") from error
    _check(header)
    return header


def _newer(header: Header[Gossip1]) -> Header[Gossip]:
    """The header of protocol 1 as one of today: its roll has no name, and nothing is left out."""
    gossip = None
    if (old := header.gossip) is not None:
        gossip = Gossip(
            old.members,
            old.known,
            old.floors,
            old.cursors,
            old.groups,
            old.collected,
            old.provisional,
            rolls={},
            omitted=[],
        )
    return Header(
        header.program,
        header.sites,
        header.names,
        header.request,
        header.page,
        gossip,
        header.refusal,
        header.ids,
    )


def _check(header: Header[Gossip]) -> None:
    sites = len(header.sites)
    if sites == 0 or len(header.names) != sites or len(set(header.sites)) != sites:
        raise WireError("the sites are not a list of distinct ones, each with a name", where="header")
    if (gossip := header.gossip) is None:
        return
    for member in gossip.members:
        if member.site >= sites or not -1 <= member.sponsor < sites:
            raise WireError("a member or its sponsor is not among the sites", where="header")
    for known in gossip.known:
        if known.site >= sites or len(known.vector) % 2 or max(known.vector[::2], default=0) >= sites:
            raise WireError("a vector names what is not among the sites", where="header")
    if not gossip.rolls.keys() >= set(gossip.omitted):
        raise WireError("what is left out has no name", where="header")
    if max(gossip.cursors, default=0) >= sites:
        raise WireError("a cursor is on what is not among the sites", where="header")
