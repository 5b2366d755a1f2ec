"""`everview query`, `why`, `explain` and `status`: what a store can be asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everview.cli.options import Debug, Json, Store, open_store, print_json, size

if TYPE_CHECKING:
    from everview.planner.why.answer import Proof, Provenance

__all__ = ["explain", "query", "status", "why"]

_EMPTY = '""'
"""How the empty text is shown and typed where nothing at all would be NULL."""

Name = Annotated[str, typer.Argument(metavar="VIEW", help="The view, or a relation.", show_default=False)]


def query(
    store: Store,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A SELECT.", show_default=False)],
    *,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="VALUE",
            help="A value for the next ?, or NAME=VALUE for :NAME; may be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines: an object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Run a SELECT over relations and views.

    Example: everview query rescue.db 'SELECT name FROM person WHERE born < :day' --param day=2000-01-01
    """
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    from everview.cli.csv_files import csv_line  # noqa: PLC0415 - not needed for --help
    from everview.cli.json_lines import json_line  # noqa: PLC0415
    from everview.cli.queries import run_query  # noqa: PLC0415
    from everview.cli.tables import print_rows  # noqa: PLC0415

    with open_store(store) as site:
        schema, rows = run_query(site, sql, param or [])
    names = [field.name for field in schema]
    if as_json:
        sys.stdout.writelines(json_line(names, row) + "\n" for row in rows)
    elif as_csv:
        sys.stdout.write(csv_line(names) + "\n")
        sys.stdout.writelines(csv_line(row) + "\n" for row in rows)
    else:
        print_rows(schema, rows)


def why(
    store: Store,
    view: Name,
    row: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW...",
            help="COLUMN=VALUE for each column, or the row as a JSON object or array.",
            show_default=False,
        ),
    ],
    *,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Say which rows of relations a row of a view is there for.

    Example: everview why rescue.db seen name=Ann place=Oslo
    """
    from everview.cli.json_lines import json_object  # noqa: PLC0415 - not needed for --help
    from everview.cli.queries import read_row  # noqa: PLC0415

    with open_store(store) as site:
        schema = site.program.schema(view)
        values = read_row(view, schema, row)
        found = site.why(view, values)
    if as_json:
        names = [field.name for field in schema]
        print_json({"view": view, "row": json_object(names, values), **_as_object(found)})
        return
    sys.stdout.write(f"{found}\n")
    if not found:
        sys.stdout.write(f"{view} has no such row\n")
    _print_witnesses(found)
    if found.proof is not None:
        sys.stdout.write(f"\n{found.proof}\n")


def _as_object(found: Provenance) -> dict[str, Any]:
    from everview.cli.json_lines import json_object  # noqa: PLC0415

    tuples = found.tuples()
    labels: dict[Any, str] = {witness.id: witness.label for witness in tuples}
    numbers = {label: number for number, label in enumerate(labels.values())}
    monomials = [sorted((labels[id_] for id_ in m), key=numbers.__getitem__) for m in found.monomials]
    return {
        "provenance": str(found),
        "monomials": sorted(monomials, key=lambda labels: [numbers[label] for label in labels]),
        "tuples": [
            {
                "label": witness.label,
                "id": witness.id.hex(),
                "relation": witness.relation,
                "values": json_object(list(witness.values), list(witness.values.values())),
                "origin": witness.origin,
            }
            for witness in tuples
        ],
        **({} if found.proof is None else {"proof": _proof(found.proof)}),
    }


def _proof(proof: Proof) -> dict[str, Any]:
    """A proof as nested objects, premises inside."""
    from everview.cli.json_lines import json_value  # noqa: PLC0415

    made: dict[int, dict[str, Any]] = {}
    for _, part in reversed(list(proof.walk())):
        premises = [made[id(premise)] for premise in part.premises]
        made[id(part)] = {
            "relation": part.relation,
            "row": [json_value(cell) for cell in part.row],
            "premises": premises,
        }
    return made[id(proof)]


def _print_witnesses(found: Provenance) -> None:
    from everview.cli.tables import shown  # noqa: PLC0415

    tuples = found.tuples()
    width = max((len(witness.label) for witness in tuples), default=0)
    for witness in tuples:
        values = ", ".join(f"{name}={shown(value) or _EMPTY}" for name, value in witness.values.items())
        origin = f"  from {witness.origin}" if witness.origin else ""
        sys.stdout.write(f"  {witness.label:{width}}  {witness.relation}({values}){origin}\n")


def explain(
    store: Store,
    view: Name,
    *,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Say how a view is kept, and why so.

    Example: everview explain rescue.db seen
    """
    with open_store(store) as site:
        sys.stdout.write(site.explain(view) + "\n")


def status(
    store: Store,
    *,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Say what there is to know about a store: its size, commits and rows, and about the other sites.

    Example: everview status rescue.db --json
    """
    from everview.cli.peers import print_replication  # noqa: PLC0415 - not needed for --help

    with open_store(store) as site:
        state = site.status()
    if as_json:
        print_json(state)
        return
    facts = {
        "store": f"{state['path']} ({size(state['bytes'])})",
        "name": state["name"] or "(none)",
        "incarnation": state["incarnation"],
        "program": state["program"][:12],
        "commits": f"{state['commits']:,}",
        "failed expressions": f"{state['failed_expressions']:,}",
    }
    facts |= {f"values of {name}": "; ".join(said) for name, said in state.get("values", {}).items()}
    for label, fact in facts.items():
        sys.stdout.write(f"{label + ':':20}{fact}\n")
    found = [(kind, name, f"{n:,}") for kind in ("relation", "view") for name, n in state[f"{kind}s"].items()]
    wide = max((len(name) for _, name, _ in found), default=0)
    long = max((len(number) for _, _, number in found), default=0)
    for kind, name, number in found:
        sys.stdout.write(f"{kind:9} {name:{wide}}  {number:>{long}} row{'' if number == '1' else 's'}\n")
    print_replication(state["replication"])
