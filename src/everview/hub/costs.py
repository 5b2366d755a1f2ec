"""Whether a view is carried on by delta or computed anew: an estimate from the sizes of tables and deltas.

Views that share operators go together. By delta, an operator reads the changes of its kept rows and, for each
changed row, the rows of its key; anew, it reads all of them, but looks nothing up. How many rows a key has is
sampled from the runs. The constants are microseconds a row of one core, measured with `hub_refresh` of the
benchmarks; only their ratios matter for the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from everview.hub.deepening import SPARE
from everview.hub.files import Files
from everview.hub.lookup import open_part
from everview.hub.record import Record
from everview.hub.relations import table_name
from everview.hub.runs import HASH
from everview.hub.tables import Catalog
from everview.planner.circuit import Kept, Lookup, Operator
from everview.planner.circuit.parts import sources

__all__ = ["Choice", "Costs", "Group", "Sampler", "groups_of"]

SEARCH = 1.2
"""To find a row in the runs."""
WORK = 1.5
"""To carry a row through an operator."""
WRITE = 1.0
"""To send a row to where it is kept, sort it and write it."""
SCAN = 0.6
"""To read a row of a relation with all others."""

SAMPLE = 10_000
"""How many rows of a table are looked at."""

MARGIN = 1.5
"""How many times cheaper it must be to compute anew: an estimate is an estimate."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a view was kept in a refresh, and what each way would have cost in seconds of one core."""

    recomputed: bool
    delta_seconds: float
    recompute_seconds: float


@dataclass(frozen=True, slots=True)
class Group:
    """Views that share operators or kept rows, with all of those, and the relations that they read."""

    views: frozenset[str]
    operators: frozenset[str]
    kept: frozenset[str]
    relations: frozenset[str]

    def with_all_of(self, other: Group) -> Group:
        """Both as one."""
        return Group(
            self.views | other.views,
            self.operators | other.operators,
            self.kept | other.kept,
            self.relations | other.relations,
        )


def groups_of(catalog: Catalog) -> list[Group]:
    """All views of a program, each in one group."""
    circuit = catalog.circuit
    found: list[Group] = []
    for view, shown in circuit.views.items():
        group = _closure(catalog, view, shown)
        apart: list[Group] = []
        for other in found:
            if other.operators & group.operators or other.kept & group.kept:
                group = group.with_all_of(other)
            else:
                apart.append(other)
        found = [*apart, group]
    return found


def _closure(catalog: Catalog, view: str, shown: Kept) -> Group:
    circuit = catalog.circuit
    operators: set[str] = set()
    kept = {shown.name}
    relations: set[str] = set()
    waiting = [view]
    while waiting:
        name = waiting.pop()
        if name in catalog.program.relations:
            relations.add(name)
        elif name not in operators:
            operators.add(name)
            kept |= {one.name for one in circuit.operators[name].kept}
            if name in circuit.views:
                kept.add(circuit.views[name].name)
            waiting += circuit.operators[name].reads
    views = frozenset(operators & circuit.views.keys())
    return Group(views, frozenset(operators), frozenset(kept), frozenset(relations))


class Sampler:
    """How many rows a key of a table has, asked of a sample; known until the table has doubled."""

    def __init__(self, files: Files) -> None:
        self._opened = open_part(files.uri(""))
        self._known: dict[str, tuple[int, float]] = {}

    def rows_a_key(self, table: str, record: Record) -> float:
        """The mean over the first rows of its largest part; 1 of an empty table."""
        parts = [part for run in record.runs(table) for part in run.parts]
        rows = sum(part.rows for part in parts)
        size, mean = self._known.get(table, (0, 1.0))
        if rows and not size / 2 <= rows <= 2 * size:
            largest = max(parts, key=lambda part: part.rows)
            sample = self._opened(largest).column(HASH).slice(0, SAMPLE).to_numpy()
            mean = len(sample) / (1 + np.count_nonzero(np.diff(sample)))
            self._known[table] = rows, mean
        return mean


@dataclass(frozen=True, slots=True)
class Costs:
    """Estimates for the refresh after a record."""

    catalog: Catalog
    record: Record
    sampler: Sampler

    def choices(self, arrived: Mapping[str, int]) -> dict[Group, Choice]:
        """For each group of views what to do with so many rows of each relation."""
        return {group: self.choice(group, arrived) for group in groups_of(self.catalog)}

    def choice(self, group: Group, arrived: Mapping[str, int]) -> Choice:
        """What to do with one group."""
        delta, anew = self._by_delta(group, arrived) / 1e6, self._anew(group, arrived) / 1e6
        return Choice(MARGIN * anew < delta, delta, anew)

    def least_recomputed(self, group: Group) -> int | None:
        """From how many changed rows of each of its relations on a group is computed anew; None for never."""
        low, high = 1, 2**40
        if not self._is_recomputed(group, high):
            return None
        while low < high:
            middle = (low + high) // 2
            if self._is_recomputed(group, middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _is_recomputed(self, group: Group, rows: int) -> bool:
        # More rows than there are cannot go.
        capped = {name: min(rows, self._size(table_name(name))) for name in group.relations}
        return self.choice(group, capped).recomputed

    def _size(self, table: str) -> int:
        return sum(run.rows for run in self.record.runs(table))

    def _by_delta(self, group: Group, arrived: Mapping[str, int]) -> float:
        changed: dict[str, float] = dict(arrived)
        cost = 0.0
        for name, operator in self.catalog.circuit.operators.items():
            if name not in group.operators:
                continue
            if not operator.lookups:
                changed[name] = _sum(changed, operator.reads)
                continue
            incoming = {kept.name: _sum(changed, sources(kept.change)) for kept in operator.kept}
            asking = max(incoming.values())
            found = {lookup.kept: self._found(lookup, asking) for lookup in operator.lookups}
            rows, read = sum(incoming.values()), sum(found.values())
            # What was found is worked on as it was and as it will be.
            cost += SEARCH * read + WORK * (rows + 2 * read)
            changed[name] = min(rows + read, 2 * rows) if operator.title == "Aggregate" else rows + read
        return cost + WRITE * self._kept(group, changed)

    def _found(self, lookup: Lookup, asking: float) -> float:
        """How many kept rows a lookup by so many changed rows finds."""
        size = self._size(lookup.kept.name)
        if lookup.keys is None:
            return size
        each = self.sampler.rows_a_key(lookup.kept.name, self.record) if lookup.kept.keys else 1.0
        return min(size, asking * (each if lookup.take is None else min(each, lookup.take + SPARE)))

    def _anew(self, group: Group, arrived: Mapping[str, int]) -> float:
        sizes = {name: float(self._size(table_name(name)) + arrived.get(name, 0)) for name in group.relations}
        cost = SCAN * sum(sizes.values())
        for name, operator in self.catalog.circuit.operators.items():
            if name not in group.operators:
                continue
            sizes[name] = self._made(operator, sizes)
            if operator.lookups:
                cost += WORK * sum(_sum(sizes, sources(kept.change)) for kept in operator.kept)
        return cost + WRITE * self._kept(group, sizes)

    def _made(self, operator: Operator, sizes: Mapping[str, float]) -> float:
        """How many rows an operator has: as many as are kept of a view, else no more than it reads."""
        view = self.catalog.circuit.views.get(operator.name)
        return float(self._size(view.name)) if view is not None else _sum(sizes, operator.reads)

    def _kept(self, group: Group, changed: Mapping[str, float]) -> float:
        kept = self.catalog.circuit.kept
        return sum(_sum(changed, sources(kept[name].change)) for name in group.kept)


def _sum(changed: Mapping[str, float], names: Iterable[str]) -> float:
    return sum(changed.get(name, 0.0) for name in names)
