"""The addresses that the page asks. All need a token, and tell it what it may read; see docs/CONSOLE.md."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from everview.console.cells import cells_of, row_of, shortened
from everview.console.provenance import told
from everview.console.sitemap import sitemap
from everview.console.subject import Subject
from everview.engines.sqlite.trials import Turn
from everview.errors import DataError, EverviewError, LimitError, StoreError
from everview.language.plan import Schema
from everview.language.relations import Relation
from everview.replication.rights.rights import Rights
from everview.server.heads import Heads
from everview.server.origins import check_own_page
from everview.server.pages import Guard, Handler
from everview.server.refusals import RefusalError

__all__ = ["Api"]

T = TypeVar("T")

PAGE = 100
MOST = 1_000
"""How many rows are told at once, unless asked otherwise, and at most."""
LONGEST_BODY = 1 << 20
POLL_SECONDS = 25.0
LOOK_SECONDS = 0.5
PREFIX = "/v1/console"


class Api:
    """Answers for a subject. `writes` lets rows be written."""

    def __init__(
        self,
        subject: Subject | None,
        *,
        writes: bool = False,
        simulation: Mapping[str, Any] | None = None,
    ) -> None:
        self._subject = subject
        self._writes = writes
        self._simulation = simulation
        self._threads = anyio.CapacityLimiter(2)

    def routes(self, guard: Guard) -> list[BaseRoute]:
        """The addresses, guarded."""
        reads: dict[str, Handler] = {
            "about": self.about,
            "tables": self.tables,
            "rows": self.rows,
            "plan": self.plan,
            "sites": self.sites,
            "refreshes": self.refreshes,
            "simulation": self.simulation,
            "live": self.live,
        }
        asks: dict[str, Handler] = {"why": self.why, "without": self.without}
        asks |= {"insert": self.insert, "delete": self.delete}
        listed = [(name, handler, "GET") for name, handler in reads.items()]
        listed += [(name, handler, "POST") for name, handler in asks.items()]
        return [
            Route(f"{PREFIX}/{name}", guard(_fresh(handler)), methods=[method])
            for name, handler, method in listed
        ]

    # What there is.

    async def about(self, _request: Request, rights: Rights) -> Response:
        """Who this is, and what the token may see and do."""
        subject = self._subject
        if subject is None:
            return JSONResponse({"kind": "simulation", "name": "simulation", "tables": [], "watches": True})
        names = await self._work(subject.hosted)
        return JSONResponse(
            {
                "kind": subject.kind,
                "name": subject.name,
                "token_of": rights.site or "",
                "watches": rights.watches,
                "simulation": self._simulation is not None,
                "tables": [self._table(name, rights) for name in names if rights.may_read(name)],
                "unreadable": sum(not rights.may_read(name) for name in names),
            }
        )

    def _table(self, name: str, rights: Rights) -> dict[str, Any]:
        program = self._the_subject().program
        relation = program.relations.get(name)
        return {
            "name": name,
            "kind": "view" if relation is None else "relation",
            "semantics": "" if relation is None else relation.semantics.value.replace("_", "-"),
            "key": [] if relation is None else list(relation.key),
            "owner": None if relation is None else relation.owner,
            "columns": _columns(program.schema(name)),
            "writable": self._writes and relation is not None and rights.may_write(name),
            "reads": [] if relation is not None else [n for n in self._reads(name) if rights.may_read(n)],
        }

    def _reads(self, view: str) -> list[str]:
        """What a view is said to be made from; what Everview keeps for itself is left out."""
        program = self._the_subject().program
        own = {name for name, relation in program.relations.items() if relation.system}
        return [name for name in program.views[view].reads if name not in own]

    async def tables(self, _request: Request, rights: Rights) -> Response:
        """How many rows each relation and view has."""
        subject = self._the_subject()

        def counted() -> dict[str, dict[str, Any] | None]:
            return {name: _count(subject, name) for name in subject.hosted() if rights.may_read(name)}

        return JSONResponse({"counts": await self._work(counted)})

    async def rows(self, request: Request, rights: Rights) -> Response:
        """Some rows of a relation or view."""
        subject, name = self._the_subject(), self._named(request.query_params.get("name"), rights)
        offset = _number(request, "offset", 0, 1 << 40)
        limit = _number(request, "limit", PAGE, MOST)
        found = await self._work(lambda: subject.rows(name, offset, limit))
        lines = [(*shortened(row), often) for row, often in found.rows]
        return JSONResponse(
            {
                "name": name,
                "columns": _columns(subject.program.schema(name)),
                "rows": [{"cells": cells, "whole": whole, "often": often} for cells, whole, often in lines],
                "offset": offset,
                "total": found.total,
                "different": found.different,
                "ordered": found.ordered,
            }
        )

    async def plan(self, request: Request, rights: Rights) -> Response:
        """How a view is kept: operators, and what the last change did to each."""
        subject, name = self._the_subject(), self._named(request.query_params.get("name"), rights)
        if name in subject.program.relations:
            raise RefusalError(400, "parameter", f"{name} is a relation: it is written to, and has no plan")
        hidden = [n for n in subject.program.names() if not rights.may_read(n)]
        if hidden:  # conditions and counts of what it reads would tell of it
            below = _behind(subject, name)
            unseen = next((n for n in hidden if n in below), None)
            if unseen is not None:
                raise RefusalError(
                    403, "rights", f"{name} reads what this token may not: its plan is not shown"
                )
        picture = await self._work(lambda: subject.picture(name))
        words = await self._work(lambda: subject.explain(name))
        boxes = [{slot: getattr(box, slot) for slot in box.__slots__} for box in picture.boxes]
        return JSONResponse(
            {"name": name, "boxes": boxes, "change": picture.change, "unit": picture.unit, "words": words}
        )

    async def sites(self, _request: Request, rights: Rights) -> Response:
        """The map of sites, and whether any differs from this one."""
        subject = self._the_subject()
        return JSONResponse(await self._work(lambda: sitemap(subject, rights)))

    async def refreshes(self, _request: Request, rights: Rights) -> Response:
        """The last refreshes of a hub."""
        found = await self._work(self._the_subject().refreshes)
        if found is None:
            return JSONResponse({"refreshes": None})
        listed = [
            one | {"changes": {n: c for n, c in one["changes"].items() if rights.may_read(n)}}
            for one in found["refreshes"]
        ]
        shown = dict(found) | {"refreshes": listed}
        if not rights.watches:
            shown |= {"error": None, "waiting": None}
            shown["refreshes"] = [one | {"rejected": []} for one in listed]
        return JSONResponse(shown)

    async def simulation(self, _request: Request, _rights: Rights) -> Response:
        """The simulator's run that the console was pointed at."""
        return JSONResponse({"run": self._simulation})

    async def live(self, request: Request, _rights: Rights) -> Response:
        """Answer when there may be something new to show, or when the time is over."""
        subject, heads = self._the_subject(), request.app.state.heads
        if not isinstance(heads, Heads):
            raise TypeError("the server has not begun")
        after = request.query_params.get("after", "")[:200]
        ends = time.monotonic() + POLL_SECONDS
        while (mark := subject.mark(heads.head)) == after and not heads.stopping:
            left = ends - time.monotonic()
            if left <= 0 or await request.is_disconnected():
                break
            await heads.after(heads.head, min(left, LOOK_SECONDS))
        return JSONResponse({"mark": mark, "head": heads.head})

    # A row.

    async def why(self, request: Request, rights: Rights) -> Response:
        """Why a row is there."""
        subject, body = self._the_subject(), await _body(request)
        name = self._named(body.get("name"), rights)
        row = self._row(name, body.get("row"))

        def answer() -> dict[str, Any]:
            found = told(subject.why(name, row), subject.program, rights, subject.why)
            return found | {"needed": subject.is_monotone_here(name)}

        return JSONResponse({"name": name, "row": cells_of(row), **await self._work(answer)})

    async def without(self, request: Request, rights: Rights) -> Response:
        """What would vanish, and appear, if a base row were deleted."""
        subject, body = self._the_subject(), await _body(request)
        relation = self._known_relation(body.get("relation"), rights)
        names = [name for name in await self._work(subject.hosted) if rights.may_read(name)]
        if body.get("whole", True):
            row = self._row(relation.name, body.get("row"))
            turns = await self._work(lambda: subject.without(relation.name, row, names))
            if turns is not None:
                listed = [
                    _turn(name, subject.program.schema(name), turns[name]) for name in names if name in turns
                ]
                return JSONResponse({"relation": relation.name, "turns": listed, "vanishes": None})
        vanishes = await self._vanishes(body.get("of"), str(body.get("id", "")), rights)
        return JSONResponse({"relation": relation.name, "turns": [], "vanishes": vanishes})

    async def _vanishes(self, of: object, id_: str, rights: Rights) -> bool:
        """Whether a received row has no derivation but from a base row that is elsewhere."""
        subject = self._the_subject()
        asked = of if isinstance(of, dict) else {}
        name = self._named(asked.get("name"), rights)
        if not await self._work(lambda: subject.is_monotone_here(name)):
            raise RefusalError(
                409,
                "elsewhere",
                "that row is not here; ask at a site that hosts its relation what would vanish",
            )
        row = self._row(name, asked.get("row"))
        found = await self._work(lambda: subject.why(name, row))
        return all(any(one.hex() == id_ for one in m if isinstance(one, bytes)) for m in found.monomials)

    async def insert(self, request: Request, rights: Rights) -> Response:
        """Insert a row."""
        return await self._write(request, rights, self._the_subject().insert)

    async def delete(self, request: Request, rights: Rights) -> Response:
        """Delete a row."""
        return await self._write(request, rights, self._the_subject().delete)

    async def _write(
        self, request: Request, rights: Rights, write: Callable[[str, tuple[Any, ...]], str]
    ) -> Response:
        if not self._writes:
            raise RefusalError(403, "read_only", "the console is read-only; start it with --allow-write")
        body = await _body(request)
        relation = self._known_relation(body.get("relation"), rights)
        if not rights.may_write(relation.name):
            raise RefusalError(403, "rights", f"the token of {rights.site} may not write {relation.name}")
        row = self._row(relation.name, body.get("row"))
        return JSONResponse({"done": await self._work(lambda: write(relation.name, row))})

    # What all need.

    async def _work(self, call: Callable[[], T]) -> T:
        """Do it in a thread; what a person did wrong is told, and is no trouble of the store's."""
        try:
            return await anyio.to_thread.run_sync(call, limiter=self._threads)
        except StoreError:
            raise
        except EverviewError as error:
            code = "limit" if isinstance(error, LimitError) else "data"
            raise RefusalError(422, code, str(error)) from None

    def _row(self, name: str, cells: object) -> tuple[Any, ...]:
        try:
            return row_of(name, self._the_subject().program.schema(name), cells)
        except DataError as error:
            raise RefusalError(422, "data", str(error)) from None

    def _the_subject(self) -> Subject:
        if self._subject is None:
            raise RefusalError(404, "address", "this console shows a simulator's run, and no site")
        return self._subject

    def _named(self, name: object, rights: Rights) -> str:
        """A relation or view; one that may not be read is refused like one that there is not."""
        known = isinstance(name, str) and name in self._the_subject().hosted()
        if not known or not rights.may_read(str(name)):
            raise RefusalError(404, "name", f"there is no {str(name)[:100]} here that this token may read")
        return str(name)

    def _known_relation(self, name: object, rights: Rights) -> Relation:
        """A relation of the program, also one that is not here."""
        found = self._the_subject().program.relations.get(str(name))
        if found is None or found.system or not rights.may_read(found.name):
            raise RefusalError(
                404, "name", f"there is no relation {str(name)[:100]} that this token may read"
            )
        return found


def _fresh(handler: Handler) -> Handler:
    """Answer the console's own page alone, with tokens too, and have nobody keep the answer."""

    async def checked(request: Request, rights: Rights) -> Response:
        check_own_page(request)
        response = await handler(request, rights)
        response.headers["Cache-Control"] = "no-store"
        return response

    return checked


def _columns(schema: Schema) -> list[dict[str, Any]]:
    return [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema]


def _count(subject: Subject, name: str) -> dict[str, Any] | None:
    try:
        rows, exact = subject.count(name)
    except EverviewError:
        return None  # whoever opens it is told why
    return {"rows": rows, "exact": exact}


def _behind(subject: Subject, view: str) -> set[str]:
    """All relations and views that a view comes from."""
    found, waiting = set[str](), [view]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            views = subject.program.views
            waiting += views[name].reads if name in views else ()
    return found


def _turn(name: str, schema: Schema, turn: Turn) -> dict[str, Any]:
    return {
        "name": name,
        "columns": [field.name for field in schema],
        "vanished": turn.vanished,
        "appeared": turn.appeared,
        "rows": [{"cells": shortened(row)[0], "weight": weight} for row, weight in turn.rows],
    }


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 15:
        raise RefusalError(400, "parameter", f"{name} is a number")
    return min(int(text), most)


async def _body(request: Request) -> Mapping[str, Any]:
    """The JSON object of a request; its type keeps other pages from sending one without being asked first."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RefusalError(415, "message", "this takes application/json")
    read = bytearray()
    async with asyncio.timeout(POLL_SECONDS):
        async for block in request.stream():
            read += block
            if len(read) > LONGEST_BODY:
                raise RefusalError(
                    413, "size", f"a request has at most {LONGEST_BODY:,} bytes", connection="close"
                )
    try:
        found = json.loads(read)
    except (ValueError, RecursionError):
        raise RefusalError(400, "message", "this is not JSON") from None
    if not isinstance(found, dict):
        raise RefusalError(400, "message", "this is no JSON object")
    return found
