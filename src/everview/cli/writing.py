"""`everview insert` and `everview delete`: rows from files or standard input."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from everview.cli.options import Debug, Json, Store, count, open_store, print_json

__all__ = ["delete", "insert"]

Target = Annotated[str, typer.Argument(metavar="RELATION", help="The relation.", show_default=False)]
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Files, or - for standard input.", show_default=False),
]
FormatName = Annotated[
    Literal["csv", "json", "parquet"] | None,
    typer.Option(
        "--format", "-f", help="The files' format; told by their extension if not given.", show_default=False
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(
        "--batch", min=1, metavar="N", help="Commit every N rows instead of once.", show_default=False
    ),
]


def insert(
    store: Store,
    relation: Target,
    files: Files,
    *,
    form: FormatName = None,
    batch: Batch = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Insert the rows of files into a relation: all of them, or none.

    CSV has a header of column names; JSON has an object a line; Parquet needs pyarrow.

    Example: everview insert rescue.db person people.csv more.jsonl
    """
    _load(store, relation, files, form, batch, as_json=as_json, remove=False)


def delete(
    store: Store,
    relation: Target,
    files: Files,
    *,
    form: FormatName = None,
    batch: Batch = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Delete the rows of files from a relation: all of them, or none.

    From a relation with a key, the key's columns are enough.

    Example: everview delete rescue.db person gone.csv
    """
    _load(store, relation, files, form, batch, as_json=as_json, remove=True)


def _load(
    store: Store,
    relation: str,
    files: list[str],
    form: str | None,
    batch: int | None,
    *,
    as_json: bool,
    remove: bool,
) -> None:
    from everview.cli.load import load  # noqa: PLC0415 - not needed for --help
    from everview.cli.meter import Meter  # noqa: PLC0415
    from everview.cli.sources import Format, Source  # noqa: PLC0415

    sources = [Source.named(path, Format(form) if form else None) for path in files]
    with open_store(store) as site, Meter(sources, "deleting" if remove else "inserting") as meter:
        loaded = load(site, relation, sources, remove=remove, batch=batch, watcher=meter)
    if as_json:
        verb = "deleted" if remove else "inserted"
        print_json(
            {"relation": relation, "read": loaded.read, verb: loaded.changed, "commits": loaded.commits}
        )
        return
    happened = "disappeared from" if remove else "appeared in"
    sys.stdout.write(f"{count(loaded.read, 'row')} read, {loaded.changed:,} {happened} {relation}\n")
