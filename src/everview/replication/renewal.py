"""Renewal: when a site takes a new incarnation, or leaves a group, and must join again.

A store that was copied or went back in time may have told others of commits that it no longer has; under its
old incarnation it would give the same numbers to other commits. Under a new one it is a stranger that happens
to hold a lot already.
"""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.names import PAGES, SITES, STORE
from everview.engines.sqlite.writing import Writing
from everview.replication.gossip import commits_of, cursor_on
from everview.replication.knowledge import Knowledge
from everview.replication.messages import Message
from everview.replication.publishing import new_epoch
from everview.replication.returning import set_aside_since
from everview.replication.state import Told


def renew(knowledge: Knowledge, connection: sqlite3.Connection, head: int, *, retire: bool) -> str:
    """Take a new incarnation: it holds what it held and is a member of nothing yet; return the old one.

    `head` is the last commit of the old one.

    `retire` gives the old one up: nobody goes by it any more. If somebody does after all, it will take a new
    one, too, when it hears of it: nothing is lost by that but the time to join again.
    """
    state, store, old = knowledge.state, knowledge.store, knowledge.incarnation
    new = store.environment.incarnation()
    number = connection.execute(
        f"INSERT INTO {SITES} SELECT max(number) + 1, ?, ? FROM {SITES} RETURNING number", (new, store.name)
    ).fetchone()[0]
    for relation in store.engine.relations.values():
        relation.renumber(connection, knowledge.numbers[old])
    for published in store.engine.published.values():
        published.renew(connection, new_epoch(store))  # others may have more of it than it has itself
    connection.execute(f"UPDATE {SITES} SET incarnation = ? WHERE number = 0", (new,))
    connection.execute(f"UPDATE {STORE} SET incarnation = ?, shown = 0", (new,))
    connection.execute(f"DELETE FROM {PAGES}")
    knowledge.membership.advance(head, store.clock.last)
    own = state.known.get(old, {})
    # It cannot speak for others, nor for what it was: of them it is told where it joins.
    state.known = {new: {whole: Told(dict(told.vector), told.reading) for whole, told in own.items()}}
    state.names[new] = store.name or knowledge.name
    called = f"SELECT name FROM {SITES} WHERE number = ?"  # a copy may go by another name than its original
    (state.names[old],) = connection.execute(called, (knowledge.numbers[old],)).fetchone()
    state.peers = {}
    knowledge.groups.lose_all()
    knowledge.numbers[new] = store.number = number
    knowledge.incarnation = knowledge.membership.incarnation = new
    if retire:
        knowledge.membership.expire(old)
        knowledge.membership.end(old)  # should someone have listed it meanwhile
    knowledge.save(connection)
    return old


def knows_another_us(
    knowledge: Knowledge, connection: sqlite3.Connection, message: Message, head: int
) -> bool:
    """Whether a sender has a cursor on this incarnation, or commits of it, that are not known here."""
    incarnation = knowledge.incarnation
    cursor = cursor_on(message, incarnation)
    if cursor.head and knowledge.tags(connection, [cursor.head]).get(cursor.head) != cursor.tag:
        return True
    return commits_of(message, incarnation) > head


def rewound(knowledge: Knowledge, connection: sqlite3.Connection, writing: Writing, opened_at: int) -> None:
    """A peer knows what this store does not: it went back in time, and opening did not notice.

    What was written since it was opened is told again under the new incarnation; what came before, others
    may have deleted.
    """
    set_aside_since(knowledge, connection, writing, opened_at)
    old = renew(knowledge, connection, writing.commit.version - 1, retire=True)
    commit = writing.commit
    commit.site = knowledge.store.number
    number = knowledge.numbers[old]
    told = [
        relation.retell(connection, opened_at, number, commit)
        for relation in knowledge.store.engine.relations.values()
    ]
    commit.grown |= any(told)
    for told_of in knowledge.state.known[knowledge.incarnation].values():
        if told_of.vector.get(old, 0) > opened_at:
            told_of.vector[old] = opened_at
    head = commit.version if commit.grown else commit.version - 1
    for by_group in knowledge.state.cancelled.values():
        for gone in by_group.values():  # with what nobody will ever have: from now on it is this commit's
            if gone.get(old, 0) > opened_at:
                gone |= {old: opened_at, knowledge.incarnation: head}
    knowledge.membership.advance(head, knowledge.store.clock.last)
