"""A project to begin with: a folder with a program, some rows, a store that has them, and what to try."""

from __future__ import annotations

from pathlib import Path

from everview.errors import StoreError
from everview.language.program import Program
from everview.site import Site

__all__ = ["FILES", "HINT", "ROWS", "create_project"]

STORE = "site.db"

PROGRAM = """\
-- Relations are written, by any site, online or offline.
CREATE TABLE sector (
    id   TEXT PRIMARY KEY,          -- one row for each key; the last writer wins
    open BOOLEAN NOT NULL
);
CREATE TABLE path (                 -- without a key: a set of rows
    a TEXT NOT NULL,
    b TEXT NOT NULL
);
CREATE TABLE sighting (
    sector TEXT NOT NULL,
    what   TEXT NOT NULL,
    seen   TIMESTAMP NOT NULL
);

-- Views are always what their queries say.
CREATE MATERIALIZED VIEW busy AS
    SELECT sector, count(*) AS sightings, max(seen) AS latest FROM sighting GROUP BY sector;

CREATE MATERIALIZED VIEW reachable AS
    WITH RECURSIVE way (a, b) AS (
        SELECT path.a, path.b FROM path JOIN sector ON sector.id = path.b WHERE sector.open
        UNION
        SELECT way.a, path.b FROM way JOIN path ON path.a = way.b JOIN sector ON sector.id = path.b
        WHERE sector.open
    )
    SELECT a, b FROM way;
"""

ROWS = {
    "sector": "id,open\nbase,true\nlake,true\nridge,true\nvalley,false\n",
    "path": "a,b\nbase,lake\nlake,ridge\nlake,valley\n",
    "sighting": (
        "sector,what,seen\n"
        "lake,tent,2024-05-04T09:30:00Z\n"
        "lake,smoke,2024-05-04T10:05:00Z\n"
        "ridge,signal,2024-05-04T10:20:00Z\n"
    ),
}

README = """\
# {name}

`program.sql` declares relations and views; `{store}` is this site's store, with the rows of `data/` in it.

    everview query {store} "SELECT sector, sightings FROM busy"
    everview why {store} reachable a=base b=ridge
    everview explain {store} reachable

Write, and look again:

    echo '{{"id": "valley", "open": true}}' | everview insert {store} sector - --format json
    everview query {store} "SELECT * FROM reachable"

A second site, and a sync with it; either may be offline meanwhile:

    everview init other.db --program program.sql --name other
    everview sync --store other.db stick
    everview sync --store {store} stick
    everview sync --store other.db stick

Change `program.sql`, and bring the store over; the plan is shown first:

    everview migrate {store} --program program.sql
"""

HINT = 'everview query site.db "SELECT sector, sightings FROM busy"'
"""What to try first."""

FILES = ("program.sql", "data", STORE, "README.md")
"""What a project has."""


def create_project(folder: Path, name: str) -> Site:
    """Make a project in a folder that is new or empty, and return its site."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(
            f"{folder} is there and not empty; name a folder that is new, or a program with --program to "
            "make a store alone",
            path=str(folder),
        )
    (folder / "data").mkdir(parents=True)
    (folder / "program.sql").write_text(PROGRAM, encoding="utf-8")
    for relation, text in ROWS.items():
        (folder / "data" / f"{relation}.csv").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(README.format(name=folder.name, store=STORE), encoding="utf-8")
    return Site.open(folder / STORE, Program.load(folder / "program.sql"), name=name or folder.name)
