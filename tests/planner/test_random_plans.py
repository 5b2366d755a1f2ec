"""Each rule alone, each after decorrelation, and all together: the same bag on random plans and data."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.planner.compare import bound, columns, difference
from tests.planner.generate import PROGRAM, Queries, contents

from everview.errors import ProgramError
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import RULES, rewrite
from everview.planner.rules.decorrelate import check_decorrelated, decorrelate
from everview.planner.rules.prune_columns import prune_columns

CATALOG = catalog_of(PROGRAM)
CHUNKS, PER_CHUNK = 8, 30

EXPECTED = {
    "scalar subquery",
    "scalar subquery, correlated",
    "EXISTS",
    "NOT EXISTS",
    "IN",
    "NOT IN",
    "correlation 1 deep",
    "correlation 2 deep",
    "subquery in ON of JOIN",
    "subquery in ON of LEFT JOIN",
    "subquery in ON of RIGHT JOIN",
    "subquery in ON of FULL JOIN",
    "subquery in an aggregate",
    "subquery in FROM",
    "outer column in the select list",
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "GROUP BY",
    "global aggregate",
    "HAVING",
    "DISTINCT",
    "LIMIT",
    "UNION",
    "UNION ALL",
    "INTERSECT",
    "INTERSECT ALL",
    "EXCEPT",
    "EXCEPT ALL",
    "row_number",
    "lag",
    "CASE",
    "OR",
    "/",
}


def rewritten(plan):
    """The plan after each rule, and after all of them."""
    for rule in RULES:
        yield rule.__name__, rule(plan)
    plain = decorrelate(plan)
    check_decorrelated(plain)
    for rule in RULES[1:]:
        yield f"decorrelate, {rule.__name__}", rule(plain)
    yield "all", rewrite(plan)
    yield "all, knowing keys", rewrite(plan, facts=Facts(CATALOG))


def check(seed, coverage):
    rng = random.Random(seed)
    sql = Queries(rng, coverage).query()
    try:
        plan = bound(sql)
    except ProgramError as error:
        # The one thing that is drawn now and then and that the language does not have.
        assert "this aggregate is over columns of the query around it" in error.message, sql  # noqa: PT017
        coverage["refused"] += 1
        return
    samples = [contents(rng) for _ in range(3)]
    compared = set()
    for name, after in rewritten(plan):
        assert columns(after) == columns(plan), (seed, name, sql)
        if after in compared:
            continue
        compared.add(after)
        if after == plan:
            coverage[f"unchanged by {name}"] += 1
            continue
        for tables in samples:
            assert difference(plan, after, tables) is None, (seed, name, sql, tables)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_rules_keep_the_bag_of_rows(chunk):
    coverage = Counter()
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        check(seed, coverage)
    changed = {
        name: PER_CHUNK - coverage[f"unchanged by {name}"]
        for name in [rule.__name__ for rule in RULES]
        + [f"decorrelate, {rule.__name__}" for rule in RULES[1:]]
    }
    # Fewer would mean that plans were compared with themselves.
    assert changed["decorrelate"] > PER_CHUNK // 3
    assert changed["decorrelate, push_filters"] > PER_CHUNK // 3
    assert changed["decorrelate, prune_columns"] > PER_CHUNK // 4
    assert changed["order_joins"] > 0
    assert coverage["refused"] < PER_CHUNK // 10


def test_all_constructs_are_drawn():
    coverage = Counter()
    for seed in range(CHUNKS * PER_CHUNK):
        Queries(random.Random(seed), coverage).query()
    print("\n".join(f"{count:6} {what}" for what, count in coverage.most_common()))  # noqa: T201
    assert not {what for what in EXPECTED if coverage[what] < 3}


def test_rewriting_is_deterministic_and_final():
    for seed in range(40):
        plan = bound(Queries(random.Random(seed)).query())
        once = rewrite(plan)
        assert once == rewrite(plan)
        assert rewrite(once) == once
        assert prune_columns(once) == once


def test_a_full_join_on_a_subquery_over_both_sides_is_refused():
    sql = "SELECT r.a FROM r FULL JOIN s ON r.a = s.a AND EXISTS (SELECT 1 FROM t WHERE t.d = r.b + s.d)"
    with pytest.raises(ProgramError, match="FULL JOIN reads columns of both sides"):
        rewrite(bound(sql))
