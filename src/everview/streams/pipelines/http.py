"""Stages over HTTP: read one, or have its updates streamed as server-sent events.

    uvicorn.run(streams.http_app(device), host="127.0.0.1")

- GET /stages: the names.
- GET /stages/NAME: {"stage": …, "value": …}, as of the last commit.
- GET /stages/NAME/updates: an event for the stage as it is, then one for each change.

It is an ASGI application without guards of its own: mount it behind what checks who asks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from everview.errors import DataError, MissingDependencyError
from everview.streams.pipelines.change import Update
from everview.streams.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


class Readable(Protocol):
    """What is shown: a pipeline on a device, or on Spark."""

    @property
    def pipeline(self) -> Pipeline:
        """Its stages."""

    def read(self, stage: str) -> Any:
        """The value of a stage."""

    def updates(self, stage: str) -> AsyncIterator[Update]:
        """Its updates."""


def http_app(shown: Readable) -> Starlette:
    """Return an ASGI application that shows a pipeline's stages and streams their updates."""
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - a device need not serve
        from starlette.concurrency import run_in_threadpool  # noqa: PLC0415
        from starlette.responses import Response, StreamingResponse  # noqa: PLC0415
        from starlette.routing import Route  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            f"serving stages needs {error.name}: pip install 'everview[server]'"
        ) from None

    def answer(content: Any, status: int = 200) -> Response:
        return Response(_json(content), status, media_type="application/json")

    async def stages(_request: Request) -> Response:
        return answer([*shown.pipeline.by_name])

    async def stage(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            return answer({"stage": name, "value": await run_in_threadpool(shown.read, name)})
        except DataError as error:
            return answer({"error": str(error)}, 404)

    async def told(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            shown.pipeline.stage(name)
            updates = shown.updates(name)
        except DataError as error:
            return answer({"error": str(error)}, 404)
        return StreamingResponse(_events(updates), media_type="text/event-stream")

    routes = [Route("/stages", stages), Route("/stages/{name}", stage), Route("/stages/{name}/updates", told)]
    return Starlette(routes=routes)


async def _events(updates: AsyncIterator[Update]) -> AsyncIterator[bytes]:
    async for update in updates:
        yield b"id: %d\ndata: %s\n\n" % (update.commit, _json(asdict(update)))


def _json(value: Any) -> bytes:
    return msgspec.json.encode(_plain(value), enc_hook=str)


def _plain(value: Any) -> Any:
    """A mapping whose keys JSON does not know becomes a list of pairs."""
    match value:
        case Mapping():
            if all(type(key) in (str, int) for key in value):
                return {key: _plain(part) for key, part in value.items()}
            return [[_plain(key), _plain(part)] for key, part in value.items()]
        case list() | tuple() | set() | frozenset():
            return [_plain(part) for part in value]
        case _:
            return value
