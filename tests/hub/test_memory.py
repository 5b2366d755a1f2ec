"""Plans over tables in memory: views kept in Arrow and SQLite equal their queries after every change."""

import pytest
from tests.planner.circuit.plain import CircuitStore, PlainCircuit

from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub import vectors
from everview.hub.columnar import Columnar
from everview.hub.memory import Memory
from everview.language.plan import Scan, walk_plan
from everview.planner.circuit.parts import WEIGHT, table_of
from everview.testing.fuzz.case import generate_case
from everview.testing.fuzz.check import Difference, check_case

CASES = 36


class InMemory(PlainCircuit):
    """The same circuit, its plans run in memory."""

    def evaluate(self, plan, tables):
        memory = Memory()
        for node in walk_plan(plan):
            if isinstance(node, Scan):
                name, bag = table_of(node.name)
                schema = (*node.schema, WEIGHT) if bag else node.schema
                memory.put(name, schema, arrow_table(schema, tables.get(name, [])))
        memory.run("found", plan)
        found = memory.table("found")
        memory.close()
        return arrow_rows(found, plan.schema)


@pytest.mark.parametrize("block", range(6))
def test_views_equal_their_queries_after_every_change(block):
    check_seeds(range(1000 + block * CASES // 6, 1000 + (block + 1) * CASES // 6))


def check_seeds(seeds):
    for seed in seeds:
        check_case(generate_case(seed, statements=5), lambda program: CircuitStore(program, InMemory))


def test_arrow_does_most_of_it(monkeypatch):
    """Otherwise the rows of a refresh would go through SQLite one by one."""
    nodes = {True: 0, False: 0}
    arrow = Columnar._arrow

    def counted(self, plan, inputs):
        try:
            found = arrow(self, plan, inputs)
        except Exception:
            nodes[False] += 1
            raise
        nodes[True] += 1
        return found

    monkeypatch.setattr(Columnar, "_arrow", counted)
    check_seeds(range(20))
    assert nodes[True] > 5 * nodes[False], nodes


def test_an_arrow_function_that_means_something_else_is_caught(monkeypatch):

    monkeypatch.setitem(vectors._COMPARISONS, ">", vectors._COMPARISONS[">="])
    with pytest.raises(Difference):
        check_seeds(range(100))
