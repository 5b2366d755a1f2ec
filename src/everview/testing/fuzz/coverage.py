"""How often each construct was checked, and how often it mattered.

A construct is `checked` with every view that holds it, `filled` if that view had rows at some time, and
`changed` if its rows changed while the history ran. A construct that never changes anything is not tested.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, fields

from everview.language.aggregates import AGGREGATES, APPROXIMATE, RANKINGS, SHIFTS
from everview.language.functions import FUNCTIONS
from everview.language.relations import MERGING, Semantics
from everview.testing.fuzz.case import Case
from everview.testing.fuzz.check import Checked
from everview.testing.fuzz.domains import KINDS
from everview.testing.fuzz.expressions import CASTS

__all__ = ["CONSTRUCTS", "Coverage"]

_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")

CONSTRUCTS: tuple[str, ...] = (
    *(f"relation: {kind.value}" for kind in Semantics if kind not in MERGING.values()),
    *(f"type {kind.name}" for kind in KINDS),
    "WHERE",
    "WHERE on several conditions",
    *(f"function {name}" for name in FUNCTIONS),
    *(f"cast {source.name} to {target.name}" for target in KINDS for source in CASTS[target]),
    "implicit conversion",
    "expression that may fail",
    "expression that failed",
    "NULL literal",
    "CASE WHEN",
    "CASE x WHEN",
    "LIKE",
    "NOT LIKE",
    "ILIKE",
    "LIKE ESCAPE",
    "IN list",
    "NOT IN list",
    "BETWEEN",
    "NOT BETWEEN",
    "AND",
    "OR",
    "NOT",
    "IS NULL",
    "IS NOT NULL",
    "IS TRUE",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
    *(f"{how}{join}" for join in _JOINS for how in ("", "equi ", "theta ")),
    "CROSS JOIN",
    "USING",
    "self join",
    "join of three or more",
    "join on several conditions",
    "computed join key",
    "null-safe join key",
    "subquery in ON",
    "UNION",
    "UNION ALL",
    "INTERSECT",
    "INTERSECT ALL",
    "EXCEPT",
    "EXCEPT ALL",
    "DISTINCT",
    "GROUP BY",
    "computed group key",
    "aggregate without keys",
    "count(*)",
    *AGGREGATES,
    *(f"{name} DISTINCT" for name in AGGREGATES),
    *APPROXIMATE,
    "FILTER",
    "HAVING",
    "IN subquery",
    "NOT IN subquery",
    "EXISTS subquery",
    "NOT EXISTS subquery",
    "scalar subquery",
    "correlated subquery",
    "outer column",
    "subquery in FROM",
    "VALUES",
    "SELECT without FROM",
    "WITH",
    "ORDER BY LIMIT",
    "ORDER BY LIMIT in a subquery",
    "OFFSET",
    "FETCH FIRST",
    "ORDER BY DESC",
    "NULLS FIRST or LAST",
    "window function",
    "window over groups",
    "PARTITION BY",
    "window count(*)",
    *(f"window {name}" for name in (*RANKINGS, *SHIFTS, *AGGREGATES)),
    "ROWS frame",
    "RANGE frame",
    "view over a view",
    "views three deep",
    "view with named columns",
)
"""Everything that the generator is to reach."""


@dataclass(slots=True)
class Coverage:
    """Counts over many cases; `+` adds them up."""

    pairs: int = 0
    statements: int = 0
    cut: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, result: Checked) -> None:
        """Count a case that was checked."""
        self.pairs += 1
        self.statements += result.statements
        self.cut += result.cut
        self.refusals += case.refusals
        for view, constructs in case.constructs.items():
            found = [*constructs, *(["expression that failed"] if view in result.failed else [])]
            self.checked.update(found)
            if view in result.filled:
                self.filled.update(found)
            if view in result.changed:
                self.changed.update(found)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(
            self.pairs + other.pairs,
            self.statements + other.statements,
            self.cut + other.cut,
            self.checked + other.checked,
            self.filled + other.filled,
            self.changed + other.changed,
            self.refusals + other.refusals,
        )

    def summary(self) -> str:
        """How much was checked."""
        refused = sum(self.refusals.values())
        return f"{self.pairs} pairs ({self.cut} cut), {self.statements} statements, {refused} texts refused"

    def table(self, *, columns: int = 1) -> str:
        """Per construct: in how many checked views, in how many with rows, in how many that changed."""
        width = max(map(len, CONSTRUCTS))
        cells = [f"{'construct':{width}} views filled changed"]
        cells += [
            f"{name:{width}} {self.checked[name]:5} {self.filled[name]:6} {self.changed[name]:7}"
            for name in CONSTRUCTS
        ]
        height = -(-len(cells) // columns)
        return "\n".join("   ".join(cells[row::height]) for row in range(height))

    def to_json(self) -> str:
        """The counts as text."""
        return json.dumps({one.name: getattr(self, one.name) for one in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Coverage:
        """The counts that a text holds."""
        counts = json.loads(text)
        tallies = [Counter(counts[name]) for name in ("checked", "filled", "changed", "refusals")]
        return cls(counts["pairs"], counts["statements"], counts["cut"], *tallies)
