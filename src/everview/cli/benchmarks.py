"""`everview bench`: the benchmarks of the project, which lie in its source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.options import Debug
from everview.errors import StoreError

__all__ = ["bench"]


def bench(
    name: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which ones.", show_default="all")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, under a minute each.")] = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Measure: run benchmarks in a clone of the project; each prints a table, and one line of JSON.

    Example: everview bench projection --quick
    """
    if not Path("benchmarks", "__main__.py").is_file():
        raise StoreError(
            "there are no benchmarks here; run it in the folder of a clone of the project", path=""
        )
    words = [sys.executable, "-m", "benchmarks", *(name or []), *(["--quick"] if quick else [])]
    done = subprocess.run(words, check=False)  # noqa: S603 - our own benchmarks
    raise typer.Exit(1 if done.returncode else 0)
