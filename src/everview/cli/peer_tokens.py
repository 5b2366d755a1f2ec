"""Which token goes to which peer: a token is sent to nobody but the server that it was made by.

`EVERVIEW_TOKEN` is one token, for one server. For several there is a file of lines, an address and its token.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from everview.errors import DataError

if TYPE_CHECKING:
    from everview.replication.transports.base import Transport

__all__ = ["PeerTokens", "reach_all"]

PeerTokens: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--peer-tokens",
        metavar="FILE",
        help="The tokens for several servers: lines of an address and its token; else EVERVIEW_TOKEN.",
        show_default=False,
    ),
]


def reach_all(peers: Sequence[str], *, ca: Path | None, tokens: Path | None) -> list[Transport]:
    """Return the ways to peers, each with its own token; nobody is sent another's."""
    from everview.replication.transports.reach import TOKEN_VARIABLE, is_address, reach  # noqa: PLC0415

    servers = {one: _normal(one) for one in peers if is_address(one)}
    if tokens is not None:
        given: dict[str, str | None] = {**_read(tokens)}
        for peer, address in servers.items():
            if address not in given:
                raise DataError(
                    f"{tokens} has no token for {peer}; add a line with the address and the token, "
                    "or with the address alone if it needs none"
                )
    else:
        if os.environ.get(TOKEN_VARIABLE) and len(set(servers.values())) > 1:
            raise DataError(
                f"{TOKEN_VARIABLE} is one token, and would be sent to {', '.join(servers)}; "
                "write a file of lines with an address and the token that it made, "
                "and name it by --peer-tokens"
            )
        given = {}
    with ExitStack() as stack:
        ways = []
        for one in peers:
            way = reach(one, ca=ca, token=given.get(servers.get(one, "")))
            stack.callback(way.close)
            ways.append(way)
        stack.pop_all()
    return ways


def _read(path: Path) -> dict[str, str]:
    """Read the tokens by address; a line is never repeated in an error, for it may be a token."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise DataError(f"cannot read the tokens in {path}: {reason}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}, line {number}"
        if len(words) > 2 or "://" not in words[0]:
            raise DataError(f"{where}: a line is an address and its token, such as https://host:port TOKEN")
        address = _normal(words[0], where)
        if address in found:
            raise DataError(f"{where}: this address has a token already")
        found[address] = words[1] if len(words) == 2 else ""
    return found


def _normal(address: str, where: str = "") -> str:
    """Return an address as it is compared: a port that needs no saying, and a last slash, do not count."""
    import httpx  # noqa: PLC0415 - it takes a tenth of a second to load, and a folder does without

    try:
        return str(httpx.URL(address)).rstrip("/")
    except httpx.InvalidURL:
        if where:
            raise DataError(f"{where}: that is no address; it looks like https://host:port") from None
        return address  # said when it is reached
