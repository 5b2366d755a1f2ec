"""Whether few ranked rows were enough, though more rows of their key have changed than were looked up beyond.

A lookup by rank takes as many rows as are shown, and one more for each that may go; but where a thousand
rows of a key change, hardly ever do the first thousand go. So no more than `SPARE` are taken beyond those
shown, and afterwards it is asked for which keys that was too little: those whose found rows were cut off, and
of which fewer are left than are shown. Only then is everything taken that may be needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.language.expressions import And, Case, Literal
from everview.language.plan import Aggregate, Filter, Plan, UnionAll
from everview.language.types import BIGINT
from everview.planner.circuit import Lookup
from everview.planner.circuit.parts import changed_scan, found_scan
from everview.planner.circuit.weighted import (
    ONE,
    ZERO,
    columns,
    compare,
    project,
    sum_up,
    total,
)

__all__ = ["SPARE", "is_spared", "too_few"]

SPARE = 16


def is_spared(lookups: Sequence[Lookup]) -> bool:
    """Whether these lookups in one table take no more than `SPARE` beyond what is shown.

    Not those that take both ends of a key, nor those of rows that have none: one cannot be told from another.
    """
    ranked = all(lookup.take is not None and lookup.kept.keys for lookup in lookups)
    return ranked and len({lookup.last for lookup in lookups}) == 1


def too_few(lookup: Lookup) -> Plan:
    """The keys for which more rows must be looked up."""
    kept, shown = lookup.kept, lookup.take or 0
    found, change = found_scan(kept), changed_scan(kept)
    both = UnionAll((project(found, (*columns(found), ONE)), project(change, (*columns(change), ZERO))))
    rows = sum_up(both, kept.width)
    *own, weight, was = columns(rows)
    there = compare(was, ">", ZERO)
    left = Case(((And((there, compare(weight, ">", ZERO))), ONE),), ZERO)
    judged = project(rows, (*(own[place] for place in kept.keys), Case(((there, ONE),), ZERO), left))
    *keys, taken, remaining = columns(judged)
    names = tuple(f"x{i}" for i in range(len(keys) + 2))
    counted = Aggregate(judged, tuple(keys), (total(taken), total(remaining)), names)
    *_, taken, remaining = columns(counted)
    cut = compare(taken, ">=", Literal(shown + SPARE, BIGINT))
    return Filter(counted, And((cut, compare(remaining, "<", Literal(shown, BIGINT)))))
