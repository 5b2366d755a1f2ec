"""Cascade: changes go through the stages in their order, all within one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from everview.algebra.crdt.aggregate import Aggregate
from everview.errors import DataError, ProgramError, StoreError
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Change
from everview.streams.pipelines.description import (
    AggregateStage,
    MapStage,
    SetStage,
    Source,
    Stage,
    TopStage,
)
from everview.streams.pipelines.device.aggregates import AggregateState
from everview.streams.pipelines.device.maps import MapState
from everview.streams.pipelines.device.sets import SetState
from everview.streams.pipelines.device.store import Store
from everview.streams.pipelines.device.tops import TopState
from everview.streams.pipelines.hollow import NotInvertibleError, is_invertible
from everview.streams.pipelines.pipeline import Pipeline, signature
from everview.streams.pipelines.triggers import Every, OnNewData, Waiting, When

State = SetState | MapState | AggregateState | TopState
Contents = Callable[[str], Iterator[Batch]]
"""Gives again what a source has given, where that is known."""


class Cascade:
    """The states of a pipeline's stages; all methods are called within a transaction."""

    def __init__(
        self, store: Store, contents: Contents, *, hollow: bool, owns: Mapping[str, frozenset[int]]
    ) -> None:
        self._store = store
        self._contents = contents
        self._hollow = hollow
        self._owns = owns
        self.pipeline = Pipeline()
        self.states: dict[str, State] = {}

    # Which stages there are

    def attach(self, pipeline: Pipeline, now: float, *, whole: bool) -> None:
        """Take up a pipeline: new stages are filled from what feeds them; those that are gone are removed.

        Not `whole`: stages that the file has and the pipeline lacks are an error, not removed.
        """
        run = self._store.connection
        known = dict(run.execute("SELECT name, signature FROM stages").fetchall())
        stages = self._here(pipeline)
        for stage in stages:
            if stage.name in known and known[stage.name] != signature(stage):
                raise StoreError(
                    f"{self._store.path} keeps {stage.name} as {known[stage.name]}, and it is now "
                    f"{signature(stage)}: give the new stage another name, or begin a new file",
                    path=self._store.path,
                )
        if whole:
            for name in known.keys() - {stage.name for stage in stages}:
                self._remove(name)
        fresh: dict[str, State] = {}
        for stage in stages:
            if stage.name in self.states:
                continue
            state = self._state(stage, fresh)
            fresh[stage.name] = state
            state.prepare()
        before = self.pipeline, self.states
        self.pipeline, self.states = pipeline, {**self.states, **fresh}
        try:
            for name, state in fresh.items():
                if name not in known:
                    state.create()
                    run.execute(
                        "INSERT INTO stages VALUES (?, ?, 0, ?, 0)", (name, signature(state.stage), now)
                    )
                    self._fill(state)
        except BaseException:
            self.pipeline, self.states = before
            raise
        self.want(set())

    def _here(self, pipeline: Pipeline) -> tuple[Stage, ...]:
        """The stages that are computed here: on a hollow replica, up to where partitions are merged."""
        if not self._hollow:
            return pipeline.stages
        found = [s for s in pipeline.stages if not isinstance(s.input.feeder, MapStage)]
        for stage in found:
            aggregate = _aggregate_of(stage)
            if (
                isinstance(stage.input.feeder, SetStage)
                and aggregate is not None
                and not is_invertible(aggregate)
            ):
                raise ProgramError(
                    f"{stage.name} cannot be hollow: when the set {stage.input.feeder.name} replaces an "
                    f"element, nothing can be taken out of {type(aggregate).__name__} that was sent already",
                    hint="keep it on a device that is not hollow",
                )
        return tuple(found)

    def _state(self, stage: Stage, fresh: Mapping[str, State]) -> State:
        run = self._store.connection
        deferred = self._hollow or not isinstance(stage.trigger, OnNewData)
        match stage:
            case SetStage():
                return SetState(stage, run, self._owns.get(stage.name))
            case MapStage():
                return MapState(stage, run, deferred=deferred)
            case AggregateStage():
                return AggregateState(stage, run, deferred=deferred)
            case TopStage():
                name = stage.input.feeder.name
                ranked = fresh.get(name) or self.states[name]
                assert isinstance(ranked, MapState)
                return TopState(stage, run, ranked, deferred=deferred)

    def _remove(self, name: str) -> None:
        run = self._store.connection
        for kind in ("set", "map", "hollow", "top", "dirty"):
            run.execute(f"DROP TABLE IF EXISTS {kind}_{name}")
        for table, column in (
            ("aggregates", "stage"),
            ("dots", "stage"),
            ("outbox", "stage"),
            ("stages", "name"),
        ):
            run.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))

    def want(self, subscribed: set[str]) -> None:
        """Say of which maps the pairs that change are asked for, beside those that feed other stages."""
        for name, state in self.states.items():
            if isinstance(state, MapState):
                fed = self.pipeline.fed_by(name)
                state.wanted = name in subscribed or any(not isinstance(stage, TopStage) for stage in fed)

    # Changes

    def run(self, changed: dict[str, Change], now: float) -> dict[str, Change]:
        """Carry changes of sources or stages through all stages below, and fire the triggers that are due."""
        for name, state in self.states.items():
            incoming = changed.get(state.stage.input.feeder.name)
            outcome = self._received(state, incoming) if incoming is not None else None
            if outcome is None and not isinstance(state, SetState) and self._is_due(state, now):
                outcome = state.fire()
                self._note(name, waiting=0, fired=now)
            if outcome is not None:
                changed[name] = outcome
        return changed

    def _received(self, state: State, incoming: Change) -> Change | None:
        try:
            if isinstance(state, SetState) or not state.deferred:
                return state.take(incoming)
            more = state.gather(incoming)
        except NotInvertibleError:
            return self._fill(state)
        self._store.connection.execute(
            "UPDATE stages SET waiting = waiting + ? WHERE name = ?", (more, state.stage.name)
        )
        return None

    def _fill(self, state: State) -> Change | None:
        """Compute a stage from all that feeds it: it is new, or something cannot be taken out of it."""
        feeder = state.stage.input.feeder
        if isinstance(feeder, Source):
            batches = self._contents(feeder.name)
        else:
            fed_by = self.states[feeder.name]
            assert isinstance(fed_by, SetState | MapState)
            batches = fed_by.contents()
        if isinstance(state, SetState):
            for batch in batches:
                state.take(Change(batch))
            return None
        self._note(state.stage.name, waiting=0)
        return state.refill(batches)

    def merge(self, name: str, body: bytes, now: float) -> dict[str, Change]:
        """Take in a delta of another's hollow replica."""
        state = self.states.get(name)
        if not isinstance(state, MapState | AggregateState):
            raise DataError(f"no delta can be merged into {name}: it is no map and no aggregate", value=name)
        rows = state.rows_from(body)
        changed: dict[str, Change] = {}
        if state.deferred:
            more = state.gather_rows(rows)  # type: ignore[arg-type]
            self._store.connection.execute(
                "UPDATE stages SET waiting = waiting + ? WHERE name = ?", (more, name)
            )
        else:
            outcome = state.merge(rows)  # type: ignore[arg-type]
            if outcome is not None:
                changed[name] = outcome
        return self.run(changed, now)

    def _is_due(self, state: MapState | AggregateState | TopState, now: float) -> bool:
        if not state.deferred or self._hollow:
            return False
        waiting, fired = self._store.connection.execute(
            "SELECT waiting, fired FROM stages WHERE name = ?", (state.stage.name,)
        ).fetchone()
        if not waiting:
            return False
        match state.stage.trigger:
            case Every(seconds):
                # A clock that was set back must not stop a stage.
                return bool(now >= fired + seconds or now < fired)
            case When(condition):
                return bool(condition(Waiting(waiting, state.read_waiting)))
            case _:
                return True

    def _note(self, name: str, *, waiting: int, fired: float | None = None) -> None:
        run = self._store.connection
        run.execute(
            "UPDATE stages SET waiting = ?, fired = coalesce(?, fired) WHERE name = ?", (waiting, fired, name)
        )


def _aggregate_of(stage: Stage) -> Aggregate[Any, Any] | None:
    match stage:
        case MapStage():
            return stage.inner
        case AggregateStage():
            return stage.aggregate
        case _:
            return None
