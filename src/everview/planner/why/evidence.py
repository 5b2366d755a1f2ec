"""What tracing asks of whoever keeps rows, and such questions as plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from everview.algebra.provenance import Provenance
from everview.language.expressions import (
    FALSE,
    Column,
    Expression,
    InList,
    IsNull,
    Literal,
    Or,
    conjunction,
    shift,
    substitute,
)
from everview.language.plan import Filter, Fixpoint, Join, JoinKind, Plan, Scan, Schema
from everview.planner.conditions import equal, same
from everview.planner.facts import EquiPair, equi_keys
from everview.planner.walking import over

__all__ = ["Evidence", "Question", "Row", "ask"]

Row = tuple[Any, ...]

_LISTED = 100
"""Up to so many values are listed in a condition that can be checked early; more are left to the join."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows of a plan meet these rows, which are different ones of a schema.

    The condition is over a given row's columns followed by those of the plan.
    """

    rows: Sequence[Row]
    schema: Schema
    plan: Plan
    condition: Expression

    @property
    def width(self) -> int:
        """How many columns the given rows have."""
        return len(self.schema)

    def of_one(self, row: Row) -> Plan:
        """What meets one row: a selection from the plan."""

        def bound(column: Column) -> Expression:
            if column.index < self.width:
                return Literal(row[column.index], column.type)
            return Column(column.index - self.width, column.type, column.name)

        return Filter(self.plan, substitute(self.condition, bound))

    def of_all(self, given: Plan) -> Plan:
        """Pairs: the given rows, from a plan that has them all, each with what meets it."""
        keys = equi_keys(Join(JoinKind.INNER, given, self.plan, self.condition))
        early = [self._early(pair) for pair in keys.pairs]
        narrow = conjunction([condition for condition in early if condition is not None])
        condition = conjunction([*map(self._paired, keys.pairs), keys.residual])
        return Join(JoinKind.INNER, given, Filter(self.plan, narrow), condition)

    def _paired(self, pair: EquiPair) -> Expression:
        """An equality; a plain one, which engines are quicker with, where no given value is NULL."""
        right = shift(pair.right, self.width)
        plain = isinstance(pair.left, Column) and all(row[pair.left.index] is not None for row in self.rows)
        return same(pair.left, right) if pair.null_safe and not plain else equal(pair.left, right)

    def given(self, name: str) -> Scan:
        """The given rows as a table of this name."""
        return Scan(name, self.schema)

    def _early(self, pair: EquiPair) -> Expression | None:
        """What an equality says of the plan's rows alone, where the values are few."""
        if not isinstance(pair.left, Column):
            return None
        place, kind = pair.left.index, pair.left.type
        values = dict.fromkeys(row[place] for row in self.rows)
        if len(values) > _LISTED:
            return None
        listed = tuple(Literal(value, kind) for value in values if value is not None)
        found: list[Expression] = [InList(pair.right, listed)] if listed else []
        if pair.null_safe and None in values:
            found.append(IsNull(pair.right))
        return (found[0] if len(found) == 1 else Or(tuple(found))) if found else FALSE


class Evidence(Protocol):
    """A consistent state of relations and views, as tracing reads it."""

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The plans of the views that are made here, over relations and views that are here."""
        ...

    def pairs(self, question: Question) -> list[tuple[Row, Row]]:
        """Each given row with each row of the plan that meets it, in any order, a pair once or more often."""
        ...

    def recursive(self, group: Fixpoint) -> Mapping[str, Scan]:
        """What reads the rows of each relation of a group, as they are kept."""
        ...

    def base(self, name: str, rows: Sequence[Row]) -> Mapping[Row, Provenance]:
        """Why rows are there that are made from nothing here: a relation's, or what was received."""
        ...


def ask(evidence: Evidence, question: Question) -> list[tuple[Row, Row]]:
    """Pairs of a question whose plan may have recursions in it: those are read where they are kept."""

    def kept(plan: Plan) -> Plan:
        return evidence.recursive(plan)[plan.result] if isinstance(plan, Fixpoint) else over(plan, kept)

    return evidence.pairs(replace(question, plan=kept(question.plan)))
