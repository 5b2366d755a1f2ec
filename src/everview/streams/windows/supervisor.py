"""Supervisor: runners at several sites, and what becomes of a runner's processors when it dies.

A runner restarts processors that fail. A runner itself fails with its site: a disk that is full, a file that
is gone. Then a live runner takes its processors over and goes on from what its own site was told of them,
with any of the live peers' entries being as good as another's. When all have died, what is left is on their
disks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

from everview.errors import DataError, NonDeterminismError
from everview.streams.windows.processor import Processor
from everview.streams.windows.runner import Runner

__all__ = ["Supervisor"]

_LOG = logging.getLogger("everview.windowed")

TakeOver = Callable[[str, Runner], Processor]
"""What a processor of that name runs with in another runner: its handler, and a source in reach of it."""


class Supervisor:
    """Keeps every processor running while a runner is alive to run it.

    `take_over(name, runner)` returns what a processor is to be run with in another runner.
    """

    def __init__(self, runners: Iterable[Runner], take_over: TakeOver) -> None:
        self._runners = list(runners)
        self._take_over = take_over
        self._tasks: dict[asyncio.Task[None], Runner] = {}
        if not self._runners:
            raise DataError("a supervisor needs a runner", expected="runners")

    async def run(self) -> None:
        """Run until all processors have left; when no runner is left to take over, raise its error."""
        self._tasks = {asyncio.create_task(runner.run()): runner for runner in self._runners}
        try:
            while self._tasks:
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._ended(task)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        runner = self._tasks.pop(task)
        error = task.exception()
        if error is None:
            return
        if isinstance(error, DataError | NonDeterminismError):
            raise error  # it would come again anywhere
        for name in runner.unfinished:
            _LOG.warning("%s is taken over, for its runner has died: %r", name, error)
            if not self._moved(name):
                raise error

    def _moved(self, name: str) -> bool:
        """Whether a live runner has taken a processor over: the one with the fewest, if it can."""
        for heir in sorted(self._tasks.values(), key=lambda runner: len(runner.unfinished)):
            if heir.is_running:
                processor = self._take_over(name, heir)
                with suppress(DataError):  # it is just coming to its end
                    heir.adopt(name, processor)
                    return True
        return False
