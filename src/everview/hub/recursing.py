"""Recursion over the tables in memory: semi-naive rounds, from what came, or from nothing.

Where inputs only gained rows, the rounds go on from the rows that there are. Otherwise all is derived again
from nothing, and the change is what differs: how far a deletion reaches is known only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engines.spark.hashing import hash_columns
from everview.engines.spark.types import arrow_schema, column_names
from everview.hub.memory import Memory
from everview.hub.rowset import RowSet, empty
from everview.hub.searching import TooManyError
from everview.planner.circuit.parts import WEIGHT, Given, Recursion, Relation, found_scan, leaf_scan

__all__ = ["recur", "rows_of"]


Range = tuple[int, int]


def recur(
    memory: Memory, recursion: Recursion, within: Range | None = None, most: int | None = None
) -> pa.Table:
    """The change of a group by that of its inputs, the weight last; TooManyError for over `most` rows.

    A group that falls apart is run `within` a range of the hashes of its stable columns, if one is given.
    """
    within = within if recursion.stable else None
    inputs = [_Input(memory, given) for given in recursion.inputs]
    before = rows_of(memory.table(found_scan(recursion.own).name), recursion)
    known = [RowSet(relation.schema) for relation in recursion.relations]
    if any(one.takes_away for one in inputs):
        rounds(memory, recursion, [one.from_nothing() for one in inputs], known, within, most)
        return _difference(recursion, before, known)
    for rows, found in zip(before, known, strict=True):
        found.add(rows)
    rounds(memory, recursion, [one.growth() for one in inputs], known, within, most)
    added = [rows.table.slice(old.num_rows) for rows, old in zip(known, before, strict=True)]
    return _weighted(recursion, [(added, 1)])


@dataclass(frozen=True, slots=True)
class _Rows:
    """An input as it was, what came, and as it is."""

    old: pa.Table
    new: pa.Table
    all: pa.Table


class _Input:
    def __init__(self, memory: Memory, given: Given) -> None:
        memory.run("@counted", given.counted)
        counted = memory.table("@counted")
        *columns, before, after = counted.columns
        rows = pa.Table.from_arrays(columns, names=column_names(len(columns)))
        if not columns:
            rows = pa.table({"nothing": pa.nulls(counted.num_rows, pa.bool_())})
        was, there = pc.equal(before, 1), pc.equal(after, 1)
        self._before = rows.filter(was)
        self._after = rows.filter(there)
        self._came = rows.filter(pc.and_not(there, was))
        went = self._before.num_rows + self._came.num_rows > self._after.num_rows
        self.takes_away = went or (given.watched and self._came.num_rows > 0)

    def growth(self) -> _Rows:
        return _Rows(self._before, self._came, self._after)

    def from_nothing(self) -> _Rows:
        return _Rows(self._after.slice(0, 0), self._after, self._after)


def rounds(
    memory: Memory,
    recursion: Recursion,
    inputs: Sequence[_Rows],
    known: Sequence[RowSet],
    within: Range | None,
    most: int | None,
) -> int:
    """Add to what is known all that follows from new rows of inputs; return how many rounds that took."""
    changed: set[str] = set()
    count = 0
    for given, rows in zip(recursion.inputs, inputs, strict=True):
        _put(memory, given.leaf, rows.old, rows.new, rows.all)
        changed |= {given.leaf} if rows.new.num_rows else set()
    for relation, found in zip(recursion.relations, known, strict=True):
        _put(memory, relation.leaf, found.table, empty(relation.schema), found.table)
    while changed:
        derived: list[list[pa.Table]] = [[] for _ in known]
        for variant in recursion.variants:
            if variant.changed in changed:
                memory.run("@derived", variant.plan)
                rows = memory.table("@derived")
                if within is not None and not count:  # later rounds stay in the range by themselves
                    rows = _inside(recursion, variant.relation, rows, within)
                derived[variant.relation].append(rows)
        if not count:
            for given, rows in zip(recursion.inputs, inputs, strict=True):
                _put(memory, given.leaf, rows.all, rows.new.slice(0, 0), rows.all)
        changed = {
            relation.leaf
            for relation, found, tables in zip(recursion.relations, known, derived, strict=True)
            if _grown(memory, relation, found, tables)
        }
        count += 1
        if most is not None and sum(found.table.num_rows for found in known) > most:
            raise TooManyError
    return count


def _inside(recursion: Recursion, relation: int, rows: pa.Table, within: Range) -> pa.Table:
    place = recursion.stable[relation]
    schema = recursion.relations[relation].schema
    hashes = hash_columns([rows.column(place)], [schema[place]], rows.num_rows)
    return rows.filter(pa.array((within[0] <= hashes) & (hashes <= within[1])))


def _grown(memory: Memory, relation: Relation, known: RowSet, derived: Sequence[pa.Table]) -> bool:
    old, schema = known.table, empty(relation.schema).schema
    named = [table.rename_columns(schema.names).cast(schema) for table in derived if table.num_rows]
    new = known.add(pa.concat_tables(named)) if named else empty(relation.schema)
    _put(memory, relation.leaf, old, new, known.table)
    return bool(new.num_rows)


def _put(memory: Memory, leaf: str, old: pa.Table, new: pa.Table, every: pa.Table) -> None:
    for when, rows in (("old", old), ("new", new), ("all", every)):
        scan = leaf_scan(leaf, (), when)
        memory.put(scan.name, scan.schema, rows)


def rows_of(found: pa.Table, recursion: Recursion) -> list[pa.Table]:
    """The rows of each relation of a group, from those of its operator."""
    if len(recursion.relations) == 1:
        return [_placed(found, 0, recursion.relations[0])]
    start, made = 1, []
    for place, relation in enumerate(recursion.relations):
        made.append(_placed(found.filter(pc.equal(found.column(0), place)), start, relation))
        start += len(relation.schema)
    return made


def _placed(found: pa.Table, start: int, relation: Relation) -> pa.Table:
    if not relation.schema:
        return pa.table({"nothing": pa.nulls(found.num_rows, pa.bool_())})
    columns = found.columns[start : start + len(relation.schema)]
    return pa.Table.from_arrays(columns, schema=arrow_schema(relation.schema))


def _difference(recursion: Recursion, before: Sequence[pa.Table], after: Sequence[RowSet]) -> pa.Table:
    gone, come = [], []
    for relation, old, new in zip(recursion.relations, before, after, strict=True):
        known = RowSet(relation.schema)
        known.add(old)
        gone.append(new.lacks(old))
        come.append(known.lacks(new.table))
    return _weighted(recursion, [(gone, -1), (come, 1)])


def _weighted(recursion: Recursion, changes: Sequence[tuple[Sequence[pa.Table], int]]) -> pa.Table:
    """Rows of the group's relations as those of its operator."""
    schema = arrow_schema((*recursion.own.schema[:-1], WEIGHT))
    parts = []
    for tables, weight in changes:
        start = 0 if len(tables) == 1 else 1
        for place, (relation, rows) in enumerate(zip(recursion.relations, tables, strict=True)):
            end = start + len(relation.schema)
            columns = [pa.nulls(rows.num_rows, field.type) for field in schema]
            if len(tables) > 1:
                columns[0] = pa.array(np.full(rows.num_rows, place, dtype=np.int64))
            columns[start:end] = rows.columns[: end - start]
            columns[-1] = pa.array(np.full(rows.num_rows, weight, dtype=np.int64))
            parts.append(pa.Table.from_arrays(columns, schema=schema))
            start = end
    return pa.concat_tables(parts)
