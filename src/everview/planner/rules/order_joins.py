"""Order joins: no cross product while a connected input is left.

Inner joins may be done in any order. A tree of three inputs or more that joins two inputs without any
condition between them, though a condition leads to another input first, is rebuilt from its first input
in the order of `delta_order`; a projection puts the columns back. A tree that has no such join stays as
it was written. The order for each changed input is not in the plan: engines ask `delta_steps`.
"""

from __future__ import annotations

from dataclasses import replace

from everview.language.expressions import Column, Expression, conjunction, substitute
from everview.language.plan import Filter, Join, JoinKind, Plan, Project
from everview.planner.conditions import column
from everview.planner.join_graph import JoinGraph, delta_steps, join_graph
from everview.planner.walking import over

__all__ = ["order_joins"]


def order_joins(plan: Plan) -> Plan:
    """The plan with each tree of inner joins in a connected order."""
    match plan:
        case Join(JoinKind.INNER) | Filter(Join(JoinKind.INNER)):
            graph = join_graph(plan)
            if len(graph.inputs) > 2 and _is_torn(graph, plan):
                ordered = tuple(map(order_joins, graph.inputs))
                return _rebuilt(replace(graph, inputs=ordered), plan)
        case _:
            pass
    return over(plan, order_joins)


def _is_torn(graph: JoinGraph, plan: Plan) -> bool:
    """Whether the tree as written has more cross products than the best order."""
    links = [frozenset([e.left, e.right]) for e in graph.equalities]
    links += [reads for part in graph.residual if len(reads := graph.inputs_of(part)) > 1]
    leaves = iter(range(len(graph.inputs)))

    def crosses(node: Plan) -> tuple[frozenset[int], int]:
        """The inputs below a node, and how many of its joins are cross products."""
        match node:
            case Filter(Join(JoinKind.INNER) as child):
                return crosses(child)
            case Join(JoinKind.INNER, left, right):
                (one, before), (other, after) = crosses(left), crosses(right)
                linked = any(link <= one | other and link & one and link & other for link in links)
                return one | other, before + after + (not linked)
            case _:
                return frozenset([next(leaves)]), 0

    visited = frozenset([0])
    best = 0
    for step in delta_steps(graph, 0):
        now = visited | {step.input}
        best += not any(link <= now and step.input in link for link in links)
        visited = now
    return crosses(plan)[1] > best


def _rebuilt(graph: JoinGraph, plan: Plan) -> Plan:
    """The inputs joined from the first one on, and the columns where they were."""
    tree = graph.inputs[0]
    at = {index: index for index in range(len(tree.schema))}
    for step in delta_steps(graph, 0):
        following, start = graph.inputs[step.input], graph.offsets[step.input]
        width = len(tree.schema)
        at |= {start + index: width + index for index in range(len(following.schema))}
        parts = [*(graph.predicate(e) for e in step.equalities), *step.residual]
        tree = Join(JoinKind.INNER, tree, following, conjunction([_moved(part, at) for part in parts]))
    columns = tuple(column(tree.schema, at[index]) for index in range(len(plan.schema)))
    return Project(tree, columns, tuple(field.name for field in plan.schema))


def _moved(expression: Expression, at: dict[int, int]) -> Expression:
    def place(found: Column) -> Column:
        return replace(found, index=at[found.index])

    return substitute(expression, place)
