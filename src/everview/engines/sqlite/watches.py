"""Watches: who is told what a commit changed, in which order, and what becomes of their errors."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Change = tuple[tuple[Any, ...], int]
Callback = Callable[[list[Change]], object]


@dataclass(slots=True, eq=False)
class Watch:
    """A subscription to the changes of a relation or view."""

    name: str
    callback: Callback
    _cancel: Callable[[Watch], None] = field(repr=False)
    _active: bool = field(default=True, repr=False)

    def cancel(self) -> None:
        """Stop it; doing so twice is harmless."""
        self._active = False
        self._cancel(self)

    def tell(self, changes: list[Change]) -> None:
        """Call the callback, unless it was cancelled meanwhile."""
        if self._active and changes:
            self.callback(list(changes))


class Watches:
    """Tells watches of commits, each in the thread that committed.

    A callback may write and query. What it commits is told after what is being told, so that every watch
    hears of a thread's commits in their order. An exception in a callback keeps no other watch from being
    told and does not undo the commit; it is raised to whoever committed, when all have been told.
    """

    def __init__(self, on_unwatched: Callable[[str], None]) -> None:
        self._on_unwatched = on_unwatched
        self._watches: tuple[Watch, ...] = ()
        self._here = threading.local()

    def add(self, name: str, callback: Callback) -> Watch:
        """Begin to watch."""
        watch = Watch(name, callback, self._remove)
        self._watches = (*self._watches, watch)
        return watch

    def current(self) -> tuple[Watch, ...]:
        """Those who are to be told of a commit that is made now."""
        return self._watches

    def _remove(self, watch: Watch) -> None:
        self._watches = tuple(other for other in self._watches if other is not watch)
        if all(other.name != watch.name for other in self._watches):
            self._on_unwatched(watch.name)

    def tell(self, watches: tuple[Watch, ...], changes: Mapping[str, list[Change]]) -> None:
        """Tell the watches of one commit, after those of this thread that came before."""
        if not watches:
            return
        pending: deque[tuple[tuple[Watch, ...], Mapping[str, list[Change]]]] | None
        pending = getattr(self._here, "pending", None)
        if pending is not None:  # a callback has committed: whoever called it goes on with this
            pending.append((watches, changes))
            return
        self._here.pending = pending = deque([(watches, changes)])
        errors: list[Exception] = []
        try:
            while pending:
                told, what = pending.popleft()
                for watch in told:
                    try:
                        watch.tell(what.get(watch.name, []))
                    except Exception as error:  # noqa: BLE001 - raised again when all have been told
                        error.add_note(f"raised by a callback that watches {watch.name}; the commit stands")
                        errors.append(error)
        finally:
            self._here.pending = None
        if len(errors) > 1:
            raise ExceptionGroup("several callbacks failed; the commit stands", errors)
        if errors:
            raise errors[0]
