"""Recursion over tables in memory is what the reference says: random rules, facts and histories."""

import functools
import random
from dataclasses import replace

import pytest
from tests.hub.recursive import RecursiveCircuit
from tests.planner.circuit.plain import CircuitStore

from everview.engines.reference.evaluate import evaluate_views
from everview.hub import leaves, recursing
from everview.language.expressions import TRUE
from everview.language.program import Program
from everview.planner.circuit import recursion
from everview.planner.circuit.derivations import Derivations
from everview.planner.circuit.parts import Recursion
from everview.testing.fuzz.datalog import check_rules, rule_case

PAIRS = 12
store = functools.partial(CircuitStore, run=RecursiveCircuit)


def test_random_rules_and_histories():
    changed = sum(len(check_rules(rule_case(10 * pair + pair % 3), store)) for pair in range(PAIRS))
    assert changed > 2 * PAIRS


def test_a_row_that_new_rows_support_is_doubted_again_when_what_it_stands_on_goes():
    assert check_rules(rule_case(50259), store)


TABLES = "CREATE TABLE e (a BIGINT, b BIGINT); CREATE TABLE f (a BIGINT, x DOUBLE);"
VIEWS = {
    "NULL is a value": "t(x, y) AS (SELECT a, b FROM e UNION SELECT t.x, e.b FROM t JOIN e ON t.y = e.a)",
    "NULL meets NULL": (
        "t(x, y) AS (SELECT a, b FROM e UNION "
        "SELECT t.x, e.b FROM t JOIN e ON t.y IS NOT DISTINCT FROM e.a AND t.x + e.b < 3)"
    ),
    "from both ends": (
        "t(x, y) AS (SELECT a, b FROM e UNION SELECT s.x, t.y FROM t s JOIN t ON s.y = t.x AND s.x <> t.y)"
    ),
    "constants": "t(x, y) AS (SELECT 0, 1 UNION SELECT t.y, e.b FROM t JOIN e ON t.y = e.a)",
    "doubles": "t(x, y) AS (SELECT a, x FROM f UNION SELECT e.b, t.y FROM t JOIN e ON t.x = e.a)",
    "an outer join": (
        "t(x, y) AS (SELECT a, a FROM f UNION SELECT t.y, coalesce(e.b, 0) FROM t LEFT JOIN e ON t.y = e.a)"
    ),
    "an outer join to the left": (
        "t(x, y) AS (SELECT a, a FROM f UNION SELECT t.y, coalesce(e.b, 0) FROM e RIGHT JOIN t ON t.y = e.a)"
    ),
    "except": (
        "t(x, y) AS (SELECT a, b FROM e UNION "
        "(SELECT t.x, e.b FROM t JOIN e ON t.y = e.a EXCEPT SELECT a, a FROM f))"
    ),
    "intersect": (
        "t(x, y) AS (SELECT a, b FROM e WHERE a = 0 UNION "
        "(SELECT t.y, t.x FROM t INTERSECT SELECT a, b FROM e))"
    ),
    "who has a partner": (
        "t(x, y) AS (SELECT a, a FROM f UNION SELECT a, b FROM e WHERE a IN (SELECT y FROM f JOIN e g ON "
        "f.a = g.a JOIN (SELECT 1 AS y) h ON true))"
    ),
    "a sum below": (
        "t(x, y) AS (SELECT a, a FROM f UNION SELECT t.x, g.s FROM t "
        "JOIN (SELECT a, max(b) AS s FROM e GROUP BY a) g ON t.y = g.a)"
    ),
    "by each other": (
        "t(x, y) AS (SELECT a, b FROM e WHERE a <> b UNION SELECT s.y, s.x FROM s), "
        "s(x, y) AS (SELECT t.x, e.b FROM t JOIN e ON t.y = e.a)"
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_a_recursive_query_may_hold(name):
    query = f"AS WITH RECURSIVE {VIEWS[name]} SELECT"
    program = Program.parse(
        f"{TABLES} CREATE MATERIALIZED VIEW v {query} x, y FROM t;"
        f"CREATE MATERIALIZED VIEW n {query} y, count(*) AS n FROM t GROUP BY y"
    )
    kept, rng = store(program), random.Random(name)
    seen = set()
    for _ in range(20):
        relation = rng.choice("eef")
        row = rng.choice((None, 0, 0, 1, 1, 2)), rng.choice((None, 0, 1, 1, 2))
        row = row if relation == "e" else (row[0], None if row[1] is None else row[1] / 2)
        there = kept.rows(relation)
        if there and rng.random() < 0.4:
            kept.delete(relation, [rng.choice(there)])
        else:
            kept.insert(relation, [row])
        wanted = evaluate_views(program, {name: kept.rows(name) for name in "ef"})
        for view, result in wanted.items():
            assert sorted(map(repr, kept.rows(view))) == sorted(map(repr, result.rows))
        seen.add(len(wanted["v"].rows))
    assert len(seen) > 1


def test_views_of_one_group_share_its_operator():
    rules = """
        .decl e(a: number, b: number)
        .decl p(a: number, b: number)
        .decl q(a: number, b: number)
        p(x, y) :- e(x, y).
        p(x, y) :- q(y, x).
        q(x, y) :- p(x, z), e(z, y).
    """
    circuit = RecursiveCircuit(Program.parse(rules, language="datalog")).circuit
    assert sum(operator.recursion is not None for operator in circuit.operators.values()) == 1


def test_a_change_reads_what_it_touches_and_no_more():
    """Of a hundred paths only the one that breaks, and is mended, is looked at."""
    program = Program.parse(
        f"{TABLES} CREATE MATERIALIZED VIEW v AS WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION "
        "SELECT t.x, e.b FROM t JOIN e ON t.y = e.a) SELECT x, y FROM t"
    )
    circuit = RecursiveCircuit(program)
    steps = [(10 * path + step, 10 * path + step + 1) for path in range(100) for step in range(4)]
    circuit.refresh({"e": dict.fromkeys(steps, 1)})
    assert len(circuit.rows("v")) == 1000
    circuit.read_by_recursions = 0
    circuit.refresh({"e": {(501, 502): -1}})
    assert len(circuit.rows("v")) == 994
    circuit.refresh({"e": {(501, 502): 1}})
    assert len(circuit.rows("v")) == 1000
    assert 0 < circuit.read_by_recursions < 150


def without(**parts):
    """A recursion that lacks some of its parts."""
    return lambda *given: replace(Recursion(*given), **parts)


def far_above(self, doubted, derivation, rows, *, given):
    if given:
        REAL_DOUBT(self, doubted, derivation, rows, given=given)


def unasked(memory, derivation, given, meet, *, allowed):
    return REAL_DERIVE(memory, derivation, given, meet, allowed=None)


def once(self):
    return list(REAL_ATOMS(self))[:1]


REAL_DOUBT, REAL_DERIVE, REAL_ATOMS = recursing._Group._doubt, recursing.derive, Derivations.by_atoms
MUTANTS = {
    "a row may stand on one that comes after it": (Derivations, "_is_before", lambda *_: TRUE, 10),
    "what went does not come back": (recursion, "Recursion", without(returns=()), 10),
    "what goes is not noticed": (recursing._Group, "shrink", lambda _: None, 7),
    "what goes takes nothing with it": (recursing._Group, "_doubt", far_above, 10),
    "new rows take nothing away": (recursion, "Recursion", without(from_forbidden=()), 360),
    "what may not be there is not asked": (recursing, "derive", unasked, 360),
    "what inputs lost still supports": (leaves.Input, "now", leaves.Input.before, 7),
    "what new rows support is not doubted": (
        recursing._Group,
        "_still",
        lambda self, *given: self._before(*given),
        50259,
    ),
    "rows of one atom are enough": (Derivations, "by_atoms", once, 9),
    "every part derives all": (recursing._Group, "_inside", lambda _self, _place, rows: rows, 42),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_recursion_is_found_out(name, monkeypatch):
    owner, attribute, broken, seed = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, broken)
    with pytest.raises(AssertionError, match="after statement"):
        check_rules(rule_case(seed), store)
