"""Following a relation or view of a site: its rows are elements, and they go when the row goes.

What has been taken in is kept, row by row with how often; so the difference to what the site has now is what
is still to be taken in, whatever happened in between. Where the site's commits are all made in the thread
that began to follow, each is taken in as it is told. A commit of another thread may be told late, after one
that saw it was compared; so from the first such one on, the whole is compared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Changes = list[tuple[tuple[Any, ...], int]]


class Watched(Protocol):
    """What is needed of a site."""

    @property
    def program(self) -> Any:
        """What declares its columns."""

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """All rows."""

    def watch(self, name: str, callback: Callable[[Changes], object]) -> Any:
        """Tell of changes."""


class Following:
    """A relation or view that a pipeline follows."""

    def __init__(
        self, site: Watched, name: str, take: Callable[[Iterable[Any], list[int] | None], None]
    ) -> None:
        self._site = site
        self._name = name
        self._take = take
        self._columns = [column.name for column in site.program.schema(name)]
        self._thread = threading.get_ident()
        self._alone = True
        self._lock = threading.RLock()
        self._watch = site.watch(name, self._told)
        self.catch_up()

    def catch_up(self) -> None:
        """Take in whatever differs."""
        with self._lock:
            self._take(self._elements(self._site.rows(self._name)), None)

    def _told(self, changes: Changes) -> None:
        with self._lock:
            self._alone = self._alone and threading.get_ident() == self._thread
            if self._alone:
                self._take(self._elements(row for row, _ in changes), [weight for _, weight in changes])
            else:
                self.catch_up()

    def _elements(self, rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return [dict(zip(self._columns, row, strict=True)) for row in rows]

    def cancel(self) -> None:
        """Follow no longer."""
        self._watch.cancel()
