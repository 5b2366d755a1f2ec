"""Board: all that is known of a group at one place, kept up as entries come.

It says what the lattice `everview.algebra.windowed` says of the same entries, its naive twin: which windows
are closed, what their values are, where a processor begins. The lattice walks through all windows to answer;
here each entry is looked at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from everview.errors import DataError, NonDeterminismError
from everview.streams.windows.group import Group
from everview.streams.windows.records import Entry, Floor, News

__all__ = ["Board", "Start"]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a processor begins, or goes on after a failure; no `state` is that of one who begins."""

    window: int
    state: bytes | None
    index: int
    mark: str | None = None


class Board:
    """Entries of a group, and what follows from them. It is used in one thread."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.floor = 0
        """Windows below it were collected."""
        self.closed = -1
        """The last window that is closed, with all before it."""
        self._entries: dict[int, dict[str, Entry]] = {}
        self._members: dict[int, dict[str, int]] = {0: dict.fromkeys(sorted(group.members), 0)}
        self._conflicts: dict[int, str] = {}
        self._values: dict[int, Any] = {}
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._listeners: dict[str, Callable[[int], None]] = {}
        self._changed: list[asyncio.Future[None]] = []

    # Learning

    def learn(self, news: News) -> None:
        """Take in records, in any order and as often as they come."""
        for floor in news.floors:
            self._raise(floor)
        for entry in news.entries:
            self._add(entry)
        self._advance()
        changed, self._changed = self._changed, []
        for future in changed:
            _wake(future)

    def _add(self, entry: Entry) -> None:
        if entry.window < self.floor:
            return
        known = self._entries.setdefault(entry.window, {})
        found = known.setdefault(entry.processor, entry)
        if found is not entry and found != entry:
            self._doubt(entry.window, f"window {entry.window} of {entry.processor}")
        elif found is entry and entry.processor in self._listeners:
            self._listeners[entry.processor](entry.window)

    def _raise(self, floor: Floor) -> None:
        if floor.window < self.floor:
            return
        known = self._members.get(floor.window)
        if known is not None and floor.members != known.keys():
            self._doubt(floor.window, f"who takes part in window {floor.window}")
        if floor.window == self.floor:
            return
        self.floor = floor.window
        if known is None:
            self._members[floor.window] = dict.fromkeys(sorted(floor.members), 0)
            self.closed = floor.window - 1
        windows: dict[int, Any]
        for windows in (self._entries, self._members, self._values, self._conflicts):
            for window in [window for window in windows if window < self.floor]:
                del windows[window]
        for window in [window for window in self._waiting if window < self.floor]:
            self._wake(window)
        for listener in self._listeners.values():
            listener(self.floor - 1)  # one that has left has no entry above the floor to tell it

    def _doubt(self, window: int, what: str) -> None:
        """Two values stand for one: whoever reads this window, or a later one, is told."""
        self._conflicts.setdefault(window, what)
        for waiting in list(self._waiting):
            self._wake(waiting)

    def _advance(self) -> None:
        """Close the windows whose entries are all there; each says who takes part in the next."""
        while True:
            window = self.closed + 1
            members = self._members[window]
            entries = self._entries.get(window, {})
            if not members or not members.keys() <= entries.keys() or self._is_doubtful(window):
                return
            staying = {name: 0 for name in members if not entries[name].leaves}
            for name in members:
                for joining, index in entries[name].joins:
                    staying[joining] = max(index, staying.get(joining, 0))
            self._members[window + 1] = staying
            self.closed = window
            self._wake(window)

    # Reading

    @property
    def is_over(self) -> bool:
        """Whether all have left."""
        return not self._members[self.closed + 1]

    def members(self, window: int) -> frozenset[str]:
        """Return those that take part in a window, as far as it is known who does."""
        return frozenset(self._members.get(window, ()))

    def awaited(self, window: int) -> frozenset[str]:
        """Return the processors that a window waits for, as far as they are known; none when it is closed."""
        if window <= self.closed:
            return frozenset()
        first = self.closed + 1
        return frozenset(self._members[first].keys() - self._entries.get(first, {}).keys())

    def is_known(self, window: int) -> bool:
        """Whether there is something to say of a window: its value, or why there is none."""
        return window <= self.closed or window < self.floor or self._is_doubtful(window)

    def value(self, window: int) -> Any:
        """Return the value of a closed window, as an element of the group's lattice.

        DataError when it is not closed, or was collected; NonDeterminismError when a processor closed it, or
        a window before it, with two different states.
        """
        self._require_certainty(window)
        if window < self.floor:
            raise DataError(f"window {window} was collected: the first that is kept is {self.floor}")
        if window > self.closed:
            names = ", ".join(sorted(self.awaited(window)))
            raise DataError(f"window {window} is not closed: it waits for {names or 'nobody'}", value=window)
        if window not in self._values:
            entries = self._entries[window]
            decode = self.group.codec.decode
            parts = (decode(entries[name].state) for name in sorted(self._members[window]))
            self._values[window] = self.group.values.join(parts)
        return self._values[window]

    def start(self, processor: str) -> Start | None:
        """Return where a processor begins, or goes on: in the window after its last entry.

        None when it takes part in no window that is known of, or has left.
        """
        found: Start | None = None
        window = self.floor
        while window in self._members or found is not None:
            entry = self._entries.get(window, {}).get(processor)
            if window in self._members and processor not in self._members[window]:
                found = None
            elif entry is not None:
                self._require_certainty(window)
                found = None if entry.leaves else Start(window + 1, entry.state, entry.index, entry.mark)
            elif found is not None:
                return found
            elif window == self.floor > 0:
                return None  # it has an entry there, for the window is closed, but that has not come yet
            else:
                return Start(window, None, self._members[window][processor])
            window += 1
        return found

    def has_left(self, processor: str) -> bool:
        """Whether the last that is known of a processor is that it left."""
        mine = [window for window, entries in self._entries.items() if processor in entries]
        return bool(mine) and self._entries[max(mine)][processor].leaves and self.start(processor) is None

    def next_floor(self) -> Floor | None:
        """Return from where on windows are to be kept, if enough are to be collected.

        That is as many as are kept, so that between once and twice as many are there as may be awaited.
        """
        window = self.closed + 1 - self.group.keep
        if window < self.floor + self.group.keep or self._conflicts:
            return None
        return Floor(window, frozenset(self._members[window]))

    def index_at_floor(self, processor: str) -> int | None:
        """Return the message from which a processor may ever have to go on."""
        entry = self._entries.get(self.floor, {}).get(processor)
        return None if entry is None else entry.index

    # Waiting

    def until_known(self, window: int) -> asyncio.Future[None]:
        """Return what is done when there is something to say of a window."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(window, []).append(future)
        return future

    def until_changed(self) -> asyncio.Future[None]:
        """Return what is done when something has been learnt."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.append(future)
        return future

    def listen(self, processor: str, listener: Callable[[int], None] | None) -> None:
        """Tell `listener` of each window that a processor is known to have closed, or nobody any more."""
        if listener is None:
            self._listeners.pop(processor, None)
        else:
            self._listeners[processor] = listener

    def _wake(self, window: int) -> None:
        for future in self._waiting.pop(window, ()):
            _wake(future)

    def _is_doubtful(self, window: int) -> bool:
        return bool(self._conflicts) and min(self._conflicts) <= window

    def _require_certainty(self, window: int) -> None:
        if self._is_doubtful(window):
            raise NonDeterminismError(
                f"{self._conflicts[min(self._conflicts)]} was written with two different values; "
                "a handler must do the same whenever it is given the same messages and windows"
            )


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
