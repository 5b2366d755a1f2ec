"""Why, forwards: every row of a plan with its provenance, made from the relations by the reference engine.

The naive twin of tracing. It makes all rows of every operator, each with what it stands on, and knows nothing
of questions, of stores, or of rows that need not be looked for.
"""

from __future__ import annotations

from collections import defaultdict
from typing import assert_never

from everview.algebra.provenance import Provenance
from everview.engines.reference.evaluate import evaluate
from everview.engines.reference.scalars import Run, truth
from everview.language.identity import tuple_id
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Project,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
)


class Annotated:
    """All relations and views of a program over the rows of the relations; the views' plans are given."""

    def __init__(self, program, plans, tables):
        self._program = program
        self._plans = plans
        self._tables = dict(tables)
        self._known = {}
        self._run = Run(lambda *_: [], {}, False)
        for name, plan in plans.items():
            self._tables[name] = evaluate(plan, self._tables).rows

    def of(self, name):
        """Each row of a relation or view, and why it is there."""
        if name not in self._known:
            if name in self._plans:
                self._known[name] = self._rows(self._plans[name])
            else:
                relation = self._program.relations[name]
                self._known[name] = {r: Provenance.of(tuple_id(relation, r)) for r in self._tables[name]}
        return self._known[name]

    def _values(self, expressions, row):
        return tuple(self._run.value(expression, row, ()) for expression in expressions)

    def _rows(self, plan):
        match plan:
            case Scan(name):
                return self.of(name)
            case Values():
                return dict.fromkeys(evaluate(plan, {}).rows, Provenance.ONE)
            case Filter() | Distinct() | TopK():
                return self._some(plan, self._rows(plan.input))
            case Project():
                found = self._rows(plan.input).items()
                return summed((self._values(plan.expressions, row), why) for row, why in found)
            case UnionAll():
                return summed(item for part in plan.inputs for item in self._rows(part).items())
            case Join():
                return self._join(plan)
            case Intersect():
                left, right = self._rows(plan.left), self._rows(plan.right)
                return {row: left[row] * right[row] for row in left if row in right}
            case Except():
                return self._some(plan, self._rows(plan.left))
            case Aggregate():
                return self._grouped(plan, plan.keys, lambda row: row[: len(plan.keys)])
            case Window():
                calls = plan.calls
                keys = [key for key in calls[0].partition if all(key in call.partition for call in calls)]
                width = len(plan.input.schema)
                return self._grouped(plan, keys, lambda row: self._values(keys, row[:width]))
            case _:
                assert_never(plan)

    def _some(self, plan, below):
        return {row: below[row] for row in evaluate(plan, self._tables).rows}

    def _grouped(self, plan, keys, key_of):
        groups = defaultdict(set)
        for row, why in self._rows(plan.input).items():
            groups[self._values(keys, row)] |= why.ids
        rows = evaluate(plan, self._tables).rows
        return {row: Provenance([groups[key_of(row)]]) for row in rows}

    def _join(self, plan):
        left, right = self._rows(plan.left), self._rows(plan.right)
        met = [(a, b) for a in left for b in right if truth(self._run.value(plan.condition, a + b, ()))]
        if plan.kind is JoinKind.SEMI:
            return summed((a, left[a] * right[b]) for a, b in met)
        with_left, with_right = {a for a, _ in met}, {b for _, b in met}
        alone = [(a, left[a]) for a in left if a not in with_left]
        if plan.kind is JoinKind.ANTI:
            return dict(alone)
        found = [(a + b, left[a] * right[b]) for a, b in met]
        if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
            found += [(a + (None,) * len(plan.right.schema), why) for a, why in alone]
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            nothing = (None,) * len(plan.left.schema)
            found += [(nothing + b, right[b]) for b in right if b not in with_right]
        return summed(found)


def summed(pairs):
    """Alternatives of one row added up."""
    found = defaultdict(set)
    for row, why in pairs:
        found[row] |= why.monomials
    return {row: Provenance(monomials) for row, monomials in found.items()}
