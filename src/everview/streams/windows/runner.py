"""Runner: processors of a group at one site, and the supervisor that restarts those that fail.

A processor that fails is started again from its last entry that is known here; the others go on meanwhile.
When all have died, with the process, a new runner goes on from what the site's file holds. A processor may
also be taken over by a runner at another site: it goes on from what that site was told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from everview.algebra import checks
from everview.errors import DataError, NonDeterminismError
from everview.streams.windows.board import Board
from everview.streams.windows.group import Group
from everview.streams.windows.ledger import Ledger
from everview.streams.windows.processor import Processing, Processor
from everview.streams.windows.records import News
from everview.streams.windows.site_ledger import SiteLedger, Store

__all__ = ["Runner", "State", "run"]

_LOG = logging.getLogger("everview.windowed")


@dataclass(frozen=True, slots=True)
class State:
    """Where a processor is: its window, its next message, whether it is running, how often it was restarted.

    `handled` counts messages, those that were handled again too.
    """

    window: int
    index: int
    is_running: bool
    restarts: int
    handled: int


class _Supervised:
    """A processor, and its life so far."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor
        self.processing: Processing | None = None
        self.task: asyncio.Task[None] | None = None
        self.restarts = self.handled = 0
        self.is_killed = self.has_left = False


class Runner:
    """Runs processors of a group over a site's relations, in this process, until all have left.

    One that fails is started again after `restart_seconds`; after `attempts` failures in the same window it
    is given up, and with it the run, which can be taken up again at any time. Errors that would come again,
    those of values that do not fit and of handlers that are not deterministic, are not tried again.
    """

    def __init__(
        self,
        site: Store,
        group: Group,
        processors: Mapping[str, Processor],
        *,
        restart_seconds: float = 0.1,
        attempts: int = 3,
        ledger: Ledger | None = None,
    ) -> None:
        self.group = group
        self._site, self._given = site, ledger
        self._ledger: Ledger | None = None
        self._restart_seconds = restart_seconds
        self._attempts = checks.positive(attempts, "how often a processor may fail")
        self._supervised: dict[str, _Supervised] = {}
        self._board: Board | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._asked = -1
        for name, processor in processors.items():
            self._supervised[checks.name(name, "a processor's name")] = _Supervised(processor)

    async def run(self) -> None:
        """Run until every processor here has left; its source has ended, or its handler said so."""
        if self._board is not None:
            raise DataError("this runner is running already; make another for another run")
        ledger = self._ledger = self._given or SiteLedger(self._site, self.group)
        self._board = Board(self.group)
        ledger.open(self._learn)
        try:
            await self._run(ledger)
        except* Exception as failures:  # noqa: BLE001 - it is raised again
            raise _first(failures) from None
        finally:
            ledger.close()
            self._board = self._tasks = None

    async def _run(self, ledger: Ledger) -> None:
        async with asyncio.TaskGroup() as around:
            pump = around.create_task(ledger.run())
            try:
                async with asyncio.TaskGroup() as self._tasks:
                    for name in self._supervised:
                        self._tasks.create_task(self._supervise(name))
            except BaseExceptionGroup:
                await ledger.settle()  # what the others have done until then is not done again
                raise
            # One that is cancelled ends at once: what was not kept is done again.
            await ledger.settle()
            pump.cancel()

    @property
    def is_running(self) -> bool:
        """Whether it can take processors over."""
        return self._tasks is not None

    @property
    def unfinished(self) -> list[str]:
        """The processors that it was given and that have not left."""
        return [name for name, supervised in self._supervised.items() if not supervised.has_left]

    def adopt(self, name: str, processor: Processor) -> None:
        """Take a processor over from a runner elsewhere that has died: it goes on from what is known here."""
        if self._tasks is None:
            raise DataError(f"cannot take {name} over: this runner is not running", value=name)
        if name in self._supervised:
            raise DataError(f"{name} runs here already", value=name)
        self._supervised[name] = _Supervised(processor)
        work = self._supervise(name)
        try:
            self._tasks.create_task(work)
        except RuntimeError:
            work.close()
            del self._supervised[name]
            raise DataError(f"cannot take {name} over: this runner is at its end", value=name) from None

    def restart(self, name: str) -> None:
        """Stop a processor where it is, as if it had failed; it is started again like one that has."""
        supervised = self._known(name)
        if supervised.task is not None and not supervised.task.done():
            supervised.is_killed = True
            supervised.task.cancel()

    def state(self, name: str) -> State:
        """Say where a processor is."""
        supervised = self._known(name)
        processing = supervised.processing
        handled = supervised.handled + (processing.handled if processing is not None else 0)
        return State(
            -1 if processing is None else processing.window,
            -1 if processing is None else processing.index,
            supervised.task is not None and not supervised.task.done(),
            supervised.restarts,
            handled,
        )

    def _known(self, name: str) -> _Supervised:
        if name not in self._supervised:
            raise DataError(f"{name} does not run here", value=name, expected=", ".join(self._supervised))
        return self._supervised[name]

    # Supervision

    async def _supervise(self, name: str) -> None:
        supervised = self._supervised[name]
        failed_in, failures = -1, 0
        while True:
            error = await self._attempt(name, supervised)
            if error is None:
                supervised.has_left = True
                return
            assert supervised.processing is not None
            window = supervised.processing.window
            failures = failures + 1 if window == failed_in else 1
            failed_in = window
            if not supervised.is_killed and failures >= self._attempts:
                error.add_note(
                    f"{name} failed {failures} times in window {window}, at message "
                    f"{supervised.processing.index}, and was given up"
                )
                raise error
            supervised.is_killed = False
            supervised.restarts += 1
            _LOG.warning("%s failed in window %d and is started again: %r", name, window, error)
            await asyncio.sleep(self._restart_seconds)

    async def _attempt(self, name: str, supervised: _Supervised) -> Exception | None:
        """Run a processor until it has left, or has failed; raise what would only come again."""
        assert self._board is not None
        assert self._ledger is not None
        if supervised.processing is not None:
            supervised.handled += supervised.processing.handled
        processing = Processing(name, supervised.processor, self._board, self._ledger)
        supervised.processing = processing
        supervised.task = asyncio.create_task(processing.run(), name=f"everview {self.group.name} {name}")
        try:
            await supervised.task
        except (DataError, NonDeterminismError) as error:
            error.add_note(f"{name} in window {processing.window}, at message {processing.index}")
            raise
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not supervised.is_killed or (current is not None and current.cancelling()):
                await _ended(supervised.task)
                raise
            return _KilledError(f"{name} was stopped")
        except Exception as error:  # noqa: BLE001 - whatever it is, the processor is started again
            return error
        return None

    # What becomes known

    def _learn(self, news: News) -> None:
        assert self._board is not None
        assert self._ledger is not None
        board = self._board
        board.learn(news)
        floor = board.next_floor()
        if floor is not None and floor.window > self._asked:
            self._asked = floor.window
            self._ledger.write(News(floors=(floor,)))
        if news.floors:
            for name, supervised in self._supervised.items():
                index = board.index_at_floor(name)
                if index is not None:
                    supervised.processor.source.release(index)


class _KilledError(Exception):
    """A processor was stopped on purpose."""


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.wait([task])


def _first(failures: BaseExceptionGroup[Exception]) -> Exception:
    """Return what went wrong first: the others were stopped because of it."""
    found: BaseException = failures
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, Exception)
    return found


def run(site: Store, group: Group, processors: Mapping[str, Processor]) -> None:
    """Run processors until all have left: `asyncio.run` of a `Runner`."""
    asyncio.run(Runner(site, group, processors).run())
