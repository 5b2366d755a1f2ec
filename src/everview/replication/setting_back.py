"""A clock that was ahead and is set back: what the site wrote meanwhile waits everywhere for its time.

And so would all that it writes from now on, for stamps only go up. But is the time of now right, or that of
then? A clock may as well be behind since its battery died. So a site believes its clock when it meets one
whose clock says the same, unless more of the members that it knows say that it is later.

Then it goes on under a new incarnation, for the old one has told that it will write nothing below readings
that now lie ahead; and it tells again, as of now, what it wrote under the old time. The versions of that time
wait for it here, too, as they do everywhere that has them; also those that it has told nobody, for others may
have what they replaced. `Site.set_clock` in `tests/model/site.py` is the specification.
"""

from __future__ import annotations

import datetime as dt
import logging
import sqlite3

from everview.algebra.clock import TOLERANCE_US
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.engines.sqlite.stamps import SHIFT, microseconds
from everview.engines.sqlite.writing import Writing
from everview.replication.gossip import Tidings
from everview.replication.knowledge import Knowledge
from everview.replication.renewal import renew

_LOG = logging.getLogger("everview")

EARLIEST_US = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp()) * 1_000_000
"""A clock that says that it is earlier is wrong: that was before any of this was written."""


def is_due(knowledge: Knowledge, tidings: Tidings, sender: str) -> bool:
    """Whether this clock was ahead, and is right by that of the sender of a message."""
    store = knowledge.store
    now = store.environment.now_us()
    if not store.clock.is_ahead() or now < EARLIEST_US or not _keyed(knowledge):
        return False
    times = {site: microseconds(reading) for site, reading in _readings(knowledge, tidings, sender).items()}
    same = {site for site, time in times.items() if abs(time - now) <= TOLERANCE_US}
    later = sum(time > now + TOLERANCE_US for time in times.values())
    return sender in same and later <= len(same)


def _readings(knowledge: Knowledge, tidings: Tidings, sender: str) -> dict[str, int]:
    """The clocks of the other members, as far as they are known; that of the sender as it is now."""
    told = {**knowledge.state.known, sender: tidings.known.get(sender, {})}
    return {
        incarnation: max((one.reading for one in wholes.values()), default=0)
        for incarnation, wholes in told.items()
        if incarnation != knowledge.incarnation and incarnation not in knowledge.state.expired
    }


def set_back(
    knowledge: Knowledge, connection: sqlite3.Connection, writing: Writing, tidings: Tidings, sender: str
) -> None:
    """Go by the clock again, as a new incarnation, within the commit that is under way.

    What others wrote, and this site has replaced, is not held any more; but they told readings above it.
    """
    store, state, commit = knowledge.store, knowledge.state, writing.commit
    clock, relations = store.clock, _keyed(knowledge)
    _LOG.warning(
        "this clock was ahead by %s and is right now; %s goes on as a new incarnation, and what it wrote "
        "meanwhile in relations with a key is told again, as of now",
        dt.timedelta(seconds=(microseconds(clock.last) - store.environment.now_us()) // 1_000_000),
        store.name or "the site",
    )
    clock.restart()
    floor = max((state.floors.get(stored.relation.name, 0) for stored in relations), default=0)
    if clock.limit() < floor <= clock.farthest():  # where all were ahead nobody writes below what they forgot
        state.moved = clock.past = floor
    # All that has this microsecond: clocks are found to agree by their times, whatever counters say.
    limit = clock.limit() | (1 << SHIFT) - 1
    passed = [floor, *_readings(knowledge, tidings, sender).values()]
    passed += [stored.last_come(connection, limit) for stored in relations]
    clock.observe(max(stamp for stamp in (0, *passed) if stamp <= limit))
    old = renew(knowledge, connection, commit.version - 1, retire=True)
    commit.site, commit.stamp = store.number, clock.stamp()
    limit = clock.limit()
    for stored in relations:
        if stored.set_back(connection, knowledge.numbers[old], limit, commit):
            store.engine.propagate(connection, (stored.delta,), writing.collect, shrinks=True)
            commit.grown = True
    for one in state.known[knowledge.incarnation].values():
        one.reading = commit.stamp
    knowledge.membership.advance(commit.version if commit.grown else commit.version - 1, clock.last)


def _keyed(knowledge: Knowledge) -> list[KeyedRelation]:
    """The relations whose rows have stamps. A view that is received starts empty when it joins anew."""
    return [part for part in knowledge.store.engine.timed() if isinstance(part, KeyedRelation)]
