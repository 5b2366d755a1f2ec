"""`everview init` and `everview check`: programs, and stores made for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everview.cli.missing import missing_file
from everview.cli.options import Debug, Json, count, print_json
from everview.errors import EverviewError, ProgramError, StoreError

if TYPE_CHECKING:
    from everview.language.plan import Schema
    from everview.language.program import Program
    from everview.language.relations import Relation

__all__ = ["check", "init", "loaded_program"]

Text = Annotated[Path, typer.Argument(metavar="PROGRAM", help="The program's file.", show_default=False)]


def init(
    store: Annotated[
        Path,
        typer.Argument(
            metavar="STORE",
            help="The store's file; without a program, a project's folder.",
            show_default=False,
        ),
    ],
    *,
    program: Annotated[
        Path | None,
        typer.Option("--program", "-p", help="The program's file.", show_default="a project to begin with"),
    ] = None,
    name: Annotated[str, typer.Option("--name", "-n", help="A label for this site.")] = "",
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--hosts",
            metavar="NAME[/COLUMN=VALUE,…]",
            help="A relation or view that it hosts, or values of a partitioned one; may be repeated.",
            show_default="all",
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Create a store for a program; without one, a project that runs at once.

    Example: everview init rescue.db --program rescue.sql --name drone-7
    """
    from everview.site import Site  # noqa: PLC0415 - not needed for --help

    if program is None:
        if hosts:
            raise StoreError("--hosts goes with --program; a project's site hosts all there is")
        _init_project(store, name, as_json=as_json)
        return
    loaded = loaded_program(program)
    if store.exists() and not (store.is_file() and store.stat().st_size == 0):
        raise StoreError(f"{store} exists already; choose another path, or remove it first", path=str(store))
    from everview.engines.sqlite.partitions import hosts_of  # noqa: PLC0415 - not needed for --help

    chosen = hosts_of(loaded, hosts) if hosts else None  # what is wrong is refused before there is a file
    with Site.open(store, loaded, name=name, hosts=chosen) as site:
        state = site.status()
    if as_json:
        wanted = ("path", "name", "incarnation", "program")
        print_json({key: state[key] for key in wanted})
    else:
        relations, views = (
            [one for one in names if chosen is None or one in chosen]
            for names in ([relation.name for relation in _declared(loaded)], loaded.views)
        )
        counts = f"{count(relations, 'relation')}, {count(views, 'view')}"
        sys.stdout.write(f"created {store}: {counts}\n")


def _init_project(folder: Path, name: str, *, as_json: bool) -> None:
    from everview.cli.load import load  # noqa: PLC0415 - not needed for --help
    from everview.cli.projects import FILES, HINT, ROWS, create_project  # noqa: PLC0415
    from everview.cli.sources import Source  # noqa: PLC0415

    with create_project(folder, name) as site:
        for relation in ROWS:
            load(site, relation, [Source.named(str(folder / "data" / f"{relation}.csv"), None)])
        state = site.status()
    if as_json:
        print_json({key: state[key] for key in ("path", "name", "incarnation", "program")})
        return
    sys.stdout.write(f"created {folder}: {', '.join(FILES)}\n")
    sys.stdout.write(f"try: cd {folder} && {HINT}\n")


def check(
    program: Text,
    *,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Read a program; print its relations and views, or what is wrong with it and where.

    Example: everview check rescue.sql
    """
    try:
        found = loaded_program(program)
    except EverviewError as error:
        if as_json:
            print_json({"ok": False, "error": _told(error)})
            raise
        if not isinstance(error, ProgramError) or error.line is None:
            raise
        _complain(program, error)
        raise typer.Exit(1) from error
    if as_json:
        print_json(
            {
                "ok": True,
                "program": found.hash,
                "relations": [_relation(relation) for relation in found.relations.values()],
                "views": [
                    {"name": view.name, "reads": list(view.reads), "columns": _columns(view.schema)}
                    for view in found.views.values()
                ],
            }
        )
        return
    _print_program(found)


def loaded_program(path: Path) -> Program:
    """Read a program; an error in it names the file."""
    from everview.language.program import Program  # noqa: PLC0415 - not needed for --help

    if not path.is_file():
        raise ProgramError(missing_file(path, "name the file with the program's CREATE statements"))
    try:
        return Program.load(path)
    except ProgramError as error:
        if error.line is None:
            raise
        raise _LocatedError(path, error) from None


class _LocatedError(ProgramError):
    """An error in a program's text, with the file's name before it."""

    def __init__(self, path: Path, error: ProgramError) -> None:
        super().__init__(error.message, line=error.line, column=error.column, hint=error.hint)
        self.args = (f"{path}, {error}",)


def _declared(program: Program) -> list[Relation]:
    """The relations that the program declares: names that begin with everview_ are reserved."""
    return [one for name, one in program.relations.items() if not name.startswith("everview_")]


def _print_program(program: Program) -> None:
    declared = _declared(program)
    for relation in declared:
        kind = relation.semantics.value.replace("_", "-")
        owner = f", written by its {relation.owner} alone" if relation.owner else ""
        sys.stdout.write(f"relation {relation.name} ({kind}{owner})\n")
        width = max(len(column) for column in relation.columns)
        for field in relation.schema:
            key = "  key" if field.name in relation.key else ""
            null = "" if field.nullable or key else "  NOT NULL"
            sys.stdout.write(f"  {field.name:{width}}  {field.type}{key}{null}\n")
    for view in program.views.values():
        by = f", published by {view.authority}" if view.authority is not None else ""
        sys.stdout.write(f"view {view.name} (reads {', '.join(view.reads) or 'nothing'}{by})\n")
        width = max(len(column) for column in view.columns)
        for field in view.schema:
            sys.stdout.write(f"  {field.name:{width}}  {field.type}\n")
    beside = program.relations.keys() - {relation.name for relation in declared}
    if beside:
        sys.stdout.write(f"beside windowed relations Everview keeps {', '.join(sorted(beside))}\n")
    counts = f"{count(declared, 'relation')}, {count(program.views, 'view')}"
    sys.stdout.write(f"{counts}: the program is right\n")


def _complain(path: Path, error: ProgramError) -> None:
    """One line on standard error; the line of the text, a caret and the hint on standard output."""
    from rich.cells import cell_len  # noqa: PLC0415 - only for a wrong program

    typer.secho("error: ", nl=False, err=True, fg="red", bold=True)
    typer.echo(f"{path}, line {error.line}, column {error.column}: {error.message}", err=True)
    sys.stderr.flush()
    lines = path.read_text(encoding="utf-8").splitlines()
    number, column = error.line or 1, error.column or 1
    text = lines[number - 1] if number <= len(lines) else ""
    margin = " " * len(str(number))
    # Tabs before the caret stay tabs, so that it stands under its column whatever their width.
    before = "".join(c if c == "\t" else " " * cell_len(c) for c in text[: column - 1])
    sys.stdout.write(f"{number} | {text}\n{margin} | {before}^\n")
    if error.hint:
        sys.stdout.write(f"hint: {error.hint}\n")


def _told(error: EverviewError) -> dict[str, Any]:
    if isinstance(error, ProgramError):
        return {"message": error.message, "line": error.line, "column": error.column, "hint": error.hint}
    return {"message": str(error)}


def _relation(relation: Relation) -> dict[str, Any]:
    return {
        "name": relation.name,
        "semantics": relation.semantics.value,
        "key": list(relation.key),
        "owner": relation.owner,
        "columns": _columns(relation.schema),
    }


def _columns(schema: Schema) -> list[dict[str, Any]]:
    return [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema]
