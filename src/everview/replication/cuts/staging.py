"""Staging: pages of a cut that has not ended, kept in the store so that it goes on after an interruption."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from everview.engines.sqlite.names import PAGES
from everview.replication.wire.codec import decode
from everview.replication.wire.messages import Columns, Message, News, Place, Resume

__all__ = ["Staged", "Staging"]

Vector = dict[str, int]
"""Incarnation → the last number seen."""


class Staged(msgspec.Struct, array_like=True):
    """How far a cut has come: what was asked for, and of each partition the vector of what is staged."""

    news: News
    has: dict[str, Vector]
    here: list[str]
    """The partitions, and cores, of this page."""
    resumes: dict[str, Resume] = {}
    """Where to go on with derivations, by core."""
    cut: int = 0
    """The question that this page answers."""
    repairs: list[str] = []
    """The streams that are read again whole."""


_STAGED = msgspec.msgpack.Decoder(Staged)


def key(place: Place) -> str:
    """Return a name for a partition."""
    return f"{place.stream}\0{place.value}"


class Staging:
    """The pages of one sender."""

    def __init__(self, connection: sqlite3.Connection, sender: str) -> None:
        self._connection, self._sender = connection, sender
        self._numbers: dict[str, list[int]] | None = None
        self._decoded: tuple[int, tuple[Message, list[Columns]]] | None = None

    def last(self) -> Staged | None:
        """How far the cut has come; None if none has begun."""
        found = self._connection.execute(
            f"SELECT request FROM {PAGES} WHERE sender = ? ORDER BY number DESC LIMIT 1", (self._sender,)
        ).fetchone()
        return None if found is None else _STAGED.decode(found[0])

    def reached(self) -> int:
        """The question whose answer was staged last; 0 if none is."""
        last = self.last()
        return 0 if last is None else last.cut

    def add(self, staged: Staged, data: bytes) -> None:
        """Keep a page, as it came, and how far the cut has come with it."""
        self._connection.execute(
            f"INSERT INTO {PAGES} SELECT ?1, ifnull(max(number), 0) + 1, ?2, ?3 FROM {PAGES} "
            "WHERE sender = ?1",
            (self._sender, msgspec.msgpack.encode(staged), data),
        )

    def pages(self, place: Place) -> Iterator[tuple[Message, list[Columns]]]:
        """Yield the pages that have rows of a partition, one by one."""
        if self._numbers is None:
            self._numbers = {}
            for number, told in self._connection.execute(
                f"SELECT number, request FROM {PAGES} WHERE sender = ? ORDER BY number", (self._sender,)
            ):
                for here in _STAGED.decode(told).here:
                    self._numbers.setdefault(here, []).append(number)
        yield from map(self._page, self._numbers.get(key(place), ()))

    def _page(self, number: int) -> tuple[Message, list[Columns]]:
        """A page; the last one is remembered, for it mostly has several partitions."""
        if self._decoded is None or self._decoded[0] != number:
            (data,) = self._connection.execute(
                f"SELECT message FROM {PAGES} WHERE sender = ? AND number = ?", (self._sender, number)
            ).fetchone()
            self._decoded = number, decode(data)
        return self._decoded[1]

    def clear(self) -> None:
        """Forget them."""
        self._connection.execute(f"DELETE FROM {PAGES} WHERE sender = ?", (self._sender,))
