"""Change: what a commit changed in a stage, for those that it feeds and for subscribers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.keys import Stored

Place = tuple[int, Stored]
"""A partition, and a key as it is stored."""


@dataclass(frozen=True, slots=True)
class Change:
    """The elements that came and went, where somebody asks for them, and the places of a map that changed."""

    batch: Batch | None = None
    places: Sequence[Place] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """What a subscriber is told after a commit."""

    stage: str
    commit: int
    """The number of the commit; it grows."""
    value: Any
    """What a read gives now; None of a set and of a map, which may be large: see `changes`."""
    changes: list[tuple[Any, int]] = field(default_factory=list)
    """Elements, or pairs (key, value), each with +1 where it came and −1 where it went."""


def difference(old: dict[Any, Any], new: dict[Any, Any]) -> Batch:
    """Return pairs that go and pairs that come, between two states of a map."""
    gone = [(key, value) for key, value in old.items() if key not in new or new[key] != value]
    come = [(key, value) for key, value in new.items() if key not in old or old[key] != value]
    return Batch([*gone, *come], weights=[-1] * len(gone) + [1] * len(come))
