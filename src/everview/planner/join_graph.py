"""Join graphs: a tree of inner joins as inputs and the conditions between them.

Inner joins are associative and, up to the order of columns, commutative; so a tree of them is a set of
inputs, equalities between pairs of inputs, and other conditions. When one input changes by a delta, the
join changes by the delta joined with all other inputs, and the cheapest way goes from neighbour to
neighbour, from the delta outwards: `delta_order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from everview.language.expressions import Column, Expression, columns_of, shift, substitute
from everview.language.plan import Filter, Join, JoinKind, Plan
from everview.planner.conditions import conjuncts, equal, has_subquery, same
from everview.planner.facts import Keys, equi_keys

__all__ = ["Equality", "JoinGraph", "Step", "delta_order", "delta_steps", "join_graph"]


@dataclass(frozen=True, slots=True)
class Equality:
    """`left_key = right_key`, each over the columns of its own input; NULL meets NULL if `null_safe`."""

    left: int
    left_key: Expression
    right: int
    right_key: Expression
    null_safe: bool

    def key_of(self, index: int) -> Expression:
        """The side that is over this input."""
        return self.left_key if index == self.left else self.right_key


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Inputs, in the order of their columns; equalities between them; the rest over all columns."""

    inputs: tuple[Plan, ...]
    equalities: tuple[Equality, ...]
    residual: tuple[Expression, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the columns of each input begin."""
        return tuple(accumulate((len(plan.schema) for plan in self.inputs[:-1]), initial=0))

    def inputs_of(self, predicate: Expression) -> frozenset[int]:
        """The inputs whose columns a condition over all columns reads."""
        offsets = self.offsets
        return frozenset(
            max(index for index, start in enumerate(offsets) if start <= read)
            for read in columns_of(predicate)
        )

    def predicate(self, equality: Equality) -> Expression:
        """An equality as a condition over all columns."""
        left = shift(equality.left_key, self.offsets[equality.left])
        right = shift(equality.right_key, self.offsets[equality.right])
        return same(left, right) if equality.null_safe else equal(left, right)


@dataclass(frozen=True, slots=True)
class Step:
    """The next input to join, by which equalities, and what else can be checked then."""

    input: int
    equalities: tuple[Equality, ...]
    residual: tuple[Expression, ...]


def join_graph(plan: Plan) -> JoinGraph:
    """The graph of the inner joins at the top of a plan; one input if there is none there.

    Filters between the joins belong to the graph.
    """
    inputs: list[Plan] = []
    predicates: list[Expression] = []
    _flatten(plan, 0, inputs, predicates)
    bare = JoinGraph(tuple(inputs), (), ())
    equalities: list[Equality] = []
    rest: list[Expression] = []
    for predicate in predicates:
        found = _equality(bare, predicate)
        if found is None:
            rest.append(predicate)
        else:
            equalities.append(found)
    return JoinGraph(tuple(inputs), tuple(equalities), tuple(rest))


def _flatten(plan: Plan, offset: int, inputs: list[Plan], predicates: list[Expression]) -> None:
    match plan:
        case Join(JoinKind.INNER, left, right, condition) if not has_subquery(condition):
            _flatten(left, offset, inputs, predicates)
            _flatten(right, offset + len(left.schema), inputs, predicates)
            predicates.extend(shift(part, offset) for part in conjuncts(condition))
        case Filter(Join(JoinKind.INNER) as child, predicate) if not has_subquery(predicate):
            _flatten(child, offset, inputs, predicates)
            predicates.extend(shift(part, offset) for part in conjuncts(predicate))
        case _:
            inputs.append(plan)


def _equality(graph: JoinGraph, predicate: Expression) -> Equality | None:
    sides = sorted(graph.inputs_of(predicate))
    if len(sides) != 2:
        return None
    one, other = sides
    first, second = graph.offsets[one], graph.offsets[other]
    # Seen as a join of just these two inputs, the condition may be an equality.
    width = len(graph.inputs[one].schema)

    def local(found: Column) -> Column:
        before = found.index < second
        return replace(found, index=found.index - first if before else found.index - second + width)

    moved = substitute(predicate, local)
    pairs = equi_keys(Join(JoinKind.INNER, graph.inputs[one], graph.inputs[other], moved)).pairs
    if len(pairs) != 1:
        return None
    return Equality(one, pairs[0].left, other, pairs[0].right, pairs[0].null_safe)


def delta_order(
    graph: JoinGraph, changed_index: int, *, keys: Sequence[Keys] | None = None
) -> tuple[int, ...]:
    """In which order to visit the other inputs, starting from the changed one.

    Always the best of those that can be reached next: by equalities that cover one of the input's `keys`
    (at most one row each), else by any equality (an index), else by some other condition; a cross product
    only when nothing is connected. Among equals more equalities win, then the order as written.
    """
    visited = {changed_index}
    order: list[int] = []
    while len(visited) < len(graph.inputs):
        left = [index for index in range(len(graph.inputs)) if index not in visited]
        best = min(left, key=lambda index: _cost(graph, frozenset(visited), index, keys))
        order.append(best)
        visited.add(best)
    return tuple(order)


def _cost(
    graph: JoinGraph, visited: frozenset[int], index: int, keys: Sequence[Keys] | None
) -> tuple[int, int, int]:
    step = _step(graph, visited, index)
    columns = {e.key_of(index) for e in step.equalities}
    known = frozenset(found.index for found in columns if isinstance(found, Column))
    if keys is not None and any(key <= known for key in keys[index]):
        rank = 0
    elif step.equalities:
        rank = 1
    elif any(index in (reads := graph.inputs_of(part)) and reads & visited for part in graph.residual):
        rank = 2
    else:
        rank = 3
    return rank, -len(step.equalities), index


def _step(graph: JoinGraph, visited: frozenset[int], index: int) -> Step:
    now = visited | {index}
    return Step(
        index,
        tuple(e for e in graph.equalities if index in (e.left, e.right) and {e.left, e.right} <= now),
        tuple(
            part
            for part in graph.residual
            if (reads := graph.inputs_of(part)) <= now and (index in reads or not reads <= visited)
        ),
    )


def delta_steps(
    graph: JoinGraph, changed_index: int, *, keys: Sequence[Keys] | None = None
) -> tuple[Step, ...]:
    """The visits of `delta_order`, each with the conditions that can be checked from then on.

    Every equality and every residual condition over two inputs or more is in exactly one step; a residual
    over the changed input alone, or over none, is in the first.
    """
    visited = frozenset([changed_index])
    steps: list[Step] = []
    for index in delta_order(graph, changed_index, keys=keys):
        step = _step(graph, visited, index)
        if not steps:
            early = tuple(p for p in graph.residual if graph.inputs_of(p) <= visited)
            step = Step(index, step.equalities, early + step.residual)
        steps.append(step)
        visited |= {index}
    return tuple(steps)
