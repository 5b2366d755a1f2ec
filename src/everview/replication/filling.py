"""Filling: what a store has begun to receive of a view begins with what the store itself can make of it.

So it is where a view comes to be hosted over a relation that is received whole for another one, and in a
store in which an earlier version computed such a view from that relation. The store then feeds itself, as any
site that holds the inputs would: the core has what they have, and is where they are. Should they be nowhere,
it has the rows, and joins like a newcomer. What owners' rows come to stands where the relations do.

Of a core that is begun again nothing counts that was noted when it was last received: its rows are not here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from everview.engines.sqlite.carrying import Carrying
from everview.engines.sqlite.partials import ReceivedPartials, Which
from everview.engines.sqlite.parts import SITE, Arrival, Part, Position
from everview.engines.sqlite.relations.staging import Columns
from everview.engines.sqlite.streams import Stream
from everview.engines.sqlite.writing import Writing
from everview.replication.budget import PAGE_ROWS
from everview.replication.knowledge import Knowledge, received_parts
from everview.replication.partials import standings

__all__ = ["fill", "is_due"]


def is_due(knowledge: Knowledge) -> bool:
    """Whether the store receives others than when it last looked."""
    return knowledge.state.cores != received_parts(knowledge.store.engine)


def fill(knowledge: Knowledge, connection: sqlite3.Connection, writing: Writing) -> None:
    """Begin with all that are new, in the transaction that notes it."""
    engine = knowledge.store.engine
    for name in sorted(engine.received.keys() - set(knowledge.state.cores)):
        stream = engine.streams[name]
        if not any(part.read(connection, 0, None, 1).rows for part in stream.parts):
            _forget(knowledge, stream)
            if engine.relations.keys() >= set(stream.inputs):
                _derive(knowledge, connection, stream, writing)
                _belong(knowledge, stream, writing.commit.version)
    for name in sorted(engine.partials.keys() - set(knowledge.state.cores)):
        stored = engine.partials[name]
        held = engine.relations.keys() >= set(stored.partials.inputs)
        if held and not stored.standings(connection):
            _compute(knowledge, connection, stored, writing)
    knowledge.state.cores = received_parts(engine)


def _forget(knowledge: Knowledge, stream: Stream) -> None:
    """What was noted of a core when it was received before is not so any more."""
    if knowledge.groups.group(stream.name) is not None:
        knowledge.groups.leave(stream.name)
        knowledge.state.bound.pop(stream.name, None)
    for sender, cursors in knowledge.state.cursors.items():
        knowledge.state.cursors[sender] = {name: one for name, one in cursors.items() if name != stream.name}
    for whole in stream.wholes:
        knowledge.membership.own(whole).vector.clear()


def _derive(knowledge: Knowledge, connection: sqlite3.Connection, stream: Stream, writing: Writing) -> None:
    """Take what the relations make, page by page, as if another had sent it."""
    engine, commit = knowledge.store.engine, writing.commit
    limit = knowledge.store.clock.limit()
    carrying = Carrying(engine, connection, writing.collect)
    for number, part in enumerate(engine.derived(stream.name).parts):
        after: Position | None = None
        while True:
            chunk = part.read(connection, 0, after, PAGE_ROWS)
            if chunk.rows:
                columns = _columns(knowledge, part, chunk.rows)
                arrival = Arrival(columns, commit.version, joining=True, limit=limit)
                commit.grown |= carrying.merge(stream.name, number, arrival) > 0
            after = chunk.reached
            if after is None:
                break
    carrying.carry()


def _columns(knowledge: Knowledge, part: Part, rows: Sequence[tuple[Any, ...]]) -> Columns:
    """The columns of rows; the site itself goes by the number that it has among the others."""
    own = knowledge.store.number
    return [
        [site or own for site in column] if kind == SITE else column
        for kind, column in zip(part.columns, zip(*rows, strict=True), strict=True)
    ]


def _belong(knowledge: Knowledge, stream: Stream, head: int) -> None:
    """The core is a member where its inputs are, and has what they have.

    Whoever has heard what this site has since has also heard that it is listed. It names no sponsor: the one
    of its inputs may be given up by now, and its guests with it.
    """
    state, membership = knowledge.state, knowledge.membership
    groups = [state.joined.get(relation) for relation in stream.inputs]
    if None in groups:
        return
    for whole, relation in zip(stream.wholes, stream.inputs, strict=True):
        membership.own(whole).vector.update(membership.own(relation).vector)
        membership.own(whole).passed = membership.own(relation).passed
    state.former.pop(stream.name, None)
    state.joined[stream.name] = "+".join(group for group in groups if group)
    state.joined = dict(sorted(state.joined.items()))
    state.collected[stream.name] = head
    membership.list_member(membership.incarnation, stream.name, state.joined[stream.name])


def _compute(
    knowledge: Knowledge, connection: sqlite3.Connection, stored: ReceivedPartials, writing: Writing
) -> None:
    """Take what the rows of each owner come to, as if another had told it; the way there is not kept."""
    engine, commit = knowledge.store.engine, writing.commit
    feed = engine.feed_for(stored)
    feed.prepare(connection)
    feed.begin(connection)
    told = standings(knowledge, connection, feed)
    which = Which(frozenset(told), frozenset(), 0)
    after: Position | None = Position(-1)
    while after is not None:
        chunk = feed.read(connection, which, after, PAGE_ROWS)
        stored.stage(connection, list(zip(*chunk.rows, strict=True)))
        after = chunk.reached
    grown = engine.take_partials(connection, stored.stream, which, commit.version, writing.collect)
    commit.grown |= grown > 0
    knowledge.intern(connection, sorted({site for found in told.values() for _, site in found}))
    numbered = {
        owner: {(place, knowledge.numbers[site]): seq for (place, site), seq in found.items()}
        for owner, found in told.items()
    }
    stored.stand(connection, numbered)
    for table in (feed.head, *sorted(feed.circuit.states)):
        connection.execute(f"DROP TABLE main.{table}")
