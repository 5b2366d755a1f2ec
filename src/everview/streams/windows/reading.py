"""Reading: a group's windows and outputs, for those who take no part in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from everview.errors import NonDeterminismError
from everview.streams.windows.board import Board
from everview.streams.windows.group import Group
from everview.streams.windows.relations import OUTPUTS, require_relations
from everview.streams.windows.site_ledger import Store, known_to

__all__ = ["Emitted", "Windows"]


class Emitted(NamedTuple):
    """What a processor put out: the `number`-th output of a message, counted from 0."""

    processor: str
    message: int
    number: int
    value: Any


class Windows:
    """A group's windows and outputs as a site has them, as of the moment each is asked for."""

    def __init__(self, site: Store, group: Group) -> None:
        require_relations(site.program)
        self._site, self._group = site, group

    @property
    def closed(self) -> int:
        """The last window that is closed, −1 when none is."""
        return self._board().closed

    @property
    def floor(self) -> int:
        """The first window that is kept."""
        return self._board().floor

    def value(self, window: int) -> Any:
        """Return the value of a closed window, as `Context.window` gives it.

        DataError when it is not closed or was collected, NonDeterminismError when it has two values.
        """
        return self._group.values.shown(self._board().value(window))

    def awaited(self, window: int) -> frozenset[str]:
        """Return the processors that a window waits for, as far as they are known."""
        return self._board().awaited(window)

    def outputs(self) -> list[Emitted]:
        """Return all outputs, by processor and message; NonDeterminismError when one has two values."""
        rows = self._site.query(
            f"SELECT processor, message, number, output FROM {OUTPUTS} WHERE stream = ? "
            "ORDER BY processor, message, number",
            [self._group.name],
        )
        found: list[Emitted] = []
        for row in rows:
            one = Emitted(row["processor"], row["message"], row["number"], msgspec.json.decode(row["output"]))
            if found and found[-1][:3] == one[:3]:
                raise NonDeterminismError(
                    f"output {one.number} of message {one.message} of {one.processor} has two values; "
                    "a handler must do the same whenever it is given the same messages and windows"
                )
            found.append(one)
        return found

    def _board(self) -> Board:
        board = Board(self._group)
        board.learn(known_to(self._site, self._group.name))
        return board
