"""Replica: one site's copy of a computational CRDT, full or hollow (Titan §3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, Self, TypeVar

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.contributions import Contributions, Delta, State
from everview.errors import DataError

C = TypeVar("C")
V = TypeVar("V")


class Replica(Generic[C, V]):
    """A source of contributions to an aggregate, and all that it knows of the others'.

    A full replica knows what it was joined with. A hollow one knows only its own part: it gathers
    contributions without holding the whole, flushes them as deltas, and may later be promoted to a full
    one. `source` must be new for every incarnation: a source that forgot how far it had counted would
    give a dot to two contributions.
    """

    aggregate: Aggregate[C, V]
    """What is computed."""
    lattice: Contributions[C]
    """How states are joined."""
    source: str
    """Under which name this replica contributes."""

    def __init__(self, aggregate: Aggregate[C, V], source: str) -> None:
        self.aggregate = aggregate
        self.lattice = Contributions(aggregate)
        self.source = checks.name(source, "a replica's source")
        self._state = self.lattice.bottom()
        self._unsent = aggregate.zero()
        self._dirty = False
        self._outbox: dict[int, Delta[C]] = {}
        self._hollow = False

    @property
    def is_hollow(self) -> bool:
        """Whether this replica was made hollow and has not been promoted."""
        return self._hollow

    @property
    def unsent(self) -> C:
        """What has been contributed here and not been flushed yet."""
        return self._unsent

    @property
    def outbox(self) -> Mapping[int, Delta[C]]:
        """Deltas that were flushed and not acknowledged: what to send again after a loss."""
        return MappingProxyType(self._outbox)

    @property
    def value(self) -> V:
        """The aggregate of everything known here, of a hollow replica its own part; unsent included."""
        return self.aggregate.value(self.aggregate.combine(self.lattice.total(self._state), self._unsent))

    def contribute(self, contribution: C) -> None:
        """Add to the unsent part; each type's own verbs lift what they are given and call this."""
        self._unsent = self.aggregate.combine(self._unsent, contribution)
        self._dirty = True

    def flush(self) -> Delta[C] | None:
        """Close the unsent part under the next dot and return it; None if there is nothing new.

        The delta stays in the outbox until it is acknowledged.
        """
        if not self._dirty:
            return None
        mine = self._state.get(self.source)
        delta = Delta(self.source, (mine.count if mine else 0) + 1, self._unsent)
        self._state = self.lattice.join(self._state, self.lattice.single(delta))
        self._unsent, self._dirty = self.aggregate.zero(), False
        self._outbox[delta.number] = delta
        return delta

    def acknowledge(self, number: int) -> None:
        """Forget the deltas up to `number`: whoever needed them has them durably."""
        checks.natural(number, "a delta's number")
        self._outbox = {n: delta for n, delta in self._outbox.items() if n > number}

    def state(self) -> State[C]:
        """Return everything known here as a lattice element; what is unsent is flushed first."""
        self.flush()
        return self._state

    def join(self, other: Replica[C, V] | State[C]) -> bool:
        """Learn all that another replica, or a state, knows; say whether anything was new."""
        if isinstance(other, Replica):
            if other.aggregate != self.aggregate:
                raise DataError(
                    f"cannot join {self.aggregate!r} with {other.aggregate!r}: different aggregates"
                )
            other = other.state()
        self._state, grew = self.lattice.merge(self._state, other)
        return grew

    def merge_delta(self, delta: Delta[C]) -> bool:
        """Take in one delta; say whether it was new. Taking it in again changes nothing."""
        return self.join(self.lattice.single(delta))

    def copy(self) -> Self:
        """Return a replica that goes on from the same point, under the same source: keep one of the two."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._outbox = dict(self._outbox)
        return made

    def hollow(self, source: str) -> Self:
        """Return a hollow replica of the same aggregate: a new source that knows nothing yet."""
        made = object.__new__(type(self))
        Replica.__init__(made, self.aggregate, source)
        made._hollow = True
        return made

    def promote(self, known: Replica[C, V] | State[C]) -> None:
        """Turn a hollow replica into a full one that knows what `known` does.

        Its unsent part stays apart: the next delta holds that part alone, never what was just learnt.
        """
        if not self._hollow:
            raise DataError(f"the replica {self.source!r} is full already", expected="a hollow replica")
        self.join(known)
        self._hollow = False

    def __repr__(self) -> str:
        kind = "hollow " if self._hollow else ""
        return f"<{kind}{type(self).__name__} {self.source!r}: {self.value!r}>"
