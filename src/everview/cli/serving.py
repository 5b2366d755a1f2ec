"""`everview serve` and `everview token`: a site that others reach, and who may."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.durations import seconds
from everview.cli.listening import (
    AllowWrite,
    Cert,
    Host,
    Insecure,
    Key,
    Port,
    TokensFile,
    check_tokens,
    say_ready,
)
from everview.cli.logs import LogFormat, LogFormatOption, LogLevel, LogLevelOption, logging_to_stderr
from everview.cli.options import Debug, Json, StoreOption, open_store, print_json
from everview.cli.peer_tokens import PeerTokens, reach_all
from everview.cli.programs import loaded_program
from everview.cli.syncing import Authority

__all__ = ["serve", "token"]


def serve(  # noqa: PLR0913 - as many as there are options
    *,
    store: StoreOption,
    program: Annotated[
        Path | None,
        typer.Option(
            "--program",
            "-p",
            help="The program's file; a store that is not there is created.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", "-n", help="A label for a store that is created.")] = "",
    host: Host = "127.0.0.1",
    port: Port = 8440,
    tokens: TokensFile = None,
    insecure: Insecure = False,
    cert: Cert = None,
    key: Key = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer", metavar="PEER", help="Stay in sync with it; may be repeated.", show_default=False
        ),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="Sync with peers at least this often.")
    ] = "5s",
    ca: Authority = None,
    peer_tokens: PeerTokens = None,
    allow_write: AllowWrite = False,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Make a site reachable over HTTP, with a console for people, until SIGINT or SIGTERM.

    Example: everview serve --store rescue.db --program rescue.sql --port 8440 --tokens tokens.toml
    """
    check_tokens(tokens, insecure=insecure)
    pause = seconds(every)
    from everview.cli.staying import staying  # noqa: PLC0415 - not needed for --help
    from everview.cli.stopping import until_stopped  # noqa: PLC0415
    from everview.console import Console, SiteSubject  # noqa: PLC0415
    from everview.server import Listener, SiteService, Tokens  # noqa: PLC0415
    from everview.site import Site  # noqa: PLC0415

    with ExitStack() as stack:
        stack.enter_context(logging_to_stderr(log_format, log_level))
        if program is None:
            site = stack.enter_context(open_store(store))
        else:
            parsed = loaded_program(program)
            site = stack.enter_context(Site.open(store, parsed, name=name))
        access = None if tokens is None else Tokens(tokens, program=site.program)
        ways = reach_all(peer or [], ca=ca, tokens=peer_tokens)
        service = SiteService(site.replica)
        console = Console(SiteSubject(site), writes=allow_write)
        listener = Listener(
            site.replica, access, host=host, port=port, cert=cert, key=key, service=service, pages=console
        )
        stopped = stack.enter_context(until_stopped())
        stack.enter_context(listener)
        say_ready(store, listener, tokens=access is not None, secure=cert is not None)
        stack.enter_context(staying(site, ways, pause))
        stopped.wait()


def token(
    *,
    site: Annotated[str, typer.Option("--site", help="The site that it belongs to.", show_default=False)],
    read: Annotated[
        list[str] | None,
        typer.Option("--read", metavar="NAME", help="What it may read; repeated, or *.", show_default="*"),
    ] = None,
    write: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            metavar="NAME",
            help="What it may write; repeated, or *.",
            show_default="* if it may read everything and no right is limited, else nothing",
        ),
    ] = None,
    insert: Annotated[
        list[str] | None,
        typer.Option(
            "--insert",
            metavar="NAME",
            help="A relation of which it may only insert rows; repeated.",
            show_default=False,
        ),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(
            "--delete",
            metavar="NAME",
            help="A relation of which it may only delete rows; repeated.",
            show_default=False,
        ),
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(
            "--program", "-p", help="The program's file, by which the names are checked.", show_default=False
        ),
    ] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="It may read metrics; and, unless said, nothing else.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Make a token for a site, and the entry by which a server knows it.

    The entry goes to standard output, ready for the server's file; the token itself, which is kept nowhere,
    to standard error.

    Example: everview token --site drone-7 --write visit >> tokens.toml
    """
    from everview.cli.granting import check_grant  # noqa: PLC0415 - not needed for --help
    from everview.server.tokens import make_token  # noqa: PLC0415

    reads = _names(read, [] if metrics else "*")
    halves = {verb: names for verb, names in (("insert", insert), ("delete", delete)) if names}
    writes = _names(write, [] if metrics or halves or reads != "*" else "*")
    rights = {"read": reads, "write": writes, **halves}
    parsed = None if program is None else loaded_program(program)
    check_grant(site, reads, writes, parsed, relations=[*(insert or []), *(delete or [])])
    made, digest = make_token()
    if as_json:
        print_json({"token": made, "site": site, "sha256": digest, **rights, "metrics": metrics})
        return
    lines = ["[[token]]", f"site = {_toml(site)}", f"sha256 = {_toml(digest)}"]
    lines += [f"{verb} = {_toml(names)}" for verb, names in rights.items()]
    lines += ["metrics = true"] if metrics else []
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    typer.echo(f"token for {site}, shown only now: {made}", err=True)


def _names(given: list[str] | None, unsaid: str | list[str]) -> str | list[str]:
    if given is None:
        return unsaid
    return "*" if "*" in given else given


def _toml(value: str | list[str]) -> str:
    """Strings and lists of them look alike in TOML and in JSON."""
    return json.dumps(value)
