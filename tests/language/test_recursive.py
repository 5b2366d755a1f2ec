"""WITH RECURSIVE: its rows are those of SQLite's own recursive queries, where SQLite has them."""

import random
import sqlite3

import pytest

from everview.engines.reference.evaluate import evaluate_views
from everview.language.plan import Fixpoint, walk_plan
from everview.language.printing import plan_text
from everview.language.program import Program

TABLES = (
    "CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL); CREATE TABLE mark (x BIGINT NOT NULL, s TEXT);"
)
LINEAR = [
    """
    WITH RECURSIVE t(x, y) AS (SELECT a, b FROM edge UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y =
    e.a) SELECT * FROM t
    """,
    """
    WITH RECURSIVE t AS (SELECT a AS x FROM edge WHERE a = 1 UNION SELECT b FROM t, edge WHERE x = a)
    SELECT x, count(*) AS n FROM t JOIN mark USING (x) GROUP BY x
    """,
    """
    WITH RECURSIVE t(x, n) AS (SELECT x, 0 FROM mark UNION SELECT b, n + 1 FROM t JOIN edge ON x = a
    WHERE n < 4) SELECT x, min(n) AS n FROM t GROUP BY x
    """,
    """
    WITH RECURSIVE t(x) AS (SELECT 7 UNION SELECT x - 2 FROM t WHERE x >= 0) SELECT x FROM t
    """,
    """
    WITH RECURSIVE t(x, y) AS (SELECT a, b FROM edge UNION SELECT y, x FROM t) SELECT * FROM t
    """,
    """
    WITH RECURSIVE t(x) AS (SELECT x FROM mark UNION SELECT b FROM t JOIN edge ON x = a WHERE NOT EXISTS
    (SELECT 1 FROM mark WHERE mark.x = b AND s = 'no')) SELECT * FROM t
    """,
    """
    WITH RECURSIVE t(x, p) AS (SELECT a, '' FROM edge UNION SELECT b, p || '.' FROM t JOIN edge ON x = a
    WHERE length(p) < 3) SELECT * FROM t
    """,
    """
    WITH RECURSIVE u AS (SELECT b FROM edge), t(x) AS (SELECT 1 UNION SELECT b FROM t, u WHERE b > x)
    SELECT t.x, v.x AS y FROM t JOIN t v ON t.x < v.x
    """,
    """
    WITH RECURSIVE t(x) AS (SELECT x FROM mark UNION SELECT (x * 3 + 1) % 5 FROM t) SELECT x FROM t
    """,
]


@pytest.mark.parametrize("query", LINEAR)
def test_rows_are_those_of_sqlite(query):
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query};")
    rng = random.Random(query)
    for _ in range(5):
        edges = sorted({(rng.randrange(6), rng.randrange(6)) for _ in range(rng.randrange(12))})
        marks = sorted({(rng.randrange(6), rng.choice(("yes", "no"))) for _ in range(rng.randrange(5))})
        with sqlite3.connect(":memory:") as connection:
            connection.executescript(TABLES)
            connection.executemany("INSERT INTO edge VALUES (?, ?)", edges)
            connection.executemany("INSERT INTO mark VALUES (?, ?)", marks)
            wanted = sorted(connection.execute(query).fetchall())
        assert sorted(evaluate_views(program, {"edge": edges, "mark": marks})["v"].rows) == wanted


def rows(query, edges):
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query};")
    return sorted(evaluate_views(program, {"edge": edges})["v"].rows)


def test_queries_that_read_each_other():
    query = (
        "WITH RECURSIVE even(x, y) AS (SELECT odd.x, b FROM odd JOIN edge ON y = a), "
        "odd(x, y) AS (SELECT a, b FROM edge UNION SELECT even.x, b FROM even JOIN edge ON y = a) "
        "SELECT even.x, even.y FROM even WHERE even.x = 1"
    )
    assert rows(query, [(1, 2), (2, 3), (3, 4), (4, 5)]) == [(1, 3), (1, 5)]


def test_a_query_may_read_the_recursion_twice():
    query = (
        "WITH RECURSIVE t(x, y) AS (SELECT a, b FROM edge "
        "UNION SELECT t.x, u.y FROM t JOIN t u ON t.y = u.x) SELECT * FROM t"
    )
    assert rows(query, [(1, 2), (2, 3), (3, 1)]) == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]


def test_a_recursion_may_read_another_one():
    query = (
        "WITH RECURSIVE t(x, y) AS (SELECT a, b FROM edge UNION SELECT t.x, b FROM t JOIN edge ON y = a), "
        "far(x) AS (SELECT 1 UNION SELECT t.y FROM far JOIN t ON t.x = far.x "
        "WHERE t.y NOT IN (SELECT u.x FROM t u WHERE u.y = u.x)) SELECT x FROM far"
    )
    assert rows(query, [(1, 2), (2, 3), (3, 4), (4, 3)]) == [(1,), (2,)]


def test_recursive_queries_are_sets_and_what_reads_them_need_not_be():
    query = "WITH RECURSIVE t(x) AS (SELECT a FROM edge UNION SELECT x FROM t) SELECT t.x FROM t, edge"
    assert rows(query, [(1, 2), (1, 3)]) == [(1,), (1,)]


def test_a_name_that_means_another_query_further_in_is_not_recursive():
    query = (
        "WITH RECURSIVE t AS (WITH t AS (SELECT a FROM edge) SELECT a FROM t UNION ALL SELECT b FROM edge) "
        "SELECT * FROM t"
    )
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query};")
    assert not any(isinstance(node, Fixpoint) for node in walk_plan(program.views["v"].plan))
    assert rows(query, [(1, 2), (1, 3)]) == [(1,), (1,), (2,), (3,)]


def test_null_may_come_in_by_the_recursion():
    base, more = "SELECT a, b FROM edge", "SELECT y, nullif(x, 1) FROM t"
    query = f"WITH RECURSIVE t(x, y) AS ({base} UNION {more}) SELECT * FROM t"
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query};")
    assert [field.nullable for field in program.views["v"].schema] == [True, True]
    found = evaluate_views(program, {"edge": [(1, 2)]})["v"].rows
    assert set(found) == {(1, 2), (2, None), (None, 2)}


def test_a_plan_is_printed():
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {LINEAR[0]};")
    assert plan_text(program.views["v"].plan).splitlines()[:2] == ["Project x, y", "  Fixpoint t of t"]
