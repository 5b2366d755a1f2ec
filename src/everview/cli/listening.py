"""The options of commands that are reached over HTTP, and what they say of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from everview.server import Listener

__all__ = [
    "AllowWrite",
    "Cert",
    "Host",
    "Insecure",
    "Key",
    "Port",
    "TokensFile",
    "check_free",
    "check_tokens",
    "say_ready",
]

Host: TypeAlias = Annotated[str, typer.Option("--host", help="The address to listen on.")]
Port: TypeAlias = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
]
TokensFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--tokens", metavar="FILE", help="Who may read and write what.", show_default=False),
]
Insecure: TypeAlias = Annotated[
    bool, typer.Option("--insecure", help="Ask nobody for a token; on loopback only.")
]
Cert: TypeAlias = Annotated[
    Path | None,
    typer.Option("--cert", metavar="FILE", help="The certificate (PEM), for TLS.", show_default=False),
]
Key: TypeAlias = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Its key (PEM).", show_default=False)
]

AllowWrite: TypeAlias = Annotated[
    bool, typer.Option("--allow-write", help="Let the console insert and delete rows.")
]


def check_tokens(tokens: Path | None, *, insecure: bool) -> None:
    """One of the two must be said."""
    if (tokens is None) != insecure:
        raise typer.BadParameter("say either --tokens FILE or --insecure")


def check_free(host: str, port: int) -> None:
    """Refuse a port that is taken, for a command that takes long to get where it listens."""
    from everview.server.listener import bound  # noqa: PLC0415 - not needed for --help

    bound(host, port).close()


def say_ready(what: object, listener: Listener, *, tokens: bool, secure: bool) -> None:
    """Print the address, now that requests are answered."""
    if tokens and not secure and not listener.is_loopback:
        typer.echo("warning: without --cert and --key, tokens and rows travel in the clear", err=True)
    sys.stdout.write(f"serving {what} at {listener.address}\n")
    sys.stdout.write(f"console at {listener.address}/console/\n")
    sys.stdout.flush()
