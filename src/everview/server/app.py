"""The application: three addresses, all of which need a token.

::

    POST /v1/exchange            a message in, a message out
    GET  /v1/changes?after=HEAD  answers when there is another commit, or when its time is over;
                                 with Accept: text/event-stream, an event for every commit
    GET  /v1/health              whether it is there

Whatever is refused is refused with a line of JSON: `{"code": …, "error": …}`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from everview.errors import EverviewError, WireError
from everview.replication.rights import Rights
from everview.replication.transports.base import Replica
from everview.replication.transports.http import MESSAGE_TYPE
from everview.server.access import Access
from everview.server.heads import Heads

__all__ = ["Limits", "application"]

log = logging.getLogger("everview.server")

CODES = {404: "address", 405: "method"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server bears. Times are in seconds."""

    body_bytes: int = 32 << 20
    """Of one message; larger ones are refused before they are read."""
    answering: int = 4
    """Exchanges that are worked on at once; each holds a thread and a connection to the store."""
    waiting: int = 28
    """Exchanges that may wait for their turn; more are told to come again."""
    connections: int = 1000
    header_seconds: float = 20
    body_pause_seconds: float = 30
    """The longest pause within a message; and the whole of it may take ten times that."""
    poll_seconds: float = 55
    """The longest that a poll waits; proxies tend to give up after 60."""


class _RefusalError(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, code: str, error: str, **headers: str) -> None:
        self.status, self.code, self.error = status, code, error
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(error)

    def response(self) -> Response:
        """As a line of JSON."""
        line = " ".join(self.error.split())
        return JSONResponse({"code": self.code, "error": line}, self.status, self.headers)


def application(replica: Replica, access: Access, limits: Limits | None = None) -> Starlette:
    """Return the application that serves a replica. Its state has `heads`, to be stopped before it is."""
    handlers = _Handlers(replica, access, limits or Limits())
    routes = [
        Route("/v1/exchange", handlers.guarded(handlers.exchange), methods=["POST"]),
        Route("/v1/changes", handlers.guarded(handlers.changes), methods=["GET"]),
        Route("/v1/health", handlers.guarded(handlers.health), methods=["GET"]),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        heads = app.state.heads = handlers.heads = Heads(replica)
        try:
            yield
        finally:
            heads.stop()
            heads.join()

    async def no_such(_request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return _RefusalError(status, CODES.get(status, "request"), "there is nothing here").response()

    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: no_such, 405: no_such})


class _Handlers:
    def __init__(self, replica: Replica, access: Access, limits: Limits) -> None:
        self._replica = replica
        self._access = access
        self._limits = limits
        self._threads = anyio.CapacityLimiter(limits.answering)
        self._pending = 0
        self.heads: Heads

    def guarded(
        self, handler: Callable[[Request, Rights], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Let a handler have only requests with rights; whatever it raises becomes an answer."""

        async def guard(request: Request) -> Response:
            try:
                return await handler(request, self._rights(request))
            except _RefusalError as refusal:
                return refusal.response()
            except ClientDisconnect:
                return Response(status_code=499)  # nobody is there to read it
            except Exception:
                log.exception("%s failed", request.url.path)
                return _RefusalError(500, "defect", "the server failed; its log says where").response()

        return guard

    def _rights(self, request: Request) -> Rights:
        rights = self._access.rights(request.headers.get("authorization"))
        if rights is None:
            raise _RefusalError(
                401, "token", "this needs a token that the server knows", www_authenticate="Bearer"
            )
        if rights.reads == rights.writes == frozenset():
            raise _RefusalError(403, "rights", f"the token of {rights.site} may neither read nor write")
        return rights

    async def exchange(self, request: Request, rights: Rights) -> Response:
        """Answer a message, in a thread of its own."""
        if self._pending >= self._limits.answering + self._limits.waiting:
            raise _RefusalError(503, "busy", "too many exchanges at once", retry_after="1")
        self._pending += 1
        try:
            body = await self._body(request)
            try:
                answer = await anyio.to_thread.run_sync(
                    self._replica.respond, body, rights, limiter=self._threads
                )
            except WireError as error:
                raise _RefusalError(400, "message", str(error)) from None
            except EverviewError as error:
                # The store is full, locked or gone: not the client's fault, and it may pass.
                log.error("cannot answer: %s", error)  # noqa: TRY400
                raise _RefusalError(503, "store", str(error), retry_after="1") from None
        finally:
            self._pending -= 1
        return Response(answer, media_type=MESSAGE_TYPE)

    async def _body(self, request: Request) -> bytes:
        """Read a body of bounded size, from a client that may be slow but does not stop."""
        limit = self._limits.body_bytes
        too_much = _RefusalError(413, "size", f"a message has at most {limit:,} bytes", connection="close")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise too_much
        body = bytearray()
        blocks = request.stream()
        pause = self._limits.body_pause_seconds
        try:
            async with asyncio.timeout(10 * pause):
                while True:
                    async with asyncio.timeout(pause):
                        block = await anext(blocks, None)
                    if block is None:
                        return bytes(body)
                    body += block
                    if len(body) > limit:
                        raise too_much
        except TimeoutError:
            late = "the message did not arrive in time"
            raise _RefusalError(408, "slow", late, connection="close") from None

    async def changes(self, request: Request, _rights: Rights) -> Response:
        """Answer when there is another commit than the one that the client has heard of."""
        after = _integer(request.query_params.get("after", "-1"), "after")
        seconds = _seconds(request.query_params.get("timeout"), self._limits.poll_seconds)
        if "text/event-stream" in request.headers.get("accept", ""):
            events = self._events(after, seconds)
            return StreamingResponse(
                events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
            )
        head = await self.heads.after(after, seconds)
        return JSONResponse({"head": head, "incarnation": self.heads.incarnation})

    async def _events(self, after: int, pause: float) -> AsyncIterator[str]:
        """An event for every commit that is heard of; a comment after each pause, to show that it lives."""
        head = after
        while not self.heads.stopping:
            found = await self.heads.after(head, min(pause, 15))
            if found == head:
                yield ": still here\n\n"
                continue
            head = found
            data = json.dumps({"head": head, "incarnation": self.heads.incarnation})
            yield f"id: {head}\nevent: commit\ndata: {data}\n\n"

    async def health(self, _request: Request, _rights: Rights) -> Response:
        """Say that the server is there."""
        heads = self.heads
        return JSONResponse({"status": "ok", "incarnation": heads.incarnation, "head": heads.head})


def _integer(text: str, name: str) -> int:
    try:
        return int(text[:20])
    except ValueError:
        raise _RefusalError(400, "parameter", f"{name} is a number") from None


def _seconds(text: str | None, most: float) -> float:
    if text is None:
        return most
    try:
        given = float(text)
    except ValueError:
        raise _RefusalError(400, "parameter", "timeout is a number of seconds") from None
    if not given >= 0:
        raise _RefusalError(400, "parameter", "timeout is a number of seconds")
    return min(given, most)
