"""Giving: a page of what a reader lacks, from one snapshot.

A page is chosen against the reader's vectors, and what it has staged of the cut counts as had; so whoever
gives keeps nothing between pages. The last page says what went, for all pages at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from operator import sub

from everview.engines.sqlite.derived.sources import HollowSource
from everview.engines.sqlite.derived.telling import NOBODY, Teller
from everview.engines.sqlite.rows import serving
from everview.engines.sqlite.rows.ledger import Ledger, vector
from everview.engines.sqlite.rows.serving import Mode, Offer, Reader, Removals
from everview.language.sizes import LARGEST_ROW
from everview.replication.cuts.derivations import give_derivations
from everview.replication.rights.rights import ALL, Rights
from everview.replication.wire.messages import Columns, Cursor, Message, Page, Place, Share
from everview.replication.wire.sites import Named, Naming

__all__ = ["PAGE_BYTES", "PAGE_CELLS", "give", "page_for"]

PAGE_CELLS = 250_000
"""About so many cells are in a page."""

PAGE_BYTES = LARGEST_ROW // 2


def give(
    connection: sqlite3.Connection,
    ledger: Ledger,
    offers: Mapping[str, Offer],
    message: Message,
    naming: Naming,
    *,
    tellers: Mapping[str, Teller],
    rights: Rights = ALL,
    cells: int = PAGE_CELLS,
    ends: bool = True,
) -> tuple[Page, list[Columns]]:
    """Return a page of what a message asks for, of these streams and cores, and its columns.

    It is the last one where nothing is left, and the cut `ends` with it.
    """
    ask = message.ask
    assert ask is not None
    named = Named(message.sites, message.names)
    known = named.known(connection)
    readers: dict[Place, Reader] = {}
    for wish in ask.wishes:
        place, offer = wish.place, offers.get(wish.place.stream)
        if offer is None or place in readers or not rights.covers(place.stream, place.value):
            continue
        partition = ledger.find(connection, offer.partition, place.value)
        if partition is not None:  # a reader makes none
            numbers = named.known(connection, partition) if place.value else known
            had, has = named.vector(wish.had, numbers), named.vector(wish.has, numbers)
            readers[place] = Reader(had, has, wish.whole, ask.since.version)
    page, columns = page_for(connection, ledger, offers, readers, naming, ask.cut, cells=cells, ends=ends)
    if not page.done or not ask.cores:
        return page, columns
    used = sum(share.rows * len(one.rows) for share, one in zip(page.shares, columns, strict=True))
    given = connection, tellers, ask, page, columns, naming
    return give_derivations(*given, max(cells - used, cells // 8), PAGE_BYTES, known.get(0, NOBODY))


def page_for(
    connection: sqlite3.Connection,
    ledger: Ledger,
    offers: Mapping[str, Offer],
    readers: Mapping[Place, Reader],
    naming: Naming,
    cut: int = 0,
    *,
    cells: int = PAGE_CELLS,
    ends: bool = True,
) -> tuple[Page, list[Columns]]:
    """Return a page of what readers lack, of the partitions that each of them reads, and its columns."""
    head = serving.head(connection)
    room, done = PAGE_BYTES, True
    found = []
    for place, reader in readers.items():
        if not done:
            break
        offer = offers[place.stream]
        stored, known = offer.source, ledger.find(connection, offer.partition, place.value)
        partition = (known or ledger.partition(connection, offer.partition, place.value)).number
        width, mine = len(stored.cells) + 2, vector(connection, partition)
        rows = serving.rows_for(connection, stored, mine, reader, max(cells // width, 1), room)
        found.append((place, reader, stored, partition, mine, rows))
        cells, room, done = cells - len(rows.dots) * width, room - rows.size, rows.is_all
    done &= ends
    shares, columns = [], []
    for place, reader, stored, partition, mine, rows in found:
        sites, numbers = naming.dots(rows.dots)
        if not done:
            shares.append(Share(place, len(rows.dots), naming.pairs(rows.vector)))
            columns.append(Columns(rows.columns, sites, numbers))
            continue
        removals = serving.removals_for(connection, stored, partition, mine, reader, reader.since)
        digest = serving.digest_of(connection, stored, partition, head.version)
        went, whole = (int(removals.mode), len(removals.dots)), isinstance(stored, HollowSource)
        shares.append(Share(place, len(rows.dots), naming.pairs(mine), *went, digest, whole=whole))
        columns.append(Columns(rows.columns, sites, numbers, _gone(removals, naming)))
    return Page(cut, done, Cursor(*head), shares), columns


def _gone(removals: Removals, naming: Naming) -> tuple[list[int], ...]:
    if removals.mode is Mode.SAME:
        return ()
    sites, numbers = naming.dots(removals.dots)
    if removals.mode is Mode.LIVE:
        return list(sites), list(numbers), list(map(sub, removals.highs, removals.dots))
    return list(sites), list(numbers)
