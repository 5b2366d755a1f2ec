"""Whether a view is carried on by delta or computed anew: an estimate from the sizes of tables and deltas.

Views that share operators go together. By delta, an operator reads the changes of its kept rows and, for each
changed row, the rows of its key; anew, it reads all of them, but looks nothing up. How many rows a key has is
sampled from the runs. The constants are rough, microseconds a row of one core, and only their ratios matter
for the choice; docs/BENCHMARKS.md has what the estimates were against what was measured. Rows of a relation
that are dead count as if they lived, so that computing anew looks dearer the more of them there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from everview.hub.deepening import SPARE
from everview.hub.files import Files
from everview.hub.groups import Group
from everview.hub.lookup import open_part
from everview.hub.record import Record
from everview.hub.relations import table_name
from everview.hub.runs import HASH
from everview.hub.tables import Catalog
from everview.planner.circuit import Lookup, Operator
from everview.planner.circuit.parts import sources

__all__ = ["Arriving", "Choice", "Costs", "Sampler"]

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

WORTH_A_JOB = 1.0
"""So many seconds it must save: what is small is done by the driver, which knows only deltas."""

MARGIN = 1.5
"""How many times cheaper it must be to compute anew: an estimate is an estimate."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a view was kept in a refresh, and what each way would have cost in seconds of one core."""

    recomputed: bool
    delta_seconds: float
    recompute_seconds: float


@dataclass(frozen=True, slots=True)
class Arriving:
    """How many rows of a relation have arrived."""

    inserted: int = 0
    deleted: int = 0


class Sampler:
    """How many rows a key of a table has, asked of a sample; known until the table has doubled."""

    def __init__(self, files: Files) -> None:
        self._opened = open_part(files)
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

    def choice(self, group: Group, arrived: Mapping[str, Arriving]) -> Choice:
        """What to do with a group of views when so many rows of each relation have arrived."""
        delta, anew = self._by_delta(group, arrived) / 1e6, self._anew(group, arrived) / 1e6
        return Choice(MARGIN * anew < delta and delta - anew > WORTH_A_JOB, delta, anew)

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
        sizes = {name: min(rows, self._size(table_name(name))) for name in group.relations}
        half = {name: Arriving(size - size // 2, size // 2) for name, size in sizes.items()}
        return self.choice(group, half).recomputed

    def _size(self, table: str) -> int:
        return sum(run.rows for run in self.record.runs(table))

    def _by_delta(self, group: Group, arrived: Mapping[str, Arriving]) -> float:
        changed: dict[str, float] = {name: come.inserted + come.deleted for name, come in arrived.items()}
        cost = 0.0
        for name, operator in self.catalog.circuit.operators.items():
            if name not in group.operators:
                continue
            if not operator.remembers:
                changed[name] = _sum(changed, operator.reads)
                continue
            if operator.recursion is not None:
                rows = _sum(changed, operator.reads)
                changed[name] = rows * self._derived(operator)
                cost += (SEARCH + 2 * WORK) * changed[name]
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

    def _anew(self, group: Group, arrived: Mapping[str, Arriving]) -> float:
        sizes: dict[str, float] = {}
        for name in group.relations:
            come = arrived.get(name, Arriving())
            sizes[name] = max(0, self._size(table_name(name)) + come.inserted - come.deleted)
        cost = SCAN * sum(sizes.values())
        for name, operator in self.catalog.circuit.operators.items():
            if name not in group.operators:
                continue
            sizes[name] = self._made(operator, sizes)
            if operator.remembers:
                cost += WORK * sum(_sum(sizes, sources(kept.change)) for kept in operator.kept)
            if operator.recursion is not None:
                cost += 2 * WORK * sizes[name]
        return cost + WRITE * self._kept(group, sizes)

    def _made(self, operator: Operator, sizes: Mapping[str, float]) -> float:
        """How many rows an operator has: as many as it reads, of an aggregate as many as there are groups."""
        read = _sum(sizes, operator.reads)
        if operator.recursion is not None:
            return read * self._derived(operator)
        groups = self._size(operator.kept[0].name) if operator.title == "Aggregate" else 0
        return min(read, groups) if groups else read

    def _derived(self, operator: Operator) -> float:
        """How many rows of a recursion there are for each that it reads."""
        recursion = operator.recursion
        if recursion is None:
            return 0.0
        read = sum(self._size(leaf.kept.name) for leaf in recursion.inputs)
        own = sum(self._size(leaf.kept.name) for leaf in recursion.leaves[: recursion.relations])
        return max(1.0, own / read) if read else 1.0

    def _kept(self, group: Group, changed: Mapping[str, float]) -> float:
        kept = self.catalog.circuit.kept
        return sum(_sum(changed, sources(kept[name].change)) for name in group.kept)


def _sum(changed: Mapping[str, float], names: Iterable[str]) -> float:
    return sum(changed.get(name, 0.0) for name in names)
