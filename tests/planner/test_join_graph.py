from __future__ import annotations

import random

from tests.planner.compare import bound, difference
from tests.planner.generate import PROGRAM, contents

from everview.language.expressions import TRUE, conjunction, substitute
from everview.language.plan import Filter, Join, JoinKind, Project
from everview.planner.conditions import column
from everview.planner.facts import Facts, catalog_of
from everview.planner.join_graph import delta_order, delta_steps, join_graph
from everview.planner.rules.push_filters import push_filters


def graph_of(sql):
    plan = push_filters(bound(sql))
    return join_graph(plan.input if isinstance(plan, Project) else plan)


CHAIN = "SELECT r.a FROM r JOIN s ON r.a = s.a JOIN t ON s.d = t.d JOIN k ON t.f = k.id"
STAR = "SELECT r.a FROM r, s, t, k WHERE r.a = s.a AND r.b = t.d AND r.b = k.id AND r.b + s.d > t.f"
ISLANDS = "SELECT 1 AS one FROM r, s, t, u WHERE r.a = t.d AND s.a = u.a"
THETA = "SELECT 1 AS one FROM r, s, t WHERE r.a < t.d"


def test_a_graph_has_inputs_equalities_and_the_rest():
    graph = graph_of(STAR)
    assert [plan.name for plan in graph.inputs] == ["r", "s", "t", "k"]
    assert [(e.left, e.right) for e in graph.equalities] == [(0, 1), (0, 2), (0, 3)]
    assert [graph.inputs_of(part) for part in graph.residual] == [frozenset([0, 1, 2])]


def test_a_plan_without_joins_is_a_graph_of_one():
    graph = graph_of("SELECT a FROM r WHERE a = 1")
    assert len(graph.inputs) == 1
    assert delta_order(graph, 0) == ()


def test_a_chain_is_walked_from_the_change_outwards():
    graph = graph_of(CHAIN)
    assert [delta_order(graph, changed) for changed in range(4)] == [
        (1, 2, 3),
        (0, 2, 3),
        (1, 0, 3),
        (2, 1, 0),
    ]


def test_a_key_comes_before_other_neighbours():
    graph = graph_of(STAR)
    catalog = catalog_of(PROGRAM)
    keys = [Facts(catalog).keys(plan) for plan in graph.inputs]
    assert delta_order(graph, 0) == (1, 2, 3)
    assert delta_order(graph, 0, keys=keys) == (3, 1, 2)


def test_a_cross_product_only_when_nothing_is_connected():
    graph = graph_of(ISLANDS)
    assert delta_order(graph, 0) == (2, 1, 3)
    assert delta_order(graph, 3) == (1, 0, 2)


def test_any_condition_is_better_than_none():
    assert delta_order(graph_of(THETA), 0) == (2, 1)


def test_two_equalities_are_better_than_one():
    sql = "SELECT 1 AS one FROM r, s, t WHERE r.a = s.a AND r.a = t.d AND r.b = t.f"
    assert delta_order(graph_of(sql), 0) == (2, 1)


def joined(graph, changed):
    """The join as a delta query would do it, columns put back."""
    tree, at = graph.inputs[changed], {}
    at |= {graph.offsets[changed] + i: i for i in range(len(tree.schema))}
    for step in delta_steps(graph, changed):
        width = len(tree.schema)
        side = graph.inputs[step.input]
        at |= {graph.offsets[step.input] + i: width + i for i in range(len(side.schema))}
        tree = Join(JoinKind.INNER, tree, side, TRUE)
        parts = conjunction([*(graph.predicate(e) for e in step.equalities), *step.residual])
        moved = substitute(parts, lambda c, tree=tree, at=dict(at): column(tree.schema, at[c.index]))
        tree = Filter(tree, moved)
    columns = tuple(column(tree.schema, at[index]) for index in range(len(at)))
    return Project(tree, columns, tuple(c.name for c in columns))


def test_from_every_side_the_join_is_the_same():
    rng = random.Random(0)
    for sql in (CHAIN, STAR, ISLANDS, THETA):
        plan = push_filters(bound(sql)).input
        graph = join_graph(plan)
        for changed in range(len(graph.inputs)):
            other = joined(graph, changed)
            for _ in range(10):
                assert difference(plan, other, contents(rng, most=7)) is None, (sql, changed)
            steps = delta_steps(graph, changed)
            assert sum(len(step.equalities) for step in steps) == len(graph.equalities)
            assert sum(len(step.residual) for step in steps) == len(graph.residual)
