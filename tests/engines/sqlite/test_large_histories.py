"""Commits of up to half of the tables: after each, every view is what SQLite answers over bare tables.

Rows come and go in hundreds, some are NULL, and some tables hold a row several times; so sizes choose as they
do at a site. Small histories of random programs, by the same strategies, are compared with the reference.
"""

import random
import sqlite3
from collections import Counter

import pytest

import everview as ev
from everview.engines.sqlite.circuits.circuit import Strategy

TABLES = """
CREATE TABLE n (id BIGINT, v BIGINT);
CREATE TABLE e (a BIGINT, b BIGINT);
CREATE TABLE r (k BIGINT, v BIGINT, w BIGINT) WITH (semantics = 'bag');
CREATE TABLE s (k BIGINT) WITH (semantics = 'bag');
"""
WIDTHS = {"n": 2, "e": 2, "r": 3, "s": 1}
BAGS = {"r", "s"}
VIEWS = {
    "neighbours": "SELECT x.v AS v, y.v AS w FROM n x JOIN e ON e.a = x.id JOIN n y ON e.b = y.id",
    "path": "SELECT x.a AS a, z.b AS b FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a",
    "ends": "SELECT DISTINCT x.a AS a, y.b AS b FROM e x JOIN e y ON x.b = y.a",
    "triangles": "SELECT x.a AS a, count(*) AS n, max(y.b) AS most FROM e x JOIN e y ON x.b = y.a "
    "JOIN e z ON y.b = z.a AND z.b = x.a GROUP BY x.a",
    "cycles": "SELECT count(*) AS n FROM e x JOIN e y ON x.b = y.a AND y.b = x.a",
    "over": "SELECT n, count(*) AS c FROM triangles GROUP BY n",
    "one_key": "SELECT n.v AS a, r.v AS b, s.k AS c FROM n JOIN r ON n.id = r.k JOIN s ON n.id = s.k",
    "either": "SELECT x.v AS v FROM r x LEFT JOIN n ON n.id = x.k AND n.v > x.v",
    "others": "SELECT k, v FROM r x WHERE EXISTS (SELECT 1 FROM r y WHERE y.k = x.k AND y.v <> x.v)",
    "pairs": "SELECT x.v AS a, y.v AS b FROM r x JOIN r y ON x.k = y.k AND x.v > y.v",
    "maximum": "SELECT k, w FROM r x WHERE v = (SELECT max(v) FROM r y WHERE y.k = x.k)",
    "not_in": "SELECT v FROM r WHERE k NOT IN (SELECT k FROM s)",
    "not_in_key": "SELECT v FROM r WHERE v NOT IN (SELECT id FROM n WHERE n.v = r.w)",
    "any": "SELECT id FROM n WHERE EXISTS (SELECT 1 FROM s WHERE s.k > 38)",
}
PROGRAM = ev.Program.parse(
    TABLES + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items())
)


def bare():
    """Bare tables, and the views as SQLite's own."""
    connection = sqlite3.connect(":memory:")
    for table, width in WIDTHS.items():
        columns = {"n": "id, v", "e": "a, b", "r": "k, v, w", "s": "k"}[table]
        assert columns.count(",") == width - 1
        connection.execute(f"CREATE TABLE {table} ({columns})")
    for view, query in VIEWS.items():
        connection.execute(f"CREATE VIEW {view} AS {query}")
    return connection


def value(rng, nulls):
    return None if rng.random() < nulls else rng.randrange(40)


def fresh(rng, table, count, nulls):
    rows = [tuple(value(rng, nulls) for _ in range(WIDTHS[table])) for _ in range(count)]
    return rows if table in BAGS else list(dict.fromkeys(rows))


def write(rng, site, connection, held, nulls):
    """Insert into one table, or delete from it, up to half of what there is, here and there."""
    table = rng.choice(list(WIDTHS))
    there = sorted(held[table].elements(), key=repr)
    size = rng.choice([1, 3, 40, len(there) // 2 + 1])
    if len(there) > 150 or (there and rng.random() < 0.4):
        rows = there if rng.random() < 0.05 else rng.sample(there, min(size, len(there)))
        site.delete(table, rows)
        held[table].subtract(rows)
    else:
        rows = fresh(rng, table, max(size, 1), nulls)
        if table not in BAGS:
            rows = [row for row in rows if not held[table][row]]
        site.insert(table, rows)
        held[table].update(rows)
    held[table] = +held[table]
    connection.execute(f"DELETE FROM {table}")
    marks = ", ".join("?" * WIDTHS[table])
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", list(held[table].elements()))


@pytest.mark.parametrize("strategy", [Strategy(), Strategy(anew=0), Strategy(many=1)], ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_views_are_what_sqlite_answers(seed, strategy):
    rng, connection = random.Random(seed), bare()
    nulls = 0.05 if seed % 2 else 0.0
    held = {table: Counter() for table in WIDTHS}
    with ev.Site.open(":memory:", PROGRAM) as site:
        site._store.engine.circuit.strategy = strategy
        for _ in range(25):
            with site.transaction():
                for _ in range(rng.choice([1, 1, 3])):
                    write(rng, site, connection, held, nulls)
            for view in VIEWS:
                answer = Counter(connection.execute(f"SELECT * FROM {view}").fetchall())
                assert Counter(site.rows(view)) == answer, view


def test_what_is_watched_changes_by_what_differs():
    """A view that is computed anew tells its watches of no row that stays."""
    rng = random.Random(7)
    with ev.Site.open(":memory:", PROGRAM) as site:
        kept = {name: Counter() for name in VIEWS}
        for name, rows in kept.items():
            site.watch(name, lambda changes, rows=rows: follow(rows, changes))
        for size in (60, 60, 5):
            site.insert("e", fresh(rng, "e", size, 0))
            site.insert("r", fresh(rng, "r", size, 0))
            site.insert("n", fresh(rng, "n", size, 0))
            assert {name: +rows for name, rows in kept.items()} == {n: Counter(site.rows(n)) for n in VIEWS}
        site.delete("e", site.rows("e")[::2])
        assert {name: +rows for name, rows in kept.items()} == {n: Counter(site.rows(n)) for n in VIEWS}


def follow(rows, changes):
    for row, weight in changes:
        assert weight
        rows[tuple(row.values()) if isinstance(row, dict) else tuple(row)] += weight
