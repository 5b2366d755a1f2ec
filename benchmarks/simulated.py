"""Processors whose work is simulated, over links that are slow: what the windows benchmarks share.

The paper's processors take 1 ms for a message and hear of each other after 100 ms, on 64 cores. On two cores
16 processors cannot be busy for 1 ms each at once, so work is a sleep, and timers are late: asyncio waits in
whole milliseconds. So each sleep is shortened by as much as the one before it came late. Lateness of timers
does not add up then; what the runtime does between two messages does, for the next sleep begins after it.
How much the runtime takes of the processor is measured besides, and not hidden by the sleeping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from everview.streams.windows.records import News
from everview.streams.windows.site_ledger import SiteLedger


class Work:
    """Simulated work of one processor, so many seconds a message."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._late = 0.0

    async def do(self) -> None:
        """Handle one message."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        end = now + self._seconds - self._late
        if end <= now:
            self._late -= self._seconds
            return
        done = loop.create_future()
        timer = loop.call_at(end, _finish, done)
        try:
            await done
        finally:
            timer.cancel()
        self._late = loop.time() - end

    def pause(self) -> None:
        """Something else was waited for: what was late before it is lost."""
        self._late = 0.0


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


class Numbers:
    """An endless, or ending, source of numbers."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return the next numbers."""
        end = offset + limit if self._count is None else min(offset + limit, self._count)
        return [(number, number) for number in range(offset, end)]

    def release(self, offset: int) -> None:
        """Forget nothing."""


class Post:
    """One ledger for runners that each know of the others' entries only after a delay."""

    def __init__(self, ledger: SiteLedger, delay: float) -> None:
        self._ledger, self._delay = ledger, delay
        self._links: list[Link] = []

    def open(self) -> None:
        """Begin to carry news."""
        self._ledger.open(self._carry)

    def _carry(self, news: News) -> None:
        loop = asyncio.get_running_loop()
        for link in self._links:
            own = News(tuple(e for e in news.entries if e.processor == link.owner))
            others = News(tuple(e for e in news.entries if e.processor != link.owner), (), news.floors)
            if own.entries:
                link.tell(own)
            if others.entries or others.floors:
                loop.call_later(self._delay, link.tell, others)

    def link(self, owner: str) -> Link:
        """Return the ledger as one processor's runner sees it."""
        link = Link(owner, self._ledger)
        self._links.append(link)
        return link

    async def run(self) -> None:
        """Commit what is written, until cancelled."""
        await self._ledger.run()

    def close(self) -> None:
        """Carry nothing any more."""
        self._ledger.close()


class Link:
    """A processor's end of the post."""

    def __init__(self, owner: str, ledger: SiteLedger) -> None:
        self.owner = owner
        self._ledger = ledger
        self._tell: Callable[[News], None] | None = None

    def open(self, tell: Callable[[News], None]) -> None:
        """Begin with nothing: these benchmarks begin with empty sites."""
        self._tell = tell

    def tell(self, news: News) -> None:
        """Pass news on, unless the runner has ended."""
        if self._tell is not None:
            self._tell(news)

    def write(self, news: News) -> None:
        """Have records kept."""
        self._ledger.write(news)

    async def room(self) -> None:
        """Wait for the disk, if it is behind."""
        await self._ledger.room()

    async def settle(self) -> None:
        """Wait until all is kept."""
        await self._ledger.settle()

    async def run(self) -> None:
        """The post runs for all."""
        await asyncio.Event().wait()

    def close(self) -> None:
        """Hear nothing any more."""
        self._tell = None
