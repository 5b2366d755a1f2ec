"""Messages that are kept in a site's relations before they are handled, so that a peer can take over.

A peer goes on with what it was told, in order: each message says from which offset it was asked for, so that
one that has not come yet is missed and not skipped. It also makes a stream replayable that is not by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from everview.errors import NonDeterminismError
from everview.streams.windows.coding import CANONICAL
from everview.streams.windows.group import Group
from everview.streams.windows.relations import MESSAGES
from everview.streams.windows.site_ledger import Store
from everview.streams.windows.sources.base import Marked, Source
from everview.streams.windows.sources.changes import wake

__all__ = ["Replicated"]

_END = -1
"""In place of a message's offset: there will be no more."""
_LOOK_SECONDS = 0.5


class Replicated(Source):
    """A processor's messages as a site has them; where `source` is given, new ones are fetched from it.

    The first runner of a processor has the source. A peer that takes over need not have it: then it handles
    what has been replicated, and waits for more.
    """

    def __init__(self, site: Store, group: Group, processor: str, source: Source | None = None) -> None:
        self._site, self._stream, self._processor = site, group.name, processor
        self._source = source
        self._release = self._forgotten = 0

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return messages that are kept; when there are no more, keep some and return these."""
        if self._release:
            release, self._release = self._release, 0
            await asyncio.to_thread(self._forget, release)
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        watch = None
        try:
            while True:
                news.clear()
                found, ended = await asyncio.to_thread(self._kept, offset, limit)
                if found or ended:
                    return found
                if self._source is not None:
                    fetched = await self._source.read(offset, limit)
                    await asyncio.to_thread(self._keep, offset, fetched)
                elif watch is None:
                    watch = self._site.watch(MESSAGES, lambda _changes: wake(loop, news))
                else:
                    try:
                        await asyncio.wait_for(news.wait(), _LOOK_SECONDS)
                    except TimeoutError:
                        continue
        finally:
            if watch is not None:
                watch.cancel()

    def release(self, offset: int) -> None:
        """Let the site forget messages, at the next reading."""
        self._release = max(self._release, offset)
        if self._source is not None:
            self._source.release(offset)

    def mark(self, offset: int) -> str | None:
        """Return what the source says, where there is one that does."""
        source: object = self._source
        return source.mark(offset) if isinstance(source, Marked) else None

    async def check(self, offset: int, mark: str) -> None:
        """Have the source checked, where there is one."""
        source: object = self._source
        if isinstance(source, Marked):
            await source.check(offset, mark)

    def _keep(self, offset: int, fetched: Sequence[tuple[int, Any]]) -> None:
        rows, asked = [], offset
        for number, message in fetched:
            rows.append((self._stream, self._processor, asked, number, CANONICAL.encode(message)))
            asked = number + 1
        if not fetched:
            rows.append((self._stream, self._processor, asked, _END, b""))
        self._site.insert(MESSAGES, rows)

    def _kept(self, offset: int, limit: int) -> tuple[list[tuple[int, Any]], bool]:
        """The messages that follow one another from an offset on, and whether they are the last."""
        rows = self._site.query(
            # A range, so that what comes later is not looked at; more messages than offsets it cannot have.
            f"SELECT asked, message, content FROM {MESSAGES} WHERE stream = ? AND processor = ? "
            "AND asked >= ? AND asked < ? ORDER BY asked, message",
            [self._stream, self._processor, offset, offset + limit],
        )
        found: list[tuple[int, Any]] = []
        for row, after in zip_longest(rows, rows[1:]):
            if row is None or row["asked"] != offset:
                break
            if after is not None and after["asked"] == offset:
                raise NonDeterminismError(
                    f"{self._processor} was given two different messages at {offset}: "
                    "its source does not give the same again"
                )
            if row["message"] == _END:
                return found, not found
            found.append((row["message"], CANONICAL.decode(row["content"])))
            offset = row["message"] + 1
        return found, False

    def _forget(self, offset: int) -> None:
        self._site.execute(
            f"DELETE FROM {MESSAGES} WHERE stream = ? AND processor = ? AND asked >= ? AND asked < ? "
            f"AND message <> {_END}",
            [self._stream, self._processor, self._forgotten, offset],
        )
        self._forgotten = max(self._forgotten, offset)
