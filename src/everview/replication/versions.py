"""Sites with different programs: what they share, and how each understands the other's messages.

A stream that comes of a view is named by what it says, so two programs that have it under one name mean the
same. Of a relation, and of a view that an authority publishes, a message says what the sender's program
declares, and the reader compares:

- A relation that both declare alike is exchanged. One that is wider on one side, by nullable columns at its
  end, goes from the narrower side to the wider, with NULLs in these columns. It does not go the other way: a
  narrower site could neither keep the values nor pass them on, and a row without them is another row.
- A published view is exchanged where its definition is the same, with all that it is made from.
- What only one of them declares is to the other a stream that it does not host.

Who holds what, and what each has, goes to everybody, whether its streams are known or not: rows are forgotten
only when all who hold them have heard of their deaths, also those that run another program. So a message also
says of which relations the views tell for which members are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from everview.errors import SyncError
from everview.language.evolution import Shape, definitions, shape_of
from everview.language.program import Program
from everview.planner.published import published_stream
from everview.replication.messages import Gossip, Message, Page, Request, Section, Versions

Item = TypeVar("Item")


def versions_of(program: Program) -> Versions:
    """What a program declares that others have to agree with."""
    relations = {n: shape_of(relation) for n, relation in program.relations.items() if not relation.local}
    defined = definitions(program) if any(view.authority for view in program.views.values()) else {}
    published = {
        published_stream(name): defined[name]
        for name, view in program.views.items()
        if view.authority is not None
    }
    return Versions(relations, published, {})


def understood(message: Message, theirs: Versions, ours: Versions) -> Message:
    """A message of a site with another program, without what this one cannot make use of.

    SyncError where a relation of one name is two different ones, or nothing is shared at all.
    """
    common = ours.relations.keys() & theirs.relations.keys()
    for name in sorted(common):
        _require_akin(name, theirs.relations[name], ours.relations[name])
    if not common:
        raise SyncError("the peer runs another program, which has no relation in common with this site's")
    given = {name for name in common if ours.relations[name].fits_into(theirs.relations[name])}
    taken = {name for name in common if theirs.relations[name].fits_into(ours.relations[name])}
    views = {
        name
        for name in ours.published.keys() | theirs.published.keys()
        if ours.published.get(name) != theirs.published.get(name)
    }
    return msgspec.structs.replace(
        message,
        request=message.request and _request(message.request, (common - given) | views),
        page=message.page and _page(message.page, (common - taken) | views),
        gossip=message.gossip and _gossip(message.gossip, common - taken, views),
        untaken=frozenset(common - taken),
    )


def remember(known: dict[str, Item], name: str, item: Item, most: int) -> None:
    """Note something under a name, as the latest; the oldest of more than so many is forgotten."""
    known.pop(name, None)
    known[name] = item
    if len(known) > most:
        del known[next(iter(known))]


def taken_groups(message: Message) -> dict[str, list[str]]:
    """The groups of a message's sender that this site may go to: those whose rows it can take."""
    return {} if message.gossip is None else _but(message.gossip.groups, message.untaken)


def _require_akin(name: str, theirs: Shape, ours: Shape) -> None:
    if theirs.fits_into(ours) or ours.fits_into(theirs):
        return
    here, there = (
        f"{shape.terms} ({', '.join(f'{column} {kind}' for column, kind, _ in shape.columns)})"
        for shape in (ours, theirs)
    )
    raise SyncError(
        f"the peer runs another program, in which {name} is another relation: {there}, here {here}; sites "
        "share what both declare alike, or one of them with more nullable columns at its end"
    )


def _request(request: Request, without: Collection[str]) -> Request:
    return msgspec.structs.replace(
        request,
        streams=_but(request.streams, without),
        joined=[name for name in request.joined if name not in without],
    )


def _page(page: Page, without: Collection[str]) -> Page:
    return msgspec.structs.replace(page, froms=_but(page.froms, without))


def _gossip(gossip: Gossip, untaken: Collection[str], views: Collection[str]) -> Gossip:
    return msgspec.structs.replace(
        gossip,
        floors=_but(gossip.floors, views),
        collected=_but(gossip.collected, {*untaken, *views}),
        provisional=_but(gossip.provisional, untaken),
    )


def _but(found: Mapping[str, Item], without: Collection[str]) -> dict[str, Item]:
    return {name: item for name, item in found.items() if name not in without}


def widened(section: Section, theirs: Versions | None, ours: Shape) -> Section:
    """Rows of a relation as they are here, NULL in the columns that the sender's program does not declare."""
    sent = None if theirs is None else theirs.relations.get(section.stream)
    if sent is None or len(sent.columns) >= len(ours.columns):
        return section
    at, nothing = len(sent.columns), [None] * section.count
    more = [nothing] * (len(ours.columns) - at)
    return msgspec.structs.replace(section, columns=[*section.columns[:at], *more, *section.columns[at:]])
