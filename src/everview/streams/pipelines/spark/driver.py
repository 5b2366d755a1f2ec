"""What the driver does with what a job made: states, triggers, and stages that are computed anew."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from everview.algebra.crdt.counter import Count
from everview.errors import DataError
from everview.hub.files import Files
from everview.streams.pipelines.change import difference
from everview.streams.pipelines.description import AggregateStage, MapStage, SetStage, Source, Stage, TopStage
from everview.streams.pipelines.device.aggregates import value_of
from everview.streams.pipelines.keys import load_key, stored_order
from everview.streams.pipelines.pipeline import Pipeline
from everview.streams.pipelines.ranking import merged
from everview.streams.pipelines.spark.job import Outcome, run_rows
from everview.streams.pipelines.spark.record import STATE, State
from everview.streams.pipelines.spark.tasks import map_part, set_part
from everview.streams.pipelines.spark.work import FILL, HOLLOW, RANK, Row, Work
from everview.streams.pipelines.triggers import Every, OnNewData, Waiting, When

__all__ = ["Changes", "Driver", "forget"]

Changes = dict[str, list[tuple[Any, int]]]
"""Stage → elements that came and went, for subscribers."""


class Driver:
    """Changes states; nothing counts until one of them is a record."""

    def __init__(
        self,
        files: Files,
        spark: SparkSession,
        clock: Callable[[], float],
        told: Callable[[], set[str]],
    ) -> None:
        self.files = files
        self.spark = spark
        self._clock = clock
        self._told = told
        self.pipeline = Pipeline()
        self.large = False
        """Whether more has gone between levels than this process takes upon itself."""

    def work(self, state: State, **options: Any) -> Work:
        """What the tasks of a job are told."""
        told = frozenset(self._told())
        return Work(self.pipeline, self.files, state, told, large=self.large, **options)

    def apply(
        self, state: State, outcome: Outcome, changes: Changes, fired: frozenset[str] = frozenset()
    ) -> None:
        """Put what a job made into a state."""
        for name, parts in outcome.runs.items():
            state.runs.setdefault(name, {}).update(parts)
        for name, rankings in outcome.rankings.items():
            state.rankings.setdefault(name, {}).update(rankings)
        for name, part, body in outcome.pending:
            path = f"{STATE}/{name}-{part}-{uuid.uuid4().hex}"
            self.files.create(path, body)
            state.pending.setdefault(name, []).append([part, path])
        for name, contributions in outcome.contributions.items():
            stage = self.pipeline.stage(name)
            assert isinstance(stage, AggregateStage)
            at_once = isinstance(stage.trigger, OnNewData) or name in fired
            place = state.aggregates if at_once else state.hollow
            for contribution in contributions:
                place[name] = _combined(stage, place.get(name), contribution)
        for name, more in outcome.waiting.items():
            if not isinstance(self.pipeline.stage(name).trigger, OnNewData) and name not in fired:
                state.waiting[name] = state.waiting.get(name, 0) + more
        for name, told in outcome.changes.items():
            changes.setdefault(name, []).extend(told)
        if outcome.refill:
            self._refill(state, outcome.refill, changes)

    def _refill(self, state: State, names: set[str], changes: Changes) -> None:
        """Compute stages, and all that they feed, anew: something cannot be taken out of them."""
        for stage in self.pipeline.below(names):
            if isinstance(stage.input.feeder, Source):
                raise DataError(
                    f"elements go from the source {stage.input.feeder.name}, and cannot be taken out of "
                    f"{stage.name}: follow the rows on a device, or put a set between"
                )
            told = stage.name in self._told() and isinstance(stage, MapStage)
            old = self.read(stage.name, state) if told else {}
            self.fill(state, stage)
            if told:
                batch = difference(old, self.read(stage.name, state))
                changes[stage.name] = list(zip(batch.elements(), batch.weights or [], strict=True))

    def fill(self, state: State, stage: Stage) -> None:
        """Compute one stage from all that its feeder has."""
        feeder = stage.input.feeder
        assert not isinstance(feeder, Source)
        forget(state, stage.name)
        if isinstance(stage, TopStage):
            self._rank(state, stage)
            return
        alone = frozenset({stage.name})
        work = Work(self.pipeline, self.files, state, only=alone, fired=alone)
        slots = work.slots(work.level(feeder))
        rows: list[Row] = [
            (slots[feeder.name, part], FILL, feeder.name, part, b"")
            for part in range(feeder.partitioning.count)
        ]
        self.apply(state, run_rows(work, self.spark, rows, work.level(feeder)), {}, alone)

    def _rank(self, state: State, stage: TopStage) -> None:
        """Look through all partitions of a top-N's map."""
        feeder = stage.input.feeder
        assert isinstance(feeder, MapStage)
        work = self.work(state)
        slots = work.slots(work.level(feeder))
        rows: list[Row] = [
            (slots[feeder.name, part], RANK, feeder.name, part, stage.name.encode())
            for part in range(feeder.partitioning.count)
        ]
        made = run_rows(work, self.spark, rows, work.level(feeder))
        state.rankings[stage.name] = made.rankings.get(stage.name, {})

    def fire(self, state: State, changes: Changes) -> bool:
        """Fire what is due, each stage after the one that feeds it."""
        any_fired = False
        for stage in self.pipeline.stages:
            if not self._is_due(stage, state):
                continue
            any_fired = True
            state.waiting[stage.name] = 0
            state.fired[stage.name] = self._clock()
            match stage:
                case AggregateStage():
                    waits = state.hollow.pop(stage.name, None)
                    if waits is not None:
                        known = state.aggregates.get(stage.name)
                        state.aggregates[stage.name] = _combined(stage, known, waits)
                case TopStage():
                    self._rank(state, stage)
                case MapStage():
                    work = self.work(state, fired=frozenset({stage.name}))
                    slots = work.slots(work.level(stage))
                    rows = [
                        (slots[stage.name, part], HOLLOW, stage.name, part, self.files.read(path))
                        for part, path in state.pending.pop(stage.name, [])
                    ]
                    made = run_rows(work, self.spark, rows, work.level(stage))
                    self.apply(state, made, changes, frozenset({stage.name}))
                case SetStage():
                    pass
        return any_fired

    def _is_due(self, stage: Stage, state: State) -> bool:
        count = state.waiting.get(stage.name, 0)
        if not count:
            return False
        match stage.trigger:
            case Every(seconds):
                now, fired = self._clock(), state.fired.get(stage.name, 0.0)
                # A clock that was set back must not stop a stage.
                return now >= fired + seconds or now < fired
            case When(condition):
                return bool(condition(Waiting(count, lambda: self.waiting(stage, state))))
            case _:
                return False

    def waiting(self, stage: Stage, state: State) -> Any:
        """The value of what waits for a stage; of a top-N how much."""
        match stage:
            case AggregateStage():
                return value_of(stage, tuple(state.hollow.get(stage.name, (0, None))))
            case MapStage():
                parts: dict[int, list[Any]] = {}
                for part, path in state.pending.get(stage.name, []):
                    parts.setdefault(part, []).append((path, 0))
                return _shown(stage, self.files, parts)
            case TopStage():
                return state.waiting.get(stage.name, 0)
            case SetStage():
                raise DataError(f"nothing ever waits for a set such as {stage.name}", value=stage.name)

    def read(self, name: str, state: State) -> Any:
        """The value of a stage in a state."""
        stage = self.pipeline.stage(name)
        match stage:
            case AggregateStage():
                return value_of(stage, tuple(state.aggregates.get(name, (0, None))))
            case TopStage():
                return merged([r for _, r in sorted(state.rankings.get(name, {}).items())], stage.n)
            case MapStage():
                return _shown(stage, self.files, state.runs.get(name, {}))
            case SetStage():
                work = self.work(state)
                parts = [set_part(work, stage, part) for part in range(stage.partitioning.count)]
                return [e for part in parts for batch in part.contents() for e in batch.elements()]


def forget(state: State, name: str) -> None:
    """Take all that a stage has out of a state."""
    for held in (state.runs, state.aggregates, state.rankings, state.hollow, state.pending):
        held.pop(name, None)
    state.waiting.pop(name, None)
    state.forms.pop(name, None)


def _combined(stage: AggregateStage, known: Any, more: Any) -> list[Any]:
    if known is None:
        return list(more)
    if stage.value is None and isinstance(stage.aggregate, Count):
        return [known[0] + more[0], None]
    parts = [part for part in (known[1], more[1]) if part is not None]
    both = parts[0] if len(parts) == 1 else stage.aggregate.combine(*parts) if parts else None
    return [known[0] + more[0], both]


def _shown(stage: MapStage, files: Files, parts: Mapping[int, list[Any]]) -> dict[Any, Any]:
    """Key → value, in the order of the keys; of a key that is in several partitions all parts together."""
    found: dict[Any, tuple[int, Any]] = {}
    for part, runs in sorted(parts.items()):
        state = State(runs={stage.name: {part: runs}})
        opened = map_part(Work(Pipeline(stage), files, state), stage, part)
        opened.keep()
        for key, (count, contribution) in opened.contributions().items():
            if key in found:
                old = found[key]
                both = None if contribution is None else stage.inner.combine(old[1], contribution)
                found[key] = old[0] + count, both
            else:
                found[key] = count, contribution
    value = stage.inner.value
    return {
        load_key(key): count if contribution is None else value(contribution)
        for key, (count, contribution) in sorted(found.items(), key=lambda item: stored_order(item[0]))
    }
