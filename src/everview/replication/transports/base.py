"""The narrow waist between replication and the ways to a peer.

A transport moves messages and knows nothing of what they say; the core says messages and knows nothing of
sockets and files. Messages may be lost, repeated and reordered on the way: the core does not mind.
`everview.testing.transports` checks everything that is promised here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from everview.errors import SyncError
from everview.replication.rights.denial import Withheld
from everview.replication.rights.rights import Rights
from everview.replication.transports.report import Denied, OnProgress, SyncReport

__all__ = ["Replica", "Talk", "Transport", "converse"]


class Talk(Protocol):
    """The dialling side of one exchange: messages in, messages out, no I/O."""

    report: SyncReport
    """What has been moved so far."""

    def open(self) -> bytes:
        """Return the first message."""

    def receive(self, data: bytes) -> bytes | None:
        """Take the answer; return what to send next, or None when both directions are done."""


class Replica(Protocol):
    """A site's store as transports see it. Everything here may be called from any thread."""

    @property
    def incarnation(self) -> str:
        """Who this is, as long as its store has not been copied or put back."""

    @property
    def head(self) -> int:
        """The number of the last commit."""

    def exchange(self, peer: str, *, on_progress: OnProgress | None = None) -> Talk:
        """Begin an exchange as the dialling side."""

    def answer(self, data: bytes, rights: Rights) -> bytes:
        """Answer a message as the listening side, within the rights of whoever sent it; refusals, too."""

    def respond(self, data: bytes, rights: Rights) -> bytes:
        """Answer likewise, but raise WireError for bytes that are no message, and the store's own errors."""

    def withheld(self, data: bytes, rights: Rights) -> Withheld:
        """Return which of the names that a message says its sender may not read here, and not write."""

    def denied(self, told: Withheld) -> tuple[Denied, ...]:
        """Return what this site wanted of a peer, by what that says to withhold."""

    def extent(self, data: bytes) -> tuple[int, int]:
        """Return how many rows a message brings, and up to which commit of its sender."""

    def wait(self, head: int, timeout: float) -> bool:
        """Wait until there is a commit after `head`; return whether there is."""


class Transport(Protocol):
    """A way to one peer, or to all who share a folder.

    - `sync` pushes and pulls. It returns when both sides agree on what both host, as far as one visit can
      bring that about: in a folder, what others have not yet left there comes with a later visit.
    - It may be interrupted anywhere, by an exception or by the death of the process, and begun again: what
      was applied stays, what was staged is used, and nothing is applied in part.
    - Whatever fails on the way is a SyncError that names the peer, says what failed and whether to try
      again. Other errors are the site's own and pass through.
    - A transport may be used for any number of syncs, one at a time; another thread may `wait` meanwhile.
    """

    @property
    def peer(self) -> str:
        """What errors and reports call the other side."""

    def sync(self, replica: Replica, *, on_progress: OnProgress | None = None) -> SyncReport:
        """Bring the replica and the peer to agreement."""

    def wait(self, timeout: float) -> bool:
        """Wait until the peer may have news, at most so many seconds; False when it surely has none."""

    def close(self) -> None:
        """Let go of connections; doing so twice is harmless."""


TRY_LATER = "; try again later"
"""How an error ends that may be gone then: advice for people, not for who tries again anyway."""

LONGEST_TALK = 1_000_000
"""Messages after which an exchange is given up: a peer that is never done would keep us for ever."""


def converse(talk: Talk, call: Callable[[bytes], bytes], peer: str) -> SyncReport:
    """Carry an exchange to its end over something that answers one message with another."""
    message: bytes | None = talk.open()
    for _ in range(LONGEST_TALK):
        if message is None:
            return talk.report
        try:
            message = talk.receive(call(message))
        except SyncError as error:
            error.peer = error.peer or peer
            raise
    raise SyncError(f"{peer} has answered {LONGEST_TALK:,} times and is not done", peer=peer)
