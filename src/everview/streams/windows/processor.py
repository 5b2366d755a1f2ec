"""Processing: one processor at work, from where its entries say that it was.

Python cannot store a continuation, so what is stored with a window is the number of the message to go on with
(NOTES, Windows 4). All that a processor does between two windows follows from its state at the first, its
messages and the windows that it awaits; done again after a failure, it comes out the same, to the byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from everview.errors import DataError
from everview.streams.windows.board import Board, Start
from everview.streams.windows.context import Again, Context, Effects, Passed
from everview.streams.windows.ledger import Ledger
from everview.streams.windows.records import Entry, News, Output
from everview.streams.windows.sources.base import Marked, Source

__all__ = ["Handler", "Processing", "Processor"]

Handler = Callable[[Context, Any], Awaitable[None]]

_FETCH = 256
"""Messages that are asked of a source at once."""
_TURN = 64
"""Messages after which others have their turn, although nothing was waited for."""


@dataclass(frozen=True, slots=True)
class Processor:
    """What a processor does with each message, and where they come from."""

    handler: Handler
    source: Source


class Processing:
    """A processor that is running: its window's number, its local state, and how far it has read."""

    def __init__(self, name: str, processor: Processor, board: Board, ledger: Ledger) -> None:
        self.name = name
        self.group = board.group
        self.window = 0
        """The window that it is in."""
        self.index = 0
        """The number of the message to go on with."""
        self.handled = 0
        """Messages handled since it was started."""
        self._handler, self._source = processor.handler, processor.source
        self._marked = self._source if isinstance(self._source, Marked) else None
        self._board, self._ledger = board, ledger
        self._local: Any = None
        self._outputs: list[Output] = []
        self._passed = False
        self._waits: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Handle messages until the source ends or the handler leaves."""
        self._board.listen(self.name, self._heed)
        try:
            while (start := await self._start()) is not None:
                self._begin(start)
                if start.mark is not None and self._marked is not None:
                    await self._marked.check(start.index, start.mark)
                try:
                    await self._work()
                except Passed:
                    continue
                return
        finally:
            self._board.listen(self.name, None)

    async def _start(self) -> Start | None:
        """Wait until this processor takes part; None if it never will."""
        while True:
            start = self._board.start(self.name)
            if start is not None or self._board.is_over or self._board.has_left(self.name):
                return start
            await self._board.until_changed()

    def _begin(self, start: Start) -> None:
        state = None if start.state is None else self.group.codec.decode(start.state)
        self._local = self.group.values.begin(self.name, state)
        self.window, self.index, self._passed = start.window, start.index, False
        self._outputs.clear()

    async def _work(self) -> None:
        turn = _TURN
        while True:
            self._flush()
            await self._ledger.room()
            messages = await self._source.read(self.index, _FETCH)
            if self._passed:
                raise Passed
            if not messages:
                self._close(self.index, Effects(self._local), leaves=True)
                return
            for offset, message in messages:
                if self._passed:
                    raise Passed
                if offset < self.index:
                    raise DataError(
                        f"the source of {self.name} gave message {offset} when asked from {self.index} on"
                    )
                if await self._handle(offset, message):
                    return
                turn -= 1
                if not turn:
                    turn = _TURN
                    await asyncio.sleep(0)

    async def _handle(self, offset: int, message: Any) -> bool:
        """Handle one message, in this window or in a later one; whether the processor has left by it."""
        while True:
            effects = Effects(self._local)
            try:
                await self._handler(Context(self, effects), message)
            except Again:
                # The window ends as it was before the message, which is the first of the next one.
                self._close(offset, effects)
                await self._ledger.room()
            else:
                break
            finally:
                effects.is_over = True
        self._local = effects.local
        self.index = offset + 1
        self.handled += 1
        for number, text in enumerate(effects.outputs):
            self._outputs.append(Output(self.name, offset, number, text))
        if effects.closes:
            self._close(self.index, effects, leaves=effects.leaves)
            await self._ledger.room()
        return effects.leaves

    def _close(self, index: int, effects: Effects, *, leaves: bool = False) -> None:
        """Write down the window's entry, with what was put out in it, and go on to the next."""
        element = self.group.values.element(self._local)
        state = self.group.codec.encode(element)
        joins = tuple(sorted(effects.joins.items()))
        mark = None if self._marked is None else self._marked.mark(index)
        entry = Entry(self.window, self.name, index, state, joins, leaves, mark)
        self._ledger.write(News((entry,), tuple(self._outputs)))
        self._outputs.clear()
        self.window += 1

    def _flush(self) -> None:
        """Write down what was put out since the window began: it will not be other than it is."""
        if self._outputs:
            self._ledger.write(News(outputs=tuple(self._outputs)))
            self._outputs.clear()

    async def value(self, window: int) -> Any:
        """Return the value of a window that was closed here, when all have closed it."""
        while not self._passed and not self._board.is_known(window):
            self._flush()
            self._waits = self._board.until_known(window)
            await self._waits
        if self._passed:  # what it was about to read may have been collected since
            raise Passed
        return self.group.values.shown(self._board.value(window))

    def _heed(self, window: int) -> None:
        """Learn that an entry of this processor is known: its own, or one of its former self."""
        if window >= self.window:
            self._passed = True
            if self._waits is not None and not self._waits.done():
                self._waits.set_result(None)
