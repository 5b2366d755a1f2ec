"""`everview doctor`: what is wrong with a store."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from everview.cli.options import Debug, Json, Store, count, print_json
from everview.errors import StoreError

__all__ = ["doctor"]

_MARKS = {"fine": ("ok", "green"), "warning": ("warning", "yellow"), "error": ("error", "red")}


def doctor(
    store: Store,
    *,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Look at a store without touching it, and say what is wrong: file, tables, views, clock, other sites.

    Every view is computed anew and compared, on a copy in the folder for temporary files.

    Example: everview doctor rescue.db
    """
    from everview.cli.page_meter import PageMeter  # noqa: PLC0415 - not needed for --help
    from everview.doctor import examine  # noqa: PLC0415

    if not store.is_file():
        raise StoreError(f"{store} is no file; name the file of a store", path=str(store))
    with PageMeter(f"copying {store}") as meter:
        found = []
        for one in examine(store, meter):
            found.append(one)
            if not as_json:
                mark, color = _MARKS[one.level]
                typer.secho(f"{mark:8}", nl=False, fg=color)
                sys.stdout.write(
                    f"{one.about}: {one.text}" + (f"; {one.advice}" if one.advice else "") + "\n"
                )
    wrong = [one for one in found if one.level == "error"]
    if as_json:
        print_json({"ok": not wrong, "findings": [asdict(one) for one in found]})
    if wrong:
        raise StoreError(f"{count(wrong, 'thing')} wrong with {store}: see above", path=str(store))
