"""Patience has an end: a client that connects and does not say what it wants is hung up on.

uvicorn waits for ever for the rest of a request's head, and an open connection costs memory.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["impatient"]


def impatient(seconds: float) -> type[H11Protocol]:
    """Return a protocol that waits so long for the head of a request."""

    class Impatient(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._calm()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self.conn.their_state is not h11.IDLE:  # the head is there
                self._calm()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(seconds, self._hang_up)

        def _calm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _hang_up(self) -> None:
            self._deadline = None
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self.transport.close()

    return Impatient
