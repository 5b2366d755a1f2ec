"""`everview drop`: a store hosts some values of a partitioned relation no more."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from everview.cli.options import Debug, Store, open_store

__all__ = ["drop"]


def drop(
    store: Store,
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME/COLUMN=VALUE,…", help="Values of a partitioned relation.", show_default=False
        ),
    ],
    *,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Host some values of a partitioned relation no more.

    Their rows go from this store and its views, and from no other site. Sync first: what nobody else has by
    then is lost. `everview migrate STORE --hosts NAME/COLUMN=VALUE` brings them back.

    Example: everview drop phone.db orders/region=us
    """
    from everview.engines.sqlite.partitions import hosts_of  # noqa: PLC0415 - not needed for --help

    with open_store(store) as site:
        for name, chosen in hosts_of(site.program, values).items():
            site.drop(name, {} if chosen is ... else chosen)
        left = site.status().get("values", {})
    for name, choices in left.items():
        sys.stdout.write(f"{name}: {'; '.join(choices)}\n")
