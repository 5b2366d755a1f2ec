"""What several commands have: arguments and options, opening a store, printing an object."""

from __future__ import annotations

import json
import sys
from collections.abc import Sized
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from everview.errors import StoreError

if TYPE_CHECKING:
    from everview.site import Site

__all__ = ["Debug", "Json", "Store", "StoreOption", "count", "open_store", "print_json", "size"]

_SQLITE = b"SQLite format 3\0"
"""How every store begins."""


def _remember(ctx: typer.Context, debug: bool) -> bool:  # noqa: FBT001 - typer calls it so
    if debug:
        ctx.meta["everview.debug"] = True  # a context shares its meta with those around it
    return debug


Store: TypeAlias = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store's file.", show_default=False)
]
StoreOption: TypeAlias = Annotated[
    Path, typer.Option("--store", metavar="FILE", help="The store's file.", show_default=False)
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Debug: TypeAlias = Annotated[
    bool, typer.Option("--debug", callback=_remember, help="On an error, show the traceback.")
]


def open_store(path: Path) -> Site:
    """The site of an existing store."""
    from everview.site import Site  # noqa: PLC0415 - not needed for --help

    if not path.is_file():
        problem = "is no file" if path.exists() else "does not exist"
        raise StoreError(
            f"{path} {problem}; `everview init {path} --program FILE` creates a store", path=str(path)
        )
    if path.stat().st_size == 0:
        raise StoreError(
            f"{path} is empty; `everview init {path} --program FILE` makes a store of it", path=str(path)
        )
    begins = b""
    with suppress(OSError), path.open("rb") as file:  # what cannot be read is said when it is opened
        begins = file.read(len(_SQLITE))
    if begins and begins != _SQLITE and begins.isascii():
        raise StoreError(f"{path} is a text; name the file that `everview init` has made", path=str(path))
    return Site.open(path)


def print_json(value: Any) -> None:
    """Print one JSON value on a line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def count(things: Sized | int, name: str) -> str:
    """So many things, in words."""
    number = things if isinstance(things, int) else len(things)
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """So many bytes, in words."""
    found = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if found < 1000:
            return f"{found:.0f} {unit}" if unit == "B" else f"{found:.1f} {unit}"
        found /= 1000
    return f"{found:.1f} TB"
