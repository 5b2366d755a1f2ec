"""A site for asyncio and trio: the same names as `Site`, awaited.

One thread of its own does all that is written, in the order in which it was asked for. A transaction belongs
to the task that opened it; what other tasks write waits for its end, and what they read is the last commit.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio import CancelScope, get_cancelled_exc_class, get_current_task, to_thread
from anyio.lowlevel import EventLoopToken, current_token

from everview.engines.sqlite.watches import Change, Watch
from everview.errors import StoreError, SyncError
from everview.language.program import Program
from everview.planner.why.answer import Provenance
from everview.replication.transports.reach import Peer
from everview.replication.transports.report import OnProgress, Progress, SyncReport
from everview.site import Backup, Parameters, Rows, Site
from everview.tables.table import Table
from everview.worker import Worker, wake

__all__ = ["AsyncSite", "Changes"]

T = TypeVar("T")

_MERGED = 64
"""Of more commits that nobody has taken yet a watch is told at once, as of one."""

_inside: ContextVar[object | None] = ContextVar("everview_transaction", default=None)


class AsyncSite:
    """A `Site` whose calls are awaited. Open one with `async with AsyncSite.open(…) as site`."""

    def __init__(self, opening: Callable[[], Site]) -> None:
        self._opening = opening
        self._site: Site | None = None
        self._worker = Worker("everview-site")
        self._turn = anyio.Lock()
        self._owner: tuple[int, object] | None = None
        """The task that has a transaction open, and a token that tasks begun in it have inherited."""
        self._watches: set[Changes] = set()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        program: Program | None = None,
        *,
        name: str = "",
        hosts: Any = None,
    ) -> Self:
        """Name a store to open or create, as `Site.open` does; `async with` opens it."""
        return cls(partial(Site.open, path, program, name=name, hosts=hosts))

    async def __aenter__(self) -> Self:
        self._site = await self._worker.run(self._opening)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store, when what is being written is written, and end what watches it."""
        if self._is_owner:
            raise StoreError("a transaction is open in this task; close the site after it")
        with CancelScope(shield=True):
            async with self._turn:
                site, self._site = self._site, None
                if site is not None:
                    await self._worker.run(site.close)
                await self._worker.end()
        for changes in list(self._watches):
            changes.end()

    @property
    def program(self) -> Program:
        """What this site runs."""
        return self._open_site.program

    @property
    def name(self) -> str:
        """The site's label."""
        return self._open_site.name

    @property
    def _open_site(self) -> Site:
        if self._site is None:
            raise StoreError("the site is not open: use it inside `async with AsyncSite.open(…) as site`")
        return self._site

    # Writing

    async def insert(self, relation: str, rows: Rows) -> int:
        """Insert rows; return how many appeared."""
        return await self._write(partial(self._open_site.insert, relation, rows))

    async def delete(self, relation: str, rows: Rows) -> int:
        """Delete rows; return how many disappeared."""
        return await self._write(partial(self._open_site.delete, relation, rows))

    async def execute(self, sql: str, params: Parameters = None) -> int:
        """Run an INSERT, UPDATE or DELETE; return the rows affected."""
        return await self._write(partial(self._open_site.execute, sql, params))

    async def close_windows(self, until: dt.datetime, relations: Iterable[str] | None = None) -> int:
        """Say that this source has written all events before a moment; return of how many relations."""
        return await self._write(partial(self._open_site.close_windows, until, relations))

    async def take_charge(self, *, alone: bool = False) -> bool:
        """Write as this site's source from here; return whether it may."""
        return await self._write(partial(self._open_site.take_charge, alone=alone))

    async def give_up(self, store: str) -> str:
        """Say that another store is lost for good, by its name or incarnation; return its incarnation."""
        return await self._write(partial(self._open_site.give_up, store))

    async def drop(self, relation: str, values: Mapping[str, Iterable[Any]]) -> None:
        """Host some values of a partitioned relation no more."""
        await self._write(partial(self._open_site.drop, relation, values))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """All writes of this task inside take effect together, or none: an exception undoes them.

        Cancellation is such an exception. Other tasks that write wait until it ends.
        """
        if self._is_owner:
            raise StoreError("this task has a transaction open already; they do not nest")
        self._check_inherited()
        async with self._turn:
            opened = self._open_site.transaction()
            with CancelScope(shield=True):  # what has begun must be ended
                await self._worker.run(opened.__enter__)
            owner = get_current_task().id, object()
            self._owner, token = owner, _inside.set(owner)
            try:
                yield self
            except BaseException as error:
                with CancelScope(shield=True):
                    if not await self._worker.run(partial(opened.__exit__, type(error), error, None)):
                        raise
            else:
                with CancelScope(shield=True):
                    await self._worker.run(partial(opened.__exit__, None, None, None))
            finally:
                self._owner = None
                with suppress(ValueError):  # a generator that another context has closed
                    _inside.reset(token)

    @property
    def _is_owner(self) -> bool:
        return self._owner is not None and self._owner[0] == get_current_task().id

    def _check_inherited(self) -> None:
        """Refuse to wait for a transaction that waits for this task, as one begun inside it may do."""
        if self._owner is not None and _inside.get() is self._owner:
            raise StoreError(
                "this task was begun inside a transaction of another one, which may wait for it; "
                "write in the task that has opened the transaction"
            )

    async def _write(self, work: Callable[[], T]) -> T:
        if self._is_owner:
            return await self._worker.run(work)
        self._check_inherited()
        async with self._turn:
            return await self._worker.run(work)

    # Reading

    async def query(self, sql: str, params: Parameters = None) -> list[dict[str, Any]]:
        """Run a SELECT over relations and views; return its rows as dicts, in its order."""
        return await self._read(partial(self._open_site.query, sql, params))

    async def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return all rows of a relation or view, sorted."""
        return await self._read(partial(self._open_site.rows, name))

    async def table(self, what: str, params: Parameters = None) -> Table:
        """Return the rows of a relation, a view or a SELECT, with their columns."""
        return await self._read(partial(self._open_site.table, what, params))

    async def why(self, name: str, row: Mapping[str, Any] | Sequence[Any]) -> Provenance:
        """Say which rows of relations a row is there for."""
        return await self._read(partial(self._open_site.why, name, row))

    async def explain(self, name: str) -> str:
        """Say how a view is kept, and why so."""
        return await self._read(partial(self._open_site.explain, name))

    async def conflicts(self, relation: str) -> list[dict[str, Any]]:
        """Return the rows that another row of their key has beaten."""
        return await self._read(partial(self._open_site.conflicts, relation))

    async def status(self) -> dict[str, Any]:
        """Return what there is to know about the store."""
        return await self._read(self._open_site.status)

    async def _read(self, work: Callable[[], T]) -> T:
        """In a transaction's own task its writes are seen; else the last commit, in another thread."""
        if self._is_owner:
            return await self._worker.run(work)
        return await to_thread.run_sync(work, abandon_on_cancel=True)

    def watch(self, name: str) -> Changes:
        """Return the changes of a relation or view, commit by commit: `async for changes in site.watch("v")`.

        It begins with the first `async for` or `async with`. Each item is a list of (row, weight). Commits
        that nobody takes are added up when there are many: nothing is lost, and memory does not grow.
        """
        return Changes(self, self._open_site, name)

    # Other sites

    async def sync(
        self,
        peer: Peer | AsyncSite,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        progress: OnProgress | None = None,
    ) -> SyncReport:
        """Push and pull; afterwards both agree on what both host.

        A sync that is cancelled ends at its next message; what was applied stays, and the next one goes on.
        `progress` is called in another thread.
        """
        self._refuse_inside()
        reached = peer._open_site if isinstance(peer, AsyncSite) else peer  # noqa: SLF001 - one of us
        sync = partial(self._open_site.sync, reached, token=token, ca=ca)
        return await self._stoppable(sync, progress)

    async def repair(
        self,
        relation: str,
        peer: Peer | AsyncSite,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
    ) -> SyncReport:
        """Read a relation or view again, whole, from a peer that is right."""
        self._refuse_inside()
        reached = peer._open_site if isinstance(peer, AsyncSite) else peer  # noqa: SLF001 - one of us
        return await to_thread.run_sync(
            partial(self._open_site.repair, relation, reached, token=token, ca=ca)
        )

    async def backup(self, path: str | os.PathLike[str]) -> Backup:
        """Copy the present state to a file that does not exist yet, and check the copy."""
        self._refuse_inside()
        return await to_thread.run_sync(partial(self._open_site.backup, path))

    def _refuse_inside(self) -> None:
        if self._is_owner:
            raise StoreError("a transaction is open in this task; do it after that")
        self._check_inherited()

    @staticmethod
    async def _stoppable(sync: Callable[..., SyncReport], progress: OnProgress | None) -> SyncReport:
        stopped = threading.Event()

        def heed(now: Progress) -> None:
            if stopped.is_set():
                raise SyncError("the sync was cancelled", peer=now.peer, retry=True)
            if progress is not None:
                progress(now)

        try:
            return await to_thread.run_sync(partial(sync, progress=heed), abandon_on_cancel=True)
        except get_cancelled_exc_class():
            stopped.set()
            raise

    # For `Changes`.

    async def _begin(self, changes: Changes, watch: Callable[[], Watch]) -> Watch:
        self._refuse_inside()
        async with self._turn:
            found = await self._worker.run(watch)
        self._watches.add(changes)
        return found

    def _forget(self, changes: Changes) -> None:
        self._watches.discard(changes)


class Changes:
    """What commits do to a relation or view, one list of (row, weight) after the other."""

    def __init__(self, owner: AsyncSite, site: Site, name: str) -> None:
        self._owner, self._site, self._name = owner, site, name
        self._waiting: deque[list[Change]] = deque()
        self._lock = threading.Lock()
        self._news = anyio.Event()
        self._token: EventLoopToken | None = None
        self._watch: Watch | None = None
        self._over = False

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Change]:
        await self._begin()
        while True:
            with self._lock:
                if self._waiting:
                    return self._waiting.popleft()
                if self._over:
                    raise StopAsyncIteration
                news = self._news = anyio.Event()
            await news.wait()

    async def _begin(self) -> None:
        if self._watch is None and not self._over:
            self._token = current_token()
            watch = partial(self._site.watch, self._name, self._tell)
            self._watch = await self._owner._begin(self, watch)  # noqa: SLF001 - of this file

    def _tell(self, changes: list[Change]) -> None:
        """Take what a commit did, in the thread that has committed."""
        with self._lock:
            self._waiting.append(changes)
            if len(self._waiting) > _MERGED:
                merged: dict[tuple[Any, ...], int] = {}
                for row, weight in (change for one in self._waiting for change in one):
                    merged[row] = merged.get(row, 0) + weight
                self._waiting.clear()
                if net := [(row, weight) for row, weight in merged.items() if weight]:
                    self._waiting.append(net)
            news = self._news
        wake(self._token, news)

    def cancel(self) -> None:
        """Stop watching; doing so twice is harmless."""
        if self._watch is not None:
            self._watch.cancel()
        self.end()

    def end(self) -> None:
        """Let whoever waits go on: what came before is still given, and then no more."""
        self._over = True
        self._owner._forget(self)  # noqa: SLF001 - of this file
        self._news.set()
