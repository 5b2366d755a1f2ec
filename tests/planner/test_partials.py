# ruff: noqa: E501 - queries are easier to read in one line
"""Aggregates taken apart by owner: what is merged equals what is computed over all rows."""

import math
import random
from decimal import Decimal

import pytest

from everview.engines.reference import evaluate
from everview.language.plan import walk_plan
from everview.language.program import Program
from everview.planner.exchange import Exchange, Way
from everview.planner.partials import Partials, may_be_partials, partials_of
from everview.planner.written import written_of

TABLES = """
CREATE TABLE r (site TEXT NOT NULL, g TEXT, n BIGINT, x DOUBLE, d DECIMAL(12,2), wide DECIMAL(38,6), t BOOLEAN)
    WITH (owner = 'site', semantics = 'bag');
CREATE TABLE o (site TEXT NOT NULL, g TEXT, n BIGINT) WITH (owner = 'site');
CREATE TABLE k (site TEXT, id BIGINT, n BIGINT, PRIMARY KEY (site, id)) WITH (owner = 'site');
CREATE TABLE loose (id BIGINT PRIMARY KEY, site TEXT, n BIGINT) WITH (owner = 'site');
CREATE TABLE plain (g TEXT, n BIGINT);
"""

DECOMPOSED = [
    "SELECT g, count(*) AS c, count(n) AS cn FROM r GROUP BY g",
    "SELECT g, sum(n) AS s, avg(n) AS a, min(n) AS lo, max(n) AS hi FROM r GROUP BY g",
    "SELECT g, sum(x) AS s, avg(x) AS a, min(x) AS lo, max(x) AS hi FROM r GROUP BY g",
    "SELECT g, sum(d) AS s, avg(d) AS a, sum(wide) AS w, avg(wide) AS aw FROM r GROUP BY g",
    "SELECT bool_and(t) AS a, bool_or(t) AS o, count(*) AS c FROM r",
    "SELECT count(*) AS c, sum(n) AS s, sum(x) AS x, max(g) AS m FROM r",
    "SELECT n % 3 AS k, g, count(*) FILTER (WHERE x > 0) AS c, sum(x) FILTER (WHERE t) AS s FROM r GROUP BY 1, 2",
    "SELECT site, max(x) AS m, min(DISTINCT n) AS n FROM r WHERE n > 0 OR g IS NULL GROUP BY site",
    "SELECT g, count(*) AS c FROM (SELECT g FROM r WHERE n > 1 UNION ALL SELECT g FROM o) AS u GROUP BY g",
    "SELECT sum(k.n) AS s FROM k",
    "SELECT g, approx_count_distinct(n) AS c, approx_percentile(x, 0.5) AS m, approx_percentile(x, 1) AS t FROM r GROUP BY g",
    "SELECT approx_count_distinct(x) FILTER (WHERE t) AS c, approx_percentile(d, 0.25) AS q FROM r",
    "SELECT g, n FROM r ORDER BY n DESC, g LIMIT 3",
    "SELECT n, x FROM r WHERE t ORDER BY x LIMIT 2 OFFSET 1",
    "SELECT n FROM r ORDER BY n LIMIT 0",
    "SELECT * FROM (SELECT g, n, row_number() OVER (PARTITION BY g, t ORDER BY n DESC) AS i FROM r) AS u WHERE i <= 2 AND n > 1",
    "SELECT * FROM (SELECT g, x, row_number() OVER (PARTITION BY n % 2 ORDER BY x) AS i FROM r WHERE t) AS u WHERE i < 3",
    "SELECT * FROM (SELECT site, row_number() OVER (ORDER BY x, n) AS i FROM r) AS u WHERE i = 2",
]

WHOLE = {
    "SELECT g, count(DISTINCT n) AS c FROM r GROUP BY g": "count of different values does not follow",
    "SELECT g, sum(DISTINCT x) AS c FROM r GROUP BY g": "sum of different values does not follow",
    "SELECT g, count(*) AS c FROM (SELECT DISTINCT g, n FROM r) AS u GROUP BY g": "more than selected and projected",
    "SELECT r.g, count(*) AS c FROM r JOIN o ON r.g = o.g GROUP BY r.g": "not made from one base row",
    "SELECT site, sum(n) AS s FROM loose GROUP BY site": "is not in its primary key",
    "SELECT g, count(*) AS c FROM (SELECT g FROM r UNION ALL SELECT g FROM plain) AS u GROUP BY g":
        "plain declares no owner",
    "SELECT g, count(*) AS c FROM (SELECT g FROM r UNION ALL SELECT 'x') AS u GROUP BY g": "not made from one base row",
    "SELECT g, n FROM r ORDER BY n LIMIT 2000": "more than the first 1,000 rows",
    "SELECT * FROM (SELECT g, row_number() OVER (ORDER BY n) AS i FROM plain) AS u WHERE i < 3": "plain declares no owner",
}  # fmt: skip


def taken_apart(query):
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query};")
    plan = written_of(program).over_relations("v")
    (node,) = filter(may_be_partials, walk_plan(plan))
    return node, partials_of("v", node, program.relations)


def random_tables(chance):
    doubles = [0.1, -0.1, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 3.0, None]

    def row(owner):
        return (
            owner,
            chance.choice(["a", "b", None]),
            chance.choice([2**62, -(2**62), 1, 2, 3, None, 2**63 - 1]),
            chance.choice(doubles[: chance.choice([5, 10])]),
            chance.choice([Decimal("0.01"), Decimal("-99.95"), None]),
            chance.choice([Decimal(10) ** 31, -(Decimal(10) ** 31), Decimal("0.000001"), None]),
            chance.choice([True, False, None]),
        )

    owners = ["s0", "s1", "s2"]
    r = [row(chance.choice(owners)) for _ in range(chance.choice([0, 1, 5, 12]))]
    o = sorted({row(chance.choice(owners))[:3] for _ in range(3)}, key=repr)
    k = [(owner, 1, chance.choice([1, None, 2**63 - 1])) for owner in owners if chance.random() < 0.6]
    return {"r": r, "o": o, "k": k}


def repr_of(rows):
    """Types included, and NaN equal to NaN; −0.0 is 0.0."""
    return sorted(
        repr(tuple(0.0 if cell == 0.0 and isinstance(cell, float) else cell for cell in row)) for row in rows
    )


def by_owner(tables, owner):
    return {name: [row for row in rows if row[0] == owner] for name, rows in tables.items()}


@pytest.mark.parametrize("query", DECOMPOSED)
def test_what_is_merged_from_owners_equals_what_is_computed_over_all_rows(query):
    node, found = taken_apart(query)
    assert isinstance(found, Partials), found
    chance = random.Random(query)
    for _ in range(25):
        tables = random_tables(chance)
        entries = [
            row for owner in ("s0", "s1", "s2") for row in evaluate(found.plan, by_owner(tables, owner)).rows
        ]
        keys = [repr(row[: found.width]) for row in entries]
        assert len(set(keys)) == len(keys)
        wanted = evaluate(node, tables).rows
        merged = evaluate(found.merged, {found.name: entries}).rows
        assert repr_of(merged) == repr_of(wanted)


@pytest.mark.parametrize(("query", "why"), WHOLE.items())
def test_an_aggregate_that_does_not_follow_from_its_owners_travels_otherwise(query, why):
    _, found = taken_apart(query)
    assert isinstance(found, str)
    assert why in found


def kept(query, hosts=("v",)):
    program = Program.parse(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query};")
    return Exchange(program, hosts)


def test_the_choice_and_why():
    found = kept("SELECT g, count(*) AS c FROM r GROUP BY g HAVING count(*) > 1 ORDER BY c DESC LIMIT 3")
    view = found.views["v"]
    assert (view.way, view.cores, view.hidden) == (Way.AGGREGATED, (), ())
    assert "what it aggregates only the owners of rows write" in view.why
    assert found.held == frozenset()
    view = kept("SELECT g, count(DISTINCT n) AS c FROM r GROUP BY g").views["v"]
    assert view.way is Way.CUT
    assert "because count of different values does not follow from those of each owner" in view.why
    view = kept("SELECT g, count(*) AS c FROM r GROUP BY g", {"v", "r"}).views["v"]
    assert view.way is Way.LOCAL
    assert "owner" not in kept("SELECT g, count(*) AS c FROM plain GROUP BY g").views["v"].why


def test_an_aggregate_and_a_core_of_one_view_travel_each_in_its_way():
    query = "SELECT p.n, u.c FROM plain AS p LEFT JOIN (SELECT g, count(*) AS c FROM r GROUP BY g) AS u ON p.g = u.g"
    found = kept(f"SELECT q.n FROM ({query}) AS q WHERE q.n > 3")
    view = found.views["v"]
    assert view.way is Way.CUT
    assert [partials.inputs for partials in view.partials] == [("r",)]
    assert "r" not in found.held


def test_all_sites_call_a_stream_the_same_and_who_holds_the_rows_feeds_it():
    query = "SELECT g, count(*) AS c FROM r GROUP BY g"
    (name,) = kept(query).partials
    holder = kept(query, {"r"})
    assert [partials.name for partials in holder.fed()] == [name]
    assert not holder.partials
    assert not list(kept(query, {"o"}).fed())
