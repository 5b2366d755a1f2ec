"""Refusals: rows that were taken with a cut and removed again, and telling their sender so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from everview.engines.sqlite.rows.dots import SHIFT
from everview.engines.sqlite.rows.refusals import Refused, note_refused, note_row
from everview.engines.sqlite.store import Store
from everview.replication.wire.messages import Message, Undone
from everview.replication.wire.sites import Named, Naming

__all__ = ["Refusals"]

_TOLD = 1_000
"""So many rows of a sender are named to it; the others are refused all the same."""

_LONGEST = 1_000
"""A row that is longer as text is named by its dot alone."""


class Refusals:
    """What was refused here and is not told yet; what others have refused."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._untold: dict[str, list[tuple[str, int, str, str]]] = {}
        """Sender → rows of its last cut: stream, dot, why, and what they say where it has none."""

    def note(self, sender: str, stream: str, rows: Iterable[tuple[int, str]], why: str) -> None:
        """Remember to tell a sender that rows of its cut were refused: dots, and what it cannot know."""
        told = self._untold.setdefault(sender, [])
        told += [(stream, dot, why, row) for dot, row in islice(rows, max(_TOLD - len(told), 0))]

    def tell(self, naming: Naming, sender: str) -> list[Undone]:
        """Return which rows of a sender's last cut were refused, once."""
        found = []
        for stream, dot, why, row in self._untold.pop(sender, []):
            (site,), (number,) = naming.dots([dot])
            found.append(Undone(stream, site, number, why, row if len(row) <= _LONGEST else ""))
        return found

    def hear(self, message: Message, named: Named, may_take: Callable[[str], bool]) -> None:
        """Remember which rows another has refused, as far as they are held and it may write."""
        if not message.refused:
            return
        store = self._store
        with store.writing() as connection:
            known = named.known(connection)
            for one in message.refused:
                stored = store.engine.shares.get(one.stream)
                if stored is not None and one.site in known and may_take(one.stream):
                    at = [known[one.site] << SHIFT | one.number]
                    by = named.name or named.sender
                    now_us, own = store.environment.now_us(), store.name
                    if not note_refused(connection, stored, at, one.why, by, now_us) and one.row:
                        note_row(connection, Refused(one.stream, one.row, one.why, own, by, now_us))
