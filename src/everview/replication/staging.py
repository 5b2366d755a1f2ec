"""Staging: pages of a cut that has not ended, kept in the store so that it goes on after an interruption."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from everview.engines.sqlite.names import PAGES
from everview.replication.messages import Message, Page
from everview.replication.wire import decode


class Begun(msgspec.Struct, frozen=True, array_like=True):
    """How far a cut has come."""

    cut: int
    reached: bytes
    froms: dict[str, int]


_BEGUN = msgspec.msgpack.Decoder(Begun)


@dataclass(frozen=True, slots=True)
class Staging:
    """The pages of one sender."""

    connection: sqlite3.Connection
    sender: str

    def last(self) -> Begun | None:
        """How far the cut has come, if one has begun."""
        found = self.connection.execute(
            f"SELECT request FROM {PAGES} WHERE sender = ? ORDER BY number DESC LIMIT 1", (self.sender,)
        ).fetchone()
        return None if found is None else _BEGUN.decode(found[0])

    def follows(self, page: Page) -> bool:
        """Whether a page is the next one; a first page always is, and what was staged before is dropped."""
        if not page.after:
            self.clear()
            return True
        begun = self.last()
        return begun is not None and (begun.cut, begun.reached) == (page.cut, page.after)

    def add(self, page: Page, data: bytes) -> None:
        """Keep a page, as it came."""
        begun = msgspec.msgpack.encode(Begun(page.cut, page.reached, page.froms))
        self.connection.execute(
            f"INSERT INTO {PAGES} SELECT ?, ifnull(max(number), 0) + 1, ?, ? FROM {PAGES} WHERE sender = ?",
            (self.sender, begun, data, self.sender),
        )

    def messages(self) -> Iterator[Message]:
        """The messages, one by one."""
        numbers = self.connection.execute(
            f"SELECT number FROM {PAGES} WHERE sender = ? ORDER BY number", (self.sender,)
        ).fetchall()
        for (number,) in numbers:
            (data,) = self.connection.execute(
                f"SELECT message FROM {PAGES} WHERE sender = ? AND number = ?", (self.sender, number)
            ).fetchone()
            yield decode(data)

    def clear(self) -> None:
        """Forget them."""
        self.connection.execute(f"DELETE FROM {PAGES} WHERE sender = ?", (self.sender,))

    @staticmethod
    def clear_all(connection: sqlite3.Connection) -> None:
        """Forget the pages of every sender: they were for a member of a group that was left."""
        connection.execute(f"DELETE FROM {PAGES}")
