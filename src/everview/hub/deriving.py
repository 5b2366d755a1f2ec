"""One derivation: from rows that are given, step by step, to the rows that follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from everview.engines.spark.types import arrow_schema
from everview.hub.leaves import Found
from everview.hub.memory import Memory
from everview.hub.rowset import without_null
from everview.language.plan import Plan
from everview.planner.circuit.parts import BOUND, MET, Derivation, Step

__all__ = ["Meet", "derive"]

Meet = Callable[[int, tuple[int, ...], pa.Table], Found]
"""The rows of a leaf that meet keys of some of its columns."""


def derive(
    memory: Memory, derivation: Derivation, given: pa.Table, meet: Meet, *, allowed: Meet | None
) -> pa.Table:
    """What follows from rows of its first schema; absences are those of rows that `allowed` finds."""
    bound = given
    if not given.num_rows:
        return arrow_schema(derivation.made.schema).empty_table()
    if derivation.begin is not None:
        bound = _run(memory, BOUND, derivation.begin, bound)
    for step in derivation.steps:
        found = _found(memory, step, bound, meet)
        bound = _beside(bound.take(pa.array(found.mine)), found.rows)
        if step.condition is not None:
            bound = _run(memory, MET, step.condition, bound)
    if allowed is not None:
        for step in derivation.absences:
            bound = _without(memory, step, bound, allowed)
    return _run(memory, BOUND, derivation.made, bound)


def _found(memory: Memory, step: Step, bound: pa.Table, meet: Meet) -> Found:
    keys = _run(memory, BOUND, step.keys, bound)
    found = meet(step.leaf, step.path, keys)
    strict = [keys.column(place) for place, safe in enumerate(step.safe) if not safe]
    if not any(key.null_count for key in strict):
        return found
    valid = without_null(strict, found.mine)
    return Found(found.mine[valid], found.rows.filter(pa.array(valid)))


def _without(memory: Memory, step: Step, bound: pa.Table, allowed: Meet) -> pa.Table:
    """The rows so far that no row meets."""
    found = _found(memory, step, bound, allowed)
    met = found.mine
    if step.condition is not None:
        numbered = bound.append_column("number", pa.array(np.arange(bound.num_rows)))
        pairs = _run(memory, MET, step.condition, _beside(numbered.take(pa.array(met)), found.rows))
        met = pairs.column(bound.num_columns).to_numpy()
    left = np.ones(bound.num_rows, dtype=bool)
    left[met] = False
    return bound.filter(pa.array(left))


def _beside(left: pa.Table, right: pa.Table) -> pa.Table:
    columns = [*left.columns, *right.columns]
    return pa.Table.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])


def _run(memory: Memory, name: str, plan: Plan, rows: pa.Table) -> pa.Table:
    memory.put(name, (), rows)
    memory.run("@derived", plan)
    return memory.table("@derived")
