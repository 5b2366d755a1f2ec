"""What an operator asks of kept rows: from the changes it has read to the hashes that are searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from everview.engines.spark.hashing import Hashes
from everview.hub.deepening import SPARE, is_spared
from everview.hub.memory import Memory
from everview.hub.runs import Layout, Part, distinct
from everview.hub.searching import Places, Request
from everview.hub.tables import Hashed
from everview.planner.circuit import Kept, Lookup, Operator

__all__ = ["Wanted", "request", "wanted_by"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lookups in one table for one reader, `known` by both their names."""

    known: tuple[str, str]
    table: str
    layout: Layout
    hashed: Hashed
    lookups: Sequence[Lookup]
    spared: bool = False
    """Whether fewer ranked rows than may be needed are enough for now (see `deepening`)."""


def wanted_by(
    operator: Operator, layouts: Mapping[str, Layout], hashed: Mapping[str, Hashed]
) -> list[Wanted]:
    """The lookups of an operator, those in one table together."""
    by_table: dict[Kept, list[Lookup]] = {}
    for lookup in operator.lookups:
        by_table.setdefault(lookup.kept, []).append(lookup)
    return [
        Wanted(
            (operator.name, kept.name),
            kept.name,
            layouts[kept.name],
            hashed[kept.name],
            lookups,
            is_spared(lookups),
        )
        for kept, lookups in by_table.items()
    ]


def request(memory: Memory, parts: tuple[Part, ...], wanted: Wanted) -> Request:
    """What to search for in the parts of a table, by the tables that there are."""
    if any(lookup.keys is None for lookup in wanted.lookups):
        return Request(parts, wanted.layout, None)
    asked = [_hashes(memory, wanted.hashed, lookup) for lookup in wanted.lookups]
    if all(lookup.take is None for lookup in wanted.lookups):
        return Request(parts, wanted.layout, distinct(np.concatenate(asked)))
    take = max(lookup.take or 0 for lookup in wanted.lookups)
    last = any(lookup.last for lookup in wanted.lookups)
    first = any(not lookup.last for lookup in wanted.lookups)
    if not wanted.lookups[0].kept.keys:
        # The rows of the only key are spread over all of these.
        rows = max(map(len, asked))
        needed = np.full(256, rows + take)
        unique = np.arange(-128, 128, dtype=np.int64) << np.int64(56)
        return Request(parts, wanted.layout, unique if rows else asked[0], needed, first, last)
    unique, counts = _most(asked)
    spared = np.minimum(counts, SPARE) if wanted.spared else counts
    return Request(parts, wanted.layout, unique, spared + take, first, last)


def _hashes(memory: Memory, hashed: Hashed, lookup: Lookup) -> Hashes:
    if lookup.keys is None:
        raise ValueError("all rows are asked for by no hash")
    memory.run("@keys", lookup.keys)
    table = memory.table("@keys")
    keys = lookup.kept.keys
    return hashed.of_keys(tuple(lookup.kept.schema[place] for place in keys), table)


def _most(asked: Sequence[Hashes]) -> tuple[Hashes, Places]:
    """Each hash once, and how often the lookup that has it most often has it."""
    unique = distinct(np.concatenate(asked))
    most = np.zeros(len(unique), dtype=np.int64)
    for hashes in asked:
        counts = np.bincount(np.searchsorted(unique, hashes), minlength=len(unique))
        most = np.maximum(most, counts)
    return unique, most
