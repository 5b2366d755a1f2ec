"""Whose page asks: a server that trusts this machine answers no other site's page in a browser on it.

Such a page may ask at once, and the browser says so: `Sec-Fetch-Site`. Or it has a name of its own lead here
(DNS rebinding), and to the browser all is one site; but then the request has that name in `Host`.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

from everview.server.refusals import RefusalError

__all__ = ["check_here", "check_own_page", "is_here"]


def check_here(request: Request) -> None:
    """Refuse what does not name this machine, and what another site's page asks."""
    host = request.headers.get("host", "")
    if not is_here(host):
        raise RefusalError(403, "host", f"this server is reached as localhost, not as {host[:100]}")
    check_own_page(request)


def check_own_page(request: Request) -> None:
    """Refuse what a browser says that another site's page asks; who is no browser says nothing."""
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise RefusalError(403, "host", "no page but this server's own may ask this")


def is_here(host: str) -> bool:
    """Whether a Host header names this machine, in a way that nobody else's name server can answer for."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
