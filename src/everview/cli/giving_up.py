"""`everview give-up`: saying that another store is lost for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from everview.cli.either import HubName, HubProgram, SiteOrHub, open_either
from everview.cli.options import Debug, Json, print_json

__all__ = ["give_up"]


def give_up(
    store: SiteOrHub,
    lost: Annotated[
        str,
        typer.Argument(metavar="LOST", help="Its name, or its incarnation.", show_default=False),
    ],
    *,
    program: HubProgram = None,
    name: HubName = "hub",
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Say that another store is lost for good. Once is enough, anywhere.

    Views without their inputs are read again where they show what only that store had, and windows wait for
    it no longer. `everview status` lists the stores that are known. If it comes back, nothing is lost.

    Example: everview give-up rescue.db drone-7
    """
    with open_either(store, program, name) as opened:
        incarnation = opened.give_up(lost)
    if as_json:
        print_json({"given_up": incarnation})
    else:
        sys.stdout.write(f"gave up {lost}\n" if lost == incarnation else f"gave up {lost} ({incarnation})\n")
