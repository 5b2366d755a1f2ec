"""Whether what a token is to grant can work, where the program is known."""

from __future__ import annotations

from collections.abc import Collection

import typer

from everview.errors import DataError
from everview.language.program import Program
from everview.replication.rights.grants import lacking, told_lacking
from everview.replication.rights.rights import Rights

__all__ = ["check_grant"]


def check_grant(
    site: str,
    read: str | list[str],
    write: str | list[str],
    program: Program | None,
    *,
    relations: Collection[str] = (),
) -> None:
    """Refuse names that the program does not have, and warn of a grant that may bring less than was meant."""
    rights = Rights(site, _names(read), _names(write))
    if program is None:
        return
    known = set(program.names())
    unknown = sorted(((rights.reads or frozenset()) | (rights.writes or frozenset())) - known)
    if unknown:
        raise DataError(f"{unknown[0]} is not in the program; it has {', '.join(sorted(known))}")
    if others := sorted(set(relations) - program.relations.keys()):
        raise DataError(f"{others[0]} is no relation; of these alone rows may be inserted or deleted")
    needs = lacking(program, rights)
    if needs:
        typer.echo(f"warning: {told_lacking(rights, needs)}", err=True)


def _names(given: str | list[str]) -> frozenset[str] | None:
    return None if isinstance(given, str) else frozenset(given)
