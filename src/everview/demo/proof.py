"""The proof at the end: all sites, the hub, and plain SQLite that never heard of Everview, side by side."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.tree import Tree

from everview.demo.terrain import NAMES, RELATIONS, VIEWS
from everview.language.windowed import PROGRESS

Rows = Mapping[str, Sequence[tuple[Any, ...]]]

_TABLES = """
    CREATE TABLE sectors (sector, name, searched);
    CREATE TABLE paths (a, b, passable);
    CREATE TABLE units (unit, sector, ready);
    CREATE TABLE sightings (drone, at, sector, what);
    CREATE VIEW seen AS
        SELECT datetime(unixepoch(at) / 600 * 600, 'unixepoch') || '+00:00' AS since, sector,
            count(*) AS sightings, 1 AS final
        FROM sightings GROUP BY 1, 2;
    CREATE VIEW reachable AS
        WITH RECURSIVE reached(sector) AS (
            SELECT 1
            UNION SELECT iif(a = sector, b, a) FROM reached JOIN paths ON passable AND sector IN (a, b)
        ) SELECT sector FROM reached;
    CREATE VIEW priority AS
        SELECT sector, name, max(seen.sightings) AS sightings FROM seen JOIN sectors USING (sector)
        WHERE NOT searched GROUP BY sector, name HAVING max(seen.sightings) >= 3;
    CREATE VIEW orders AS
        SELECT unit, priority.sector, name, sightings FROM priority JOIN reachable USING (sector), units
        WHERE ready AND units.sector <> priority.sector;
    CREATE VIEW flown AS
        SELECT drone, count(*) AS sightings, count(DISTINCT sector) AS sectors FROM sightings GROUP BY drone;
"""


def recomputed(base: Rows) -> dict[str, list[tuple[Any, ...]]]:
    """The views, computed from the rows of the relations by nothing but SQLite."""
    database = sqlite3.connect(":memory:")
    database.executescript(_TABLES)
    for name in RELATIONS:
        for row in base[name]:
            database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    found = {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in VIEWS}
    database.close()
    return {**{name: list(base[name]) for name in RELATIONS}, **found}


def agreement(shown: Mapping[str, Rows], wanted: Rows) -> tuple[Table, bool]:
    """A table of who shows what, and whether everything is as it should be."""
    title = "everyone against a plain recomputation"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("site", no_wrap=True)  # with all the others it fits into 80 columns
    for name in (*RELATIONS, *VIEWS):
        table.add_column(name, justify="right")
    agreed = True
    for site, rows in shown.items():
        cells = []
        for name in (*RELATIONS, *VIEWS):
            if name not in rows:
                cells.append("[dim]–[/]")
                continue
            same = sorted(rows[name]) == sorted(wanted[name])
            agreed &= same
            cells.append(f"{len(rows[name])} [green]✓[/]" if same else f"{len(rows[name])} [red]✗[/]")
        table.add_row(site, *cells)
    table.add_section()
    table.add_row("recomputed", *(str(len(wanted[name])) for name in (*RELATIONS, *VIEWS)))
    return table, agreed


def sentence(order: Sequence[Any], tuples: Sequence[Mapping[str, Any]]) -> str:
    """Why somebody should go somewhere, in words."""
    unit, _, name, most = order
    by = sorted({t["values"]["drone"] for t in tuples if t["relation"] == "sightings"})
    steps = [t for t in tuples if t["relation"] == "paths"]
    return (
        f"{unit} should go to {name}: {most} things were seen there within ten minutes, by {_listed(by)}; "
        f"nobody has searched it; and it can be reached from the camp by {len(steps)} "
        f"{'path that is' if len(steps) == 1 else 'paths that are'} passable."
    )


def tree(order: Sequence[Any], tuples: Sequence[Mapping[str, Any]]) -> Tree:
    """The same as a tree, down to the rows and who wrote them."""
    unit, _, name, most = order
    root = Tree(f"[bold]orders[/]({unit}, {name}, {most})")
    for relation in dict.fromkeys(t["relation"] for t in tuples):
        branch = root.add("windows that are closed" if relation == PROGRESS else f"[bold]{relation}[/]")
        how = "known" if relation == PROGRESS else "written"  # how far a source is here each says itself
        for found in tuples:
            if found["relation"] == relation:
                branch.add(f"{_row(relation, found['values'])}   [dim]{how} at {found['origin']}[/]")
    return root


def _row(relation: str, values: Mapping[str, Any]) -> str:
    if relation == "paths":
        return f"{NAMES[values['a'] - 1]} – {NAMES[values['b'] - 1]}, passable"
    if relation == "sightings":
        return f"{values['what']} in {NAMES[values['sector'] - 1]} at {str(values['at'])[11:16]}"
    if relation == PROGRESS:
        return f"{values['source']}, until {str(values['until'])[11:16]}"
    return ", ".join(str(value) for value in values.values())


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
