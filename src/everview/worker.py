"""A thread that does one thing after the other for the tasks of an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import anyio
from anyio import CancelScope, from_thread, get_cancelled_exc_class, to_thread
from anyio.lowlevel import EventLoopToken, current_token

__all__ = ["Worker", "wake"]

T = TypeVar("T")


class Worker:
    """Runs what it is given in a thread of its own, in order.

    What has begun when its task is cancelled is finished first; what has not is never begun. So after a
    cancellation nothing is half done, and nothing happens later.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Run it there; return what it returns, or raise what it raises."""
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()
        job = _Job(work, current_token())
        self._jobs.put(job)
        try:
            await job.done.wait()
        except get_cancelled_exc_class():
            if not job.withdraw():
                with CancelScope(shield=True):
                    await job.done.wait()
            raise
        return job.outcome()

    async def end(self) -> None:
        """Finish what was given, and end the thread."""
        self._jobs.put(None)
        if self._thread.ident is not None:
            await to_thread.run_sync(self._thread.join)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()


class _Job(Generic[T]):
    def __init__(self, work: Callable[[], T], token: EventLoopToken) -> None:
        self._work, self._token = work, token
        self._lock = threading.Lock()
        self._is_claimed = False
        self._result: T
        self._error: BaseException | None = None
        self.done = anyio.Event()

    def _claim(self) -> bool:
        with self._lock:
            claimed, self._is_claimed = not self._is_claimed, True
            return claimed

    def withdraw(self) -> bool:
        """Have it never run; False if it has begun."""
        return self._claim()

    def run(self) -> None:
        """Do it, unless it was withdrawn."""
        if not self._claim():
            return
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            self._error = error
        wake(self._token, self.done)

    def outcome(self) -> T:
        """Return what it returned, or raise what it raised."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # no circle of a frame and its error
        return self._result


def wake(token: EventLoopToken | None, event: anyio.Event) -> None:
    """Set an event of an event loop, from another thread; nothing if the loop has ended."""
    if token is None:
        return
    try:
        from_thread.run_sync(event.set, token=token)
    except RuntimeError:  # the loop has ended, and nobody waits
        return
