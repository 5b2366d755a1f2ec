from __future__ import annotations

import random

from tests.planner.compare import bound
from tests.planner.generate import Queries

from everview.errors import ProgramError
from everview.language.plan import walk_plan
from everview.planner.explain import explain, explain_rewrite, node_text
from everview.planner.rewrite import rewrite


def test_a_tree_names_nodes_columns_and_subqueries():
    plan = bound(
        "SELECT a AS x, count(DISTINCT b) FILTER (WHERE c LIKE 'x%') AS n FROM r "
        "WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a) AND b BETWEEN 1 AND 2 AND c IS NOT NULL "
        "GROUP BY a HAVING count(*) > 1 ORDER BY 2 DESC, x LIMIT 3 OFFSET 1"
    )
    assert explain(plan).splitlines() == [
        "top limit 3 offset 1 order by n DESC, x",
        "  project a AS x, count AS n",
        "    filter count#2 > 1",
        "      aggregate count(DISTINCT b) FILTER (WHERE c LIKE 'x%'), count(*) by a",
        "        filter (NOT EXISTS (subquery)) AND ((b >= 1) AND (b <= 2)) AND (c IS NOT NULL)",
        "          subquery",
        "            project 1 AS ?column?",
        "              filter a = outer.a",
        "                scan s",
        "          scan r",
    ]


def test_before_and_after():
    plan = bound("SELECT a FROM r WHERE a IN (SELECT d FROM t)")
    text = explain_rewrite(plan, rewrite(plan))
    assert text.startswith("as written:\n  project a\n    filter a IN (subquery)\n")
    assert "\nrewritten:\n  project a\n    semi join on a = d\n" in text
    assert explain_rewrite(plan, plan) == explain(plan)


def test_every_plan_can_be_told():
    for seed in range(100):
        try:
            plan = bound(Queries(random.Random(seed)).query())
        except ProgramError:
            continue
        for one in (plan, rewrite(plan)):
            assert len(explain(one).splitlines()) >= sum(1 for _ in walk_plan(one))
            assert all("\n" not in node_text(node) for node in walk_plan(one))
