"""`everview close`: a source says that it is done with its windows."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Annotated

import typer

from everview.cli.options import Debug, Json, Store, open_store, print_json
from everview.errors import DataError

__all__ = ["close"]

Until = Annotated[
    str, typer.Argument(metavar="UNTIL", help="The end, such as 2026-06-01T12:10:00Z.", show_default=False)
]
Relations = Annotated[
    list[str] | None,
    typer.Option(
        "--relation", "-r", metavar="NAME", help="Only this one; may be repeated.", show_default=False
    ),
]


def close(
    store: Store,
    until: Until,
    *,
    relation: Relations = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Close the windows of a source up to a moment: all events before it are written.

    Of the windowed relations that the site is a source of. What it writes into them later on goes aside.

    Example: everview close rescue.db 2026-06-01T12:10:00Z
    """
    try:
        moment = dt.datetime.fromisoformat(until)
    except ValueError:
        raise DataError(
            f"{until!r} is no moment; write it like 2026-06-01T12:10:00Z", value=until, expected="TIMESTAMP"
        ) from None
    with open_store(store) as site:
        closed = site.close_windows(moment, relation)
    if as_json:
        print_json({"closed": closed})
    else:
        sys.stdout.write(f"closed the windows of {closed} relation{'' if closed == 1 else 's'}\n")
