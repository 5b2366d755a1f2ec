"""Why, against brute force: a set of base rows supports a row if the view over just these has the row.

The oracle is the naive reference engine over all subsets of at most 8 base rows. Of a monotone view the
monomials are the minimal supporting sets, all of them. Of any other view every monomial supports the row.
"""

import itertools
import random
from functools import cache

import pytest

import everview as ev
from everview.engines.reference import evaluate_views

TABLES = """
CREATE TABLE r (a BIGINT, b BIGINT);
CREATE TABLE s (b BIGINT, c BIGINT) WITH (semantics = 'bag');
CREATE TABLE k (id BIGINT PRIMARY KEY, c BIGINT);
"""
MONOTONE = {
    "copy": "SELECT * FROM r",
    "selection": "SELECT a, b FROM r WHERE a > 0 AND b IS NOT NULL",
    "projection": "SELECT b FROM r",
    "computed": "SELECT coalesce(b, 0) % 2 AS m, CASE WHEN a = 1 THEN 'one' ELSE 'many' END AS t FROM r",
    "constant": "SELECT 1 AS one FROM r",
    "failing": "SELECT 1 / b AS q FROM r",
    "joined": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "theta": "SELECT r.a, k.id FROM r JOIN k ON r.a < k.id OR r.b = k.c",
    "crossed": "SELECT r.b, k.c FROM r, k",
    "three": "SELECT r.a, k.c FROM r JOIN s ON r.b = s.b JOIN k ON s.c = k.id",
    "self_join": "SELECT x.a, y.b FROM r AS x JOIN r AS y ON x.b = y.a",
    "symmetric": "SELECT x.b FROM r AS x, r AS y WHERE x.b = y.b",
    "with_values": "SELECT r.a, v.x FROM r JOIN (VALUES (1), (2), (2)) AS v (x) ON r.b = v.x",
    "distinct_": "SELECT DISTINCT b FROM r",
    "all_": "SELECT b FROM r UNION ALL SELECT b FROM s UNION ALL SELECT c FROM s",
    "union_": "SELECT a FROM r UNION SELECT b FROM r UNION SELECT id FROM k",
    "intersect_": "SELECT b FROM r INTERSECT SELECT b FROM s",
    "in_": "SELECT a FROM r WHERE b IN (SELECT c FROM s)",
    "exists_": "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.c > r.a)",
    "cte": "WITH x AS (SELECT b FROM r), y AS (SELECT b FROM s) SELECT x.b FROM x JOIN y ON x.b = y.b",
    "over_view": "SELECT joined.a FROM joined JOIN union_ ON joined.c = union_.a",
    "deep": "SELECT DISTINCT o.a FROM over_view AS o JOIN in_ ON in_.a = o.a UNION SELECT b FROM distinct_",
}
OTHER = {
    "left_": "SELECT r.a, s.c FROM r LEFT JOIN s ON r.b = s.b",
    "right_": "SELECT r.a, s.c FROM r RIGHT JOIN s ON r.b = s.b",
    "full_": "SELECT r.a, r.b, s.b AS sb, s.c FROM r FULL JOIN s ON r.b = s.b AND s.c > 1",
    "except_": "SELECT b FROM r EXCEPT SELECT b FROM s",
    "except_all": "SELECT b FROM s EXCEPT ALL SELECT b FROM r",
    "intersect_all": "SELECT b FROM r INTERSECT ALL SELECT b FROM s",
    "not_exists": "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM k WHERE k.id = r.b)",
    "not_in": "SELECT id FROM k WHERE c NOT IN (SELECT b FROM r WHERE b IS NOT NULL)",
    "top": "SELECT a, b FROM r ORDER BY b DESC, a LIMIT 2",
    "offset_": "SELECT DISTINCT b FROM r ORDER BY b LIMIT 2",
    "over_top": "SELECT top.a, k.c FROM top JOIN k ON top.a = k.id",
    "over_left": "SELECT l.a FROM left_ AS l WHERE l.c IS NULL UNION SELECT id FROM k",
    "scalar": "SELECT a, (SELECT c FROM k WHERE k.id = r.b) AS c FROM r",
    "grouped": "SELECT b, count(*) AS n, sum(a) AS s, max(a) AS m FROM r GROUP BY b",
    "having_": "SELECT b FROM s GROUP BY b HAVING count(*) > 1",
    "whole": "SELECT count(*) AS n, min(c) AS c FROM k",
    "over_groups": "SELECT g.n, k.c FROM grouped AS g JOIN k ON k.id = g.b",
    "of_join": "SELECT r.b, count(DISTINCT s.c) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.b",
    "ranked": "SELECT a, rank() OVER (PARTITION BY b ORDER BY a) AS k FROM r",
    "running": "SELECT id, sum(c) OVER (ORDER BY id) AS c FROM k",
    "two_windows": "SELECT a, sum(a) OVER (PARTITION BY b) AS s, rank() OVER (PARTITION BY b, a ORDER BY a) "
    "AS k FROM r",
    "two_turned": "SELECT b, rank() OVER (PARTITION BY b, a ORDER BY a) AS k, sum(a) OVER (PARTITION BY b) "
    "AS s FROM r",
    "scalar_sum": "SELECT a, (SELECT sum(c) FROM s WHERE s.b = r.b) AS t FROM r",
}
PROGRAM = ev.Program.parse(
    TABLES
    + "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};\n" for name, sql in {**MONOTONE, **OTHER}.items())
)
SEEDS = range(4)


def base_rows(seed):
    """At most 8 base rows of small numbers, so that much meets; a bag's row may be there twice."""
    rng = random.Random(seed)
    few = [0, 1, 2, 3, None]
    nulls = int(seed == 0)  # rows of nothing but NULL look like the empty side of an outer join
    found = {("r", (rng.choice(few), rng.choice(few))) for _ in range(4 - nulls)}
    found |= {("s", (rng.choice(few), rng.choice(few))) for _ in range(3 - nulls)}
    found |= {("k", (key, rng.choice(few))) for key in rng.sample(range(4), 1)}
    found |= {("r", (None, None)), ("s", (None, None))} if nulls else set()
    return sorted(found, key=repr)


def views_over(rows):
    tables = {name: [] for name in PROGRAM.relations}
    for relation, row in rows:
        tables[relation] += [row, row] if relation == "s" and row[0] in (1, None) else [row]
    return {name: set(result.rows) for name, result in evaluate_views(PROGRAM, tables).items()}


@cache
def world(seed):
    """A site with the rows of a seed, and every view over every subset of them."""
    rows = base_rows(seed)
    subsets = [
        frozenset(chosen) for size in range(len(rows) + 1) for chosen in itertools.combinations(rows, size)
    ]
    site = ev.Site.open(":memory:", PROGRAM)
    for relation, row in rows:
        copies = 2 if relation == "s" and row[0] in (1, None) else 1
        site.insert(relation, [row] * copies)
    return site, {subset: views_over(subset) for subset in subsets}


def named(why):
    """The monomials with rows for ids."""
    of = {witness.id: (witness.relation, tuple(witness.values.values())) for witness in why.tuples()}
    return {frozenset(of[id_] for id_ in monomial) for monomial in why.monomials}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MONOTONE)
def test_monomials_are_the_minimal_supporting_sets(name, seed):
    site, subsets = world(seed)
    rows = set(site.rows(name))
    assert rows == subsets[max(subsets, key=len)][name]
    for row in rows:
        supporting = [subset for subset, views in subsets.items() if row in views[name]]
        minimal = {one for one in supporting if not any(other < one for other in supporting)}
        assert named(site.why(name, row)) == minimal, row


AGGREGATES = {"grouped", "whole", "over_groups", "of_join", "ranked", "running", "having_"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", OTHER)
def test_every_monomial_supports_the_row(name, seed):
    site, subsets = world(seed)
    for row in set(site.rows(name)):
        why = site.why(name, row)
        monomials = named(why)
        assert monomials, row
        if name in AGGREGATES:
            assert len(monomials) == 1 or name == "ranked", row
        for monomial in monomials:
            assert row in subsets[monomial][name], (row, monomial)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_group_it_is_the_group(seed):
    site, _ = world(seed)
    for row in site.rows("grouped"):
        group = frozenset(("r", other) for other in site.rows("r") if other[1] == row[0])
        assert named(site.why("grouped", row)) == {group}
    (row,) = site.rows("whole")
    assert named(site.why("whole", row)) == {frozenset(("k", other) for other in site.rows("k"))}


@pytest.mark.parametrize("name", [*MONOTONE, *OTHER])
def test_a_row_that_is_absent_has_no_reason(name):
    site, _ = world(1)
    absent = tuple(
        {"BIGINT": 987, "DOUBLE": 9.5, "TEXT": "absent"}[str(f.type).split("(")[0]]
        for f in PROGRAM.schema(name)
    )
    why = site.why(name, absent)
    assert str(why) == "0"
    assert why.monomials == frozenset()
    assert why.tuples() == ()
    assert not why
