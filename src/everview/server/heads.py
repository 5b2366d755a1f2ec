"""Heads: any number of clients wait for a commit, and one thread looks."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress

from everview.errors import EverviewError
from everview.replication.transports.base import Replica

__all__ = ["Heads"]

LOOK_SECONDS = 0.2

log = logging.getLogger("everview.server")


class Heads:
    """Tells waiting coroutines of commits. Everything but the thread runs on the server's loop."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._head, self._incarnation = replica.head, replica.incarnation
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look, name="everview-heads", daemon=True)
        self._thread.start()

    @property
    def head(self) -> int:
        """The last commit that was heard of."""
        return self._head

    @property
    def incarnation(self) -> str:
        """Whose commit it was. To ask the store may take as long as somebody else's transaction."""
        return self._incarnation

    @property
    def stopping(self) -> bool:
        """Whether waiting has become useless."""
        return self._stopping.is_set()

    async def after(self, head: int, timeout: float) -> int:  # noqa: ASYNC109 - waiting is what it is for
        """Return the head once it is another than `head`, or when the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._head == head and not self.stopping:
                    await self._turn.wait()
        return self._head

    def stop(self) -> None:
        """Send everybody home; the thread ends by itself. May be called from any thread."""
        self._stopping.set()
        self._loop.call_soon_threadsafe(self._tell, self._head, self._incarnation)

    def join(self) -> None:
        """Wait for the thread, so that the store can be closed."""
        self._thread.join(LOOK_SECONDS + 5)

    def _look(self) -> None:
        head = self._head
        while not self._stopping.is_set():
            try:
                self._replica.wait(head, LOOK_SECONDS)
                found, who = self._replica.head, self._replica.incarnation
            except EverviewError as error:  # somebody writes for long, say
                log.warning("cannot look for commits, and will look again: %s", error)
                self._stopping.wait(LOOK_SECONDS)
                continue
            except Exception:
                log.exception("cannot look for commits; clients that wait will not hear of any")
                self._stopping.wait(LOOK_SECONDS)
                continue
            if found != head and not self._stopping.is_set():
                head = found
                self._loop.call_soon_threadsafe(self._tell, head, who)

    def _tell(self, head: int, incarnation: str) -> None:
        self._head, self._incarnation = head, incarnation
        self._turn.set()
        self._turn = asyncio.Event()
