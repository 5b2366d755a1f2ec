"""Pages: further addresses of a server, such as those of the console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from everview.replication.rights.rights import Rights

__all__ = ["Guard", "Handler", "Pages"]

Handler = Callable[[Request, Rights], Awaitable[Response]]


class Guard(Protocol):
    """Makes an endpoint of a handler: only requests with rights get through, and errors become answers."""

    def __call__(self, handler: Handler, *, of_data: bool = True) -> Callable[[Request], Awaitable[Response]]:
        """Guard a handler; `of_data` refuses a token that may neither read nor write."""


class Pages(Protocol):
    """What else a server shows."""

    def routes(self, guard: Guard) -> Sequence[BaseRoute]:
        """Return the addresses. The application's state has `heads` once it runs."""
