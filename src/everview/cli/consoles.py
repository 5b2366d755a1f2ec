"""`everview console`: a simulator's run, to be looked at in a browser."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.listening import Port
from everview.cli.options import Debug
from everview.cli.simulation import read_case

__all__ = ["console"]


def console(
    case: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A case that `everview simulate` wrote.", show_default=False),
    ] = None,
    *,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Or the world of this seed.", show_default=False)
    ] = None,
    port: Port = 8450,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Show a simulator's run in the console: who wrote, met and failed when, and how it ended.

    The address that it prints has a token in it, made for this run; only this machine can reach it. The
    console of a site or a hub is served by `everview serve` and `everview hub`.

    Example: everview console simulation-17.json
    """
    if (case is None) == (seed is None):
        raise typer.BadParameter("say either FILE or --seed")
    from everview.cli.stopping import until_stopped  # noqa: PLC0415 - not needed for --help
    from everview.console import Console  # noqa: PLC0415
    from everview.language.program import Program  # noqa: PLC0415
    from everview.server import Listener  # noqa: PLC0415
    from everview.server.access import One  # noqa: PLC0415
    from everview.server.tokens import make_token  # noqa: PLC0415
    from everview.site import Site  # noqa: PLC0415
    from everview.testing.worlds import random_case, timeline  # noqa: PLC0415

    logging.getLogger("everview").setLevel(logging.CRITICAL)  # stores that go back are part of the game
    run = timeline(read_case(case) if case is not None else random_case(seed or 0))
    token, digest = make_token()
    with ExitStack() as stack:
        empty = stack.enter_context(Site.open(":memory:", Program.parse("CREATE TABLE nothing (x BIGINT);")))
        pages = Console(simulation=run)
        listener = Listener(empty.replica, One(digest), port=port, pages=pages)
        stopped = stack.enter_context(until_stopped())
        stack.enter_context(listener)
        sys.stdout.write(f"console at {listener.address}/console/#token={token}\n")
        sys.stdout.flush()
        stopped.wait()
