"""`everview expire`: giving up a member that will not come back, or not soon."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from everview.cli.options import Debug, Json, Store, open_store, print_json

__all__ = ["expire"]


def expire(
    store: Store,
    member: Annotated[
        str,
        typer.Argument(
            metavar="MEMBER",
            help="The member's name or incarnation, as `everview status` shows them.",
            show_default=False,
        ),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Give up a member that will not come back, or not soon: nobody waits for it any longer.

    On a terminal it asks first.

    Example: everview expire rescue.db drone-7
    """
    from everview.cli.peers import site_name  # noqa: PLC0415 - not needed for --help

    with open_store(store) as site:
        found = site.replica.find_member(member)
        called = site_name(found)
        if not as_json:
            sys.stdout.write(
                f"{called} is given up for good under this incarnation, here and wherever that is heard of: "
                "what was kept for it may be forgotten.\n"
                "If it comes back it takes a new incarnation and joins again by a snapshot of another site; "
                "what it wrote that nobody has seen is applied again.\n"
            )
            sys.stdout.flush()
        if not yes and sys.stdin.isatty() and not typer.confirm(f"give up {called}?", err=True):
            if as_json:
                print_json({"expired": False, "incarnation": found["incarnation"], "name": found["name"]})
            return
        incarnation = site.expire(found["incarnation"])
    if as_json:
        print_json({"expired": True, "incarnation": incarnation, "name": found["name"]})
    else:
        sys.stdout.write(f"{store}: gave up {called}\n")
