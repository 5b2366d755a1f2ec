"""A ledger in a site: records are rows of relations, so they survive restarts and replicate like all others.

A commit takes all that is waiting to be written, of all processors, in one transaction: while one is on its
way to the disk, the next gathers. Commits run in a thread of their own, so that a slow disk holds nobody up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from everview.language.program import Program
from everview.streams.windows.group import Group
from everview.streams.windows.ledger import Ledger
from everview.streams.windows.records import Entry, Floor, News, Output
from everview.streams.windows.relations import ENTRIES, FLOORS, OUTPUTS, require_relations

__all__ = ["SiteLedger", "Store", "Subscription", "known_to"]

_ROOM = 1024
"""Records that may wait to be written before their writers wait."""

_GATHER_SECONDS = 0.001
"""How long a commit waits for company. Processors that were released together close their windows together,
and an entry that just misses a commit waits for the disk twice.
"""

_LOOK_SECONDS = 0.5
"""How often one looks for what no watch tells of."""


class Subscription(Protocol):
    """What can be cancelled."""

    def cancel(self) -> None:
        """Stop it."""
        ...


class Store(Protocol):
    """What processors need of a site."""

    @property
    def program(self) -> Program:
        """What the site runs."""
        ...

    def insert(self, relation: str, rows: Iterable[Sequence[Any]]) -> int:
        """Insert rows."""
        ...

    def execute(self, sql: str, params: Sequence[Any] | None = None) -> int:
        """Run a statement."""
        ...

    def query(self, sql: str, params: Sequence[Any] | None = None) -> list[dict[str, Any]]:
        """Run a query."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Do all, or nothing."""
        ...

    def watch(self, name: str, callback: Callable[[list[Any]], object]) -> Subscription:
        """Tell of what commits change."""
        ...


class SiteLedger(Ledger):
    """A group's records in the relations of a site.

    Without `threaded`, commits are made in the loop: better for a site in memory, which waits for no disk.
    """

    def __init__(self, site: Store, group: Group, *, threaded: bool = True) -> None:
        require_relations(site.program)
        self._site = site
        self._stream = group.name
        self._floor = 0
        self._pending: list[News] = []
        self._writing = False
        self._news = asyncio.Event()
        self._kept = asyncio.Event()
        self._tell: Callable[[News], None] | None = None
        self._watches: list[Subscription] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = ThreadPoolExecutor(1, "everview-windows") if threaded else None

    def open(self, tell: Callable[[News], None]) -> None:
        """Tell of what the site holds, then of what commits and syncs bring."""
        self._loop, self._tell = asyncio.get_running_loop(), tell
        # Watched before it is read: what comes in between is told of twice.
        self._watches = [
            self._site.watch(ENTRIES, self._on_entries),
            self._site.watch(FLOORS, self._on_floors),
        ]
        known = known_to(self._site, self._stream)
        self._floor = max((floor.window for floor in known.floors), default=0)
        tell(known)

    def write(self, news: News) -> None:
        """Have records committed, with all others that wait."""
        self._pending.append(news)
        self._news.set()

    async def room(self) -> None:
        """Wait while too many records wait for the disk."""
        while len(self._pending) > _ROOM:
            self._kept.clear()
            await self._kept.wait()

    async def settle(self) -> None:
        """Wait until everything is committed."""
        while self._pending or self._writing:
            self._kept.clear()
            await self._kept.wait()

    async def run(self) -> None:
        """Commit what is written, as it comes, and look for what other processes have committed."""
        if self._thread is None:
            while True:
                await self._news.wait()
                self._commit(self._taken())
                self._done()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._commits(self._thread))
            tasks.create_task(self._looks(self._thread))

    async def _commits(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._news.is_set():
                await self._news.wait()
                await asyncio.sleep(_GATHER_SECONDS)
            await loop.run_in_executor(thread, self._commit, self._taken())
            self._done()

    async def _looks(self, thread: ThreadPoolExecutor) -> None:
        """What another process commits, a server that is synced with, say, no watch tells of.

        So one looks now and then; that a site is gone is noticed too, although nothing is to be written.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._hear(await loop.run_in_executor(thread, known_to, self._site, self._stream, self._floor))

    def _taken(self) -> list[News]:
        self._news.clear()
        batch, self._pending, self._writing = self._pending, [], True
        return batch

    def _done(self) -> None:
        self._writing = False
        self._kept.set()

    def close(self) -> None:
        """Tell nothing any more; a commit that is under way is finished."""
        self._tell = None
        for watch in self._watches:
            watch.cancel()
        if self._thread is not None:
            self._thread.shutdown()

    def _commit(self, batch: Sequence[News]) -> None:
        # What was collected is not written again, by one that began from too little: it would come to life.
        kept = (entry for news in batch for entry in news.entries if entry.window >= self._floor)
        entries = [self._entry_row(entry) for entry in kept]
        outputs = [self._output_row(output) for news in batch for output in news.outputs]
        floor = max((floor for news in batch for floor in news.floors), key=_window, default=None)
        with self._site.transaction():
            if outputs:
                self._site.insert(OUTPUTS, outputs)
            if entries:
                self._site.insert(ENTRIES, entries)
            if floor is not None:
                self._site.insert(FLOORS, [self._floor_row(floor)])
                self._forget(floor)

    def _forget(self, floor: Floor) -> None:
        """Delete what lies between the last floor and this one.

        Rows that were deleted before that are still there, dead, until all sites know; without the lower
        bound they would be looked at each time.
        """
        for relation in (ENTRIES, FLOORS):
            self._site.execute(
                f"DELETE FROM {relation} WHERE stream = ? AND window_number >= ? AND window_number < ?",
                [self._stream, self._floor, floor.window],
            )
        self._floor = floor.window

    def _entry_row(self, entry: Entry) -> tuple[Any, ...]:
        joins = json.dumps(dict(entry.joins), sort_keys=True)
        return (
            self._stream,
            entry.window,
            entry.processor,
            entry.index,
            entry.state,
            joins,
            entry.leaves,
            entry.mark,
        )

    def _output_row(self, output: Output) -> tuple[Any, ...]:
        return (self._stream, output.processor, output.index, output.number, output.value)

    def _floor_row(self, floor: Floor) -> tuple[Any, ...]:
        return (self._stream, floor.window, json.dumps(sorted(floor.members)))

    # Watches call in the thread that commits, which may be one that syncs.

    def _on_entries(self, changes: list[tuple[tuple[Any, ...], int]]) -> None:
        rows = [row for row, weight in changes if weight > 0 and row[0] == self._stream]
        self._pass_on(News(entries=tuple(map(_entry, rows))))

    def _on_floors(self, changes: list[tuple[tuple[Any, ...], int]]) -> None:
        rows = [row for row, weight in changes if weight > 0 and row[0] == self._stream]
        self._pass_on(News(floors=tuple(map(_floor, rows))))

    def _pass_on(self, news: News) -> None:
        if self._loop is not None and (news.entries or news.floors):
            with suppress(RuntimeError):  # the loop was closed meanwhile, and nobody listens any more
                self._loop.call_soon_threadsafe(self._hear, news)

    def _hear(self, news: News) -> None:
        self._floor = max(self._floor, *(floor.window for floor in news.floors), 0)
        if self._tell is not None:
            self._tell(news)


def known_to(site: Store, stream: str, floor: int = 0) -> News:
    """Return the entries and floors of a group that a site holds, from a window on, as of one commit."""
    wanted = "WHERE stream = ? AND window_number >= ?"
    with site.transaction():
        entries = site.query(f"SELECT * FROM {ENTRIES} {wanted}", [stream, floor])
        floors = site.query(f"SELECT * FROM {FLOORS} {wanted}", [stream, floor])
    return News(
        entries=tuple(_entry(tuple(row.values())) for row in entries),
        floors=tuple(_floor(tuple(row.values())) for row in floors),
    )


def _entry(row: tuple[Any, ...]) -> Entry:
    _, window, processor, index, state, joins, leaves, mark = row
    named: dict[str, int] = json.loads(joins)
    return Entry(window, processor, index, state, tuple(sorted(named.items())), leaves, mark)


def _floor(row: tuple[Any, ...]) -> Floor:
    _, window, members = row
    return Floor(window, frozenset(json.loads(members)))


def _window(floor: Floor) -> int:
    return floor.window
