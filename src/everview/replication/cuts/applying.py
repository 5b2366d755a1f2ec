"""Applying a cut: all of its pages in one commit, or nothing.

For every partition what went is removed first, then rows that were not seen are added, page by page, and the
sender's vector is joined at last.
"""

from __future__ import annotations

import enum
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from operator import add, ne
from typing import TYPE_CHECKING, Protocol

from everview.engines.sqlite.rows import ledger, peers, serving
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import number_of, site_of
from everview.engines.sqlite.rows.ledger import Partition
from everview.engines.sqlite.rows.serving import Mode, Removals, Rows
from everview.engines.sqlite.rows.refusals import not_the_owners, note_refused
from everview.engines.sqlite.rows.taking import Part, Taking, trim_log, undo
from everview.errors import WireError
from everview.replication.cuts.checks import check_columns
from everview.replication.cuts.sites import Named, beginnings
from everview.replication.protocol.programs import Programs
from everview.replication.protocol.messages import Columns, Message, News, Place, Share

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica
    from everview.replication.rights import Rights

__all__ = ["Outcome", "Pages", "Question", "apply"]

_LOG = logging.getLogger("everview")


class Outcome(enum.Enum):
    """What became of a page."""

    STAGED = "it is kept until the cut is whole"
    APPLIED = "the cut is applied"
    GAP = "nobody has asked for it, or for something else since"
    REWOUND = "the sender knows more of this store than it does itself"


class Pages(Protocol):
    """The pages of a cut that came before its last one."""

    def pages(self, place: Place) -> Iterator[tuple[Message, list[Columns]]]:
        """Yield those that have rows of a partition, one by one."""


class Question(Protocol):
    """What was asked: the news that it was about, and what is read again whole.

    A file that does not follow what was read of its writer is about no news: then no cursor moves.
    """

    @property
    def news(self) -> News | None: ...

    @property
    def repairs(self) -> frozenset[str]: ...


def apply(
    replica: Replica,
    connection: sqlite3.Connection,
    last: Message,
    columns: list[Columns],
    named: Named,
    staging: Pages,
    question: Question,
    rights: Rights,
) -> Outcome:
    """Apply a cut whose last page has come."""
    page, store, commit = last.page, replica.store, replica.writing.commit
    assert page is not None
    numbers = named.learn(connection)
    for share in page.shares:
        own = named.vector(share.vector, numbers).get(store.ledger.site, 0)
        if own > store.ledger.partition(connection, share.place.stream).seen:
            return Outcome.REWOUND
    for share, own_columns in zip(page.shares, columns, strict=True):
        stored = replica.shares.get(share.place.stream)
        if stored is None or not rights.may_write(share.place.stream) or share.place.value:
            continue
        partition = store.ledger.partition(connection, share.place.stream)
        vector = named.vector(share.vector, numbers)
        removals = _removals(share, own_columns, named)
        part = Part(stored, partition, vector, removals, share.place.stream in question.repairs)
        taking = Taking(connection, commit, part)
        changed = taking.remove()
        refused: list[int] = []
        for rows in _rows(share, stored, named, last, columns, staging, connection, taking.had, replica.programs):
            if not rows.dots:
                continue
            taking.add(rows)
            refused += not_the_owners(connection, stored)
            if changed:
                stored.net(connection)
            changed = False
            store.engine.propagate(connection, (stored.delta,), replica.writing.collect, shrinks=True)
        if changed:
            store.engine.propagate(connection, (stored.delta,), replica.writing.collect, shrinks=True)
        digest = taking.finish()
        if refused:
            _undo(replica, connection, stored, partition, refused, named)
        _compare(replica, connection, share, digest, vector, partition.number, named)
        trim_log(connection, stored, partition.number)
    store.ledger.forget()
    store.ledger.load(connection)
    if question.news is not None:
        read = serving.Cursor(page.head.version, page.head.tag)
        peers.note_cursor(connection, named.sender, read, question.news.scope)
    return Outcome.APPLIED


def _undo(
    replica: Replica,
    connection: sqlite3.Connection,
    stored: StoredRows,
    partition: Partition,
    dots: list[int],
    named: Named,
) -> None:
    """Remove rows again that their owners have not written, and remember them for the answer."""
    why = f"only the site named in {stored.relation.owner} writes such rows"
    store, name = replica.store, replica.store.name
    note_refused(connection, stored, dots, why, name, store.environment.now_us())
    undo(connection, replica.writing.commit, stored, partition, dots)
    store.engine.propagate(connection, (stored.delta,), replica.writing.collect, shrinks=True)
    replica.refuse_rows(named.sender, stored.stream, dots, why)
    _LOG.warning(
        "%d rows of %s from %s were refused: %s", len(dots), stored.stream, named.name or named.sender, why
    )


def _removals(share: Share, columns: Columns, named: Named) -> Removals:
    mode = Mode(share.mode)
    if mode is Mode.SAME:
        return Removals(mode)
    dots = named.dots(columns.gone[0], columns.gone[1])
    if mode is not Mode.LIVE:
        return Removals(mode, dots)
    highs = list(map(add, dots, columns.gone[2]))
    if len(set(dots)) < len(dots) or any(map(ne, map(site_of, dots), map(site_of, highs))):
        raise WireError("an interval of live rows begins like another, or ends at another site", where="section")
    return Removals(mode, dots, highs)


def _rows(
    share: Share,
    stored: StoredRows,
    named: Named,
    last: Message,
    columns: list[Columns],
    staging: Pages,
    connection: sqlite3.Connection,
    had: Mapping[int, int],
    programs: Programs,
) -> Iterator[Rows]:
    """The rows of a partition in all pages of the cut."""
    for message, found in staging.pages(share.place):
        earlier = Named(message.sites, message.names)
        earlier.learn(connection)
        yield from _rows_in(share, stored, earlier, message, found, had, programs)
    yield from _rows_in(share, stored, named, last, columns, had, programs)


def _rows_in(
    share: Share,
    stored: StoredRows,
    named: Named,
    message: Message,
    columns: list[Columns],
    had: Mapping[int, int],
    programs: Programs,
) -> Iterator[Rows]:
    assert message.page is not None
    for one, found in zip(message.page.shares, columns, strict=True):
        if one.place == share.place and one.rows:
            rows = programs.widened(message.program, share.place.stream, found.rows)
            check_columns(share.place.stream, rows, stored.columns, one.rows)
            dots = named.dots(found.sites, found.numbers)
            if len(set(dots)) < len(dots):
                raise WireError("two rows of a page have one dot", where="section")
            begins = beginnings(found.sites)
            seen = named.vector(one.vector, named.numbers)
            lasts = [dots[place - 1] for place in (*begins[1:], len(dots))]
            if any(number_of(last) > seen.get(site_of(last), 0) for last in lasts):
                raise WireError("a row lies beyond its sender's vector", where="section")
            firsts = [dots[place] for place in begins]
            is_new = all(number_of(first) > had.get(site_of(first), 0) for first in firsts)
            yield Rows(rows, dots, {}, is_all=True, is_new=is_new)


def _compare(
    replica: Replica,
    connection: sqlite3.Connection,
    share: Share,
    digest: tuple[int, int],
    vector: dict[int, int],
    partition: int,
    named: Named,
) -> None:
    """Equal vectors mean equal rows; an alarm where digests say otherwise."""
    if ledger.vector(connection, partition) != vector:
        return
    place = (share.place.stream, share.place.value)
    if digest == tuple(share.digest):
        peers.clear_alarms(connection, *place, named.sender)
        return
    now_us = replica.store.environment.now_us()
    peers.raise_alarm(connection, *place, named.sender, now_us)
    _LOG.error(
        "%s differs from that of %s although both have seen the same; `everview repair %s` reads it again",
        share.place.stream,
        named.name or named.sender,
        share.place.stream,
    )
