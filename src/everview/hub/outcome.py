"""What a refresh came to: the runs that it wrote, and how many rows came and went."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from everview.hub.runs import Run

__all__ = ["Change", "Outcome", "weights"]


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows of a table appeared and disappeared, copies counted."""

    appeared: int
    disappeared: int


@dataclass(slots=True)
class Outcome:
    """The runs that were written, by table; what happened to relations and views; how many jobs it took.

    The runs of `replaced` tables take the place of all that these had.
    """

    written: dict[str, Run] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    changes: dict[str, Change] = field(default_factory=dict)
    operators: dict[str, Change] | None = None
    """What happened to operators that are no views, where one process saw all of it."""
    jobs: int = 0


def weights(delta: pa.Table) -> Change | None:
    """How many rows of a delta come, and how many go; None when none does."""
    column = delta.columns[-1]
    zero = pa.scalar(0, pa.int64())
    more = pc.sum(pc.max_element_wise(column, zero)).as_py() or 0
    less = pc.sum(pc.min_element_wise(column, zero)).as_py() or 0
    return Change(more, -less) if more or less else None
