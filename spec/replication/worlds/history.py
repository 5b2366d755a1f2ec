"""The exact oracle: what a store must hold follows from which writes it has seen, and from nothing else."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, cast

from spec.replication.kinds import AddWins, Kind, Set
from spec.replication.lattices import Joined, Merged
from spec.replication.rows import Key, Row
from spec.replication.transactions import Delete, Forget, Insert, Statement, Written
from spec.replication.vectors import Dot

Seen = Mapping[str, frozenset[int]]
"""Of each relation the writes that a site has seen, by their places in the history."""


@dataclass(frozen=True, slots=True)
class Event:
    """One write: what it was, what it did, and which writes of its relation its writer had seen."""

    written: Written
    past: frozenset[int]
    life: int

    @property
    def statement(self) -> Statement | None:
        """The statement, None if the store wrote by itself."""
        return self.written.statement

    @property
    def key(self) -> Key:
        """The key that was written."""
        return self.statement.key if self.statement else None


@dataclass
class History:
    """All writes of a world."""

    events: list[Event] = field(default_factory=list)
    transactions: list[dict[str, frozenset[int]]] = field(default_factory=list)

    def record(self, seen: Seen, written: Iterable[Written], life: int) -> Seen:
        """Add a transaction of a site that has seen this; return what it has seen now."""
        now = dict(seen)
        touched: dict[str, frozenset[int]] = {}
        for one in written:
            self.events.append(Event(one, now.get(one.relation, frozenset()), life))
            mine = frozenset({len(self.events) - 1})
            now[one.relation] = now.get(one.relation, frozenset()) | mine
            touched[one.relation] = touched.get(one.relation, frozenset()) | mine
        if len(touched) > 1:
            self.transactions.append(touched)
        return now

    def rename(self, life: int, renamed: Callable[[str, Dot], Dot]) -> None:
        """Give what this life wrote the dots that it has under a new incarnation."""
        for place, event in enumerate(self.events):
            if event.life == life:
                one = event.written
                gone = frozenset(renamed(one.relation, dot) for dot in one.gone)
                dot = one.dot and renamed(one.relation, one.dot)
                self.events[place] = replace(event, written=replace(one, dot=dot, gone=gone))

    def expected(self, seen: frozenset[int]) -> dict[Dot, Row]:
        """Return the live rows of whoever has seen these writes of a relation."""
        written = [self.events[place].written for place in seen]
        gone = {dot for one in written for dot in one.gone}
        return {one.dot: one.row for one in written if one.dot and one.row and one.dot not in gone}

    def wrong(self, kind: Kind, seen: frozenset[int], shown: Iterable[object]) -> list[str]:
        """Return what is wrong with what is shown, by the meaning of the kind rather than by its rows."""
        events = {place: self.events[place] for place in seen}
        match kind:
            case Set():
                return _lengths(events, set(shown))
            case AddWins():
                return _insertions(events, set(shown))
            case Joined():
                return self._joins(kind, events, dict(cast("Iterable[tuple[Key, object]]", shown)))
        return []

    def _joins(self, kind: Joined, events: Mapping[int, Event], shown: Mapping[Key, object]) -> list[str]:
        """A joined value is the join of what went into live rows; of a column, the last that was written."""
        made = {event.written.dot: place for place, event in events.items() if event.written.dot}
        sources: dict[int, set[int]] = {}
        for place in sorted(events):
            replaced = [made[dot] for dot in events[place].written.gone]
            sources[place] = {place}.union(*(sources[one] for one in replaced))
        live = self.expected(frozenset(events))
        for key, value in shown.items():
            within = set[int]().union(*(sources[made[dot]] for dot, row in live.items() if row.key == key))
            written = {p: s.value for p in within if isinstance(s := events[p].statement, Insert)}
            if not isinstance(kind, Merged):
                if value != reduce(kind.join, (kind.written(one, None, 0) for one in written.values())):
                    return ["a join that nobody wrote"]
                continue
            writers = {p: self._columns(kind, events, events[p]) for p in written}
            for column, cell in _columns(value).items():
                wrote = {p: columns[column] for p, columns in writers.items() if column in columns}
                last = {one for p, one in wrote.items() if not any(q != p and p in sources[q] for q in wrote)}
                if cell not in last:
                    return ["a column that was written over"]
        return []

    def _columns(self, kind: Joined, events: Mapping[int, Event], event: Event) -> dict[str, object]:
        """Return the columns that a write to a merged row changed."""
        gone = [e.written for e in events.values() if e.written.dot in event.written.gone]
        rows = {one.dot: one.row for one in gone if one.dot and one.row}
        before = _columns(kind.value(rows) or ())
        new = _columns(event.statement.value) if isinstance(event.statement, Insert) else {}
        return {c: one for c, one in new.items() if c not in before or before[c].value != one}


def _columns(value: object) -> dict[str, Any]:
    return dict(cast("Iterable[tuple[str, Any]]", value))


def _lengths(events: Mapping[int, Event], shown: set[object]) -> list[str]:
    """A set without forgotten tombstones shows the tuples whose greatest length ever written is odd."""
    if any(isinstance(event.statement, Forget) for event in events.values()):
        return []
    lengths: dict[Key, int] = {}
    for event in events.values():
        if event.written.row and isinstance(event.written.row.value, int):
            lengths[event.key] = max(lengths.get(event.key, 0), event.written.row.value)
    return (
        ["not the causal length"] if shown != {key for key, length in lengths.items() if length % 2} else []
    )


def _insertions(events: Mapping[int, Event], shown: set[object]) -> list[str]:
    """An add-wins tuple is shown while an insertion lives that no deletion has seen."""
    deletions = [event for event in events.values() if isinstance(event.statement, Delete)]
    alive = {
        event.key
        for place, event in events.items()
        if isinstance(event.statement, Insert)
        and not any(place in deletion.past for deletion in deletions if deletion.key == event.key)
    }
    return ["not what was inserted"] if shown != alive else []
