"""Messages of a site's ordered change log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from everview.streams.windows.records import RowChange
from everview.streams.windows.sources.base import Source

__all__ = ["Changes", "wake"]

_LOOK_SECONDS = 0.5
"""How often one looks for what another process has committed; of this one's commits one is told."""


class _Log(Protocol):
    """What is needed of a change log."""

    def read(self, number: int, limit: int) -> Sequence[tuple[int, tuple[Any, ...], int]]: ...

    def release(self, number: int) -> None: ...


class _Site(Protocol):
    """What is needed of a site."""

    def changes(self, name: str, reader: str, *, snapshot: bool = False) -> _Log: ...

    def watch(self, name: str, callback: Callable[[list[Any]], object]) -> Any: ...


class Changes(Source):
    """The changes of a relation or view of a site, as messages, for a reader of that name; it never ends.

    With `snapshot` they begin with the rows that were there when the reader first came. The log is the
    site's own: another site sees the same rows in another order. A processor that is to be taken over by
    another site needs its messages replicated.
    """

    def __init__(self, site: _Site, name: str, reader: str, *, snapshot: bool = False) -> None:
        self._site, self._name = site, name
        self._log = site.changes(name, reader, snapshot=snapshot)
        self._release = -1

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return the next changes, when there are some."""
        if self._release >= 0:
            release, self._release = self._release, -1
            await asyncio.to_thread(self._log.release, release)
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        watch = self._site.watch(self._name, lambda _changes: wake(loop, news))
        try:
            while True:
                news.clear()
                found = await asyncio.to_thread(self._log.read, offset, limit)
                if found:
                    return [(number, RowChange(row, weight)) for number, row, weight in found]
                try:
                    await asyncio.wait_for(news.wait(), _LOOK_SECONDS)
                except TimeoutError:
                    continue
        finally:
            watch.cancel()

    def release(self, offset: int) -> None:
        """Let the log forget what is not needed any more, at the next reading."""
        self._release = max(self._release, offset)


def wake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """Wake the reader; watches call in the thread that commits."""
    with suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(news.set)
