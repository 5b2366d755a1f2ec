from __future__ import annotations

import random

from tests.planner.compare import bound, columns, typed
from tests.planner.generate import PROGRAM, contents

from everview.engines.reference import evaluate
from everview.language.plan import Scan, walk_plan
from everview.language.program import Program
from everview.planner.explain import explain
from everview.planner.rewrite import rewrite
from everview.planner.rules.canonicalize import canonicalize
from everview.planner.rules.share import share

VIEWS = """
CREATE MATERIALIZED VIEW totals AS
  SELECT r.c, sum(s.d) AS total FROM r JOIN s ON r.a = s.a WHERE r.b > 0 AND s.e = 'x' GROUP BY r.c;
CREATE MATERIALIZED VIEW counts AS
  SELECT x.c AS name, count(*) AS n FROM r AS x JOIN s ON s.a = x.a WHERE 'x' = s.e AND 0 < x.b GROUP BY x.c;
CREATE MATERIALIZED VIEW again AS
  SELECT c AS label, sum(d) AS t FROM s JOIN r ON r.a = s.a WHERE r.b > 0 AND s.e = 'x' GROUP BY c;
CREATE MATERIALIZED VIEW same_totals AS
  SELECT r.c AS k, sum(s.d) AS v FROM r JOIN s ON s.a = r.a WHERE s.e = 'x' AND r.b > 0 GROUP BY r.c;
CREATE MATERIALIZED VIEW plain AS SELECT a FROM r WHERE b > 0;
CREATE MATERIALIZED VIEW plain_too AS SELECT a FROM r WHERE b > 0;
"""


def program():
    return Program.parse(PROGRAM.text + VIEWS)


def shared():
    return share({name: rewrite(view.plan) for name, view in program().views.items()})


def test_the_views_are_what_they_were():
    views, found = program().views, shared()
    assert set(found.plans) == set(views) | found.parts
    rng = random.Random(1)
    for _ in range(20):
        known = contents(rng, most=8)
        expected = {name: typed(evaluate(view.plan, known).rows) for name, view in views.items()}
        for name, plan in found.plans.items():  # each after those it reads
            known[name] = evaluate(plan, known).rows
        assert {name: typed(known[name]) for name in views} == expected
    for name, view in views.items():
        assert columns(found.plans[name]) == columns(view.plan)


def test_a_join_of_two_views_is_done_once():
    found = shared()
    joins = [name for name, plan in found.plans.items() if "inner join" in explain(plan)]
    (part,) = found.parts
    assert part.startswith("shared_")
    assert set(joins) == {part, "again"}  # the one with its sides exchanged has other columns


def test_a_view_with_the_plan_of_another_reads_it():
    assert explain(shared().plans["same_totals"]) == "project c AS k, total AS v\n  scan totals"


def test_bare_selections_are_not_shared():
    found = shared()
    for name in ("plain", "plain_too"):
        assert [node.name for node in walk_plan(found.plans[name]) if isinstance(node, Scan)] == ["r"]


def test_names_of_parts_do_not_depend_on_the_order_of_views():
    views = {name: rewrite(view.plan) for name, view in program().views.items()}
    backwards = dict(reversed(views.items()))
    assert share(views).parts == share(backwards).parts


def test_sharing_happens_inside_one_view_too():
    plan = rewrite(bound("SELECT a, a IN (SELECT max(d) FROM s) OR b IN (SELECT max(d) FROM s) AS x FROM r"))
    found = share({"v": plan})
    assert found.parts
    rng = random.Random(2)
    for _ in range(10):
        known = contents(rng)
        before = typed(evaluate(plan, known).rows)
        for name, one in found.plans.items():
            known[name] = evaluate(one, known).rows
        assert typed(known["v"]) == before


def test_canonical_plans_do_not_depend_on_how_conditions_were_written():
    one = bound("SELECT a FROM r WHERE a = b AND c = 'x' AND (b > 1 OR a IS NULL)")
    other = bound("SELECT a FROM r WHERE ('x' = c AND (a IS NULL OR 1 < b)) AND b = a")
    assert one != other
    assert canonicalize(one) == canonicalize(other)
