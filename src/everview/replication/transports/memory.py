"""Another site in this process: its answers are calls."""

from __future__ import annotations

from everview.replication.rights.denial import Withheld
from everview.replication.rights.rights import ALL, Rights
from everview.replication.transports.base import Replica, converse
from everview.replication.transports.report import OnProgress, SyncReport

__all__ = ["MemoryTransport"]


class MemoryTransport:
    """A way to a site that is open in this process, with all rights unless some are given."""

    def __init__(self, other: Replica, peer: str, rights: Rights = ALL) -> None:
        self.peer = peer
        self._other = other
        self._rights = rights
        self._seen = -1

    def sync(self, replica: Replica, *, on_progress: OnProgress | None = None) -> SyncReport:
        """Talk to the other site until both are done."""
        talk = replica.exchange(self.peer, on_progress=on_progress)
        withheld: list[Withheld] = []

        def call(data: bytes) -> bytes:
            if self._rights.are_limited and not withheld:
                withheld.append(self._other.withheld(data, self._rights))
            return self._other.answer(data, self._rights)

        report = converse(talk, call, self.peer)
        for told in withheld:
            report.denied = replica.denied(told)
        self._seen = self._other.head
        return report

    def wait(self, timeout: float) -> bool:
        """Wait for a commit of the other site since the last sync."""
        return self._other.wait(self._seen, timeout)

    def close(self) -> None:
        """Nothing is held: the other site is closed by whoever opened it."""
