"""A pipeline on a device."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from everview.algebra import checks
from everview.algebra.lattices.dot_set import DotSet
from everview.errors import DataError
from everview.streams.pipelines import subscribing
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Change, Update
from everview.streams.pipelines.delta import StageDelta
from everview.streams.pipelines.description import SetStage, Stage
from everview.streams.pipelines.device.aggregates import AggregateState
from everview.streams.pipelines.device.cascade import Cascade
from everview.streams.pipelines.device.following import Following, Watched
from everview.streams.pipelines.device.json_lines import lines_for
from everview.streams.pipelines.device.maps import MapState
from everview.streams.pipelines.device.running import Running
from everview.streams.pipelines.device.sets import CHUNK, SetState
from everview.streams.pipelines.device.store import Store
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.pipeline import Pipeline
from everview.streams.pipelines.subscribing import Callback, Subscription, Subscriptions

__all__ = ["DevicePipeline", "open_device"]

_FILE = "file:"


class DevicePipeline:
    """A pipeline whose state is one SQLite file; `open_device` opens it.

    What is taken in, what it changes in every stage, and how far its source is read are one commit: after a
    crash it is there whole or not at all, and the source is read on from there.
    """

    def __init__(
        self,
        path: str,
        pipeline: Pipeline,
        *,
        hollow: bool,
        owns: Mapping[str, Iterable[int]] | None,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._hollow = hollow
        self._followed: list[Following] = []
        owned = _checked(pipeline, owns or {})
        self._store = Store(path)
        try:
            self._cascade = Cascade(self._store, self._contents, hollow=hollow, owns=owned)
            with self._store.transaction():
                self._cascade.attach(pipeline, clock(), whole=True)
        except BaseException:
            self._store.close()
            raise
        self._subscriptions = Subscriptions(self._want)

    @property
    def pipeline(self) -> Pipeline:
        """What it computes."""
        return self._cascade.pipeline

    # Taking in

    def push(
        self, source: str, events: Iterable[Any], *, producer: str | None = None, number: int | None = None
    ) -> bool:
        """Take in events, in one commit; return whether they were new.

        A producer that numbers what it pushes, in growing order, may push again what it does not know to have
        arrived: a number that is not above its last one is not taken in again.
        """
        if (producer is None) != (number is None):
            raise DataError("name a producer and a number, or neither: together they say what came before")
        self._source(source)
        batch = Batch(list(events))
        if producer is None:
            return self._commit(source, batch)
        checks.name(producer, "a producer")
        if producer.startswith(_FILE):
            raise DataError(f"a producer's name does not begin with {_FILE}", value=producer)
        return self._commit(source, batch, producer, checks.positive(number, "a push's number"))

    def read_json_lines(self, source: str, path: str | os.PathLike[str]) -> int:
        """Take in the lines of a file from where the last commit ended, piece by piece; how many bytes.

        A last line that has no end yet is left for the next time.
        """
        self._source(source)
        file = Path(path).absolute()
        producer = f"{_FILE}{file}"
        start = self._position(source, producer)
        taken = 0
        for batch, end in lines_for(self._fed(source)).batches(file, start):
            self._commit(source, batch, producer, end)
            taken = end - start
        return taken

    def follow(self, site: Watched, name: str, *, source: str | None = None) -> Following:
        """Take in the rows of a site's relation or view, and each change of them, until that is cancelled.

        Rows come in as dicts by column name. What changed while nobody followed is taken in at once.
        """
        given = source or name
        self._source(given)
        following = Following(site, name, lambda elements, weights: self._follow(given, elements, weights))
        self._followed.append(following)
        return following

    def _follow(self, source: str, elements: Iterable[Any], weights: list[int] | None) -> None:
        with self._store.transaction() as run:
            wanted: dict[bytes, int] = {}
            if weights is None:
                known = "SELECT element, -w FROM consumed WHERE source = ?"
                wanted.update(run.execute(known, (source,)).fetchall())
                weights = [1] * len(elements := list(elements))
            given: dict[bytes, Any] = {}
            for element, weight in zip(elements, weights, strict=True):
                packed = encode(element)
                given[packed] = element
                wanted[packed] = wanted.get(packed, 0) + weight
            news = {packed: weight for packed, weight in wanted.items() if weight}
            if not news:
                return
            run.executemany(
                "INSERT INTO consumed VALUES (?, ?, ?) "
                "ON CONFLICT (source, element) DO UPDATE SET w = w + excluded.w",
                [(source, packed, weight) for packed, weight in news.items()],
            )
            gone = [(source, packed) for packed, weight in news.items() if weight < 0]
            run.executemany("DELETE FROM consumed WHERE source = ? AND element = ? AND w = 0", gone)
            batch = Batch([given[p] if p in given else decode(p) for p in news], weights=[*news.values()])
            told = self._taken(source, batch)
        self._subscriptions.tell(told)

    def tick(self) -> None:
        """Fire the triggers that are due."""
        with self._store.transaction():
            told = self._after(self._cascade.run({}, self._clock()))
        self._subscriptions.tell(told)

    def run(
        self, files: Mapping[str, str | os.PathLike[str]] | None = None, *, seconds: float = 0.2
    ) -> Running:
        """Look, in a thread of its own, every so often at files of JSON lines that grow, and at triggers."""
        return Running(self.read_json_lines, self.tick, dict(files or {}), seconds)

    def _commit(self, source: str, batch: Batch, producer: str | None = None, position: int = 0) -> bool:
        with self._store.transaction() as run:
            if producer is not None:
                if position <= self._position(source, producer):
                    return False
                run.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", (source, producer, position))
            told = self._taken(source, batch)
        self._subscriptions.tell(told)
        return True

    def _taken(self, source: str, batch: Batch) -> list[Update]:
        changed = {source: Change(batch)} if len(batch) else {}
        return self._after(self._cascade.run(changed, self._clock()))

    def _after(self, changed: Mapping[str, Change]) -> list[Update]:
        """Number the commit, and say what subscribers are to be told of it."""
        here = {name: change for name, change in changed.items() if name in self._cascade.states}
        if not changed:
            return []
        run = self._store.connection
        run.execute("UPDATE pipeline SET commits = commits + 1")
        names = self._subscriptions.stages & here.keys()
        return [self._update(name, here[name]) for name in self.pipeline.by_name if name in names]

    def _update(self, name: str, change: Change | None) -> Update:
        (commit,) = self._store.connection.execute("SELECT commits FROM pipeline").fetchone()
        state = self._cascade.states[name]
        value = None if isinstance(state, SetState | MapState) else state.read()
        batch = change.batch if change is not None else None
        if batch is None:
            return Update(name, commit, value)
        weights = batch.weights or [1] * len(batch)
        return Update(name, commit, value, list(zip(batch.elements(), weights, strict=True)))

    # Showing

    def read(self, stage: str) -> Any:
        """Return a stage's value as of the last commit.

        That is a list of a set's elements, a dict of a map, an aggregate's value, and a ranking of a top-N.
        """
        with self._store.locked(), self._store.explained("read"):
            return self._state(stage).read()

    def waiting(self, stage: str) -> Any:
        """Return the value of what was gathered for a stage and is not in it yet."""
        with self._store.locked(), self._store.explained("read"):
            state = self._state(stage)
            if isinstance(state, SetState):
                raise DataError(f"nothing ever waits for a set such as {stage}", value=stage)
            return state.read_waiting()

    def subscribe(self, stage: str, callback: Callback) -> Subscription:
        """Call `callback(update)` after each commit that changes a stage, in the committing thread."""
        self._state(stage)
        return self._subscriptions.add(stage, callback)

    def updates(self, stage: str) -> AsyncIterator[Update]:
        """Yield the stage as it is, then an update for each change; a slow reader gets several in one."""
        self._state(stage)
        return subscribing.updates(
            lambda callback: self.subscribe(stage, callback), lambda: self._present(stage)
        )

    def _present(self, stage: str) -> Update:
        with self._store.locked():
            return self._update(stage, None)

    # Other computations, other devices

    def attach(self, *stages: Stage) -> None:
        """Take up more computations; they are filled from the stages that feed them, in one commit."""
        pipeline = self.pipeline.with_stages(*stages)
        with self._store.transaction():
            self._cascade.attach(pipeline, self._clock(), whole=False)
        self._want(self._subscriptions.stages)

    def deltas(self) -> list[StageDelta]:
        """Close what a hollow replica has gathered under the next dots; return all not acknowledged."""
        if not self._hollow:
            raise DataError("only a hollow replica sends deltas: open it with hollow=True")
        with self._store.transaction() as run:
            for name, state in self._cascade.states.items():
                (waiting, sent) = run.execute(
                    "SELECT waiting, sent FROM stages WHERE name = ?", (name,)
                ).fetchone()
                if waiting and isinstance(state, MapState | AggregateState):
                    body = state.body(state.flush())  # type: ignore[arg-type]
                    run.execute("INSERT INTO outbox VALUES (?, ?, ?)", (name, sent + 1, body))
                    run.execute("UPDATE stages SET waiting = 0, sent = sent + 1 WHERE name = ?", (name,))
            source = self._store.incarnation
            found = run.execute("SELECT stage, number, body FROM outbox ORDER BY stage, number").fetchall()
        return [StageDelta(stage, source, number, body) for stage, number, body in found]

    def acknowledge(self, delta: StageDelta) -> None:
        """Forget a delta that whoever keeps the stage has committed."""
        with self._store.transaction() as run:
            if delta.source == self._store.incarnation:
                run.execute("DELETE FROM outbox WHERE stage = ? AND number = ?", (delta.stage, delta.number))

    def merge(self, delta: StageDelta) -> bool:
        """Take in a delta of a hollow replica; return whether it was new. Twice or late, it counts once."""
        if self._hollow:
            raise DataError("a hollow replica takes in no deltas: send them to the one that keeps the stage")
        self._state(delta.stage)
        with self._store.transaction() as run:
            where = "FROM dots WHERE stage = ? AND source = ?"
            found = run.execute(f"SELECT runs {where}", (delta.stage, delta.source)).fetchone()
            known = DotSet.from_runs({delta.source: [tuple(r) for r in decode(found[0])]} if found else {})
            if (delta.source, delta.number) in known:
                return False
            runs = (known | DotSet([(delta.source, delta.number)])).runs[delta.source]
            packed = encode([list(r) for r in runs])
            run.execute("INSERT OR REPLACE INTO dots VALUES (?, ?, ?)", (delta.stage, delta.source, packed))
            told = self._after(self._cascade.merge(delta.stage, delta.body, self._clock()))
        self._subscriptions.tell(told)
        return True

    # Life

    def close(self) -> None:
        """Close the file; nothing needs saving."""
        for following in self._followed:
            following.cancel()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Inside

    def _want(self, stages: set[str]) -> None:
        with self._store.locked():
            self._cascade.want(stages)

    def _state(self, name: str) -> Any:
        self.pipeline.stage(name)
        if name not in self._cascade.states:
            raise DataError(
                f"{name} is not kept here: this is a hollow replica, and others merge", value=name
            )
        return self._cascade.states[name]

    def _source(self, name: str) -> None:
        if name not in self.pipeline.sources:
            known = ", ".join(self.pipeline.sources) or "none"
            raise DataError(f"there is no source {name!r}, only {known}", value=name)

    def _fed(self, source: str) -> tuple[Stage, ...]:
        return tuple(s for s in self.pipeline.fed_by(source) if s.name in self._cascade.states)

    def _position(self, source: str, producer: str) -> int:
        with self._store.locked() as run:
            where = "FROM offsets WHERE source = ? AND producer = ?"
            found = run.execute(f"SELECT position {where}", (source, producer)).fetchone()
        return int(found[0]) if found else 0

    def _contents(self, source: str) -> Iterator[Batch]:
        """What a source has given, as far as that is known: rows that are followed, files that were read."""
        run = self._store.connection
        found = run.execute("SELECT element, w FROM consumed WHERE source = ?", (source,)).fetchall()
        for start in range(0, len(found), CHUNK):
            rows = found[start : start + CHUNK]
            yield Batch([decode(element) for element, _ in rows], weights=[weight for _, weight in rows])
        read = run.execute("SELECT producer, position FROM offsets WHERE source = ?", (source,)).fetchall()
        for producer, position in read:
            if producer.startswith(_FILE):
                lines = lines_for(self.pipeline.fed_by(source))
                for batch, _ in lines.batches(Path(producer.removeprefix(_FILE)), 0, position):
                    yield batch


def open_device(
    path: str | os.PathLike[str],
    pipeline: Pipeline,
    *,
    hollow: bool = False,
    owns: Mapping[str, Iterable[int]] | None = None,
    clock: Callable[[], float] = time.time,
) -> DevicePipeline:
    """Open a pipeline whose state is an SQLite file, or create it; ":memory:" keeps it in memory.

    Stages that the file does not have yet are filled from those that feed them; stages that the pipeline no
    longer has are removed. A `hollow` replica gathers what it contributes to maps and aggregates, and gives
    it away as `deltas()`. `owns` says which partitions of a set are kept here; other elements are passed
    over.
    """
    return DevicePipeline(os.fsdecode(path), pipeline, hollow=hollow, owns=owns, clock=clock)


def _checked(pipeline: Pipeline, owns: Mapping[str, Iterable[int]]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for name, parts in owns.items():
        stage = pipeline.stage(name)
        if not isinstance(stage, SetStage):
            raise DataError(f"{name} is no set: only a set's partitions are kept apart", value=name)
        found[name] = frozenset(parts)
        if not found[name] <= frozenset(range(stage.partitioning.count)):
            raise DataError(
                f"{name} has the partitions 0 to {stage.partitioning.count - 1}, not {sorted(found[name])}",
                value=sorted(found[name]),
            )
    return found
