"""Whether what a token is to grant can work: by the program where it is known, else by the names alone."""

from __future__ import annotations

import typer

from everview.errors import DataError
from everview.language.program import Program
from everview.replication.grants import lacking, told_lacking, told_unreadable, unreadable
from everview.replication.rights import Rights

__all__ = ["check_grant"]


def check_grant(site: str, read: str | list[str], write: str | list[str], program: Program | None) -> None:
    """Refuse a grant that cannot work, and warn of one that may bring less than was meant."""
    rights = Rights(site, _names(read), _names(write))
    if program is None:
        _check_names(rights)
        return
    known = set(program.names())
    unknown = sorted(((rights.reads or frozenset()) | (rights.writes or frozenset())) - known)
    if unknown:
        raise DataError(f"{unknown[0]} is not in the program; it has {', '.join(sorted(known))}")
    refused = unreadable(program, rights)
    if refused:
        raise DataError(told_unreadable(rights, refused))
    needs = lacking(program, rights)
    if needs:
        typer.echo(f"warning: {told_lacking(rights, needs)}", err=True)


def _check_names(rights: Rights) -> None:
    """Whether a name is a relation's is not known here; a view may be written without being read."""
    if rights.reads is None:
        return
    if rights.writes is None:
        what, more = "everything and read only some of it", "--read '*', or what it may write"
    else:
        names = sorted(rights.writes - rights.reads)
        if not names:
            return
        what = f"{', '.join(names)} and not read {'it' if len(names) == 1 else 'them'}"
        more = " ".join(f"--read {name}" for name in names) + ", too"
    raise DataError(
        f"{rights.site} may write {what}, and would send nothing of relations: "
        f"a site reads a relation before it sends rows of it; say {more}, "
        "or name the program by --program if these are views"
    )


def _names(given: str | list[str]) -> frozenset[str] | None:
    return None if isinstance(given, str) else frozenset(given)
