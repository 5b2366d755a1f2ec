"""Processor: one processor's half of a windowed CRDT, which no join touches (Windows §3.3, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Generic, TypeVar

from everview.algebra.windowed.progress import Closing, Progress, Windowed
from everview.errors import DataError, NonDeterminismError

__all__ = ["Processor"]

S = TypeVar("S")


class Processor(Generic[S]):
    """A local state S_local, a window's number w, and what is known of the others' progress.

    A new one begins in the first window; one that is made from the progress that any peer has goes on where
    it had closed its last window. Its messages are its own and in order; `index` is the number of the next.
    """

    def __init__(self, windowed: Windowed[S], name: str, progress: Progress[S] | None = None) -> None:
        self.windowed = windowed
        self.name = name
        self.progress = windowed.bottom() if progress is None else progress
        start = windowed.start(self.progress, name)
        if start is None:
            raise DataError(f"{name} takes part in no window that is known of", value=name)
        self.window, self.local, self.index = start.window, start.state, start.index
        self.has_left = False
        """Whether it takes part no longer."""

    def update(self, state: S) -> None:
        """Let the local state grow by `state`."""
        self._require_here()
        self.local = self.windowed.values.join(self.local, state)

    def consume(self) -> int:
        """Take the next message; its number."""
        self._require_here()
        self.index += 1
        return self.index - 1

    def next_window(
        self, *, joins: Mapping[str, int] = MappingProxyType({}), leaves: bool = False
    ) -> Progress[S]:
        """Close the window after the messages taken so far, and begin the next; what to tell the others."""
        self._require_here()
        closing = Closing(self.local, self.index, MappingProxyType(dict(joins)), leaves)
        told = self.windowed.single(self.name, self.window, closing)
        self.progress = self.windowed.join(self.progress, told)
        self.window += 1
        self.has_left = leaves
        self._go_on()
        return told

    def receive(self, told: Progress[S]) -> bool:
        """Learn what another has told; whether it was new.

        One that failed may have begun again from a peer that knew little. Where it learns of windows that it
        had closed itself, it goes on after them instead of closing them once more.
        """
        self.progress, grew = self.windowed.merge(self.progress, told)
        if grew:
            self._go_on()
        return grew

    def _go_on(self) -> None:
        """Pass over the windows that were closed here before a failure."""
        known = self.window < self.progress.floor or (self.window, self.name) in self.progress.entries
        if known and not self.has_left:
            with suppress(NonDeterminismError):  # that is raised when the window is read
                start = self.windowed.start(self.progress, self.name)
                self.has_left = start is None
                if start is not None:
                    self.window, self.local, self.index = start.window, start.state, start.index

    def is_ready(self, window: int) -> bool:
        """Whether the value of a window that was closed here is known.

        DataError for one that was not: who waits for itself waits for ever.
        """
        if not 0 <= window < self.window:
            raise DataError(
                f"{self.name} is in window {self.window} and cannot await window {window}: "
                + ("there is none before 0" if window < 0 else "it has to close that one first"),
                value=window,
                expected=f"0 to {self.window - 1}" if self.window else "a window that was closed",
            )
        return window < self.progress.floor or self.windowed.is_closed(self.progress, window)

    def value(self, window: int) -> S:
        """The value of a window; DataError when it is not ready, or was collected."""
        self.is_ready(window)
        return self.windowed.value(self.progress, window)

    def _require_here(self) -> None:
        if self.has_left:
            raise DataError(f"{self.name} has left with window {self.window - 1}", value=self.name)
