"""The application: a few addresses, all but one of which need a token.

::

    POST /v1/exchange            a message in, a message out
    GET  /v1/changes?after=HEAD  answers when there is another commit, or when its time is over;
                                 with Accept: text/event-stream, an event for every commit
    GET  /v1/health              how it is; 503 when it is not well
    GET  /v1/metrics             for Prometheus; needs a token that may watch
    GET  /v1/live                nothing but that it answers; needs no token, for it tells nothing

Where nobody is asked for a token, all but the last answer only requests that name this machine, and come from
no other site's page (see `origins`).

Whatever is refused is refused with a line of JSON: `{"code": …, "error": …}`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
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
from everview.replication.rights.rights import Rights
from everview.replication.transports.base import Replica
from everview.replication.transports.denials import as_header
from everview.replication.transports.http import DENIED_HEADER, MESSAGE_TYPE
from everview.replication.wire.codec import LARGEST_MESSAGE
from everview.server.access import Access, Open
from everview.server.heads import Heads
from everview.server.metrics import CONTENT_TYPE, render
from everview.server.origins import check_here
from everview.server.pages import Handler, Pages
from everview.server.refusals import RefusalError
from everview.server.service import Service

__all__ = ["Limits", "application"]

log = logging.getLogger("everview.server")

CODES = {404: "address", 405: "method"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server bears. Times are in seconds."""

    body_bytes: int = LARGEST_MESSAGE
    """Of one message; larger ones are refused before they are read."""
    held_bytes: int = 128 << 20
    """Of all messages that have arrived, in whole or in part, and are not answered yet."""
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


def application(
    replica: Replica,
    access: Access,
    limits: Limits | None = None,
    service: Service | None = None,
    pages: Pages | None = None,
) -> Starlette:
    """Return the application that serves a replica. Its state has `heads`, to be stopped before it is."""
    handlers = _Handlers(replica, access, limits or Limits(), service or Service())
    routes = [
        Route("/v1/exchange", handlers.guarded(handlers.exchange), methods=["POST"]),
        Route("/v1/changes", handlers.guarded(handlers.changes), methods=["GET"]),
        Route("/v1/health", handlers.guarded(handlers.health, of_data=False), methods=["GET"]),
        Route("/v1/metrics", handlers.guarded(handlers.metrics, of_data=False), methods=["GET"]),
        Route("/v1/live", handlers.live, methods=["GET"]),
        *(pages.routes(handlers.guarded) if pages is not None else ()),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        heads = app.state.heads = handlers.heads = Heads(replica)
        try:
            yield
        finally:
            heads.stop()
            heads.join()

    async def no_such(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        refusal = RefusalError(status, CODES.get(status, "request"), "there is nothing here")
        handlers.refused(request, refusal, "", 0.0, path="other")  # anybody can make up addresses
        return refusal.response()

    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: no_such, 405: no_such})


class _Handlers:
    def __init__(self, replica: Replica, access: Access, limits: Limits, service: Service) -> None:
        self._replica = replica
        self._access = access
        self._limits = limits
        self._service = service
        self._threads = anyio.CapacityLimiter(limits.answering)
        self._held = 0
        self.heads: Heads

    def guarded(self, handler: Handler, *, of_data: bool = True) -> Callable[[Request], Awaitable[Response]]:
        """Let a handler have only requests with rights; whatever it raises becomes an answer."""

        async def guard(request: Request) -> Response:
            started, site = time.perf_counter(), ""
            try:
                rights = self._rights(request, of_data=of_data)
                site = rights.site or ""
                response = await handler(request, rights)
            except RefusalError as refusal:
                self.refused(request, refusal, site, time.perf_counter() - started)
                return refusal.response()
            except ClientDisconnect:
                response = Response(status_code=499)  # nobody is there to read it
            except EverviewError as error:
                trouble = _trouble(error)
                self.refused(request, trouble, site, time.perf_counter() - started)
                return trouble.response()
            except Exception:
                log.exception("%s failed", request.url.path)
                defect = RefusalError(500, "defect", "the server failed; its log says where")
                self.refused(request, defect, site, time.perf_counter() - started)
                return defect.response()
            seconds = time.perf_counter() - started
            self._service.answered(request.url.path, response.status_code, seconds)
            return response

        return guard

    def refused(
        self, request: Request, refusal: RefusalError, site: str, seconds: float, path: str = ""
    ) -> None:
        """Count a refusal, and say it in one line; never a token, nor what was asked."""
        self._service.answered(path or request.url.path, refusal.status, seconds, refusal.code)
        client = request.client.host if request.client else ""
        fields = {"status": refusal.status, "code": refusal.code, "path": request.url.path[:100]}
        log.info(
            "refused %s with %d %s: %s%s",
            fields["path"],
            refusal.status,
            refusal.code,
            " ".join(refusal.error.split()),
            f" ({site})" if site else "",
            extra={"event": "refused", "fields": fields | {"site": site, "client": client}},
        )

    def _rights(self, request: Request, *, of_data: bool) -> Rights:
        if isinstance(self._access, Open):  # without tokens, to come from this machine is all that it takes
            check_here(request)
        rights = self._access.rights(request.headers.get("authorization"))
        if rights is None:
            raise RefusalError(
                401, "token", "this needs a token that the server knows", www_authenticate="Bearer"
            )
        if rights.reads == frozenset() and not rights.may_write_any and (of_data or not rights.watches):
            raise RefusalError(403, "rights", f"the token of {rights.site} may neither read nor write")
        return rights

    async def exchange(self, request: Request, rights: Rights) -> Response:
        """Answer a message, in a thread of its own."""
        service, limits = self._service, self._limits
        if service.pending >= limits.answering + limits.waiting:
            raise RefusalError(503, "busy", "too many exchanges at once", retry_after="1")
        service.pending += 1
        held: list[int] = []
        try:
            body = await self._body(request, held)
            try:
                await self._bear(body)
                tells = rights.are_limited and DENIED_HEADER in request.headers
                answer, denied = await anyio.to_thread.run_sync(
                    self._answer, body, rights, tells, limiter=self._threads
                )
            except WireError as error:
                raise RefusalError(400, "message", str(error)) from None
            except EverviewError as error:
                raise _trouble(error) from None
        finally:
            service.pending -= 1
            self._held -= sum(held)
        headers = {DENIED_HEADER: denied} if denied else {}
        return Response(answer, media_type=MESSAGE_TYPE, headers=headers)

    def _answer(self, body: bytes, rights: Rights, tells: bool) -> tuple[bytes, str]:  # noqa: FBT001 - from a thread
        """Answer a message; and say what its sender may not, if that is asked for."""
        answer = self._replica.respond(body, rights)
        return answer, as_header(self._replica.withheld(body, rights)) if tells else ""

    async def _bear(self, body: bytes) -> None:
        """Refuse rows while too many wait for a refresh: who only asks is answered all the same."""
        wait = self._service.pressure()
        if wait is None:
            return
        rows, _ = await anyio.to_thread.run_sync(self._replica.extent, body, limiter=self._threads)
        if rows:
            late = "too many rows wait to be taken in"
            raise RefusalError(503, "backlog", late, retry_after=str(math.ceil(wait)))

    async def _body(self, request: Request, held: list[int]) -> bytes:
        """Read a body of bounded size, from a client that may be slow but does not stop.

        What is held in memory for it is noted in `held`, and for all together in `_held`.
        """
        limit = self._limits.body_bytes
        too_much = RefusalError(413, "size", f"a message has at most {limit:,} bytes", connection="close")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise too_much
        if announced.isdecimal():
            self._hold(int(announced), held)
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
                    if len(body) > sum(held):
                        self._hold(len(body) - sum(held), held)
        except TimeoutError:
            late = "the message did not arrive in time"
            raise RefusalError(408, "slow", late, connection="close") from None

    def _hold(self, size: int, held: list[int]) -> None:
        if self._held and self._held + size > self._limits.held_bytes:
            raise RefusalError(503, "busy", "too many bytes at once", retry_after="1", connection="close")
        self._held += size
        held.append(size)

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

    async def health(self, _request: Request, rights: Rights) -> Response:
        """Say how the server is; why it is not well is for those who watch it."""
        heads = self.heads
        well, more, inside = await anyio.to_thread.run_sync(self._service.health)
        told = {"status": "ok" if well else "failing", "incarnation": heads.incarnation, "head": heads.head}
        return JSONResponse(told | more | (inside if rights.watches else {}), 200 if well else 503)

    async def metrics(self, _request: Request, rights: Rights) -> Response:
        """Say what was counted."""
        if not rights.watches:
            raise RefusalError(403, "rights", f"the token of {rights.site} may not read the metrics")
        text = await anyio.to_thread.run_sync(lambda: render(self._service.families()))
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def live(self, _request: Request) -> Response:
        """Answer."""
        return Response(status_code=204)


def _trouble(error: EverviewError) -> RefusalError:
    """The store is full, locked or gone: not the client's fault, and it may pass."""
    log.error("cannot answer: %s", error)
    return RefusalError(503, "store", str(error), retry_after="1")


def _integer(text: str, name: str) -> int:
    try:
        return int(text[:20])
    except ValueError:
        raise RefusalError(400, "parameter", f"{name} is a number") from None


def _seconds(text: str | None, most: float) -> float:
    if text is None:
        return most
    try:
        given = float(text)
    except ValueError:
        raise RefusalError(400, "parameter", "timeout is a number of seconds") from None
    if not given >= 0:
        raise RefusalError(400, "parameter", "timeout is a number of seconds")
    return min(given, most)
