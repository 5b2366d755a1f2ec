"""Tempting rewrites that are wrong, each put back and caught.

Every case is a query, contents on which it tells, and a way to put the mistake back. Without the mistake
the rewritten plan must give the same rows; with it, others.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.compare import bound, difference
from tests.planner.generate import PROGRAM

from everview.engines.reference import evaluate
from everview.errors import DataError
from everview.language.expressions import columns_of, conjunction
from everview.language.plan import Aggregate, Filter, Join, JoinKind, TopK
from everview.planner.conditions import conjuncts, equal, not_null
from everview.planner.rewrite import rewrite
from everview.planner.rules import decorrelate as decorrelating
from everview.planner.rules import prune_columns as pruning
from everview.planner.rules import push_filters as pushing
from everview.planner.unnest import attach, spread

EMPTY = {"r": [], "s": [], "t": [], "u": [], "k": []}


def null_for_zero(_call, value):
    return value


def no_distinct(child):
    return child


def null_is_no_match(operand, item, _kind, _nullable):
    return [equal(operand, item)]


def null_is_never_in(rows, operand, plan, kind, *, original=decorrelating._in):
    return original(Filter(rows, not_null(operand)), operand, plan, kind)


def always_inner(plan, _predicates):
    return replace(plan, kind=JoinKind.INNER) if plan.kind is JoinKind.LEFT else plan


def below_limit(plan, predicates, *, original=pushing._push):
    if isinstance(plan, TopK):
        return replace(plan, input=original(plan.input, predicates))
    return original(plan, predicates)


def below_global_aggregate(plan, predicates, *, original=pushing._push):
    if isinstance(plan, Aggregate):
        return replace(plan, input=original(plan.input, [p for p in predicates if not columns_of(p)]))
    return original(plan, predicates)


def kept_side_filtered(plan, predicates, *, original=pushing._join):
    width = len(plan.left.schema)
    early = [p for p in conjuncts(plan.condition) if all(read < width for read in columns_of(p))]
    late = [p for p in conjuncts(plan.condition) if p not in early]
    left = Filter(plan.left, conjunction(early))
    return original(Join(plan.kind, left, plan.right, conjunction(late)), predicates)


def without_ties(plan, below, places, *, original=pruning._top):
    return original(replace(plan, ties=()), below, places)


TRAPS = {
    "count of nothing is 0, not NULL": (
        "SELECT a, (SELECT count(*) FROM s WHERE s.a = r.a) AS n FROM r",
        {"r": [(1, 1, "x"), (2, 1, "x")], "s": [(1, 1, "x")]},
        (attach, "count_or_zero", null_for_zero),
    ),
    "count of nothing is 0 inside a larger subquery too": (
        "SELECT a FROM r WHERE EXISTS (SELECT count(*) FROM s WHERE s.a = r.a HAVING count(*) = 0)",
        {"r": [(1, 1, "x"), (2, 1, "x")], "s": [(1, 1, "x")]},
        (spread, "count_or_zero", null_for_zero),
    ),
    "NOT IN rows with a NULL is never true": (
        "SELECT a FROM r WHERE a NOT IN (SELECT d FROM s)",
        {"r": [(1, 1, "x")], "s": [(1, 2, "x"), (1, None, "x")]},
        (decorrelating, "_matches", null_is_no_match),
    ),
    "NULL NOT IN something is never true": (
        "SELECT a FROM r WHERE a NOT IN (SELECT d FROM s)",
        {"r": [(None, 1, "x")], "s": [(1, 2, "x")]},
        (decorrelating, "_matches", null_is_no_match),
    ),
    "NULL NOT IN nothing is true": (
        "SELECT b FROM r WHERE a NOT IN (SELECT d FROM s WHERE s.a = r.b)",
        {"r": [(None, 1, "x")], "s": [(2, 2, "x")]},
        (decorrelating, "_in", null_is_never_in),
    ),
    "an outer row that occurs twice stays twice": (
        "SELECT a, a IN (SELECT d FROM s) AS found FROM r",
        {"r": [(1, 1, "x"), (1, 1, "x")], "s": [(1, 1, "x"), (2, 1, "x")]},
        (attach, "Distinct", no_distinct),
    ),
    "an outer row that occurs twice is in the domain once": (
        "SELECT a, (SELECT count(*) FROM s WHERE s.d < r.a) AS n FROM r",
        {"r": [(1, 1, "x"), (1, 1, "x")], "s": [(1, 0, "x")]},
        (spread, "Distinct", no_distinct),
    ),
    "NULL of an outer row meets NULL of the domain": (
        "SELECT b, (SELECT count(*) FROM s WHERE s.d < r.a OR r.a IS NULL) AS n FROM r",
        {"r": [(None, 1, "x")], "s": [(1, 0, "x")]},
        (spread, "same", equal),
    ),
    "a condition that accepts NULL does not make an outer join inner": (
        "SELECT r.a FROM r LEFT JOIN s ON r.a = s.a WHERE coalesce(s.d, 0) = 0",
        {"r": [(1, 1, "x")]},
        (pushing, "rejects_null", lambda _predicate, _columns: True),
    ),
    "IS NULL above an outer join is not pushed below it": (
        "SELECT r.a FROM r LEFT JOIN s ON r.a = s.a WHERE s.a IS NULL",
        {"r": [(1, 1, "x"), (2, 1, "x")], "s": [(1, 1, "x")]},
        (pushing, "_strengthened", always_inner),
    ),
    "a condition of ON about the kept side stays in ON": (
        "SELECT r.a, s.d FROM r LEFT JOIN s ON r.a = s.a AND r.b = 1",
        {"r": [(1, 2, "x")], "s": [(1, 1, "x")]},
        (pushing, "_join", kept_side_filtered),
    ),
    "a condition does not pass below LIMIT": (
        "SELECT a FROM (SELECT a FROM r ORDER BY a LIMIT 1) AS q WHERE a > 1",
        {"r": [(1, 1, "x"), (2, 1, "x")]},
        (pushing, "_push", below_limit),
    ),
    "a condition on no column does not pass below a global aggregate": (
        "SELECT n FROM (SELECT count(*) AS n FROM r) AS q WHERE 1 = 2",
        {"r": [(1, 1, "x")]},
        (pushing, "_push", below_global_aggregate),
    ),
    "ties of a LIMIT are not pruned": (
        "SELECT a FROM (SELECT a, b FROM r ORDER BY a LIMIT 1) AS q WHERE b > 1",
        {"r": [(1, 2, "x"), (1, 1, "x")]},
        (pruning, "_top", without_ties),
    ),
    "two rows for a scalar subquery are a failure, not a choice": (
        "SELECT a, (SELECT d FROM s WHERE s.a = r.a) AS d FROM r",
        {"r": [(1, 1, "x")], "s": [(1, 1, "x"), (1, 2, "x")]},
        (attach, "Case", lambda _branches, default: default),
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_trap(trap, monkeypatch):
    sql, tables, mistake = TRAPS[trap]
    plan = bound(sql)
    assert difference(plan, rewrite(plan), EMPTY | tables) is None
    monkeypatch.setattr(*mistake)
    assert difference(plan, rewrite(plan), EMPTY | tables) is not None


@pytest.mark.parametrize("kind", ["a", "c", "a = 1", "CAST(a AS DOUBLE PRECISION)", r"CAST('\x00' AS BYTEA)"])
def test_several_rows_for_one_value_fail_in_a_query_as_before(kind):
    plan = rewrite(bound(f"SELECT (SELECT {kind} FROM r) AS v FROM s"))
    two = EMPTY | {"r": [(1, 1, "x"), (1, 1, "x")], "s": [(1, 1, "x")]}
    assert evaluate(plan, two).rows == [(None,)]
    with pytest.raises(DataError, match="more than one row"):
        evaluate(plan, two, strict=True)


@pytest.mark.parametrize("limit", [None, 0, 1, 2])
@pytest.mark.parametrize("offset", [0, 1])
def test_a_limit_given_with_the_query_is_kept_for_each_outer_row(limit, offset):
    query = PROGRAM.bind_query(
        "SELECT b, (SELECT sum(q.d) FROM (SELECT d FROM s WHERE s.a = r.a ORDER BY d LIMIT ? OFFSET ?) AS q) "
        "AS n FROM r"
    )
    given = dict(zip(query.parameters, (limit, offset), strict=True))
    tables = EMPTY | {"r": [(1, 1, "x"), (2, 2, "x")], "s": [(1, 1, "x"), (1, 10, "x"), (1, 100, "x")]}
    before = evaluate(query.plan, tables, parameters=given).rows
    after = evaluate(rewrite(query.plan), tables, parameters=given).rows
    assert after == before
    assert before[0][1] == (sum([1, 10, 100][offset:][:limit]) or None)
