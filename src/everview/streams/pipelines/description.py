"""Descriptions of pipelines: frozen, the same for a device and for Spark.

A pipeline is a tree of stages below its sources. What goes from one to the next are changes: elements that
come, and elements that go when a stage has found better. A stage that several computations need is one
stage, and they share it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.counter import Count, Counter
from everview.algebra.crdt.replica import Replica
from everview.algebra.crdt.summation import Total
from everview.errors import DataError, ProgramError
from everview.streams.pipelines.functions import as_function
from everview.streams.pipelines.partitioning import ByElement, ByKey, Partitioning, as_partitioning
from everview.streams.pipelines.triggers import Every, OnNewData, Trigger, When

Function = Callable[[Any], Any]
Kind = Replica[Any, Any] | Callable[[str], Replica[Any, Any]]
"""A CRDT to compute: a replica to take after, or what makes one of a name, such as `crdt.Counter`."""


@dataclass(frozen=True, slots=True)
class Map:
    """Each element becomes one other."""

    function: Function


@dataclass(frozen=True, slots=True)
class Filter:
    """Elements go on for which the function holds."""

    function: Function


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Each element becomes any number of others."""

    function: Function


Step = Map | Filter | FlatMap


class _Flowing(ABC):
    """The verbs of all that elements come out of."""

    __slots__ = ()

    @abstractmethod
    def _flow(self) -> Flow:
        """The elements, as what is done to them begins."""

    def map(self, function: Function | str) -> Flow:
        """Make one element of each; the name of a field takes that field."""
        return self._flow().then(Map(as_function(function, "what map applies")))

    def filter(self, function: Function | str) -> Flow:
        """Let those elements go on for which the function holds."""
        return self._flow().then(Filter(as_function(function, "what filter applies")))

    def flat_map(self, function: Function) -> Flow:
        """Make any number of elements of each."""
        return self._flow().then(FlatMap(as_function(function, "what flat_map applies")))

    def set(self, name: str, *, key: Function | str, partitions: int | ByKey = 1) -> SetStage:
        """Keep one element for each key; of several with one key the greater, whoever comes first.

        What comes out is each element once, however often it comes in.
        """
        parts = as_partitioning(partitions)
        if isinstance(parts, ByElement):
            raise ProgramError(
                f"the set {name} is partitioned by element: two elements with one key could be in two "
                "partitions, and both would stay",
                hint="partition it by_key(count, function of the key)",
            )
        return SetStage(_name(name), self._flow(), as_function(key, "a set's key"), parts)

    def map_of(
        self,
        name: str,
        kind: Kind = Counter,
        *,
        key: Function | str | None = None,
        value: Function | str | None = None,
        partitions: int | Partitioning = 1,
        trigger: Trigger = OnNewData(),  # noqa: B008 - it is frozen
    ) -> MapStage:
        """Keep a CRDT for each key: by default, how many elements have it.

        The key is the element itself unless a function or field is named; `value` is what the CRDT is given
        of each element. What comes out are the pairs (key, value) that change.
        """
        return MapStage(
            _name(name),
            self._flow(),
            _optional(key, "a map's key"),
            _aggregate(kind, name),
            _optional(value, "a map's value"),
            as_partitioning(partitions),
            _trigger(trigger),
        )

    def aggregate(
        self,
        name: str,
        kind: Kind,
        *,
        value: Function | str | None = None,
        trigger: Trigger = OnNewData(),  # noqa: B008
    ) -> AggregateStage:
        """Compute a CRDT of all elements, or of what `value` takes of each; it is an end point."""
        aggregate, taken = _aggregate(kind, name), _optional(value, "what is aggregated")
        return AggregateStage(_name(name), self._flow(), aggregate, taken, _trigger(trigger))

    def count(self, name: str, *, trigger: Trigger = OnNewData()) -> AggregateStage:  # noqa: B008
        """Count the elements; it is an end point."""
        return self.aggregate(name, Counter, trigger=trigger)


@dataclass(frozen=True, slots=True)
class Source(_Flowing):
    """Where events come in: mappings, or any plain values."""

    name: str

    def _flow(self) -> Flow:
        return Flow(self)


@dataclass(frozen=True, slots=True)
class Flow(_Flowing):
    """What comes out of a source or stage, and what is made of it on the way."""

    feeder: Feeder
    steps: tuple[Step, ...] = ()

    def _flow(self) -> Flow:
        return self

    def then(self, step: Step) -> Flow:
        """Return this flow with one more step."""
        return Flow(self.feeder, (*self.steps, step))


@dataclass(frozen=True, slots=True)
class SetStage(_Flowing):
    """One element for each key."""

    name: str
    input: Flow
    key: Function
    partitioning: ByKey
    trigger: Trigger = field(default=OnNewData(), init=False)

    def _flow(self) -> Flow:
        return Flow(self)


@dataclass(frozen=True, slots=True)
class MapStage(_Flowing):
    """A CRDT for each key."""

    name: str
    input: Flow
    key: Function | None
    inner: Aggregate[Any, Any]
    value: Function | None
    partitioning: Partitioning
    trigger: Trigger

    def _flow(self) -> Flow:
        return Flow(self)

    def top_n(self, name: str, n: int, *, trigger: Trigger = OnNewData()) -> TopStage:  # noqa: B008
        """Keep the n keys with the greatest values, of equal ones the lesser key; it is an end point."""
        checks.positive(n, "n")
        if not isinstance(self.inner, Count | Total):
            raise ProgramError(
                f"{name} ranks the values of {self.name}, and those of {type(self.inner).__name__} are no "
                "numbers that add up",
                hint="rank a map of Counter or Sum",
            )
        return TopStage(_name(name), self._flow(), n, _trigger(trigger))


@dataclass(frozen=True, slots=True)
class AggregateStage:
    """A CRDT of all elements."""

    name: str
    input: Flow
    aggregate: Aggregate[Any, Any]
    value: Function | None
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class TopStage:
    """The n keys of a map with the greatest values.

    Each of the map's partitions finds its own n, and the n of these are the answer. That is right because a
    key is in one partition with all of its value, and not otherwise (Titan §4.1).
    """

    name: str
    input: Flow
    n: int
    trigger: Trigger


Stage = SetStage | MapStage | AggregateStage | TopStage
Feeder = Source | SetStage | MapStage


def source(name: str) -> Source:
    """Where events come in, under this name: JSON lines, rows of a relation or view, pushes."""
    return Source(_name(name))


def is_plain_count(stage: MapStage) -> bool:
    """Whether a map only counts elements: then how many there are is all that it keeps."""
    return isinstance(stage.inner, Count) and stage.value is None


def _name(name: str) -> str:
    if not checks.name(name, "a stage's name").isidentifier() or not name.isascii():
        raise ProgramError(f"{name!r} is no name for a stage", hint="letters, digits and _, no digit first")
    return name


def _optional(given: Function | str | None, what: str) -> Function | None:
    return None if given is None else as_function(given, what)


def _aggregate(kind: Kind, name: str) -> Aggregate[Any, Any]:
    made: object = kind
    if callable(kind) and not isinstance(kind, Replica):
        made = kind(name)
    if not isinstance(made, Replica):
        raise DataError(
            f"{name} needs a CRDT such as crdt.Counter, or what makes one of a name, not {kind!r}", value=kind
        )
    return made.aggregate


def _trigger(given: Trigger) -> Trigger:
    if not isinstance(given, OnNewData | When | Every):
        raise DataError(f"a trigger is on_new_data(), when(…) or every(…), not {given!r}", value=given)
    return given


def is_scattering(stage: MapStage) -> bool:
    """Whether a key of a map may have parts in several partitions."""
    return isinstance(stage.partitioning, ByElement) and stage.partitioning.count > 1
