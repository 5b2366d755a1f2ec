"""The oracle: what every commit added and removed, and what the sites that have seen it must hold.

What a site has seen of a relation is its vector, and nothing else counts. Live is what was added by a commit
that it has seen, and removed by none. That holds whatever was lost, doubled or copied. What a commit adds and
removes follows from what its site held, by the kind of the relation; what live rows show, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.language.relations import Relation, Semantics
from everview.testing.worlds.steps import Operation

Row = tuple[Any, ...]
Dot = tuple[str, int]
"""Incarnation, number."""
Live = dict[Dot, Row]
"""Dot → cells; behind them a set's causal length, or a keyed row's stamp."""
Vector = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Event:
    """What a commit did to a relation; `upto` is the last number that it used up."""

    relation: str
    incarnation: str
    upto: int
    added: Live
    removed: frozenset[Dot]


@dataclass(slots=True)
class History:
    """Every commit anywhere."""

    events: dict[tuple[str, str], list[Event]] = field(default_factory=dict)

    def record(self, event: Event) -> None:
        """Take note of a commit."""
        self.events.setdefault((event.relation, event.incarnation), []).append(event)

    def undo(self, incarnation: str, own: Vector) -> None:
        """Forget what a site wrote beyond these numbers: nobody has seen it, and it is lost."""
        for (relation, writer), events in self.events.items():
            if writer == incarnation:
                events[:] = [event for event in events if event.upto <= own.get(relation, 0)]

    def live(self, relation: str, vector: Vector, more: Iterable[Event] = ()) -> Live:
        """What is live for a site that has seen this, and `more` that nobody else has."""
        seen = [
            event
            for incarnation, upto in vector.items()
            for event in self.events.get((relation, incarnation), ())
            if event.upto <= upto
        ]
        return live_of([*seen, *more])

    def is_whole(self, relation: str, vector: Vector) -> bool:
        """Whether no commit was seen in part."""
        return all(
            any(event.upto == upto for event in self.events.get((relation, incarnation), ()))
            for incarnation, upto in vector.items()
        )


def live_of(events: Iterable[Event]) -> Live:
    """What is live where these commits were seen."""
    events = list(events)
    removed = {dot for event in events for dot in event.removed}
    return {dot: row for event in events for dot, row in event.added.items() if dot not in removed}


def key_of(relation: Relation) -> Callable[[Row], Row]:
    """Return what makes the key of a row: the row itself, unless the relation is keyed."""
    positions: Iterable[int] = range(len(relation.schema))
    if relation.semantics is Semantics.KEYED:
        positions = relation.key_positions
    return lambda row: tuple(row[position] for position in positions)


def shown(relation: Relation, live: Live) -> Counter[Row]:
    """What a reader sees of live rows."""
    width = len(relation.schema)
    if relation.semantics is Semantics.BAG:
        return Counter(live.values())
    key, best = key_of(relation), dict[Row, tuple[Any, ...]]()
    for (incarnation, number), row in live.items():
        rank = (*row[width:], incarnation, number, row)
        best[key(row)] = max(best.get(key(row), rank), rank)
    winners = [rank[-1] for rank in best.values()]
    is_set = relation.semantics is Semantics.SET
    return Counter(row[:width] for row in winners if not is_set or row[-1] % 2)


def written(
    relation: Relation, held: Iterable[Row], operations: Iterable[Operation], stamp: int
) -> Counter[Row]:
    """What a site holds, after it has written; `held` is before."""
    key, kind, width = key_of(relation), relation.semantics, len(relation.schema)
    groups: dict[Row, list[Row]] = {}
    for row in held:
        groups.setdefault(key(row), []).append(row)
    for verb, _, cells in operations:
        row = tuple(cells)
        here = groups.setdefault(key(row), [])
        if kind is Semantics.SET:
            length = max((one[-1] for one in here), default=0)
            if (length % 2 == 1) is not (verb == "insert") and (length or verb == "insert"):
                here[:] = [(*row, length + 1)]
        elif kind is Semantics.BAG:
            here += [row] if verb == "insert" else []
            del here[: verb == "delete"]
        else:
            extra = [stamp] if kind is Semantics.KEYED else []
            here[:] = [(*row, *extra)] if verb == "insert" else []
    assert all(len(row) <= width + 1 for here in groups.values() for row in here)
    return Counter(row for here in groups.values() for row in here)
