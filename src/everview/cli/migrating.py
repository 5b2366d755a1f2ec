"""`everview migrate`: a store, or a hub's, for a changed program; or a store that is to host more."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everview.cli.options import Debug, Json, count, open_store, print_json
from everview.cli.programs import loaded_program
from everview.errors import ProgramError, StoreError

if TYPE_CHECKING:
    from everview.language.evolution import Evolution
    from everview.language.program import Program

__all__ = ["migrate"]


def migrate(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="The store's file, or a hub's folder.", show_default=False)
    ],
    *,
    program: Annotated[
        Path | None,
        typer.Option("--program", "-p", help="The changed program's file.", show_default="the store's own"),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--hosts",
            metavar="NAME[/COLUMN=VALUE,…]",
            help="A relation or view that it is to host as well, or values of one; may be repeated.",
            show_default="as before",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and do nothing.")] = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Bring a store over to a changed program, or have it host more; the plan is shown first.

    Nobody else may have the store open.

    Example: everview migrate rescue.db --program rescue.sql
    """
    if program is None and not hosts:
        raise typer.BadParameter("say --program FILE, or what the store is to host as well: --hosts NAME")
    if not store.exists():
        created = program or "FILE"
        raise StoreError(
            f"{store} does not exist; `everview init {store} --program {created}` creates a store",
            path=str(store),
        )
    if store.is_dir() and hosts:
        raise StoreError(f"{store} is a hub's, which hosts all there is; leave out --hosts", path=str(store))
    new = _own_program(store) if program is None else loaded_program(program)
    from everview.engines.sqlite.partitions import hosts_of  # noqa: PLC0415 - not needed for --help

    wanted = hosts_of(new, hosts) if hosts else None
    evolution = _evolve(store, new, wanted, dry_run=True)
    more = _not_hosted(store, wanted or {}) if evolution.is_nothing else []
    is_nothing = evolution.is_nothing and not more
    does = not (dry_run or evolution.refused or is_nothing)
    if not as_json:
        for line in plan_lines(evolution, more):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    if does and not yes:
        does = not as_json and typer.confirm(f"migrate {store}?")
    if does:
        _evolve(store, new, wanted, dry_run=False)
    if as_json:
        print_json(_as_json(evolution, done=does) | {"hosted": more})
    elif does:
        sys.stdout.write(f"{store}: migrated\n")
    if evolution.refused:
        why = "; ".join(evolution.refused)
        raise ProgramError(f"{store} cannot go over to {program}, and nothing was changed: {why}")


def _evolve(store: Path, program: Program, hosts: dict[str, Any] | None, *, dry_run: bool) -> Evolution:
    """Plan, or do, what it takes."""
    if store.is_dir():
        from everview.hub import Hub  # noqa: PLC0415 - it brings Spark

        return Hub.migrate(store, program, dry_run=dry_run)
    from everview.site import Site  # noqa: PLC0415 - not needed for --help

    return Site.migrate(store, program, hosts=hosts, dry_run=dry_run)


def _own_program(store: Path) -> Program:
    with open_store(store) as site:
        return site.program


def _not_hosted(store: Path, wanted: Mapping[str, Any]) -> list[str]:
    """Those of some names that a store does not host yet, or not all that is wanted of them."""
    from everview.engines.sqlite.partitions import choices_of  # noqa: PLC0415 - not needed for --help
    from everview.language.partitions import includes  # noqa: PLC0415

    with open_store(store) as site:
        here, more = site.inspection.hosted(), choices_of(site.program, wanted)
        parts = site.inspection.parts()
    return [name for name in wanted if name not in here or not includes(parts.get(name), more.get(name))]


def plan_lines(evolution: Evolution, more: Sequence[str] = ()) -> Iterator[str]:
    """What becomes of each relation and view, a line for each that changes; `more` is hosted from now on."""
    for name in more:
        kind = "relation" if name in evolution.new.relations else "view"
        yield f"host    {kind} {name}; rows of it that are not here come with the next sync"
    if more:
        return
    if evolution.is_nothing:
        yield "the store has this program already"
        return
    new = evolution.new
    kept = [name for name in evolution.kept if not name.startswith("everview_")]
    if kept or evolution.same_views:
        yield f"keep    {count(kept, 'relation')}, {count(evolution.same_views, 'view')}"
    for name in evolution.added:
        if name.startswith("everview_"):  # what is kept beside a windowed relation
            continue
        yield f"add     relation {name}"
    for name, columns in evolution.widened.items():
        told = ", ".join(str(new.relations[name].field(column)) for column in columns)
        yield f"widen   relation {name}: {told}, NULL in the rows there are"
    for name in evolution.new_views:
        yield f"add     view {name}, computed from the rows there are"
    for name in evolution.changed_views:
        yield f"change  view {name}, computed anew"
    for name in evolution.dropped_views:
        yield f"drop    view {name}"
    for why in evolution.refused:
        yield f"refuse  {why}"


def _as_json(evolution: Evolution, *, done: bool) -> dict[str, Any]:
    return {
        "migrated": done,
        "from": evolution.old.hash,
        "to": evolution.new.hash,
        "relations": {
            "kept": list(evolution.kept),
            "added": list(evolution.added),
            "widened": {name: list(columns) for name, columns in evolution.widened.items()},
        },
        "views": {
            "kept": list(evolution.same_views),
            "added": list(evolution.new_views),
            "changed": list(evolution.changed_views),
            "dropped": list(evolution.dropped_views),
        },
        "refused": list(evolution.refused),
    }
