"""Recursion over tables in memory is what the reference says: random rules, facts and histories."""

import functools

from tests.hub.recursive import RecursiveCircuit
from tests.planner.circuit.plain import CircuitStore

from everview.testing.fuzz.datalog import check_rules, rule_case

PAIRS = 60
store = functools.partial(CircuitStore, run=RecursiveCircuit)


def test_random_rules_and_histories():
    changed = sum(len(check_rules(rule_case(3 * pair), store)) for pair in range(PAIRS))
    assert changed > 2 * PAIRS
