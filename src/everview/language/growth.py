"""Growth: whether a recursion can make values without end, and where.

A recursion that only copies values of its inputs ends, for there are finitely many rows of them. One that
computes a value from its own rows (a counter, a path as text) may go on for ever, unless it is bounded. So we
draw how values flow: from each column of the recursive atoms of a clause to the columns of its head, copied
or computed. A computed one on a circle of this drawing needs a condition in its clause that bounds it: from
above if it can rise, from below if it can fall, the length of a text. What bounds it is not recursive itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from everview.language.expressions import Call, Case, Cast, Column, Expression, Literal, columns_of, walk
from everview.language.graphs import components
from everview.language.plan import RecursiveScan
from everview.language.recursion import Clause
from everview.language.types import Kind

__all__ = ["Creation", "unbounded"]

_COPYING = frozenset({"coalesce", "greatest", "least", "nullif"})
"""Functions whose result is one of their arguments."""

_NUMBERS = frozenset({Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class Creation:
    """A clause, by its place among those given, that computes a column of its head without bound."""

    clause: int
    column: int
    expression: Expression
    missing: str
    """What is missing, in words."""


def unbounded(clauses: Sequence[tuple[str, Clause]]) -> Creation | None:
    """The first value that the clauses of a group, each with its relation's name, create without bound."""
    flows = [flow for number, (name, clause) in enumerate(clauses) for flow in _flows(number, name, clause)]
    edges: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
    for flow in flows:
        edges[flow.source].append(flow.target)
        edges.setdefault(flow.target, [])
    circle = {node: number for number, nodes in enumerate(components(edges)) for node in nodes}
    for flow in flows:
        if flow.expression is None or circle[flow.source] != circle[flow.target]:
            continue
        missing = _missing(clauses[flow.clause][1], flow.expression)
        if missing:
            return Creation(flow.clause, flow.target[1], flow.expression, missing)
    return None


@dataclass(frozen=True, slots=True)
class _Flow:
    clause: int
    source: tuple[str, int]
    target: tuple[str, int]
    expression: Expression | None
    """How the value is computed; None where it is copied."""


def _flows(number: int, name: str, clause: Clause) -> Iterator[_Flow]:
    sources = _recursive(clause)
    for place, expression in enumerate(clause.head):
        for part in _chosen(expression):
            copied = isinstance(part, Column)
            for column in columns_of(part):
                if column in sources:
                    yield _Flow(number, sources[column], (name, place), None if copied else part)


def _recursive(clause: Clause) -> dict[int, tuple[str, int]]:
    """The columns of a clause that are those of recursive relations."""
    return {
        offset + index: (atom.name, index)
        for offset, atom in zip(clause.offsets, clause.atoms, strict=True)
        if isinstance(atom, RecursiveScan)
        for index in range(len(atom.schema))
    }


def _chosen(expression: Expression) -> Iterator[Expression]:
    """The parts of which an expression takes one as it is; those of finitely many values are left out."""
    match expression:
        case Cast(operand):
            yield from _chosen(operand)
        case Call(name, arguments) if name in _COPYING:
            for argument in arguments:
                yield from _chosen(argument)
        case Case(branches, default):
            for result in (*(result for _, result in branches), default):
                yield from _chosen(result)
        case Call("%", (_, Literal())):
            pass
        case _:
            if expression.type.kind is not Kind.BOOLEAN:
                yield expression


def _missing(clause: Clause, expression: Expression) -> str:
    """What a computed value lacks to be bounded, in words; nothing if it is."""
    bounds = _Bounds(clause)
    if bounds.equal(expression):
        return ""
    if expression.type.kind in _NUMBERS:
        return bounds.missing_for_number(expression)
    if expression.type.kind is Kind.TEXT:
        return "" if bounds.has_length(expression) else "a bound on its length, such as length(x) < 1000"
    return "a condition that it equals a value of another relation"


class _Bounds:
    """What the conditions of a clause say about values."""

    def __init__(self, clause: Clause) -> None:
        self._recursive = frozenset(_recursive(clause))
        self._above: set[Expression] = set()
        self._below: set[Expression] = set()
        self._fixed: set[Expression] = set()
        self._positive: set[Expression] = set()
        for condition in clause.conditions:
            self._learn(condition)

    def _learn(self, condition: Expression) -> None:
        match condition:
            case Call("<" | "<=", (left, right)):
                self._less(_bare(left), _bare(right))
            case Call(">" | ">=", (left, right)):
                self._less(_bare(right), _bare(left))
            case Call("=", (left, right)):
                for one, other in ((_bare(left), _bare(right)), (_bare(right), _bare(left))):
                    if not self._reads(other):
                        self._fixed.add(one)
            case _:
                pass

    def _less(self, less: Expression, more: Expression) -> None:
        if not self._reads(more):
            self._above.add(less)
        if not self._reads(less):
            self._below.add(more)
        if _sign_of(less) >= 0:
            self._positive.add(more)

    def _reads(self, expression: Expression) -> bool:
        return not self._recursive.isdisjoint(columns_of(expression))

    def equal(self, expression: Expression) -> bool:
        """Whether it must equal what does not depend on the recursion."""
        return _bare(expression) in self._fixed

    def has_length(self, expression: Expression) -> bool:
        """Whether the lengths of the texts that it is made from, or its own, are bounded."""
        measured = [e for e in self._above if isinstance(e, Call) and e.function == "length"]
        lengths = {_bare(call.arguments[0]) for call in measured}
        own = [c for c in _columns(expression) if c.index in self._recursive]
        return _bare(expression) in lengths or all(column in lengths for column in own)

    def missing_for_number(self, expression: Expression) -> str:
        terms = list(_terms(expression, 1))
        recursive = [(term, sign) for term, sign in terms if self._reads(term)]
        steps = [self._sign(term) * sign for term, sign in terms if not self._reads(term)]
        simple = len(recursive) == 1 and recursive[0][1] == 1 and isinstance(recursive[0][0], Column)
        rises_only = simple and all(step > 0 for step in steps)
        falls_only = simple and all(step < 0 for step in steps)
        above = falls_only or self._is_bounded(expression, recursive, self._above, self._below)
        below = rises_only or self._is_bounded(expression, recursive, self._below, self._above)
        if above and below:
            return ""
        if not all(isinstance(term, Column) for term, _ in recursive):
            return "bounds from above and from below, such as n >= 0 and n < 100"
        if not above:
            return "a bound from above, such as n < 100"
        return "a bound from below, such as n >= 0, for it may fall"

    def _is_bounded(
        self,
        expression: Expression,
        recursive: Iterable[tuple[Expression, int]],
        same: set[Expression],
        opposite: set[Expression],
    ) -> bool:
        def term(part: Expression, sign: int) -> bool:
            if isinstance(part, Column):
                return part in (same if sign > 0 else opposite) or part in self._fixed
            own = [column for column in _columns(part) if column.index in self._recursive]
            return all(column in self._above and column in self._below for column in own)

        return _bare(expression) in same or all(term(part, sign) for part, sign in recursive)

    def _sign(self, term: Expression) -> int:
        """Of a number that is not recursive: 1 if it is never below 0, -1 if never above, 0 if not known."""
        if isinstance(term, Literal):
            return 1 if _sign_of(term) >= 0 else -1
        never_below = isinstance(term, Call) and term.function in ("abs", "length")
        return 1 if never_below or term in self._positive else 0


def _bare(expression: Expression) -> Expression:
    """Without the conversions around it."""
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression


def _columns(expression: Expression) -> Iterator[Column]:
    return (part for part in walk(expression) if isinstance(part, Column))


def _sign_of(expression: Expression) -> int:
    """The sign of a number that is written out: -1 for a negative one, and for what is none."""
    value = expression.value if isinstance(expression, Literal) else None
    if value is None or expression.type.kind not in _NUMBERS:
        return -1
    return int(value > 0) - int(value < 0)


def _terms(expression: Expression, sign: int) -> Iterator[tuple[Expression, int]]:
    """The terms of a sum, each with its sign."""
    match _bare(expression):
        case Call("+", (left, right)):
            yield from _terms(left, sign)
            yield from _terms(right, sign)
        case Call("-", (left, right)):
            yield from _terms(left, sign)
            yield from _terms(right, -sign)
        case Call("neg", (operand,)):
            yield from _terms(operand, -sign)
        case term:
            yield term, sign
