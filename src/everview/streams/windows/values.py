"""Values: what a group's windows hold, a lattice's elements or replicas of a CRDT.

A processor works on a *local* state, which is copied before a message touches it, so that a message that is
given up leaves no trace. What is stored with a window is the lattice element that the local state stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from everview.algebra.crdt.map_of import MapOf
from everview.algebra.crdt.replica import Replica
from everview.algebra.crdt.sketches import Kll
from everview.algebra.laws import Lattice
from everview.errors import DataError

__all__ = ["Kind", "OfLattice", "OfReplicas", "Values", "values_of"]

Kind = Lattice[Any] | Callable[[str], Replica[Any, Any]]
"""A lattice, or what makes a replica for a source: `MergeMap(Max())`, `crdt.Counter`."""


class Values(Protocol):
    """How local states begin, grow, are stored, and are joined to a window's value."""

    def begin(self, processor: str, element: Any | None) -> Any:
        """Return the local state of a processor that goes on from an element, or begins."""
        ...

    def copy(self, local: Any) -> Any:
        """Return a state that can be changed and thrown away."""
        ...

    def grown(self, local: Any, observation: tuple[Any, ...]) -> Any:
        """Return the local state with something more in it."""
        ...

    def element(self, local: Any) -> Any:
        """Return what is stored of a local state; it has no parts that are unsent."""
        ...

    def join(self, elements: Iterable[Any]) -> Any:
        """Return the element that all these make together."""
        ...

    def shown(self, element: Any) -> Any:
        """Return a window's value as a handler is given it: its own, to do with as it likes."""
        ...


@dataclass(frozen=True, slots=True)
class OfLattice(Values):
    """Elements of a lattice, which are plain immutable values."""

    lattice: Lattice[Any]

    def begin(self, processor: str, element: Any | None) -> Any:  # noqa: ARG002 - an element is nobody's
        """Return the element, or bottom."""
        return self.lattice.bottom() if element is None else element

    def copy(self, local: Any) -> Any:
        """Return the element: it does not change."""
        return local

    def grown(self, local: Any, observation: tuple[Any, ...]) -> Any:
        """Join each observation, an element of the lattice."""
        for part in observation:
            local = self.lattice.join(local, part)
        return local

    def element(self, local: Any) -> Any:
        """Return the element."""
        return local

    def join(self, elements: Iterable[Any]) -> Any:
        """Join them."""
        joined = self.lattice.bottom()
        for element in elements:
            joined = self.lattice.join(joined, element)
        return joined

    def shown(self, element: Any) -> Any:
        """Return the element."""
        return element


@dataclass(frozen=True, slots=True)
class OfReplicas(Values):
    """Replicas of a computational CRDT: each processor's is a source of its own, under its name."""

    make: Callable[[str], Replica[Any, Any]]

    def begin(self, processor: str, element: Any | None) -> Replica[Any, Any]:
        """Return a replica that knows its own contributions."""
        replica = self.make(processor)
        if element is not None:
            replica.join(element)
        return replica

    def copy(self, local: Replica[Any, Any]) -> Replica[Any, Any]:
        """Return a replica that goes on from the same point."""
        return local.copy()

    def grown(self, local: Replica[Any, Any], observation: tuple[Any, ...]) -> Replica[Any, Any]:
        """Contribute what the CRDT's own verb would take."""
        local.contribute(local.aggregate.lift(*observation))
        return local

    def element(self, local: Replica[Any, Any]) -> Any:
        """Return the replica's state; nothing has to be sent again, for the window itself is kept."""
        state = local.state()
        local.acknowledge(max(local.outbox, default=0))
        return state

    def join(self, elements: Iterable[Any]) -> Any:
        """Join the states."""
        lattice = self.make("window").lattice
        joined = lattice.bottom()
        for element in elements:
            joined = lattice.join(joined, element)
        return joined

    def shown(self, element: Any) -> Replica[Any, Any]:
        """Return a replica that knows the window's contributions; its `value` is the window's."""
        replica = self.make("window")
        replica.join(element)
        return replica


def values_of(kind: Any) -> Values:
    """Return how values of a kind are handled; DataError for what is none, or is not deterministic."""
    if all(callable(getattr(kind, verb, None)) for verb in ("bottom", "join", "leq")):
        return OfLattice(kind)
    if not callable(kind) or not isinstance(made := kind("window"), Replica):
        raise DataError(
            f"windows are of a lattice, such as MergeMap(Max()), or of a CRDT, such as crdt.Counter; "
            f"not of {kind!r}",
            value=kind,
        )
    _require_determinism(made.aggregate)
    return OfReplicas(kind)


def _require_determinism(aggregate: Any) -> None:
    if isinstance(aggregate, MapOf):
        _require_determinism(aggregate.inner)
    if isinstance(aggregate, Kll):
        raise DataError(
            "merging quantile sketches is randomised, so a replayed window would differ; "
            "keep a crdt.Bag or a crdt.Set of the numbers instead, or their sums",
            value=aggregate,
        )
