"""Select: one SELECT of rows with weights, composed step by step and rendered once.

Filters, projections and inner joins of selects are selects again, so a chain of them becomes one flat
statement whose join order we choose: SQLite has no statistics of a delta, and a wrong guess would scan a
table to find one row. The delta comes first, then whatever an equality leads to; `CROSS JOIN` makes
SQLite keep the order. Every equality that leads to a stored table asks for an index on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from everview.engines.sqlite.circuits.names import Names

_PLAIN = re.compile(r"(t\d+)\.(\w+)")
_ALIAS = re.compile(r"\bt\d+(?=\.)")


@dataclass(frozen=True, slots=True)
class Source:
    """A table under an alias. `stored` tables may be given indexes; `delta` ones are small and come first."""

    table: str
    alias: str
    stored: bool = False
    delta: bool = False
    large: bool = False
    """Whether other tables that an equality leads to come first."""
    partial: str = ""
    """The condition, over bare column names, that every reader of this table repeats: for partial indexes."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A truth value in SQL; of an equality the two sides are known, so that it can lead to a table."""

    sql: str
    sides: tuple[str, str] | None = None

    @property
    def rendered(self) -> str:
        """The SQL, safe to be put between ANDs. An equality stays bare, so that an index can serve it."""
        return self.sql if self.sides else f"({self.sql})"


def equality(left: str, right: str, *, null_safe: bool) -> Condition:
    """Return left = right; null-safe, NULL equals NULL."""
    return Condition(f"{left} {'IS' if null_safe else '='} {right}", (left, right))


IndexRequest = Callable[[Source, tuple[str, ...]], None]
"""Told of every stored table that a select looks up, and by which columns."""


@dataclass(frozen=True, slots=True)
class Select:
    """Rows (`columns`), how often each occurs (`weight`), where they come from, and which of them.

    `needs` are the deltas that must not be empty for this select to have rows.
    """

    sources: tuple[Source, ...]
    columns: tuple[str, ...]
    weight: str = "1"
    where: tuple[Condition, ...] = ()
    needs: frozenset[str] = frozenset()

    def filter(self, *conditions: Condition) -> Select:
        """Keep the rows for which all conditions are true."""
        where = (*self.where, *conditions)
        return Select(self.sources, self.columns, self.weight, where, self.needs)

    def project(self, columns: Sequence[str]) -> Select:
        """Give the rows other columns."""
        return Select(self.sources, tuple(columns), self.weight, self.where, self.needs)

    def weighing(self, weight: str) -> Select:
        """Give the rows another weight."""
        return replace(self, weight=weight)

    def negated(self) -> Select:
        """Turn insertions into deletions and the other way round."""
        return replace(self, weight=f"-({self.weight})")

    def cross(self, other: Select) -> Select:
        """Pair every row with every row of the other; weights multiply."""
        weights = [weight for weight in (self.weight, other.weight) if weight != "1"]
        product = weights[0] if len(weights) == 1 else " * ".join(f"({weight})" for weight in weights)
        return Select(
            (*self.sources, *other.sources),
            self.columns + other.columns,
            product or "1",
            self.where + other.where,
            self.needs | other.needs,
        )

    def sql(
        self,
        *,
        columns: Sequence[str] | None = None,
        bound: frozenset[str] = frozenset(),
        on_index: IndexRequest | None = None,
        tail: str = "",
    ) -> str:
        """Render; `columns` replaces the select list, which is the rows and their weight.

        `bound` are aliases known from outside, as in a correlated subquery.
        """
        order = self._order(bound)
        for source, led_by in order:
            if on_index is not None and source.stored and led_by:
                on_index(source, led_by)
        shown = ", ".join(columns if columns is not None else (*self.columns, self.weight))
        parts = [f"SELECT {shown}"]
        if order:
            tables = " CROSS JOIN ".join(f"{source.table} AS {source.alias}" for source, _ in order)
            parts.append(f"FROM {tables}")
        if self.where:
            parts.append("WHERE " + " AND ".join(condition.rendered for condition in self.where))
        return " ".join([*parts, tail] if tail else parts)

    def _order(self, bound: frozenset[str]) -> list[tuple[Source, tuple[str, ...]]]:
        """Return the sources in the order to visit, each with the columns that an equality leads to it by."""
        left = list(self.sources)
        known = set(bound)
        found: list[tuple[Source, tuple[str, ...]]] = []
        while left:
            ranked = [(self._leads(source, known), source) for source in left]
            columns, best = max(
                ranked,
                key=lambda pair: (pair[1].delta, len(pair[0]), not pair[1].large, not pair[1].stored),
            )
            left.remove(best)
            known.add(best.alias)
            found.append((best, columns))
        return found

    def _leads(self, source: Source, known: set[str]) -> tuple[str, ...]:
        """Return the columns of `source` that some condition equates with what is known already."""
        columns = []
        for condition in self.where:
            for mine, theirs in (condition.sides, condition.sides[::-1]) if condition.sides else ():
                plain = _PLAIN.fullmatch(mine)
                if plain and plain[1] == source.alias and aliases(theirs) <= known - {source.alias}:
                    columns.append(plain[2])
        return tuple(dict.fromkeys(columns))


def aliases(sql: str) -> set[str]:
    """Return the aliases that a piece of SQL mentions."""
    return set(_ALIAS.findall(sql))


def from_table(
    names: Names,
    table: str,
    columns: Sequence[str],
    *,
    weight: str = "1",
    stored: bool = True,
    delta: bool = False,
    partial: str = "",
) -> Select:
    """Read a table under a fresh alias; `weight` and `partial` begin with a bare column of it."""
    alias = names.alias()
    return Select(
        (Source(table, alias, stored=stored, delta=delta, partial=partial),),
        tuple(f"{alias}.{column}" for column in columns),
        weight if weight == "1" else f"{alias}.{weight}",
        (Condition(f"{alias}.{partial}"),) if partial else (),
        frozenset({table}) if delta else frozenset(),
    )
