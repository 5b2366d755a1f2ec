"""Evolving: a store goes over to another program, with what it knows of other sites.

Relations stay what they are to others, wider or not: groups, vectors and cursors go on, and so do members of
whom it is known that they hold a view which the new program does not have; they are asked as before. What is
new is hosted late, and joined by a snapshot. A view that came from elsewhere and is another now is given up,
which others hear with the next message (see `Membership.release`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing

from everview.engines.sqlite.connections import connect
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.evolving import Alone, Evolved, evolve, hosted_by, new_hosts
from everview.engines.sqlite.names import MEMBERSHIP, STORE
from everview.language.evolution import Evolution
from everview.replication.knowledge import stored_state
from everview.replication.state import State, dump, dump_listed, dump_others, is_crowded

__all__ = ["comes_back", "evolve_knowledge", "evolve_store"]


def evolve_store(path: str, evolution: Evolution, hosts: Iterable[str] | None = None) -> Evolved:
    """Bring a store over to another program: all of it, or nothing."""
    with Alone(path) as connection:
        wanted = new_hosts(path, hosted_by(connection), evolution, hosts)
        evolved = evolve(connection, path, evolution, wanted)
        if not evolved.new.dots:
            evolve_knowledge(connection, evolved)
        return evolved


def evolve_knowledge(connection: sqlite3.Connection, evolved: Evolved) -> None:
    """Bring what a store knows of others over, in the same transaction."""
    state = stored_state(connection)
    if state is None:
        return
    (revision,) = connection.execute(f"SELECT max(revision) FROM {MEMBERSHIP}").fetchone()
    (own,) = connection.execute(f"SELECT incarnation FROM {STORE}").fetchone()
    _give_up(state, evolved)
    _explain(state, evolved.old, evolved.new)
    state.evolved += 1
    write = f"INSERT OR REPLACE INTO {MEMBERSHIP} VALUES (?, ?, ?)"
    connection.execute(f"DELETE FROM {MEMBERSHIP} WHERE one > 1")
    if is_crowded(state, own):
        connection.execute(write, (2, dump_others(state, own), revision + 1))
        connection.execute(write, (3, dump_listed(state), revision + 1))
    connection.execute(write, (1, dump(state, own), revision + 1))


def _give_up(state: State, evolved: Evolved) -> None:
    """Forget how far streams were read that are not read any more, or not any more the same."""
    old, new = evolved.old, evolved.new
    gone = old.streams.keys() - new.streams.keys()
    for kept in (
        state.joined,
        state.provisional,
        state.former,
        state.bound,
        state.lifted,
        state.absorbed,
        state.collected,
    ):
        for stream in gone & kept.keys():
            del kept[stream]
    apart = {**old.published, **old.partials}.keys() - {**new.published, **new.partials}.keys()
    gone |= apart | {
        n for n, one in old.published.items() if one.view.name not in evolved.evolution.same_views
    }
    for sender, cursors in state.cursors.items():
        state.cursors[sender] = {stream: one for stream, one in cursors.items() if stream not in gone}


def _explain(state: State, old: Engine, new: Engine) -> None:
    """Note what the views tell of that the new program does not have, where somebody is listed for them."""
    listed = {stream for streams in state.members.values() for stream in streams}
    before = {stream: list(core.inputs) for stream, core in old.exchange.all_cores.items()}
    known = {**before, **state.inputs}
    state.inputs = {
        stream: inputs for stream, inputs in known.items() if stream in listed and not new.inputs_of(stream)
    }


def comes_back(path: str, evolution: Evolution, hosts: Iterable[str] | None = None) -> bool:
    """Whether a store would receive a view again that it has given up: then it needs another incarnation.

    It has said since that it lacks nothing of that view, and others have gone by it.
    """
    with closing(connect(path, lambda _what: None, read_only=True).connection) as connection:
        state = stored_state(connection)
        if state is None:
            return False
        own, called = connection.execute(f"SELECT incarnation, site FROM {STORE}").fetchone()
        stored = hosted_by(connection)
    old = Engine(evolution.old, stored or frozenset(evolution.old.names()), called)
    new = Engine(evolution.new, new_hosts(path, stored, evolution, hosts), called)
    mine = state.members.get(own, {})
    return any(name in mine and name not in old.streams for name in new.streams if name in new.received)
