"""A pipeline on Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from everview.algebra import checks
from everview.algebra.lattices.dot_set import DotSet
from everview.errors import DataError, StoreError
from everview.hub.files import Files, open_files
from everview.hub.lease import hold
from everview.hub.session import hub_session
from everview.streams.pipelines import subscribing
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Update
from everview.streams.pipelines.delta import StageDelta
from everview.streams.pipelines.description import AggregateStage, MapStage, SetStage, Source, Stage, TopStage
from everview.streams.pipelines.encoding import decode
from everview.streams.pipelines.partitioning import checked_part
from everview.streams.pipelines.pipeline import Pipeline, signature
from everview.streams.pipelines.spark.driver import Changes, Driver, forget
from everview.streams.pipelines.spark.job import Outcome, form_of, run_rows, take_in, take_in_files
from everview.streams.pipelines.spark.json_files import new_files
from everview.streams.pipelines.spark.maps import packed
from everview.streams.pipelines.spark.record import State, commit, latest, sweep
from everview.streams.pipelines.spark.work import ELEMENTS, HOLLOW
from everview.streams.pipelines.subscribing import Callback, Subscription, Subscriptions

__all__ = ["HubPipeline", "open_hub"]


class HubPipeline:
    """A pipeline whose partitions are tasks of Spark; `open_hub` opens it.

    A batch is in with its record, which has how far its producer is, or not at all. One driver has it open.
    """

    def __init__(
        self, files: Files, spark: SparkSession | None, pipeline: Pipeline, clock: Callable[[], float]
    ) -> None:
        self._files = files
        self._clock = clock
        self._turn = threading.RLock()
        self._closed = False
        self._lease = hold(files)
        try:
            self.spark = hub_session(spark, files.hadoop())
            self.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")
            self._state = latest(files)
            sweep(files, opening=True)
            self._subscriptions = Subscriptions(lambda _: None)
            self._driver = Driver(files, self.spark, clock, lambda: self._subscriptions.stages)
            self._attach(pipeline, whole=True)
        except BaseException:
            self._lease.give_up()
            raise

    @property
    def pipeline(self) -> Pipeline:
        """What it computes."""
        return self._driver.pipeline

    # Taking in

    def push(
        self,
        source: str,
        events: DataFrame | Iterable[Any],
        *,
        producer: str | None = None,
        number: int | None = None,
    ) -> bool:
        """Take in the rows of a DataFrame, or some events, in one commit; return whether they were new.

        Events, any plain values, are worked on by the driver, and by Spark once there are many. A row is an
        element, a dict by column. What a hub's stream of changes has in `_weight` is how often it comes,
        below 0 that it goes.

        A producer that numbers its batches, in growing order, may push again what it does not know to have
        arrived: a number that is not above its last one is not taken in again.
        """
        if (producer is None) != (number is None):
            raise DataError("name a producer and a number, or neither: together they say what came before")
        self._source(source)
        with self._turn:
            self._require_open()
            state = self._state.copy()
            if producer is not None:
                known = state.offsets.setdefault(source, {})
                checked = checks.positive(number, "a batch's number")
                if checked <= known.get(checks.name(producer, "a producer"), 0):
                    return False
                known[producer] = checked
            self._take(state, source, events)
        return True

    def read_json_files(
        self,
        source: str,
        folder: str | Path,
        schema: str,
        *,
        most: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> int:
        """Take in the files of a folder that have not been, `most` of them a commit; how many there were.

        They have a JSON object a line, of which the columns of `schema` are taken, and are whole when they
        appear; files whose names begin with `_` or a dot are passed over. A record names all files that are
        in, so remove the old ones' folder and begin another before there are a hundred thousand. `options`
        are those of an object store in which they are.
        """
        self._source(source)
        files = open_files(folder, options)
        columns = StructType.fromDDL(schema)
        assert isinstance(columns, StructType)
        taken = 0
        while True:
            with self._turn:
                self._require_open()
                state = self._state.copy()
                known = state.files.setdefault(f"{source} {files.uri('')}", [])
                chosen = new_files(files, {*known}, most)
                if not chosen:
                    return taken
                known += [path for path, _ in chosen]
                self._form(state, source, columns)
                work = self._driver.work(state)
                outcome = take_in_files(work, source, self.spark, files, chosen, columns)
                self._driver.large = self._driver.large or outcome.is_large
                self._finish(state, outcome)
            taken += len(chosen)

    def _take(self, state: State, source: str, events: DataFrame | Iterable[Any]) -> None:
        self._form(state, source, events.schema if isinstance(events, DataFrame) else None)
        work = self._driver.work(state)
        if isinstance(events, DataFrame):
            outcome = take_in(work, source, events)
        else:
            outcome = run_rows(work, self.spark, work.feed(source, Batch(list(events))), 1)
        self._driver.large = self._driver.large or outcome.is_large
        self._finish(state, outcome)

    def _form(self, state: State, source: str, columns: StructType | None) -> None:
        """Say how sets that a source feeds keep their elements, and refuse what does not go with that."""
        for stage in self.pipeline.fed_by(source):
            if isinstance(stage, SetStage):
                form = ELEMENTS if columns is None else form_of(self._driver.work(state), stage, columns)
                known = state.forms.setdefault(stage.name, form)
                if known not in (form, ELEMENTS):
                    raise DataError(
                        f"the set {stage.name} has the rows of a DataFrame, {known}: push DataFrames of the "
                        "same columns and types"
                    )

    def run(
        self, source: str, stream: DataFrame, *, checkpoint: str | Path, trigger: str | None = None
    ) -> StreamingQuery:
        """Take in what a streaming DataFrame brings, batch by batch, each once, until the query is stopped.

        `trigger` is how often to look, such as "1 second"; by default as soon as possible. A stream is known
        by the id that is in its checkpoint: with a new one Spark begins anew, and all that it reads again
        comes in again.
        """
        self._source(source)
        place = str(checkpoint)

        def batch(frame: DataFrame, number: int) -> None:
            stream_id = msgspec.json.decode(open_files(place).read("metadata"))["id"]
            self.push(source, frame, producer=f"stream-{stream_id}", number=number + 1)

        sink = stream.writeStream.foreachBatch(batch).option("checkpointLocation", place)
        return (sink if trigger is None else sink.trigger(processingTime=trigger)).start()

    def tick(self) -> None:
        """Fire the triggers that are due."""
        with self._turn:
            self._require_open()
            state = self._state.copy()
            if self._driver.fire(state, {}):
                self._finish(state, Outcome())

    # Showing

    def read(self, stage: str) -> Any:
        """Return a stage's value as of the last commit, as on a device; a large set or map comes whole."""
        self.pipeline.stage(stage)
        return self._driver.read(stage, self._state)

    def waiting(self, stage: str) -> Any:
        """Return the value of what was gathered for a stage and is not in it yet; of a top-N how much."""
        return self._driver.waiting(self.pipeline.stage(stage), self._state)

    def subscribe(self, stage: str, callback: Callback) -> Subscription:
        """Call `callback(update)` after each commit that changes a stage, in the committing thread."""
        self.pipeline.stage(stage)
        return self._subscriptions.add(stage, callback)

    def updates(self, stage: str) -> AsyncIterator[Update]:
        """Yield the stage as it is, then an update for each change; a slow reader gets several in one."""
        self.pipeline.stage(stage)
        return subscribing.updates(
            lambda callback: self.subscribe(stage, callback), lambda: self._update(stage, self._state, [])
        )

    # Other computations, other devices

    def attach(self, *stages: Stage) -> None:
        """Take up more computations; they are filled from the stages that feed them, in one commit."""
        with self._turn:
            self._require_open()
            self._attach(self.pipeline.with_stages(*stages), whole=False)

    def merge(self, delta: StageDelta) -> bool:
        """Take in a delta of a device's hollow replica; return whether it was new."""
        stage = self.pipeline.stage(delta.stage)
        if not isinstance(stage, MapStage | AggregateStage):
            raise DataError(f"no delta can be merged into {stage.name}: it is no map and no aggregate")
        with self._turn:
            self._require_open()
            state = self._state.copy()
            runs = state.dots.setdefault(stage.name, {})
            known = DotSet.from_runs({delta.source: [tuple(run) for run in runs.get(delta.source, [])]})
            if (delta.source, delta.number) in known:
                return False
            both = known | DotSet([(delta.source, delta.number)])
            runs[delta.source] = [list(run) for run in both.runs[delta.source]]
            self._finish(state, self._merged(state, stage, delta.body))
        return True

    def _merged(self, state: State, stage: MapStage | AggregateStage, body: bytes) -> Outcome:
        found = decode(body)
        if isinstance(stage, AggregateStage):
            return Outcome(contributions={stage.name: [found]}, waiting={stage.name: max(1, abs(found[0]))})
        work = self._driver.work(state)
        slots = work.slots(work.level(stage))
        parts: dict[int, list[Any]] = {}
        for given, key, count, contribution in found:
            part = checked_part(stage.partitioning, given, key)
            parts.setdefault(part, []).append((key, (count, contribution)))
        if work.is_deferred(stage):
            pending = [(stage.name, part, packed(entries)) for part, entries in parts.items()]
            return Outcome(pending=pending, waiting={stage.name: len(found)})
        rows = [(slots[stage.name, p], HOLLOW, stage.name, p, packed(e)) for p, e in parts.items()]
        return run_rows(work, self.spark, rows, work.level(stage))

    # Life

    def close(self) -> None:
        """Give it up; the Spark session goes on, for others may use it."""
        with self._turn:
            if not self._closed:
                self._closed = True
                self._lease.give_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Inside

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("this pipeline has been closed; open it again")
        self._lease.check()

    def _source(self, name: str) -> None:
        if name not in self.pipeline.sources:
            known = ", ".join(self.pipeline.sources) or "none"
            raise DataError(f"there is no source {name!r}, only {known}", value=name)

    def _finish(self, state: State, outcome: Outcome) -> None:
        """Put what a job made into the state, fire what is due, commit, and tell."""
        before = self._state
        changes: Changes = {}
        self._driver.apply(state, outcome, changes)
        self._driver.fire(state, changes)
        commit(self._files, state)
        self._state = state
        if state.number % 10 == 0:
            sweep(self._files)
        self._subscriptions.tell(self._told(before, state, changes))

    def _told(
        self, before: State, state: State, changes: Mapping[str, list[tuple[Any, int]]]
    ) -> list[Update]:
        updates = []
        for name in self.pipeline.by_name:
            if name not in self._subscriptions.stages:
                continue
            stage = self.pipeline.stage(name)
            if isinstance(stage, SetStage | MapStage):
                if changes.get(name):
                    updates.append(Update(name, state.number, None, changes[name]))
                continue
            old, new = self._driver.read(name, before), self._driver.read(name, state)
            if old != new:
                entries = ([*old], [*new]) if isinstance(stage, TopStage) else ([old], [new])
                gone = [(entry, -1) for entry in entries[0] if entry not in entries[1]]
                come = [(entry, 1) for entry in entries[1] if entry not in entries[0]]
                updates.append(Update(name, state.number, new, [*gone, *come]))
        return updates

    def _update(self, name: str, state: State, changes: list[tuple[Any, int]]) -> Update:
        large = isinstance(self.pipeline.stage(name), SetStage | MapStage)
        return Update(name, state.number, None if large else self._driver.read(name, state), changes)

    def _attach(self, pipeline: Pipeline, *, whole: bool) -> None:
        state = self._state.copy()
        for stage in pipeline.stages:
            known = state.signatures.get(stage.name)
            if known is not None and known != signature(stage):
                raise StoreError(
                    f"{stage.name} is kept as {known}, and it is now {signature(stage)}: give the new stage "
                    "another name, or begin a new folder"
                )
        if whole:
            for name in state.signatures.keys() - pipeline.by_name.keys():
                forget(state, name)
                state.dots.pop(name, None)
                state.fired.pop(name, None)
                del state.signatures[name]
        fresh = [stage for stage in pipeline.stages if stage.name not in state.signatures]
        before, self._driver.pipeline = self._driver.pipeline, pipeline
        try:
            now = self._clock()
            state.signatures.update({stage.name: signature(stage) for stage in fresh})
            state.fired.update({stage.name: now for stage in fresh})
            for stage in fresh:
                if not isinstance(stage.input.feeder, Source):
                    self._driver.fill(state, stage)
            if state.signatures != self._state.signatures:
                commit(self._files, state)
                self._state = state
        except BaseException:
            self._driver.pipeline = before
            raise


def open_hub(
    uri: str | Path,
    pipeline: Pipeline,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
) -> HubPipeline:
    """Open a pipeline on Spark, at a folder or URI, or create it; `spark` None starts a local session.

    Stages that it does not have yet are filled from those that feed them; stages that the pipeline no longer
    has are removed. `options` are those of an object store. StoreError when another driver has it open.
    """
    return HubPipeline(open_files(uri, options), spark, pipeline, clock)
