"""`everview package`: what a Spark cluster is given of Everview."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everview.cli.options import Debug, Json, print_json, size

__all__ = ["package"]


def package(
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The archive, for --py-files.")
    ] = Path("everview.zip"),
    entry: Annotated[
        Path | None,
        typer.Option(
            "--entry",
            metavar="FILE",
            help="Also write the script that spark-submit runs a hub by.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Make an archive of Everview that Spark gives to its executors.

    The same sources give the same bytes. A hub on a cluster sends the package by itself; the archive is for
    spark-submit, and for clusters that take files only from where you put them.

    Example: everview package -o everview.zip --entry everview-hub.py
    """
    from everview.hub.packaging import write_entry, write_package  # noqa: PLC0415 - not needed for --help

    written = {"package": (output, write_package(output))}
    if entry is not None:
        written["entry"] = entry, write_entry(entry)
    if as_json:
        print_json({name: {"path": str(path), "bytes": length} for name, (path, length) in written.items()})
        return
    for path, length in written.values():
        typer.echo(f"wrote {path}, {size(length)}")
