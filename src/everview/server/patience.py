"""Patience has an end: a client that connects and does not say what it wants is hung up on.

uvicorn has no such limit, and a connection costs it memory for as long as it is open.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["impatient"]


def impatient(seconds: float) -> type[H11Protocol]:
    """Return a protocol that waits so long for the first request of a connection."""

    class Impatient(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.loop.call_later(seconds, self._hang_up)

        def _hang_up(self) -> None:
            if getattr(self, "scope", None) is None and not self.transport.is_closing():
                self.transport.close()

    return Impatient
