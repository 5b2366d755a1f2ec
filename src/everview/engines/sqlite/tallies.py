"""Tallies: how many rows a commit brings to, and takes from, each operator of a view.

Filters, projections and inner joins have no table of their own, and no statement: several become one. What
such an operator changes is computed once more, while the deltas are there, and counted; so it is done only
for the views that somebody looks at.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from everview.engines.sqlite.circuits.circuit import Changed, consolidated, live, united
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select
from everview.engines.sqlite.engine import Engine
from everview.language.plan import Fixpoint, Plan, Scan, Schema

__all__ = ["Tallied", "Tallies", "Tally", "parts_of"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows came, and how many went, copies counted."""

    appeared: int = 0
    disappeared: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.appeared + other.appeared, self.disappeared + other.disappeared)


@dataclass(frozen=True, slots=True)
class Tallied:
    """What a commit did to the operators of a view; one that is not here had no change."""

    commit: int
    counts: Mapping[Plan, Tally]


@dataclass(slots=True)
class _Followed:
    """The operators of a view: their columns, and the branches of their changes."""

    branches: dict[Plan, tuple[Schema, list[Select]]]
    until: float = 0.0
    """When it is followed no more, by the monotonic clock."""
    counts: dict[Plan, Tally] = field(default_factory=dict)


@dataclass(slots=True)
class Tallies:
    """Counts by the statements of a transaction; a commit makes them the last ones.

    What a statement changed is set aside until `keep` or `drop` says what became of the statement.
    """

    engine: Engine
    last: dict[str, Tallied] = field(default_factory=dict)
    """View → the last commit that changed an operator of it while it was followed."""
    following: bool = False
    """Whether somebody looks at some view; else nothing need be called."""
    _followed: dict[str, _Followed] = field(default_factory=dict)
    _new: list[tuple[str, Plan, Tally]] = field(default_factory=list)

    def follow(self, view: str, seconds: float) -> None:
        """Count from the next commit on, for so long; until then there is nothing to show."""
        if view not in self._followed:
            nodes = {plan: self._node(plan) for plan in parts_of(self.engine, view)}
            branches = {p: (node.schema, node.delta()) for p, node in nodes.items() if node is not None}
            self._followed[view] = _Followed(branches)
        self._followed[view].until = time.monotonic() + seconds
        self.following = True

    def _unfollow(self) -> None:
        """Forget what nobody has looked at for long."""
        now = time.monotonic()
        for view in [view for view, followed in self._followed.items() if followed.until < now]:
            del self._followed[view]
            self.last.pop(view, None)
        self.following = bool(self._followed)

    def _node(self, plan: Plan) -> Node | None:
        return self.engine.nodes.get(plan.name) if isinstance(plan, Scan) else self.engine.operators.get(plan)

    def collect(self, connection: sqlite3.Connection, changed: Changed) -> None:
        """Count what one statement changed, while its deltas are there."""
        self._unfollow()
        known: dict[Plan, Tally] = {}  # views have parts in common
        for view, followed in self._followed.items():
            for plan, (schema, branches) in followed.branches.items():
                rows = live(branches, changed)
                if rows and plan not in known:
                    known[plan] = _counted(connection, rows, schema)
                if rows and known[plan] != Tally():
                    self._new.append((view, plan, known[plan]))

    def keep(self) -> None:
        """The statement is done."""
        for view, plan, tally in self._new:
            if view in self._followed:
                counts = self._followed[view].counts
                counts[plan] = counts.get(plan, Tally()) + tally
        self._new.clear()

    def drop(self) -> None:
        """The statement was undone."""
        self._new.clear()

    def take(self, commit: int) -> None:
        """The transaction is committed under this number."""
        self.keep()
        for view, followed in self._followed.items():
            if followed.counts:
                self.last[view] = Tallied(commit, followed.counts)
                followed.counts = {}

    def forget(self) -> None:
        """Drop what was collected."""
        self._new.clear()
        for followed in self._followed.values():
            followed.counts = {}


def parts_of(engine: Engine, view: str) -> dict[Plan, tuple[Plan, ...]]:
    """The operators of a view as it is kept, the view's own first → what each reads.

    What views have in common is a part of each; another view that is read is an end, and so is a recursion's
    own relation.
    """
    found: dict[Plan, tuple[Plan, ...]] = {}
    waiting = [engine.shared[view]]
    while waiting:
        plan = waiting.pop()
        if plan not in found:
            below = plan.plans if isinstance(plan, Fixpoint) else plan.inputs
            found[plan] = tuple(_through(engine, part) for part in below)
            waiting += reversed(found[plan])
    return found


def _through(engine: Engine, plan: Plan) -> Plan:
    """What a scan of a common part stands for."""
    while isinstance(plan, Scan) and plan.name in engine.shared and plan.name not in engine.program.views:
        plan = engine.shared[plan.name]
    return plan


def _counted(connection: sqlite3.Connection, branches: list[Select], schema: Schema) -> Tally:
    rows = (
        consolidated(branches, schema) if schema else f"SELECT sum(w) AS w FROM ({united(branches, schema)})"
    )
    more, less = connection.execute(
        f"SELECT ifnull(sum(max(w, 0)), 0), ifnull(-sum(min(w, 0)), 0) FROM ({rows})"
    ).fetchone()
    return Tally(more, less)
