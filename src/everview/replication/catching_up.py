"""Catching up: nobody may write a keyed relation below a delete that others have forgotten, or may forget.

A delete is forgotten when every member's clock has passed it, and leaves a floor. The clock of who hears of
the floor passes it, though by its own time that has not come. And who joins is not asked by members that have
not heard of it yet: so its clock passes every delete of the snapshot that all of them have passed. While one
has not, nothing is moved: where some clock is right, one that runs ahead moves no other.
"""

from __future__ import annotations

import logging
import sqlite3

from everview.engines.sqlite.engine import OnChange
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.relations.staging import Columns
from everview.engines.sqlite.store import Store
from everview.language.relations import Relation
from everview.replication.admitting import moment
from everview.replication.gossip import Tidings
from everview.replication.knowledge import Knowledge

_LOG = logging.getLogger("everview")


def passed(knowledge: Knowledge, tidings: Tidings, sender: str, relation: str, groups: list[str]) -> int:
    """The stamp that every member of a sender's group has passed, as far as the sender knows; 0 if none.

    Others may forget what it has told them that it knows, though it may have forgotten that itself in a
    crash: it knows what it has told. `groups` are the sender's group for the relation, and those that it has
    absorbed.
    """
    membership, readings = knowledge.membership, []
    for (incarnation, stream, group), (length, _) in tidings.members.items():
        parts = dict(zip(membership.inputs(stream), group.split("+"), strict=False))
        if length % 2 == 0 or incarnation == knowledge.incarnation or parts.get(relation) not in groups:
            continue
        whole = relation if stream == relation else f"{stream}>{relation}"
        told = tidings.known.get(incarnation, {}).get(whole)
        if told is not None and told.reading:  # of whom nothing is known nobody knows what it has passed
            readings.append(told.reading)
    told = tidings.known.get(sender, {}).get(relation)
    return max(min(readings, default=0), 0 if told is None else told.passed)


def last_delete(columns: Columns, relation: Relation, limit: int) -> int:
    """The greatest stamp of a delete among rows that came, up to a limit; 0 if there is none."""
    width = len(relation.schema)
    rows = zip(columns[width], columns[width + 1], strict=True)
    return max((stamp for alive, stamp in rows if not alive and stamp <= limit), default=0)


def catch_up(knowledge: Knowledge, commit: Commit, stamp: int, relation: str, sender: str) -> None:
    """Move the clock past a stamp, and stamp the commit anew.

    If the stamp's time has not come, the time is taken to be that from now on: else those who have passed it
    would take each other's writes for rows from the future.
    """
    clock = knowledge.store.clock
    if stamp > clock.limit():
        _LOG.warning(
            "deletes in %s that %s tells of are from up to %s, more than 60 s ahead of this clock, and may "
            "be forgotten; what is written here is stamped later than that: check the clocks",
            relation,
            knowledge.state.names.get(sender) or sender,
            moment(stamp),
        )
        knowledge.state.moved = clock.past = stamp
    clock.observe(stamp)
    commit.stamp = clock.stamp()


def value_due(store: Store, connection: sqlite3.Connection, version: int, on_change: OnChange | None) -> int:
    """Value the versions whose time has come; return how many rows changed."""
    limit, grown = store.clock.limit(), 0
    for relation in store.engine.timed():
        store.clock.observe(relation.last_due(connection, limit))
        count = relation.come(connection, version, limit)
        if count:
            store.engine.propagate(connection, (relation.delta,), on_change, shrinks=True)
        grown += count
    return grown
