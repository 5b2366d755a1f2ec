"""Garbage: dead rows are forgotten when every member that holds them, or derivations from them, has them.

The floor remains: the greatest length, or stamp of a deletion, ever collected in a relation. It travels, and
whoever inserts a row that it does not know starts above it.
"""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.streams import wholes_of
from everview.replication.knowledge import Knowledge

EXPIRY_DAYS = 90.0
"""A member of whom nothing was heard for so long is given up: it holds up nobody's garbage any longer."""

_DAY_US = 24 * 3600 * 1_000_000


def collect(knowledge: Knowledge, connection: sqlite3.Connection, expiry_days: float) -> int:
    """Expire who stays away too long, and forget what is stable; return how many rows were forgotten."""
    membership, state, engine = knowledge.membership, knowledge.state, knowledge.store.engine
    limit = knowledge.store.environment.now_us() - int(expiry_days * _DAY_US)
    for incarnation in membership.absent(limit):
        membership.expire(incarnation)
    head = knowledge.head(connection) - 1  # this commit grows nothing and will have no number
    total = 0
    for name, stream in engine.streams.items():
        if name not in state.joined:
            continue
        for part, relation in zip(stream.held, stream.inputs, strict=True):
            vector, passed = membership.stable(relation)
            if not vector or not part.garbage(connection):
                continue
            knowledge.lay_out(connection, vector)
            count, floor = part.collect(connection, passed)
            if count and wholes_of(name, stream.inputs) == (name,) and floor > state.floors.get(name, 0):
                state.floors[name] = floor
            if count:
                state.collected[name] = head
            total += count
    knowledge.store.floors = state.floors
    return total
