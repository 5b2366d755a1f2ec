"""`everview conflicts`: rows that another row of their key has beaten."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from everview.cli.options import Debug, Store, open_store

__all__ = ["conflicts"]

_ALL = "SELECT * FROM everview.conflicts ORDER BY relation, key, time"


def conflicts(
    store: Store,
    relation: Annotated[
        str | None,
        typer.Argument(metavar="RELATION", help="A relation with a key; else all.", show_default=False),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines: an object a row.")] = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Print rows that sites wrote at the same time as another row of their key, which is shown instead.

    They are kept until somebody writes their key again.

    Example: everview conflicts rescue.db person
    """
    from everview.cli.json_lines import json_line  # noqa: PLC0415 - not needed for --help
    from everview.cli.queries import run_query  # noqa: PLC0415
    from everview.cli.tables import print_rows  # noqa: PLC0415
    from everview.language.conflicts import conflicts_schema  # noqa: PLC0415

    with open_store(store) as site:
        if relation is None:
            schema, rows = run_query(site, _ALL, [])
        else:
            found = site.conflicts(relation)
            schema, rows = (
                conflicts_schema(site.program.relations[relation]),
                [tuple(row.values()) for row in found],
            )
    if as_json:
        names = [field.name for field in schema]
        sys.stdout.writelines(json_line(names, row) + "\n" for row in rows)
    else:
        print_rows(schema, rows)
