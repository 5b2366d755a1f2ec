"""Context: what a handler may do with a message."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from everview.algebra import checks
from everview.errors import DataError

if TYPE_CHECKING:
    from everview.streams.windows.processor import Processing

__all__ = ["Again", "Context", "Effects", "Passed"]

_NOBODY: Mapping[str, int] = MappingProxyType({})


class Again(BaseException):
    """A message is to be handled again, in the next window. It passes through `except Exception`."""


class Passed(BaseException):
    """The window that a processor is in was closed by its former self: it goes on after it."""


class Effects:
    """What handling a message has done so far. It happens when the handler returns, or not at all."""

    __slots__ = ("closes", "is_over", "is_own", "joins", "leaves", "local", "outputs")

    def __init__(self, local: Any) -> None:
        self.local = local
        self.is_own = False
        """Whether the state is a copy, which the handler may change."""
        self.is_over = False
        self.outputs: list[str] = []
        self.closes = self.leaves = False
        self.joins = _NOBODY


class Context:
    """One message in the hands of a handler, with the local state and the windows of its processor.

    What a handler does must follow from the messages and from the windows that it awaits, and from nothing
    else: no clock, no chance, no state of its own between messages. Then it may be done again at any time.
    """

    __slots__ = ("_effects", "_processing")

    def __init__(self, processing: Processing, effects: Effects) -> None:
        self._processing = processing
        self._effects = effects

    @property
    def processor(self) -> str:
        """The processor's name."""
        return self._processing.name

    @property
    def current(self) -> int:
        """The number of the window that it is in; the last that it may await is the one before."""
        return self._processing.window

    @property
    def state(self) -> Any:
        """The processor's own state, over all its windows so far: an element, or a replica to contribute to.

        Others' contributions are not in it: those are read from a window.
        """
        effects = self._effects
        if not effects.is_own:
            self._require_time()
            effects.local = self._processing.group.values.copy(effects.local)
            effects.is_own = True
        return effects.local

    def update(self, *observation: Any) -> None:
        """Let the state grow: by elements of the lattice, or by what the CRDT's own verb takes."""
        self._require_time()
        self._effects.local = self._processing.group.values.grown(self.state, observation)

    def emit(self, output: Any) -> None:
        """Put out a JSON value. It is stored once, however often the message is handled."""
        self._require_time()
        try:
            text = msgspec.json.encode(output, order="sorted").decode()
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise DataError(f"an output is a JSON value: {error}", value=output, expected="JSON") from None
        self._effects.outputs.append(text)

    def next_window(
        self, *, before: bool = False, joins: Mapping[str, int] = _NOBODY, leaves: bool = False
    ) -> None:
        """Close the window after this message, with all that the message does.

        With `before`, close it without this message: the handler is stopped here, what it did so far is
        undone, and it is called again with the same message in the next window. A message may so skip
        several.

        `joins` names processors that take part from the next window on, each with the number of its first
        message; one that `leaves` takes part in none after this one.
        """
        self._require_time()
        effects = self._effects
        if effects.closes:
            raise DataError("this message closes its window already; one message closes one window")
        if before and leaves:
            raise DataError("who leaves handles no message again: leave after this one, or close before it")
        for name, index in joins.items():
            checks.natural(index, f"the first message of {checks.name(name, 'a processor')}")
        effects.closes, effects.leaves, effects.joins = True, leaves, MappingProxyType(dict(joins))
        if before:
            raise Again

    async def window(self, number: int) -> Any:
        """Return the value of a window that this processor has closed; wait until all others have.

        DataError for one that it has not closed, which it would await for ever, and for one that lies further
        back than the group keeps.
        """
        self._require_time()
        processing = self._processing
        keep, last = processing.group.keep, processing.window - 1
        first = max(last + 1 - keep, 0)
        if not first <= checks.integer(number, "a window's number") <= last:
            why = (
                "there is none before 0"
                if number < 0
                else "it has to close that one first"
                if number > last
                else f"the group keeps {keep}; make it with a greater keep to look further back"
            )
            raise DataError(
                f"{processing.name} is in window {last + 1} and cannot await window {number}: {why}",
                value=number,
                expected=f"{first} to {last}" if last >= 0 else "a window that was closed",
            )
        return await processing.value(number)

    def _require_time(self) -> None:
        if self._effects.is_over:
            raise DataError("this message has been handled; a context serves no longer than its handler runs")
