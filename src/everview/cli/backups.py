"""`everview backup` and `everview restore`: a store's state in a file, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.options import Debug, Json, Store, count, open_store, print_json, size

__all__ = ["backup", "restore"]


def backup(
    store: Store,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.", show_default=False)
    ],
    *,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Copy a store's present state to a file, and check the copy. The store may be in use.

    Example: everview backup rescue.db rescue-monday.db
    """
    from everview.cli.page_meter import PageMeter  # noqa: PLC0415 - not needed for --help

    with open_store(store) as site, PageMeter(f"copying {store}") as meter:
        found = site.backup(target, meter)
    if as_json:
        print_json(
            {
                "path": found.path,
                "name": found.name,
                "incarnation": found.incarnation,
                "commits": found.commits,
                "bytes": found.bytes,
            }
        )
        return
    sys.stdout.write(f"{found.path}: {size(found.bytes)}, {count(found.commits, 'commit')}, checked\n")


def restore(
    source: Annotated[
        Path,
        typer.Argument(metavar="BACKUP", help="A file that `everview backup` has made.", show_default=False),
    ],
    store: Store,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put a store that is there aside, to STORE.replaced.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", "-n", help="A label for the site.", show_default="as it was")
    ] = "",
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Make a store of a backup. It goes on as a new incarnation, and gets what it lacks with the next sync.

    Example: everview restore rescue-monday.db rescue.db --replace
    """
    from everview.site import Site  # noqa: PLC0415 - not needed for --help

    with Site.restore(source, store, replace=replace, name=name) as site:
        state = site.status()
    if as_json:
        print_json({key: state[key] for key in ("path", "name", "incarnation", "commits", "bytes")})
        return
    sys.stdout.write(
        f"{store}: {count(state['commits'], 'commit')}, now incarnation {state['incarnation']}; "
        "sync it to get what it lacks\n"
    )
    if replace and (aside := store.with_name(f"{store.name}.replaced")).exists():
        sys.stdout.write(f"what was there is {aside}\n")
