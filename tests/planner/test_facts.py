from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.planner.compare import bound
from tests.planner.generate import PROGRAM, Queries, contents

from everview.engines.reference import evaluate
from everview.errors import ProgramError
from everview.language.expressions import TRUE, Column
from everview.language.plan import Join, JoinKind, Scan, walk_plan
from everview.language.program import Program
from everview.language.types import BIGINT
from everview.planner.conditions import equal, same
from everview.planner.facts import EquiPair, Facts, catalog_of, equi_keys, is_monotone
from everview.planner.rewrite import rewrite

CATALOG = catalog_of(PROGRAM)


def keys(sql):
    return {tuple(sorted(key)) for key in Facts(CATALOG).keys(bound(sql))}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM r", set()),
        ("SELECT * FROM u", {(0, 1)}),
        ("SELECT * FROM k", {(0,)}),
        ("SELECT v, id FROM k", {(1,)}),
        ("SELECT v FROM k", set()),
        ("SELECT v FROM k WHERE id = 1", {()}),
        ("SELECT id, v FROM k WHERE id = 1", {()}),
        ("SELECT * FROM u WHERE a = 1", {(1,)}),
        ("SELECT DISTINCT a, b FROM r", {(0, 1)}),
        ("SELECT a, count(*) FROM r GROUP BY a", {(0,)}),
        ("SELECT count(*) FROM r", {()}),
        ("SELECT u.a, u.g, k.v FROM u JOIN k ON u.a = k.id", {(0, 1)}),
        ("SELECT k.id, u.a, u.g FROM u JOIN k ON u.a < k.id", {(0, 1, 2)}),
        ("SELECT u.a, u.g, k.v FROM u LEFT JOIN k ON u.a = k.id", {(0, 1)}),
        ("SELECT k.id, u.a FROM k FULL JOIN u ON u.a = k.v", set()),
        ("SELECT * FROM k FULL JOIN u ON u.a = k.v", {(0, 3, 4)}),
        ("SELECT * FROM u AS x FULL JOIN u AS y ON x.a = y.a", set()),
        ("SELECT a FROM u UNION ALL SELECT g FROM u", set()),
        ("SELECT a, g, 1 AS n FROM u UNION ALL SELECT a, g, 2 FROM u", {(0, 1, 2)}),
        ("SELECT a FROM r UNION SELECT d FROM s", {(0,)}),
        ("SELECT a FROM r EXCEPT SELECT d FROM s", {(0,)}),
        ("SELECT a FROM r EXCEPT ALL SELECT d FROM s", set()),
        ("SELECT id FROM k INTERSECT ALL SELECT d FROM s", {(0,)}),
        ("SELECT a FROM r ORDER BY a LIMIT 1", {()}),
        ("SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM r", {(0, 1)}),
    ],
)
def test_keys(sql, expected):
    assert keys(sql) == expected


def test_claimed_keys_hold_on_random_data():
    claims = Counter()
    for seed in range(150):
        rng = random.Random(seed)
        try:
            plan = rewrite(bound(Queries(rng).query()))
        except ProgramError:
            continue
        facts = Facts(CATALOG)
        samples = [contents(rng) for _ in range(3)]
        for node in set(walk_plan(plan)):
            for key in facts.keys(node):
                claims[type(node).__name__] += 1
                for tables in samples:
                    rows = evaluate(node, tables).rows
                    parts = [tuple(row[index] for index in sorted(key)) for row in rows]
                    assert len(set(parts)) == len(parts), (seed, node, key)
    assert min(claims[name] for name in ("Join", "Filter", "Project", "Distinct", "Aggregate", "Window")) > 10


def test_views_have_the_keys_of_their_plans():
    program = Program.parse(
        "CREATE TABLE k (id BIGINT PRIMARY KEY, v BIGINT);"
        "CREATE TABLE b (x BIGINT) WITH (semantics = 'bag');"
        "CREATE MATERIALIZED VIEW one AS SELECT id, v + 1 AS w FROM k;"
        "CREATE MATERIALIZED VIEW two AS SELECT one.w, one.id, b.x FROM one JOIN b ON b.x = one.w;"
        "CREATE MATERIALIZED VIEW three AS SELECT w, id FROM one WHERE w > 1;"
    )
    catalog = catalog_of(program)
    assert catalog["one"] == {frozenset([0])}
    assert catalog["two"] == frozenset()
    assert catalog["three"] == {frozenset([1])}
    assert not Facts(catalog).is_set(program.views["two"].plan)


def test_equi_keys_takes_a_condition_apart():
    left, right = bound("SELECT a, b FROM r"), bound("SELECT a, d FROM s")
    a, b, x, y = (Column(index, BIGINT) for index in range(4))
    less = bound("SELECT a < b AS less FROM r").expressions[0]
    condition = bound("SELECT 1 AS one FROM r WHERE a < b").input.predicate
    join = Join(JoinKind.INNER, left, right, TRUE)
    split = equi_keys(Join(JoinKind.INNER, left, right, _all(equal(y, a), same(b, x), less, equal(a, b))))
    assert split.pairs == (EquiPair(a, Column(1, BIGINT), False), EquiPair(b, Column(0, BIGINT), True))
    assert split.residual == _all(less, equal(a, b))
    assert condition == less
    assert equi_keys(join).pairs == ()
    assert equi_keys(join).residual == TRUE


def _all(*parts):
    from everview.language.expressions import conjunction

    return conjunction(parts)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT DISTINCT r.a FROM r JOIN s ON r.a = s.a WHERE s.d > 1 UNION ALL SELECT d FROM t", True),
        ("SELECT r.a FROM r LEFT JOIN s ON r.a = s.a", False),
        ("SELECT count(*) FROM r", False),
        ("SELECT a FROM r EXCEPT SELECT d FROM s", False),
        ("SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s)", False),
        ("SELECT a FROM r ORDER BY a LIMIT 1", False),
        ("SELECT rank() OVER (ORDER BY a) FROM r", False),
    ],
)
def test_monotone(sql, expected):
    assert is_monotone(bound(sql)) is expected


def test_a_scan_that_the_catalog_does_not_know_may_hold_rows_twice():
    assert not Facts({}).is_set(Scan("k", PROGRAM.schema("k")))
