"""Summaries: what a file says of itself, and which readers it fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from everview.replication.wire.messages import START, Cursor, Message, Place

__all__ = ["Span", "Summary", "Vector", "Vectors", "includes", "join", "meet", "reach"]

Vector = Mapping[str, int]
"""Incarnation → the last number seen."""

Vectors = Mapping[Place, Vector]


class Span(NamedTuple):
    """The vector that a partition's share of a file requires, and the one to which it leads."""

    required: Vector
    reached: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What a file says of itself; `spans` has every partition that changed since its writer's last file."""

    message: Message
    writer: str
    spans: Mapping[Place, Span]
    ours: frozenset[Place]
    """The partitions that this site would take."""

    @property
    def head(self) -> Cursor:
        """The last commit of the writer that is in the file."""
        assert self.message.greeting is not None
        return self.message.greeting.head

    @property
    def since(self) -> Cursor:
        """The last commit in the file that the writer wrote before; the start where it follows none."""
        assert self.message.ask is not None
        return self.message.ask.since

    @property
    def is_whole(self) -> bool:
        """Whether it follows no other file of its writer."""
        return self.since == START

    @property
    def is_complete(self) -> bool:
        """Whether its writer holds the inputs of a core, and so knows of all derivations from their rows."""
        assert self.message.greeting is not None
        return self.message.greeting.reads is None

    @property
    def is_snapshot(self) -> bool:
        """Whether it fits everybody."""
        return not any(span.required for span in self.spans.values())

    def is_news(self, seen: Vectors) -> bool:
        """Whether it leads beyond what has been seen, of the partitions that this site would take."""
        return any(not includes(seen.get(place, {}), self.spans[place].reached) for place in self.ours)

    def fits(self, seen: Vectors) -> bool:
        """Whether what it requires has been seen."""
        return all(includes(seen.get(place, {}), self.spans[place].required) for place in self.ours)


def includes(vector: Vector, other: Vector) -> bool:
    """Whether a vector covers all that another one does."""
    return all(vector.get(site, 0) >= seen for site, seen in other.items())


def reach(summaries: Iterable[Summary]) -> dict[Place, dict[str, int]]:
    """Return what a reader has seen who began with nothing and took all of these files that fit."""
    found: dict[Place, dict[str, int]] = {}
    left = list(summaries)
    while fitting := [one for one in left if one.fits(found)]:
        left = [one for one in left if one not in fitting]
        for one in fitting:
            for place in one.ours:
                join(found.setdefault(place, {}), one.spans[place].reached)
    return found


def join(vector: dict[str, int], other: Vector) -> None:
    """Add to a vector what another one has seen."""
    vector.update((site, seen) for site, seen in other.items() if seen > vector.get(site, 0))


def meet(vector: Vector, other: Vector) -> dict[str, int]:
    """Return what two vectors both cover."""
    return {site: min(seen, other[site]) for site, seen in vector.items() if other.get(site)}
