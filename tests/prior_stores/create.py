"""Leave small stores of the present format behind: python tests/prior_stores/create.py

To be run before the format changes, never for a format whose file is there already: those files are what
users have. Beside each store stands what it shows, as Python literals. In `received/` there is one that hosts
views alone, and the one that it got them from.
"""

import datetime as dt
import math
import sqlite3
import sys
from decimal import Decimal
from pathlib import Path

import everview as ev
from everview.engines.sqlite.migrations import FORMAT

FOLDER = Path(__file__).parent
PROGRAM = """
-- A program with all kinds of relations, types and operators.
CREATE TABLE reading (sensor TEXT NOT NULL, at TIMESTAMP, value DOUBLE, ok BOOLEAN);
CREATE TABLE sensor (id TEXT PRIMARY KEY, place TEXT, since DATE, price DECIMAL(10,2), wide DECIMAL(30,3));
CREATE TABLE click (n BIGINT, raw BLOB) WITH (semantics = 'bag');
CREATE TABLE tag (sensor TEXT, tag TEXT) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW good AS SELECT sensor, value FROM reading WHERE ok;
CREATE MATERIALIZED VIEW placed AS SELECT r.value, s.place FROM reading AS r LEFT JOIN sensor AS s
    ON s.id = r.sensor;
CREATE MATERIALIZED VIEW totals AS SELECT sensor, count(*) AS n, sum(value) AS total, max(value) AS most
    FROM reading GROUP BY sensor;
CREATE MATERIALIZED VIEW costs AS SELECT sum(price) AS price, avg(wide) AS wide, count(DISTINCT place) AS n
    FROM sensor;
CREATE MATERIALIZED VIEW clicks AS SELECT n % 2 AS odd, count(*) AS c FROM click GROUP BY n % 2;
CREATE MATERIALIZED VIEW best AS SELECT sensor, total FROM totals ORDER BY total DESC LIMIT 2;
CREATE MATERIALIZED VIEW untagged AS SELECT id FROM sensor EXCEPT SELECT sensor FROM tag;
CREATE MATERIALIZED VIEW ranked AS SELECT n, row_number() OVER (PARTITION BY raw ORDER BY n) AS r FROM click;
CREATE MATERIALIZED VIEW tags AS SELECT DISTINCT tag FROM tag;
"""


VIEWS = frozenset({"good", "placed", "tags", "untagged"})


def fill(site):
    """Rows of all kinds, some of them gone again."""
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    site.insert(
        "reading",
        [
            ("a", noon, 1.5, True),
            ("a", noon, math.nan, False),
            ("b", None, 0.1, None),
            ("c", None, None, True),
        ],
    )
    site.delete("reading", [("c", None, None, True)])
    site.insert("reading", [("c", None, -2.25, True)])
    site.insert(
        "sensor",
        [
            ("a", "roof", dt.date(2020, 1, 1), Decimal("12.50"), Decimal("-99999999999999999999.125")),
            ("b", None, dt.date(1969, 7, 20), None, Decimal("0.001")),
            ("d", "cellar", None, Decimal("0.05"), None),
        ],
    )
    site.insert("sensor", [("b", "garden", None, Decimal(7), None)])
    site.delete("sensor", [("d",)])
    site.insert("click", [(1, b"x"), (1, b"x"), (2, b"\x00\xff"), (3, None), (4, b"x")])
    site.delete("click", [(1, b"x"), (3, None)])
    site.insert("tag", [("a", "hot"), ("a", "hot"), ("b", "cold")])
    site.delete("tag", [("b", "cold")])


def main():
    alone = FOLDER / f"format_{FORMAT}.db"
    received, sender = (FOLDER / "received" / f"format_{FORMAT}{end}.db" for end in ("", "_sender"))
    if alone.exists() and received.exists():
        sys.exit(f"{alone.name} is there already")
    program = ev.Program.parse(PROGRAM)
    if not alone.exists():
        with ev.Site.open(alone, program, name="old") as site:
            fill(site)
            keep(site, alone)
    with (
        ev.Site.open(sender, program, name="sender") as holder,
        ev.Site.open(received, program, name="old", hosts=VIEWS) as viewer,
    ):
        fill(holder)
        viewer.sync(holder)
        holder.sync(viewer)
        keep(viewer, received, VIEWS)
        keep(holder, sender)
    for path in (alone, received, sender):
        shrink(path)
        path.with_name(f"{path.name}-shown").unlink(missing_ok=True)


def keep(site, path, shown=None):
    """Write down what a site shows."""
    names = [name for name in site.program.names() if shown is None or name in shown]
    lines = [f"{name}: {site.rows(name)!r}" for name in names]
    path.with_suffix(".rows.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def shrink(path):
    # A page for each table: with small ones the file is small.
    raw = sqlite3.connect(path, isolation_level=None)
    for sql in (
        "UPDATE everview_store SET file = ''",  # where it was made is nobody's business
        "PRAGMA journal_mode = DELETE",
        "PRAGMA page_size = 512",
        "VACUUM",
        "PRAGMA journal_mode = WAL",
    ):
        raw.execute(sql)
    raw.close()


if __name__ == "__main__":
    main()
