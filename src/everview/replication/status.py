"""What there is to say about a site and the others: for `status`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

from everview.engines.sqlite.names import CONFLICTS, PAGES, STORE
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.engines.sqlite.stamps import microseconds
from everview.planner.published import view_of
from everview.replication.backlog import LOOKED_AT, Backlog, Behind
from everview.replication.halves import halves_status
from everview.replication.knowledge import Knowledge
from everview.replication.partials import partials_status
from everview.replication.publishing import publishing_status
from everview.replication.readers import readers_status


def replication_status(
    knowledge: Knowledge, connection: sqlite3.Connection, counted: int = LOOKED_AT
) -> dict[str, Any]:
    """Return members with their lag, peers, what is held for whom, and what waits; all plain values.

    `halves` are the members over which a transaction may arrive in two (see `halves`).

    Of what waits for a member at most so many rows of a relation are `counted`.
    """
    state, own = knowledge.state, knowledge.incarnation
    head, shown = connection.execute(f"SELECT version, shown FROM {STORE}").fetchone()
    pages, waiting = connection.execute(
        f"SELECT count(*), ifnull(sum(length(message)), 0) FROM {PAGES}"
    ).fetchone()
    return {
        "incarnation": own,
        "head": head,
        "shown": shown,
        "expiry_days": state.expiry_days,
        "groups": dict(sorted(state.joined.items())),
        "provisional": sorted(state.provisional),
        "waits_for": waits_for(knowledge),
        "peers": [
            {
                "address": address,
                "name": state.names.get(peer.incarnation, ""),
                "incarnation": peer.incarnation,
                "synced_us": peer.synced_us,
                "cursors": {s: c.head for s, c in sorted(state.cursors.get(peer.incarnation, {}).items())},
            }
            for address, peer in sorted(state.peers.items())
        ],
        "members": _members(knowledge, connection, counted),
        "readers": readers_status(state, knowledge.store.engine, connection),
        "halves": halves_status(knowledge),
        "held": _held(knowledge, connection),
        "from_the_future": sum(
            connection.execute(f"SELECT count(*) FROM {relation.future}").fetchone()[0]
            for relation in knowledge.store.engine.relations.values()
            if isinstance(relation, KeyedRelation)
        ),
        "published": publishing_status(knowledge.store, connection),
        "aggregates": partials_status(knowledge, connection),
        "staged_pages": pages,
        "staged_bytes": waiting,
        "dropped_rows": state.dropped,
    }


def waits_for(knowledge: Knowledge) -> dict[str, list[str]]:
    """Stream → the names of those whom this site has to meet before it goes on with another group.

    Where several are called the same, like a copy and its original, with the beginning of their incarnation.
    """
    names = knowledge.state.names
    borne = Counter([knowledge.store.name, *(n for one, n in names.items() if one != knowledge.incarnation)])

    def called(one: str) -> str:
        name = names.get(one)
        if not name:
            return one
        return name if borne[name] == 1 else f"{name} ({one[:8]})"

    return {stream: [called(one) for one in sites] for stream, sites in knowledge.groups.awaited().items()}


def member_status(knowledge: Knowledge, connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the other members and who reads published views, with their lag, and what counts as trouble."""
    head = knowledge.head(connection)
    return {
        "head": head,
        "members": _members(knowledge, connection, LOOKED_AT),
        "readers": readers_status(knowledge.state, knowledge.store.engine, connection),
        "dropped_rows": knowledge.state.dropped,
        "conflicts": connection.execute(f"SELECT count(*) FROM {CONFLICTS}").fetchone()[0],
    }


def others(knowledge: Knowledge) -> list[str]:
    """All other members; a stand-in, which is no site, only where it is waited for."""
    membership = knowledge.membership
    waited = {
        incarnation for relation in membership.wanted for incarnation, _ in membership.holders(relation)
    }
    return sorted(
        incarnation
        for incarnation in knowledge.state.members
        if incarnation != knowledge.incarnation and (incarnation in waited or not incarnation.endswith("?"))
    )


def _members(knowledge: Knowledge, connection: sqlite3.Connection, counted: int) -> list[dict[str, Any]]:
    members, backlog = others(knowledge), Backlog(knowledge, connection, counted)
    for incarnation in members:
        backlog.add(incarnation)
    return [_member(knowledge, incarnation, backlog.of(incarnation)) for incarnation in members]


def _member(knowledge: Knowledge, incarnation: str, behind: Behind) -> dict[str, Any]:
    state = knowledge.state
    told = state.known.get(incarnation, {})
    holds = sorted(
        stream
        for stream, groups in state.members[incarnation].items()
        if any(held.length % 2 for held in groups.values())
    )
    return {
        "incarnation": incarnation,
        "name": state.names.get(incarnation, ""),
        "holds": holds,
        "names": sorted(set(map(view_of, holds))),
        "expired": incarnation in state.expired,
        "heard_us": max((microseconds(t.reading) for t in told.values()), default=0),
        "lag": behind.commits,
        "waiting": {"rows": behind.rows, "more": behind.more},
        "read": max((c.head for c in state.cursors.get(incarnation, {}).values()), default=0),
    }


def _held(knowledge: Knowledge, connection: sqlite3.Connection) -> dict[str, Any]:
    """Relation → dead rows that are held, and the members that have not got some of this site's commits."""
    engine, state = knowledge.store.engine, knowledge.state
    held = {}
    for name, stream in engine.streams.items():
        dead = sum(part.garbage(connection) for part in stream.held)
        if not dead:
            continue
        waits = set()
        for whole in stream.wholes:
            mine = knowledge.membership.own(whole).vector
            for incarnation, theirs in knowledge.membership.holders(whole):
                told = state.known.get(incarnation, {}).get(theirs)
                if told is None or any(told.vector.get(o, 0) < n for o, n in mine.items()):
                    waits.add(state.names.get(incarnation, "") or incarnation)
        held[name] = {"dead_rows": dead, "waiting_for": sorted(waits)}
    return held
