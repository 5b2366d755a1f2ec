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

from everview.language.relations import WHOLE, Relation, Semantics
from everview.testing.worlds.steps import Operation

Row = tuple[Any, ...]
Dot = tuple[str, int]
"""Incarnation, number."""
Live = dict[Dot, Row]
"""Dot → cells; behind them a set's causal length, a keyed row's stamp, or each merged column's stamp."""
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

    def last(self, relation: str, incarnation: str) -> int:
        """The last number that is known of a site's."""
        return max((event.upto for event in self.events.get((relation, incarnation), ())), default=0)

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


def plain(relation: Relation, cells: Row) -> Row:
    """Return what counts of a stored row: of a merged one when its columns were changed."""
    if relation.semantics is not Semantics.MERGED:
        return cells
    width = len(relation.schema)
    stamp, _since, *ages = cells[width:]
    return (*cells[:width], *(stamp - (age >> 1) for age in ages))


def key_of(relation: Relation) -> Callable[[Row], Row]:
    """Return what makes the key of a row: the row itself, unless the relation is keyed."""
    positions = relation.key_positions if relation.is_keyed else range(len(relation.schema))
    return lambda row: tuple(row[position] for position in positions)


def joined(relation: Relation, rows: Live) -> Row:
    """Return the one row that the rows of a key make where they are joined, column by column."""
    width, values = len(relation.schema), _values(relation)
    row, stamps = list(next(iter(rows.values()))[:width]), list[int]()
    for place, column in enumerate(values):
        if relation.semantics is Semantics.MERGED:
            stamp, _, row[column] = max(
                ((one[width + place], dot, one[column]) for dot, one in rows.items()), key=lambda c: c[:2]
            )
            stamps.append(stamp)
        else:
            extreme = max if relation.semantics is Semantics.GREATEST else min
            row[column] = extreme((r[column] for r in rows.values() if r[column] is not None), default=None)
    return (*row, *stamps)


def shown(relation: Relation, live: Live) -> Counter[Row]:
    """What a reader sees of live rows."""
    width = len(relation.schema)
    if relation.semantics is Semantics.BAG:
        return Counter(live.values())
    key, groups = key_of(relation), dict[Row, Live]()
    for dot, row in live.items():
        groups.setdefault(key(row), {})[dot] = row
    if relation.semantics in WHOLE:
        return Counter(joined(relation, rows)[:width] for rows in groups.values())
    best = (max((*row[width:], *dot, row) for dot, row in rows.items()) for rows in groups.values())
    is_set = relation.semantics is Semantics.SET
    return Counter(row[:width] for *_, row in best if not is_set or row[-1] % 2)


def written(relation: Relation, held: Live, operations: Iterable[Operation], stamp: int) -> Counter[Row]:
    """What a site holds, after it has written; `held` is before."""
    key, kind = key_of(relation), relation.semantics
    groups: dict[Row, list[tuple[Dot, Row]]] = {}
    for dot, row in held.items():
        groups.setdefault(key(row), []).append((dot, row))
    for verb, _, cells in operations:
        row = tuple(cells)
        here = groups.setdefault(key(row), [])
        if kind is Semantics.SET:
            length = max((one[-1] for _, one in here), default=0)
            if (length % 2 == 1) is not (verb == "insert") and (length or verb == "insert"):
                here[:] = [(_NEW, (*row, length + 1))]
        elif kind is Semantics.BAG:
            here += [(_NEW, row)] if verb == "insert" else []
            del here[: verb == "delete"]
        elif verb == "delete":
            here.clear()
        else:
            before = joined(relation, dict(here)) if kind in WHOLE and here else None
            here[:] = [(_NEW, _replacing(relation, before, row, stamp))]
    return Counter(row for here in groups.values() for _, row in here)


_NEW = ("", 0)


def _values(relation: Relation) -> list[int]:
    return [place for place in range(len(relation.schema)) if place not in relation.key_positions]


def _replacing(relation: Relation, before: Row | None, row: Row, stamp: int) -> Row:
    """Return what a write of a row makes of what its key showed."""
    match relation.semantics:
        case Semantics.KEYED:
            return (*row, stamp)
        case Semantics.MERGED:
            stamps = [stamp] * len(_values(relation))
            if before is not None:
                stamps = [
                    old if before[column] == row[column] else max(stamp, old + 1)
                    for column, old in zip(_values(relation), before[len(row) :], strict=True)
                ]
            return (*row, *stamps)
        case Semantics.GREATEST | Semantics.LEAST if before is not None:
            return joined(relation, {_NEW: before, ("", 1): row})
        case _:
            return row
