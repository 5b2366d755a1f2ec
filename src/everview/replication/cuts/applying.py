"""Applying a cut: all of its pages in one commit, or nothing.

For every partition what went is removed first, then rows that were not seen are added, page by page, and the
sender's vector is joined at last.
"""

from __future__ import annotations

import enum
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from operator import ge, le
from typing import TYPE_CHECKING

from everview.engines.sqlite.rows import ledger, peers, serving
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import NUMBERS
from everview.engines.sqlite.rows.serving import Mode, Removals, Rows
from everview.engines.sqlite.rows.taking import Part, Taking, trim_log
from everview.errors import WireError
from everview.replication.cuts.checks import check_columns
from everview.replication.cuts.sites import Named
from everview.replication.protocol.messages import Columns, Message, Share

if TYPE_CHECKING:
    from everview.replication.cuts.staging import Staging
    from everview.replication.protocol.replica import Replica
    from everview.replication.rights import Rights

__all__ = ["Outcome", "apply"]

_LOG = logging.getLogger("everview")


class Outcome(enum.Enum):
    """What became of a page."""

    STAGED = "it is kept until the cut is whole"
    APPLIED = "the cut is applied"
    GAP = "nobody has asked for it, or for something else since"
    REWOUND = "the sender knows more of this store than it does itself"


Pages = list[tuple[Named, Message, list[Columns]]]


def apply(
    replica: Replica,
    connection: sqlite3.Connection,
    last: Message,
    columns: list[Columns],
    named: Named,
    staging: Staging,
    scope: int,
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
        part = Part(stored, partition, vector, removals)
        taking = Taking(connection, commit, part)
        changed = taking.remove()
        for rows in _rows(share, stored, named, last, columns, staging, connection, taking.had):
            if not rows.dots:
                continue
            taking.add(rows)
            if changed:
                stored.net(connection)
            changed = False
            store.engine.propagate(connection, (stored.delta,), replica.writing.collect, shrinks=True)
        if changed:
            store.engine.propagate(connection, (stored.delta,), replica.writing.collect, shrinks=True)
        digest = taking.finish()
        _compare(replica, connection, share, digest, vector, partition.number, named)
        trim_log(connection, stored, partition.number)
    store.ledger.forget()
    store.ledger.load(connection)
    peers.note_cursor(connection, named.sender, serving.Cursor(page.head.version, page.head.tag), scope)
    return Outcome.APPLIED


def _removals(share: Share, columns: Columns, named: Named) -> Removals:
    mode = Mode(share.mode)
    if mode is Mode.SAME:
        return Removals(mode)
    dots = named.dots(columns.gone[0], columns.gone[1])
    if mode is not Mode.LIVE:
        return Removals(mode, dots)
    highs = [low & ~NUMBERS | high for low, high in zip(dots, columns.gone[2], strict=True)]
    pairs = sorted(zip(dots, highs, strict=True))
    lows = [low for low, _ in pairs]
    if len(set(lows)) < len(lows):
        raise WireError("intervals of live rows begin alike", where="section")
    return Removals(mode, lows, [high for _, high in pairs])


def _rows(
    share: Share,
    stored: StoredRows,
    named: Named,
    last: Message,
    columns: list[Columns],
    staging: Staging,
    connection: sqlite3.Connection,
    had: Mapping[int, int],
) -> Iterator[Rows]:
    """The rows of a partition in all pages of the cut."""
    for message, found in staging.pages(share.place):
        earlier = Named(message.sites, message.names)
        earlier.learn(connection)
        yield from _rows_in(share, stored, earlier, message, found, had)
    yield from _rows_in(share, stored, named, last, columns, had)


def _rows_in(
    share: Share,
    stored: StoredRows,
    named: Named,
    message: Message,
    columns: list[Columns],
    had: Mapping[int, int],
) -> Iterator[Rows]:
    assert message.page is not None
    for one, found in zip(message.page.shares, columns, strict=True):
        if one.place == share.place and one.rows:
            check_columns(share.place.stream, found.rows, stored.columns, one.rows)
            dots = named.dots(found.sites, found.numbers)
            if len(set(dots)) < len(dots):
                raise WireError("two rows of a page have one dot", where="section")
            seen = dict(zip(one.vector[::2], one.vector[1::2], strict=True))
            if not _are_within(found, [seen.get(place, 0) for place in range(len(named.numbers))]):
                raise WireError("a row lies beyond its sender's vector", where="section")
            had_ = [had.get(number, 0) + 1 for number in named.numbers]
            yield Rows(found.rows, dots, {}, is_all=True, is_new=_are_beyond(found, had_))


def _are_within(columns: Columns, most: list[int]) -> bool:
    """Whether no row has a number above its site's greatest."""
    return all(map(le, columns.numbers, map(most.__getitem__, columns.sites)))


def _are_beyond(columns: Columns, least: list[int]) -> bool:
    """Whether no row has a number below its site's least."""
    return all(map(ge, columns.numbers, map(least.__getitem__, columns.sites)))


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
