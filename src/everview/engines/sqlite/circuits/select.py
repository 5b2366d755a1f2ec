"""Select: one SELECT of rows with weights, composed step by step and rendered once.

Filters, projections and inner joins of selects are selects again, so a chain of them becomes one flat
statement whose join order we choose: SQLite has no statistics of a delta, and a wrong guess would scan a
table to find one row. The delta comes first, then whatever an equality leads to; `CROSS JOIN` makes
SQLite keep the order. Every equality that leads to a stored table asks for an index on it.

Where no equality leads further an inequality may: of a sorted index only the range is read.

What two columns are equal to leads from one to the other: equalities are closed before the order is chosen.
Deltas of few rows are paired with each other. One of many rows is visited only when an equality leads to it,
unless it is the first: SQLite indexes it for that while the statement runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from everview.engines.sqlite.circuits.names import Names

_PLAIN = re.compile(r"(t\d+)\.(\w+)")
ONCE = "LIMIT -1"
"""Ends a SELECT whose columns are computed once a row, however often the statement around it names them."""

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
    many: bool = False
    """Whether this delta has too many rows to pair each with those of another."""
    partial: str = ""
    """The condition, over bare column names, that every reader of this table repeats: for partial indexes."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A truth value in SQL; of an equality the two sides are known, so that it can lead to a table."""

    sql: str
    sides: tuple[str, str] | None = None
    null_safe: bool = False
    """Whether of an equality both sides may be NULL."""
    bounds: tuple[str, str] | None = None
    """The two sides of an inequality: each is a range of the other."""

    @property
    def rendered(self) -> str:
        """The SQL, safe to be put between ANDs. An equality stays bare, so that an index can serve it."""
        return self.sql if self.sides else f"({self.sql})"


def equality(left: str, right: str, *, null_safe: bool) -> Condition:
    """Return left = right; null-safe, NULL equals NULL."""
    return Condition(f"{left} {'IS' if null_safe else '='} {right}", (left, right), null_safe)


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

    def knowing(self, many: frozenset[str]) -> Select:
        """Return the same select, given which deltas have many rows."""
        if many.isdisjoint(self.needs):
            return self
        sources = tuple(
            replace(source, many=source.delta and source.table in many) for source in self.sources
        )
        return replace(self, sources=sources)

    def along(self, columns: Sequence[str]) -> Select:
        """Return the same select, which visits deltas of many rows in the order of these columns.

        Intuitively rows that look up the same place come one after the other, and find it in the cache.
        """
        found = [plain for column in columns if (plain := _PLAIN.fullmatch(column))]

        def ordered(source: Source) -> Source:
            own = ", ".join(plain[2] for plain in found if plain[1] == source.alias)
            if not source.many or not own:
                return source
            return replace(source, table=f"(SELECT * FROM {source.table} ORDER BY {own} {ONCE})")

        return replace(self, sources=tuple(map(ordered, self.sources)))

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
        order, derived = self._order(bound)
        for source, led_by in order:
            if on_index is not None and source.stored and led_by:
                on_index(source, led_by)
        shown = ", ".join(columns if columns is not None else (*self.columns, self.weight))
        parts = [f"SELECT {shown}"]
        if order:
            tables = " CROSS JOIN ".join(f"{source.table} AS {source.alias}" for source, _ in order)
            parts.append(f"FROM {tables}")
        where = (*self.where, *derived)
        if where:
            parts.append("WHERE " + " AND ".join(condition.rendered for condition in where))
        return " ".join([*parts, tail] if tail else parts)

    def _order(self, bound: frozenset[str]) -> tuple[list[tuple[Source, tuple[str, ...]]], list[Condition]]:
        """Return the sources in the order to visit, each with the columns that an equality leads to it by.

        Beside them come the equalities that lead there and follow from those that are written.
        """
        left = list(self.sources)
        known = set(bound)
        leads = Leads(self.where)
        found: list[tuple[Source, tuple[str, ...]]] = []
        derived: list[Condition] = []
        while left:
            ranked = [(leads.to(source.alias, known), source) for source in left]
            first = not known
            led, best = max(ranked, key=lambda pair: _rank(pair[1], pair[0], first=first))
            left.remove(best)
            known.add(best.alias)
            found.append((best, (*led.by, *led.ranged)))
            derived += [condition for condition in led.by.values() if condition is not None]
        return found, derived


def _rank(source: Source, led: Led, *, first: bool) -> tuple[bool | int, ...]:
    """The greatest is visited next: deltas of few rows, then what equalities lead to from those before."""
    few = source.delta and not source.many
    leads = (led.joined, bool(led.ranged), source.delta, len(led.by), not source.large, not source.stored)
    return few, first and source.delta, *leads


@dataclass(frozen=True, slots=True)
class Led:
    """How a table is led to: by which of its columns, and whether by more than constants."""

    by: dict[str, Condition | None]
    """With the equality that leads there, if it follows from others."""
    joined: bool
    ranged: tuple[str, ...] = ()
    """The column of which a range is led to, if there is one."""


class Leads:
    """Which columns some equality leads to, written or following from others."""

    def __init__(self, where: Sequence[Condition]) -> None:
        self._written: dict[str, list[set[str]]] = {}
        """Column → for each equality that it is one side of, the aliases of the other side."""
        self._classes: list[dict[str, set[str]]] = []
        """Terms that are equal to each other, each with its aliases."""
        self._strict: set[str] = set()
        """Terms that some equality makes differ from NULL."""
        self._bounds: list[tuple[str, set[str]]] = []
        """Columns in inequalities, and the aliases of the other side."""
        for condition in where:
            for one, other in (condition.bounds, condition.bounds[::-1]) if condition.bounds else ():
                if _PLAIN.fullmatch(one):
                    self._bounds.append((one, aliases(other)))
            if condition.sides is None:
                continue
            mine, theirs = condition.sides
            for one, other in ((mine, theirs), (theirs, mine)):
                if _PLAIN.fullmatch(one):
                    self._written.setdefault(one, []).append(aliases(other))
            if not condition.null_safe:
                self._strict.update(condition.sides)
            self._join(mine, theirs)

    def _join(self, one: str, other: str) -> None:
        joined = {one: aliases(one), other: aliases(other)}
        for held in [held for held in self._classes if one in held or other in held]:
            self._classes.remove(held)
            joined = {**held, **joined}
        self._classes.append(joined)

    def to(self, alias: str, known: set[str]) -> Led:
        """Return how the table under an alias is led to from what is known."""
        found: dict[str, Condition | None] = {}
        joined = False
        others = known - {alias}
        for column, sides in self._written.items():
            own, _, name = column.partition(".")
            if own != alias:
                continue
            led = [side for side in sides if side <= others]
            if led:
                found[name] = None
                joined |= any(led)
                continue
            equal = next(held for held in self._classes if column in held)
            term = next((term for term, read in equal.items() if read and read <= others), None)
            if term is not None:
                strict = not self._strict.isdisjoint(equal)
                found[name] = equality(column, term, null_safe=not strict)
                joined = True
        ranged = [
            name
            for (own, _, name), side in ((column.partition("."), side) for column, side in self._bounds)
            if own == alias and name not in found and side and side <= others
        ]
        return Led(found, joined, tuple(ranged[:1]))


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
