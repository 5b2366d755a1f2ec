"""Refusals: rows that were taken with a cut and removed again, and telling their sender so."""

from __future__ import annotations

from collections.abc import Callable

from everview.engines.sqlite.rows.dots import SHIFT
from everview.engines.sqlite.rows.refusals import note_refused
from everview.engines.sqlite.store import Store
from everview.replication.cuts.sites import Named, Naming
from everview.replication.wire.messages import Message, Undone

__all__ = ["Refusals"]

_TOLD = 1_000
"""So many rows of a sender are named to it; the others are refused all the same."""


class Refusals:
    """What was refused here and is not told yet; what others have refused."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._untold: dict[str, list[tuple[str, int, str]]] = {}
        """Sender → rows of its last cut: stream, dot, and why."""

    def note(self, sender: str, stream: str, dots: list[int], why: str) -> None:
        """Remember to tell a sender that rows of its cut were refused."""
        told = self._untold.setdefault(sender, [])
        told += [(stream, dot, why) for dot in dots[: _TOLD - len(told)]]

    def tell(self, naming: Naming, sender: str) -> list[Undone]:
        """Return which rows of a sender's last cut were refused, once."""
        found = []
        for stream, dot, why in self._untold.pop(sender, []):
            (site,), (number,) = naming.dots([dot])
            found.append(Undone(stream, site, number, why))
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
                    note_refused(connection, stored, at, one.why, by, store.environment.now_us())
