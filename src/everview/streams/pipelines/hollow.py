"""Hollow replicas: what a batch contributes to a stage, gathered before anything is merged (Titan §3.1)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.average import Mean
from everview.algebra.crdt.bag import Weights
from everview.algebra.crdt.counter import Count
from everview.algebra.crdt.extrema import Extreme
from everview.algebra.crdt.map_of import MapOf
from everview.algebra.crdt.sketches import Hll, Kll
from everview.algebra.crdt.summation import Total
from everview.algebra.crdt.top_n import Top
from everview.errors import DataError
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.description import (
    AggregateStage,
    Filter,
    FlatMap,
    Flow,
    Map,
    MapStage,
    is_plain_count,
)
from everview.streams.pipelines.functions import OverArrow, Words, called
from everview.streams.pipelines.partitioning import ByElement, ByKey

Contribution = tuple[int, Any]
"""How many elements, and what they contribute; that is None where to count them is all."""
Hollow = dict[tuple[int, Hashable], Contribution]
"""What a batch contributes to a map, by partition and key."""


class NotInvertibleError(Exception):
    """Elements are to be taken out of an aggregate from which nothing can be taken, such as a maximum."""


def through(flow: Flow, batch: Batch) -> Batch:
    """Return what a flow's steps make of a batch."""
    for step in flow.steps:
        match step:
            case Map(function):
                batch = Batch(list(called(function, batch)), weights=batch.weights)
            case Filter(function):
                kept = [bool(answer) for answer in called(function, batch)]
                elements = [e for e, keep in zip(batch.elements(), kept, strict=True) if keep]
                weights = batch.weights and [w for w, keep in zip(batch.weights, kept, strict=True) if keep]
                batch = Batch(elements, weights=weights)
            case FlatMap(function):
                batch = _flat(function, batch)
    return batch


def _flat(function: Any, batch: Batch) -> Batch:
    if batch.weights is None:
        if isinstance(function, Words | OverArrow):
            return function.of_batch(batch)
        return Batch([made for element in batch.elements() for made in function(element)])
    pairs = [
        (made, weight)
        for element, weight in zip(batch.elements(), batch.weights, strict=True)
        for made in function(element)
    ]
    return Batch([made for made, _ in pairs], weights=[weight for _, weight in pairs])


def aggregate_of(stage: AggregateStage, batch: Batch) -> Contribution:
    """Return what a batch contributes to an aggregate, after the steps of its flow."""
    if isinstance(stage.aggregate, Count) and stage.value is None:
        return (len(batch) if batch.weights is None else sum(batch.weights)), None
    return _lifted(stage.aggregate, called(stage.value, batch), batch.weights)


def map_of(stage: MapStage, batch: Batch) -> Hollow:
    """Return what a batch contributes to a map, after the steps of its flow."""
    parts = stage.partitioning
    keys = called(stage.key, batch)
    if isinstance(parts, ByElement):
        places = [parts.of_element(element) for element in batch.elements()]
        return _by_place(stage, list(zip(places, keys, strict=True)), batch)
    grouped = _by_place(stage, keys, batch)
    return {(parts.of_key(key), key): found for key, found in grouped.items()}


def _by_place(stage: MapStage, places: Sequence[Any], batch: Batch) -> dict[Any, Contribution]:
    try:
        if is_plain_count(stage):
            return _counted(places, batch.weights)
        grouped: dict[Any, tuple[list[Any], list[int]]] = {}
        weights = batch.weights or [1] * len(places)
        for place, value, weight in zip(places, called(stage.value, batch), weights, strict=True):
            values = grouped.setdefault(place, ([], []))
            values[0].append(value)
            values[1].append(weight)
    except TypeError as error:
        raise DataError(
            f"a key of {stage.name} cannot be one: {error}; give a plain value that is hashable"
        ) from None
    signed = batch.weights is not None
    return {
        p: _lifted(stage.inner, values, found if signed else None) for p, (values, found) in grouped.items()
    }


def counts_by_part(stage: MapStage, batch: Batch) -> dict[int, tuple[list[Any], list[int]]] | None:
    """Return keys and how often each comes, by partition, counted by Arrow; None where it cannot."""
    parts = stage.partitioning
    if batch.values is None or batch.weights is not None or stage.key is not None:
        return None
    if not isinstance(parts, ByKey) or not is_plain_count(stage):
        return None
    found = batch.values.value_counts()
    keys, counts = found.field("values").to_pylist(), found.field("counts").to_pylist()
    if parts.count == 1:
        return {0: (keys, counts)}
    made: dict[int, tuple[list[Any], list[int]]] = {part: ([], []) for part in range(parts.count)}
    for part, key, count in zip(map(parts.of_key, keys), keys, counts, strict=True):
        of_part = made[part]
        of_part[0].append(key)
        of_part[1].append(count)
    return {part: listed for part, listed in made.items() if listed[0]}


def _counted(places: Sequence[Any], weights: list[int] | None) -> dict[Any, Contribution]:
    if weights is None:
        return {place: (count, None) for place, count in Counter(places).items()}
    counts: dict[Any, int] = {}
    for place, weight in zip(places, weights, strict=True):
        counts[place] = counts.get(place, 0) + weight
    return {place: (count, None) for place, count in counts.items() if count}


def _lifted(aggregate: Aggregate[Any, Any], values: Sequence[Any], weights: list[int] | None) -> Contribution:
    if weights is None:
        return len(values), lift_all(aggregate, values)
    come = [value for value, weight in zip(values, weights, strict=True) for _ in range(weight)]
    gone = [value for value, weight in zip(values, weights, strict=True) for _ in range(-weight)]
    total = lift_all(aggregate, come)
    if gone:
        total = aggregate.combine(total, inverse(aggregate, lift_all(aggregate, gone)))
    return len(come) - len(gone), total


def lift_all(aggregate: Aggregate[Any, Any], values: Sequence[Any]) -> Any:
    """Return what observations contribute together; many at once where an aggregate can."""
    if not values:
        return aggregate.zero()
    match aggregate:
        case Count():
            return sum(map(aggregate.lift, values))
        case Total() | Mean() if aggregate.exact.kind is int and {*map(type, values)} == {int}:
            if isinstance(aggregate, Mean):
                return aggregate.lift(sum(values))[0], len(values)
            added = sum(value for value in values if value > 0)
            return aggregate.combine(aggregate.lift(added), aggregate.lift(sum(values) - added))
        case Extreme():
            lifted = [aggregate.lift(value) for value in values]
            return functools.reduce(aggregate.combine, lifted)
        case Hll() | Kll():
            return aggregate.lift(*values)
        case Top():
            counts = Counter(values)
            return {key: aggregate.lift(key, count)[key] for key, count in counts.items()}
        case MapOf():
            return _lift_pairs(aggregate, values)
        case _:
            return functools.reduce(aggregate.combine, map(aggregate.lift, values))


def _lift_pairs(aggregate: MapOf[Any, Any], pairs: Iterable[Any]) -> dict[Hashable, Any]:
    grouped: dict[Hashable, list[Any]] = {}
    try:
        for key, observed in pairs:
            grouped.setdefault(key, []).append(observed)
    except (TypeError, ValueError):
        raise DataError(
            "a Map takes pairs (key, observation); map_of(…) takes elements as they are"
        ) from None
    return {key: lift_all(aggregate.inner, observed) for key, observed in grouped.items()}


def inverse(aggregate: Aggregate[Any, Any], contribution: Any) -> Any:
    """Return what takes a contribution out again; NotInvertibleError where nothing does."""
    found = _inverse_of(aggregate)
    if found is None:
        raise NotInvertibleError
    return found(contribution)


def is_invertible(aggregate: Aggregate[Any, Any]) -> bool:
    """Whether what was put in can be taken out again, without looking at the rest."""
    return _inverse_of(aggregate) is not None


def is_neutral(aggregate: Aggregate[Any, Any], contribution: Any) -> bool:
    """Whether a contribution, of no elements, adds nothing: all that came has gone again."""
    if isinstance(aggregate, Total):
        return bool(contribution[0] == contribution[1])
    if isinstance(aggregate, Top):
        return all(added == taken for added, taken in contribution.values())
    return is_invertible(aggregate) and bool(contribution == aggregate.zero())


def _inverse_of(aggregate: Aggregate[Any, Any]) -> Callable[[Any], Any] | None:
    match aggregate:
        case Count() | Weights():
            return lambda amount: -amount
        case Total():
            return lambda amounts: (amounts[1], amounts[0])
        case Mean():
            return lambda amounts: (-amounts[0], -amounts[1])
        case Top():
            return lambda totals: {key: (taken, added) for key, (added, taken) in totals.items()}
        case _:  # of a nested map, too: a key would stay with nothing in it
            return None
