"""INTERSECT and EXCEPT, with and without ALL: the touched rows' multiplicities, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.engines.sqlite.circuits.circuit import Changed, Statement, live, united
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import ONCE, Condition, Select, from_table
from everview.engines.sqlite.circuits.statetable import key_terms
from everview.language.plan import Except, Intersect

if TYPE_CHECKING:
    from everview.engines.sqlite.circuits.compiler import Compiler


def multiplicity(plan: Intersect | Except, left: str, right: str) -> str:
    """Return how often a row is in the result, given how often it is in the inputs."""
    match plan:
        case Intersect(all=True):
            return f"min({left}, {right})"
        case Intersect():
            return f"({left} > 0 AND {right} > 0)"
        case Except(all=True):
            return f"max({left} - ({right}), 0)"
        case Except():
            return f"({left} > 0 AND {right} = 0)"


def compile_set_operation(compiler: Compiler, plan: Intersect | Except) -> Node:
    """Store both inputs, so that a row's multiplicity is one look-up, and compare it with what it was."""
    circuit = compiler.circuit
    left, right = compiler.stored(plan.left), compiler.stored(plan.right)
    width = len(plan.schema)
    names = columns(width)
    name = f"e{compiler.number()}"
    touched = circuit.scratch(f"x_{name}", plan.schema, ("l", "r"))
    change = circuit.scratch(f"d_{name}", plan.schema)
    deltas = [left.delta(), right.delta()]

    def held(node: Node, row: tuple[str, ...]) -> str:
        """How often a row is in a stored input now."""
        (stored,) = node.contents() if node.contents else []
        mine, given = key_terms(node.schema, stored.columns), key_terms(node.schema, row)
        found = stored.filter(*(Condition(f"{a} = {b}", (a, b)) for a, b in zip(mine, given, strict=True)))
        return f"coalesce(({found.sql(columns=[stored.weight])}), 0)"

    def statements(changed: Changed) -> list[Statement]:
        listed = ", ".join(names)
        parts = []
        for branches, side in zip(deltas, ("w, 0", "0, w"), strict=True):
            rows = live(branches, changed)
            if rows:
                parts.append(f"SELECT {listed}, {side} FROM ({united(rows, plan.schema)})")
        collect = f"INSERT INTO {touched} {' UNION ALL '.join(parts)}"
        x = tuple(f"x.{c}" for c in names)
        sums = f"SELECT {listed}, sum(l) AS l, sum(r) AS r FROM {touched} GROUP BY {listed}"
        now = f"SELECT x.*, {held(left, x)} AS a, {held(right, x)} AS b FROM ({sums}) AS x {ONCE}"
        turn = f"{multiplicity(plan, 'a', 'b')} - {multiplicity(plan, '(a - l)', '(b - r)')}"
        compare = f"INSERT INTO {change} SELECT {listed}, {turn} FROM ({now}) WHERE {turn} <> 0"
        return [Statement(collect, touched), Statement(compare, change)]

    circuit.step(
        type(plan).__name__.lower(),
        "by change: the multiplicities of changed rows, before and after",
        [branch for branches in deltas for branch in branches],
        statements,
        makes=change,
    )

    def delta() -> list[Select]:
        return [from_table(circuit.names, change, names, weight="w", stored=False, delta=True)]

    def contents() -> list[Select]:
        (rows,) = left.contents() if left.contents else []
        count = multiplicity(plan, rows.weight, held(right, rows.columns))
        return [rows.weighing(count).filter(Condition(f"{count} > 0"))]

    return Node(plan.schema, delta, contents, is_set=not plan.all or left.is_set)
