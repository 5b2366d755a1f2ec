"""Recursion on a hub: a refresh carried through a group of relations, at the cost of what it changes.

1. Rows that lost a derivation are doubtful. A doubtful row that no derivation from earlier rows supports
   goes, and those that it was used to derive become doubtful in turn, until none goes. What remains is
   proved: each of its supports is earlier, so they lead down to rows of the inputs.
2. Rows that went and can be derived from what remains come back, at a higher level; changed inputs add rows;
   and what was added last derives more, until nothing is added (semi-naive).

It is the algorithm of a site's recursion, over columns: all rows of a round go through a step together, and
what meets them is found by hashes in the files of the last refresh. A first fill is the same with no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from everview.engines.spark.hashing import hash_columns
from everview.engines.spark.types import arrow_schema
from everview.hub.deriving import derive
from everview.hub.finding import Finder
from everview.hub.leaves import Found, Input, Own
from everview.hub.memory import Memory
from everview.hub.rowset import RowSet
from everview.hub.searching import TooManyError
from everview.language.plan import Schema
from everview.planner.circuit.parts import WEIGHT, Derivation, Operator, Recursion

__all__ = ["recur"]

Range = tuple[int, int]


def recur(
    memory: Memory, operator: Operator, finder: Finder, within: Range | None = None, most: int | None = None
) -> pa.Table:
    """The change of a group by that of its inputs, the weight last; TooManyError for over `most` rows.

    A group that falls apart is run `within` a range of the hashes of its stable columns, if one is given.
    """
    if operator.recursion is None:
        raise ValueError(f"{operator.name} is no recursion")
    group = _Group(memory, operator.recursion, finder, within, most)
    group.shrink()
    group.grow()
    return group.change(operator.schema)


class _Group:
    def __init__(
        self, memory: Memory, recursion: Recursion, finder: Finder, within: Range | None, most: int | None
    ) -> None:
        self._memory = memory
        self._recursion = recursion
        self._within = within if recursion.stable else None
        self._most = most
        self._own = [Own(leaf, finder) for leaf in recursion.leaves[: recursion.relations]]
        inputs = (Input(memory, leaf, finder) for leaf in recursion.inputs)
        self._leaves: list[Own | Input] = [*self._own, *inputs]

    def _before(self, leaf: int, path: tuple[int, ...], keys: pa.Table) -> Found:
        return self._leaves[leaf].before(path, keys)

    def _still(self, leaf: int, path: tuple[int, ...], keys: pa.Table) -> Found:
        """The group as it was, over the inputs as they are: what may support a row that was looked at."""
        found = self._leaves[leaf]
        return found.before(path, keys) if isinstance(found, Own) else found.now(path, keys)

    def _now(self, leaf: int, path: tuple[int, ...], keys: pa.Table) -> Found:
        return self._leaves[leaf].now(path, keys)

    def shrink(self) -> None:
        """Take away all rows that are no longer proved."""
        doubted = self._sets()
        for leaf, derivation in self._recursion.from_rows:
            self._doubt(doubted, derivation, self._leaves[leaf].gone.table, given=True)
        for leaf, derivation in self._recursion.from_forbidden:
            self._doubt(doubted, derivation, self._leaves[leaf].came.table, given=True)
        while True:
            last = [self._unsupported(number, rows.table) for number, rows in enumerate(doubted)]
            if not any(rows.num_rows for rows in last):
                return
            doubted = self._sets()
            # The rows that go are still there: of two that support a row together both may go at once.
            for leaf, derivation in self._recursive():
                self._doubt(doubted, derivation, last[leaf], given=False)
            for own, rows in zip(self._own, last, strict=True):
                own.gone.append(rows)
            self._check()

    def _recursive(self) -> Iterator[tuple[int, Derivation]]:
        """What rows of the group's own relations derive."""
        return (found for found in self._recursion.from_rows if found[0] < len(self._own))

    def _sets(self) -> list[RowSet]:
        return [RowSet(own.schema, len(own.schema) - 2) for own in self._own]

    def _doubt(
        self, doubted: Sequence[RowSet], derivation: Derivation, rows: pa.Table, *, given: bool
    ) -> None:
        """Doubt what the rows may have supported: what they derived, if that was not from far above it."""
        made = derive(self._memory, derivation, rows, self._before if given else self._still, allowed=None)
        if given:
            made = self._inside(derivation.head, made)
        own = self._own[derivation.head]
        found = own.left(made)
        below = own.levels(made)[found.mine] <= own.levels(found.rows) + 1
        doubted[derivation.head].add(found.rows.filter(pa.array(below)))

    def _unsupported(self, number: int, doubted: pa.Table) -> pa.Table:
        """Those of the rows that no earlier rows derive."""
        left = self._own[number].gone.lacks(doubted)
        for derivation in self._recursion.support:
            if derivation.head == number and left.num_rows:
                numbered = left.append_column("number", pa.array(np.arange(left.num_rows)))
                proved = derive(self._memory, derivation, numbered, self._now, allowed=self._now)
                stays = np.zeros(left.num_rows, dtype=bool)
                stays[proved.column(0).to_numpy()] = True
                left = left.filter(pa.array(~stays))
        return left

    def grow(self) -> None:
        """Add all that follows."""
        made: list[list[pa.Table]] = [[] for _ in self._own]
        for derivation in self._recursion.returns:
            gone = self._own[derivation.head].gone.table
            numbered = gone.append_column("number", pa.array(np.arange(gone.num_rows)))
            made[derivation.head].append(self._derived(derivation, numbered))
        changed = [(one, self._leaves[leaf].came.table) for leaf, one in self._recursion.from_rows]
        changed += [(one, self._leaves[leaf].gone.table) for leaf, one in self._recursion.from_forbidden]
        for derivation, rows in changed:
            found = self._derived(derivation, rows)
            made[derivation.head].append(self._inside(derivation.head, found))
        new = [self._added(own, tables) for own, tables in zip(self._own, made, strict=True)]
        while any(rows.num_rows for rows in new):
            made = [[] for _ in self._own]
            for leaf, derivation in self._recursive():
                made[derivation.head].append(self._derived(derivation, new[leaf]))
            new = [self._added(own, tables) for own, tables in zip(self._own, made, strict=True)]
            self._check()

    def _derived(self, derivation: Derivation, rows: pa.Table) -> pa.Table:
        return derive(self._memory, derivation, rows, self._now, allowed=self._now)

    def _added(self, own: Own, made: Sequence[pa.Table]) -> pa.Table:
        """What is new of some rows and their levels; of one that is there with several, the lowest."""
        schema = arrow_schema(own.schema[:-1])
        named = [pa.Table.from_arrays(table.columns, schema=schema) for table in made if table.num_rows]
        if not named:
            return own.came.table.slice(0, 0)
        rows = pa.concat_tables(named)
        levels = own.levels(rows)
        if levels.min() != levels.max():
            rows = rows.take(pa.array(np.argsort(levels, kind="stable")))
        rows = own.came.fresh(rows)
        there = np.zeros(rows.num_rows, dtype=bool)
        there[own.left(rows).mine] = True
        fresh = own.placed(rows.filter(pa.array(~there)) if there.any() else rows)
        own.came.append(fresh)
        return fresh

    def _inside(self, relation: int, rows: pa.Table) -> pa.Table:
        """The rows in the range of this part; what follows from them stays in it by itself."""
        if self._within is None:
            return rows
        low, high = self._within
        place = self._recursion.stable[relation]
        field = self._own[relation].schema[place]
        hashes = hash_columns([rows.column(place)], [field], rows.num_rows)
        return rows.filter(pa.array((low <= hashes) & (hashes <= high)))

    def _check(self) -> None:
        rows = sum(own.gone.table.num_rows + own.came.table.num_rows for own in self._own)
        if self._most is not None and rows > self._most:
            raise TooManyError

    def change(self, schema: Schema) -> pa.Table:
        """The rows that went and came, as those of the group's operator."""
        parts = []
        start = 0 if len(self._own) == 1 else 1
        for number, own in enumerate(self._own):
            width = len(own.schema) - 2
            for rows, other, weight in ((own.gone, own.came, -1), (own.came, own.gone, 1)):
                changed = _changed(rows.table, other, width)
                columns = [pa.nulls(changed.num_rows, f.type) for f in arrow_schema((*schema, WEIGHT))]
                if len(self._own) > 1:
                    columns[0] = pa.array(np.full(changed.num_rows, number, dtype=np.int64))
                columns[start : start + width] = changed.columns[:width]
                columns[-2:] = (
                    changed.column(width),
                    pa.array(np.full(changed.num_rows, weight, dtype=np.int64)),
                )
                parts.append(pa.Table.from_arrays(columns, schema=arrow_schema((*schema, WEIGHT))))
            start += width
        return pa.concat_tables(parts)


def _changed(rows: pa.Table, others: RowSet, width: int) -> pa.Table:
    """The rows that the others have not, at the same level."""
    if not rows.num_rows or not others.table.num_rows:
        return rows
    met = others.meet(tuple(range(width + 1)), rows.columns[: width + 1], rows.num_rows)
    left = np.ones(rows.num_rows, dtype=bool)
    left[met.mine] = False
    return rows.filter(pa.array(left))
