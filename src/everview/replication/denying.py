"""Denying: what the rights of a token keep a site from reading at a peer, and from writing there.

The listening side knows the rights, so it says which of the names that the sender of a message has said
itself are *withheld*; no other name, since the token may tell nothing of it. The dialling side knows what it
needs the names for, and what it has written, and says what of that was *denied*. So a device that may not
write what it only reads is not bothered with that.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from everview.engines.sqlite.relations.bags import BagRelation
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.streams import wholes_of
from everview.planner.published import is_published, view_of
from everview.replication.gossip import known_of_sender
from everview.replication.grants import needed
from everview.replication.knowledge import Knowledge
from everview.replication.messages import Message
from everview.replication.publishing import at_of
from everview.replication.report import Denied
from everview.replication.rights import Rights

__all__ = ["Withheld", "as_header", "denied", "of_header", "withheld"]

LONGEST_HEADER = 2000
"""Servers in between bear no long headers. Of more names the last are left out."""


class Withheld(NamedTuple):
    """Relations and views that the sender of a message may not read here, and may not write."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


# The listening side.


def withheld(store: Store, connection: sqlite3.Connection, message: Message, rights: Rights) -> Withheld:
    """What the sender asks for and may not read; and what it may have to give here, and may not write."""
    if message.request is None:
        return Withheld()
    engine, asked = store.engine, message.request.streams
    given = {*engine.offers, *engine.published, *engine.partials, *engine.feeds}
    wanted = {name: stream.inputs for name, stream in engine.streams.items()}
    wanted |= {name: stored.partials.inputs for name, stored in engine.partials.items()}
    has = set(known_of_sender(message)) if message.program == store.program.hash else set()
    offered = [name for name, inputs in wanted.items() if name in asked or has.issuperset(inputs)]
    offered += [
        name
        for name, published in engine.published.items()
        if at_of(message.gossip, name) > published.stands(connection).at
    ]
    reads = {view_of(name) for name in asked if name in given and not rights.may_read(name)}
    writes = {view_of(name) for name in offered if not rights.may_write(name)}
    names = list(store.program.names())
    return Withheld(tuple(filter(reads.__contains__, names)), tuple(filter(writes.__contains__, names)))


# The dialling side.


def denied(
    knowledge: Knowledge, connection: sqlite3.Connection, address: str, told: Withheld
) -> tuple[Denied, ...]:
    """What a site wanted of the peer at an address, by what that says to withhold."""
    engine = knowledge.store.engine
    needs = needed(engine.exchange)
    names = list(engine.program.names())
    reads = (
        Denied("read", name, tuple(view for view, others in needs.items() if name in others))
        for name in names
        if name in told.reads
    )
    writes = (
        Denied("write", name)
        for name in names
        if name in told.writes and any(_has_unsent(knowledge, connection, address, name))
    )
    return (*reads, *writes)


def _has_unsent(
    knowledge: Knowledge, connection: sqlite3.Connection, address: str, name: str
) -> Iterator[bool]:
    """Whether this site has written something that the peer is not known to have of a relation or view."""
    engine, state = knowledge.store.engine, knowledge.state
    peer = state.peers.get(address)
    known = {} if peer is None else state.known.get(peer.incarnation, {})
    for stream in (*engine.offers, *engine.feeds, *engine.published):
        if view_of(stream) != name:
            continue
        if is_published(stream):
            yield True  # the peer has compared
            continue
        feed = engine.feeds.get(stream)
        inputs = engine.inputs_of(stream) if feed is None else feed.partials.inputs
        for whole, relation in zip(wholes_of(stream, inputs), inputs, strict=True):
            has = known.get(whole)
            since = 0 if has is None else has.vector.get(knowledge.incarnation, 0)
            yield _has_written(knowledge, connection, relation, since)


def _has_written(knowledge: Knowledge, connection: sqlite3.Connection, relation: str, since: int) -> bool:
    """Whether a relation that is held has a growth of this site's own after one of its commits.

    What grew at a commit has its version, or a later one. A site that was never let write looks through all.
    """
    stored = knowledge.store.engine.relations.get(relation)
    if stored is None:
        return False
    number = knowledge.store.number
    table = stored.entries if isinstance(stored, EntriesRelation) else stored.table.name
    own = f"site = 0 AND version > {since} OR site = {number} AND seq > {since}"
    if isinstance(stored, BagRelation):
        own = f"isite = {number} AND iseq > {since}"
    found = connection.execute(
        f"SELECT 1 FROM {table} WHERE version > {since} AND ({own}) LIMIT 1"
    ).fetchone()
    return found is not None


# As a header.


def as_header(told: Withheld) -> str:
    """As a line of ASCII; empty if nothing is withheld."""
    reads, writes = list(told.reads), list(told.writes)
    while reads or writes:
        text = json.dumps({"read": reads, "write": writes})
        if len(text) <= LONGEST_HEADER:
            return text
        (reads if len(reads) > len(writes) else writes).pop()
    return ""


def of_header(text: str) -> Withheld:
    """Read it; whatever cannot be read withholds nothing."""
    try:
        found = json.loads(text)
        return Withheld(_names(found["read"]), _names(found["write"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Withheld()


def _names(found: Iterable[object]) -> tuple[str, ...]:
    return tuple(name for name in found if isinstance(name, str))
