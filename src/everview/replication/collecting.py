"""Garbage: dead rows are forgotten when every member that holds them, or derivations from them, has them.

The floor remains: the greatest length, or stamp of a deletion, ever collected in a relation. It travels, and
whoever inserts a row that it does not know starts above it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from everview.engines.sqlite.names import TAGS
from everview.engines.sqlite.relations.bags import BagRelation
from everview.language.relations import Semantics
from everview.replication.knowledge import Knowledge
from everview.replication.membership import join
from everview.replication.readers import forget_readers
from everview.replication.state import Told
from everview.replication.strangers import settled

GRACE_US = 3600 * 1_000_000
"""What is dead and stable is kept for so long at least: until then a site that nobody has met yet may come
with a row that the deletion had not seen, and lose to it as the causal lengths say.
"""


def is_due(knowledge: Knowledge) -> bool:
    """Whether it is time for a pass."""
    return knowledge.store.environment.now_us() >= knowledge.state.passed_us + GRACE_US


def ripen(knowledge: Knowledge, connection: sqlite3.Connection) -> int:
    """One pass: forget what was stable at the pass before, and note what is stable now."""
    state = knowledge.state
    engine = knowledge.store.engine
    wanted = state.ripe or engine.published or engine.partials or engine.feeding
    _agree(knowledge)
    total = collect(knowledge, connection, state.ripe) if wanted else 0
    state.passed_us = knowledge.store.environment.now_us()
    stable = {whole: knowledge.membership.stable(whole) for whole, _ in knowledge.membership.wholes()}
    state.ripe = {whole: Told(vector, passed) for whole, (vector, passed) in stable.items() if vector}
    return total


def collect(
    knowledge: Knowledge,
    connection: sqlite3.Connection,
    ripe: Mapping[str, Told] | None = None,
) -> int:
    """Expire who stays away too long, and forget what is stable; return how many rows were forgotten.

    `ripe` limits it to what was stable at an earlier time, too.
    """
    membership, state, engine = knowledge.membership, knowledge.state, knowledge.store.engine
    relations = engine.program.relations
    limit = knowledge.store.environment.now_us() - state.expiry_us
    for incarnation in membership.absent(limit) if state.joined else knowledge.groups.lost_sponsors(limit):
        membership.expire(incarnation)
    forget_readers(state, limit)
    knowledge.groups.lose_expired_sponsors()
    _agree(knowledge)
    after = knowledge.head(connection)  # this commit grows nothing; the next one will have its number
    keep = None if ripe is not None else 0
    total = sum(published.collect(connection, keep) for published in engine.published.values())
    total += sum(told.collect(connection, keep) for told in (*engine.partials.values(), *engine.feeding))
    for name, stream in engine.streams.items():
        if name not in state.joined:
            continue
        for part, relation, whole in zip(stream.held, stream.inputs, stream.wholes, strict=True):
            vector, passed = membership.stable(whole)
            if relations[relation].semantics is Semantics.BAG:
                vector = _told(knowledge, connection, settled(membership, relation, vector))
            if ripe is not None:
                vector, passed = _least(vector, passed, ripe.get(whole, Told({})))
            if not vector or not part.garbage(connection):
                continue
            knowledge.lay_out(connection, vector)
            if isinstance(part, BagRelation):
                _note_cancelled(knowledge, connection, part, state.joined[name])
            count, floor = part.collect(connection, passed)
            if count and stream.is_base and floor > state.floors.get(name, 0):
                state.floors[name] = floor
            if count:
                state.collected[name] = after
            total += count
    knowledge.store.floors = state.floors
    return total


def _note_cancelled(
    knowledge: Knowledge, connection: sqlite3.Connection, bag: BagRelation, group: str
) -> None:
    """Note what is to be forgotten of a bag: whoever has not seen all of it would bring its rows back."""
    last = bag.cancels(connection)
    if last:
        names = {number: incarnation for incarnation, number in knowledge.numbers.items()}
        by_group = knowledge.state.cancelled.setdefault(bag.relation.name, {})
        join(by_group.setdefault(group, {}), {names[number]: commit for number, commit in last.items()})


def _told(knowledge: Knowledge, connection: sqlite3.Connection, vector: Mapping[str, int]) -> dict[str, int]:
    """A vector of a bag up to the last commit of this site that anybody may have heard of.

    Should the store have gone back in time, then others may have the one half of a pair from its first life:
    its other half, of the second, has to be told, for it counts there.
    """
    (told,) = connection.execute(f"SELECT ifnull(max(version), 0) FROM {TAGS}").fetchone()
    own = knowledge.incarnation
    return {origin: min(seq, told) if origin == own else seq for origin, seq in vector.items()}


def _agree(knowledge: Knowledge) -> None:
    """Note what clocks have passed: others forget deletes by it, and who joins here is moved past them."""
    for name, relation in knowledge.store.engine.program.relations.items():
        if relation.semantics is Semantics.KEYED:
            knowledge.membership.agree(name)


def _least(vector: Mapping[str, int], passed: int, ripe: Told) -> tuple[dict[str, int], int]:
    common = {origin: min(commit, ripe.vector.get(origin, 0)) for origin, commit in vector.items()}
    return common, min(passed, ripe.reading)
