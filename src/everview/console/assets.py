"""The page: plain files that ship with the package. A browser is told to fetch nothing from elsewhere.

They tell nothing of any store, so that they need no token: one has to see the page to type it in.
"""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

__all__ = ["HEADERS", "asset_routes"]

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing but our own files, and no way to make text into markup: hostile rows stay text."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def asset_routes() -> list[BaseRoute]:
    """`/console/` and its files; `/` leads there."""
    folder = resources.files("everview.console") / "static"
    files = {
        file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in TYPES
    }
    tags = {name: f'"{hashlib.sha256(content).hexdigest()[:16]}"' for name, content in files.items()}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "") or "index.html"
        if name not in files:
            return Response(status_code=404, headers=HEADERS)
        headers = HEADERS | {"ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        kind = TYPES[name.rpartition(".")[2]]
        return Response(files[name], headers=headers | {"Content-Type": kind})

    async def lead(_request: Request) -> Response:
        return RedirectResponse("/console/", headers=HEADERS)

    return [
        Route("/", lead, methods=["GET"]),
        Route("/console", lead, methods=["GET"]),
        Route("/console/", page, methods=["GET"]),
        Route("/console/{name}", page, methods=["GET"]),
    ]
