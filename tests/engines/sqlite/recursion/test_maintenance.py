"""Recursive views on a site: what they are after changes, and that a change costs what it changes."""

import random
import sqlite3

import pytest

import everview as ev
from everview.engines.reference.evaluate import evaluate_views
from everview.engines.sqlite.examining import examine_views
from everview.errors import ProgramError

EDGE = "CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);"
CLOSURE = (
    "CREATE MATERIALIZED VIEW v AS WITH RECURSIVE t(x, y) AS (SELECT a, b FROM edge "
    "UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a) SELECT * FROM t;"
)
REACHED = (
    "CREATE TABLE root (r BIGINT NOT NULL);"
    "CREATE MATERIALIZED VIEW v AS WITH RECURSIVE t(y) AS (SELECT r FROM root "
    "UNION SELECT e.b FROM t JOIN edge e ON t.y = e.a) SELECT * FROM t;"
)


def opened(text, **given):
    return ev.Site.open(":memory:", ev.Program.parse(text), **given)


def check(site):
    tables = {name: site.rows(name) for name in site.program.relations}
    for name, result in evaluate_views(site.program, tables).items():
        assert site.rows(name) == sorted(result.rows)


def test_a_circle_does_not_prove_itself():
    with opened(EDGE + REACHED) as site:
        site.insert("root", [(0,)])
        site.insert("edge", [(0, 1), (1, 2), (2, 3), (3, 1)])
        site.delete("edge", [(0, 1)])
        assert site.rows("v") == [(0,)]
        site.insert("edge", [(0, 3)])
        assert site.rows("v") == [(0,), (1,), (2,), (3,)]


def test_a_deep_recursion_ends():
    depth = 3_000
    with opened(EDGE + REACHED) as site:
        site.insert("root", [(0,)])
        site.insert("edge", [(n, n + 1) for n in range(depth)])
        assert len(site.rows("v")) == depth + 1
        site.delete("edge", [(depth // 2, depth // 2 + 1)])
        assert len(site.rows("v")) == depth // 2 + 1
        site.insert("edge", [(depth // 2, depth // 2 + 1)])
        assert len(site.rows("v")) == depth + 1


NULLS = (
    "CREATE TABLE edge (a BIGINT, b TEXT);"
    "CREATE MATERIALIZED VIEW v AS WITH RECURSIVE t(x, y) AS (SELECT a, b FROM edge "
    "UNION SELECT e.a, t.y FROM t JOIN edge e ON t.x IS NOT DISTINCT FROM e.a) SELECT * FROM t;"
)


@pytest.mark.parametrize("seed", range(4))
def test_nulls_are_equal_as_rows(seed):
    rng = random.Random(seed)
    with opened(NULLS) as site:
        for _ in range(12):
            row = (rng.choice((None, 1, 2)), rng.choice((None, "a", "b")))
            (site.delete if rng.random() < 0.4 else site.insert)("edge", [row])
            tables = {"edge": site.rows("edge")}
            wanted = evaluate_views(site.program, tables)["v"].rows
            assert set(site.rows("v")) == set(wanted)
            assert len(site.rows("v")) == len(wanted)


MORE = """
CREATE TABLE b (x BIGINT NOT NULL, y BIGINT NOT NULL) WITH (semantics = 'bag');
CREATE TABLE k (x BIGINT PRIMARY KEY, y BIGINT NOT NULL);
CREATE MATERIALIZED VIEW counted AS SELECT x, count(*) AS n FROM b GROUP BY x;
CREATE MATERIALIZED VIEW v AS WITH RECURSIVE t(x, y) AS (
    SELECT x, y FROM b UNION SELECT k.x, k.y FROM k
    UNION SELECT t.x, b.y FROM t JOIN b ON t.y = b.x WHERE b.y NOT IN (SELECT n FROM counted WHERE n > 1)
    UNION SELECT t.x, k.y FROM t LEFT JOIN k ON t.y = k.x WHERE k.y IS NOT NULL OR t.x = 0) SELECT * FROM t;
CREATE MATERIALIZED VIEW lonely AS SELECT y FROM b EXCEPT SELECT y FROM v WHERE x <> 1;
CREATE MATERIALIZED VIEW twice AS SELECT x FROM v UNION ALL SELECT y FROM v;
"""


@pytest.mark.parametrize("seed", range(6))
def test_bags_keys_subqueries_and_outer_joins_take_part(seed):
    rng = random.Random(seed)
    with opened(MORE) as site:
        for _ in range(15):
            with site.transaction():
                for _ in range(rng.choice((1, 3))):
                    row = (rng.randrange(4), rng.randrange(4))
                    (site.delete if rng.random() < 0.4 else site.insert)(rng.choice("bk"), [row])
            tables = {name: site.rows(name) for name in site.program.relations}
            for name, result in evaluate_views(site.program, tables).items():
                key = [tuple((value is None, value or 0) for value in row) for row in result.rows]
                assert sorted(key) == sorted(
                    tuple((value is None, value or 0) for value in row) for row in site.rows(name)
                )


def test_a_change_costs_what_it_changes_not_the_closure():
    """The rows that a commit writes into the file and into temporary tables, whatever the graph's size."""
    written = {}
    for size in (200, 2_000):
        rng = random.Random(size)
        edges = sorted({(rng.randrange(size), rng.randrange(size)) for _ in range(3 * size)})
        with opened(EDGE + REACHED) as site:
            site.insert("root", [(edges[0][0],)])
            site.insert("edge", edges)
            connection = site._store.writer.connection
            taken = []
            for edge in rng.sample(edges, 60):
                before = connection.total_changes
                site.delete("edge", [edge])
                site.insert("edge", [edge])
                taken.append(connection.total_changes - before)
            check_reached(site)
        written[size] = sorted(taken)[45]
    assert written[2_000] < 60
    assert written[2_000] <= 2 * written[200]


def check_reached(site):
    after = {}
    for a, b in site.rows("edge"):
        after.setdefault(a, []).append(b)
    found, waiting = set(), [r for (r,) in site.rows("root")]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += after.get(node, ())
    assert {y for (y,) in site.rows("v")} == found


def test_watchers_hear_what_changed_and_explain_says_how():
    with opened(EDGE + CLOSURE) as site:
        told = []
        site.insert("edge", [(1, 2), (2, 3)])
        site.watch("v", told.append)
        with site.transaction():
            site.insert("edge", [(1, 3)])
            site.delete("edge", [(2, 3)])
        site.delete("edge", [(1, 2)])
        assert told == [[((2, 3), -1)], [((1, 2), -1)]]
        text = site.explain("v")
        assert "fixpoint t" in text
        assert "recursive scan t" in text
        assert "All of it is by change" in text


def test_a_view_without_its_inputs_is_a_recursion_over_what_travels():
    program = ev.Program.parse(
        "CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL, colour TEXT);"
        + CLOSURE.replace("FROM edge ", "FROM edge WHERE colour = 'red' ")
    )
    with ev.Site.open(":memory:", program) as full, ev.Site.open(":memory:", program, hosts={"v"}) as view:
        full.insert("edge", [(1, 2, "red"), (2, 3, "blue"), (3, 1, "blue")])
        view.sync(full)
        assert view.rows("v") == full.rows("v") == [(1, 1), (1, 2), (1, 3)]
        full.delete("edge", [(2, 3, "blue")])
        view.sync(full)
        assert view.rows("v") == full.rows("v") == [(1, 2)]


def test_a_query_cannot_be_recursive():
    with opened(EDGE + CLOSURE) as site, pytest.raises(ProgramError, match="declare it as a view"):
        site.query("WITH RECURSIVE t AS (SELECT a FROM edge UNION SELECT a FROM t) SELECT * FROM t")


def test_no_index_is_kept_twice(tmp_path):
    with ev.Site.open(tmp_path / "s.db", ev.Program.parse(EDGE + CLOSURE)) as site:
        site.insert("edge", [(1, 2)])
    with sqlite3.connect(tmp_path / "s.db") as connection:
        made = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name LIKE 'everview_f%'"
        ).fetchall()
    assert [name for (name,) in made] == ["everview_f1_0_by_c1"]


def test_a_store_is_examined(tmp_path):
    def findings():
        with ev.Site.open(tmp_path / "s.db", program) as site:
            return [finding.text for finding in examine_views(site._store) if finding.level == "error"]

    program = ev.Program.parse(EDGE + CLOSURE + "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM v;")
    with ev.Site.open(tmp_path / "s.db", program) as site:
        site.insert("edge", [(1, 2), (2, 1), (2, 3)])
    assert findings() == []
    tamper(tmp_path, "INSERT INTO everview_f1_0 (c0, c1, r) VALUES (7, 8, 1), (8, 7, 1)")
    assert any("are not derived from its inputs" in text for text in findings())
    tamper(tmp_path, "DELETE FROM everview_f1_0 WHERE c0 = 7 OR c1 = 7")
    assert findings() == []
    tamper(tmp_path, "DELETE FROM everview_f1_0 WHERE c0 = 1 AND c1 = 3")
    assert any("others are missing" in text for text in findings())


def tamper(folder, sql):
    with sqlite3.connect(folder / "s.db") as connection:
        connection.execute(sql)


LONG = (
    ".decl e(a: number, b: number)\n.decl f(a: number, b: number)\n.decl u(a: number)\n.decl p(a: number)\n"
)
LONG += "p(x) :- u(x).\np(z) :- p(a), " + ", ".join(
    f"{'ef'[n % 2]}({x}, {y})" for n, (x, y) in enumerate(zip("abcdghij", "bcdghijz", strict=True))
)
LONG += ", !u(z), c != h, f(q, r), q < r.\n"


@pytest.mark.parametrize("seed", range(3))
def test_a_rule_may_have_many_inputs(seed):
    rng = random.Random(seed)
    with ev.Site.open(":memory:", ev.Program.parse(LONG, language="datalog")) as site:
        assert site.insert("u", [(0,)]) == 1
        for _ in range(14):
            with site.transaction():
                for name in rng.choices("ef", k=3):
                    row = (rng.randrange(4), rng.randrange(4))
                    (site.delete if rng.random() < 0.4 else site.insert)(name, [row])
            check(site)
        assert len(site.rows("p")) > 1
