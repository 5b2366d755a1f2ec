"""What commands have that open a site's store or a hub's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from everview.cli.options import open_store
from everview.cli.programs import loaded_program
from everview.errors import StoreError

if TYPE_CHECKING:
    from everview.hub import Hub
    from everview.site import Site

__all__ = ["HubName", "HubProgram", "SiteOrHub", "open_either"]

SiteOrHub: TypeAlias = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store's file, or a hub's folder.", show_default=False)
]
HubProgram: TypeAlias = Annotated[
    Path | None,
    typer.Option("--program", "-p", metavar="FILE", help="The program, of a hub.", show_default=False),
]
HubName: TypeAlias = Annotated[str, typer.Option("--name", "-n", help="The name that devices know a hub by.")]


@contextmanager
def open_either(path: Path, program: Path | None, name: str) -> Iterator[Site | Hub]:
    """The site of an existing store, or the hub of a folder; a hub that runs has to be stopped first."""
    if not path.is_dir():
        with open_store(path) as site:
            yield site
        return
    if program is None:
        raise StoreError(f"{path} is a folder; if it is a hub's, say --program FILE as well", path=str(path))
    parsed = loaded_program(program)
    import everview  # noqa: PLC0415 - it needs Spark

    with everview.Hub.open(path, parsed, name=name) as hub:
        yield hub
