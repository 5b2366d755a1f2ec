"""The changes of a relation or view as `spark.readStream.format("everview")` gives them, refresh by refresh.

An offset says which refresh the stream has told last. It began before some refresh, or with a snapshot, which
is a change from nothing; from then on each step is from one refresh to the next. A step that is too large for
a batch is cut into ranges of hashes, so an offset may lie within one. It also has what Spark does not keep
elsewhere: where the stream began, since Spark asks for that again if the first batch has to be repeated, and
who it is (see `consumers`).
"""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from everview.errors import DataError, StoreError
from everview.hub import consumers
from everview.hub.changes import Difference, difference
from everview.hub.files import Files
from everview.hub.lookup import open_part, ranges
from everview.hub.reading import TASK_ROWS, batches, chosen_fields, shape_at, task_count

if TYPE_CHECKING:
    from everview.hub.history import History
    from everview.hub.record import Record
    from everview.hub.shapes import Shape

__all__ = ["ChangeReader"]

_LATEST, _EARLIEST = "latest", "earliest"


@dataclass(frozen=True, slots=True)
class Offset:
    """Everything up to `refresh` is told, and of the step after it the first `piece` of `of` ranges.

    The first step was, or will be, from `began` to `first`; `began` 0 is from nothing, `first` 0 is not known
    yet.
    """

    refresh: int
    began: int
    first: int
    consumer: str
    piece: int = 0
    of: int = 1

    @property
    def next(self) -> int:
        """The refresh that the next step is to."""
        return self.first if self.refresh == self.began else self.refresh + 1

    @property
    def needed(self) -> int:
        """The earliest refresh that has to be there for what follows."""
        return self.refresh or self.first


@dataclass(frozen=True, slots=True)
class _Step:
    """A part of the change that a refresh made."""

    commit: int
    change: Difference
    low: int
    high: int


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a relation or view."""

    def __init__(self, files: Files, name: str, options: Mapping[str, str], schema: st.StructType) -> None:
        self._files = files
        self._name = name
        self._from = options.get("startingRefresh", "")
        self._refreshes = _limit(options, "maxRefreshesPerTrigger")
        self._rows = _limit(options, "maxRowsPerTrigger")
        label = options.get("consumer", "stream")
        self._label = consumers.check_name(label) if label else ""
        self._history: History | None = None
        self._shape: Shape | None = shape_at(files, name, self._past().latest())
        self._fields = self._shape.fields
        self._chosen = chosen_fields(self._shape, schema)
        self._until: int | None = None
        self._signed_us = 0

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need."""
        return {**self.__dict__, "_history": None, "_shape": None}

    def _past(self) -> History:
        from everview.hub.history import History  # noqa: PLC0415  (a task does not need it, nor the codec)

        if self._history is None:
            self._history = History(self._files)
        return self._history

    # Where it is.  (The names are Spark's.)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the snapshot of a refresh that is not known yet, or after the refresh that is named."""
        consumer = f"{self._label}-{uuid.uuid4().hex[:12]}" if self._label else ""
        began = self._began()
        return _told(Offset(began, began, began + 1 if began or self._from == "1" else 0, consumer))

    def _began(self) -> int:
        if self._from in ("", _EARLIEST):
            return 0
        if self._from == _LATEST:
            return self._past().latest().refresh
        if not self._from.isdecimal() or self._from == "0":
            raise DataError(
                f"startingRefresh is {self._from!r}: give 'earliest', 'latest' or the number of a refresh",
                value=self._from,
            )
        began = int(self._from) - 1
        if began:
            self._past().at(began)
        return began

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Go no further than now."""
        self._until = self._past().latest().refresh

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options say; Spark may still ask for everything."""
        if self._rows is not None:
            return ReadMaxRows(self._rows)
        return ReadMaxFiles(self._refreshes) if self._refreshes is not None else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The last refresh."""
        return {"refresh": self._past().latest().refresh}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as the limits let it."""
        last = self._past().latest().refresh
        if self._until is not None:
            last = min(last, self._until)
        at = _read(start)
        if not at.first:
            first = self._past().earliest() if self._from == _EARLIEST else last
            if not first:
                return start
            at = replace(at, first=first)
        self._sign(at)
        found = self._advanced(at, last, unlimited=isinstance(limit, ReadAllAvailable))
        return start if found == _read(start) else _told(found)

    def _advanced(self, at: Offset, last: int, *, unlimited: bool) -> Offset:
        """The place after as many steps, or ranges of one, as the limits let it."""
        refreshes = math.inf if unlimited or self._refreshes is None else self._refreshes
        rows = math.inf if unlimited or self._rows is None else self._rows
        begun = False
        while refreshes > 0 and at.next <= last:
            size = self._size(at)
            if math.isinf(rows):
                pieces = at.of - at.piece
            else:
                if not at.piece:
                    at = replace(at, of=max(1, math.ceil(size / (self._rows or 1))))
                pieces = min(at.of - at.piece, math.floor(rows * at.of / size) if size else at.of)
                # A batch has at least one range, however it was estimated.
                pieces = max(pieces, 0 if begun else 1)
            if not pieces:
                break
            begun = True
            rows -= size * pieces / at.of
            if at.piece + pieces < at.of:
                return replace(at, piece=at.piece + pieces)
            at = replace(at, refresh=at.next, piece=0, of=1)
            refreshes -= 1
        return at if at.piece else replace(at, of=1)

    def _size(self, at: Offset) -> int:
        found = self._difference(at)
        return found.rows if found is not None else 0

    def _difference(self, at: Offset) -> Difference | None:
        """What the step after a place reads."""
        before = self._record(at.refresh) if at.refresh else None
        after = self._record(at.next)
        if self._shape is None:
            self._shape = shape_at(self._files, self._name, after)
        return difference(self._shape, before, after)

    def _record(self, refresh: int) -> Record:
        try:
            return self._past().at(refresh)
        except DataError as error:
            raise StoreError(
                f"the changes of {self._name} cannot be followed any further, because {error}. What a stream "
                "has not read is kept until it has given no sign for some days (consumer_days of Hub.open; 7 "
                "if not set). Start it anew, with another checkpoint: it begins with a snapshot",
                path=self._files.uri(""),
            ) from error

    # What is there.

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch: ranges of large changes, and many small ones together."""
        at, upto = _read(start), _read(end)
        if at.consumer != upto.consumer or at.first != upto.first:
            # The first batch: if it is repeated, where it begins was asked for again.
            at = Offset(upto.began, upto.began, upto.first, upto.consumer)
        found: list[InputPartition] = []
        small: list[_Step] = []
        room = TASK_ROWS
        while at.refresh < upto.refresh or (at.refresh == upto.refresh and at.piece < upto.piece):
            ends = at.refresh == upto.refresh
            of = upto.of if ends else at.of
            change = self._difference(at)
            steps = _steps(at.next, change, at.piece, upto.piece if ends else of, of) if change else []
            if len(steps) > 1:
                found += [InputPartition((step,)) for step in steps]
            elif steps:
                if small and steps[0].change.rows > room:
                    found.append(InputPartition(tuple(small)))
                    small, room = [], TASK_ROWS
                small += steps
                room -= steps[0].change.rows
            if ends:
                break
            at = replace(at, refresh=at.next, piece=0, of=1)
        return [*found, InputPartition(tuple(small))] if small else found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows with their weights and the refresh that changed them."""
        opened = open_part(self._files)
        for step in partition.value:
            rows = step.change.read(step.low, step.high, opened)
            if rows.num_rows:
                yield from batches(self._fields, self._chosen, rows, step.commit)

    def commit(self, end: dict[str, Any]) -> None:
        """What comes before is read, and need not be kept for this stream."""
        self._sign(_read(end), anew=True)

    def _sign(self, at: Offset, *, anew: bool = False) -> None:
        now = consumers.now_us()
        if at.consumer and (anew or now - self._signed_us > consumers.SIGN_US):
            consumers.note(self._files, at.consumer, at.needed, self._name)
            self._signed_us = now


def _steps(commit: int, change: Difference, first: int, last: int, of: int) -> list[_Step]:
    """The ranges from one to another, each cut where it has too many rows for one task."""
    pieces = ranges(of)[first:last]
    finer = task_count(math.ceil(change.rows / of))
    found = []
    for start, end in pieces:
        # Where the pieces end is what offsets go by; how they are cut is this batch's own.
        edges = [start + (end + 1 - start) * place // finer for place in range(finer + 1)]
        for low, after in itertools.pairwise(edges):
            part = change.within(low, after - 1)
            if part.old or part.new:
                found.append(_Step(commit, part, low, after - 1))
    return found


def _limit(options: Mapping[str, str], option: str) -> int | None:
    text = options.get(option)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise DataError(f"the option {option} is {text!r}: give a number from 1 on", value=text)
    return int(text)


def _told(offset: Offset) -> dict[str, Any]:
    return asdict(offset)


def _read(offset: Mapping[str, Any]) -> Offset:
    try:
        return Offset(**offset)
    except TypeError as error:
        raise StoreError(f"the checkpoint has an offset that is none of ours: {offset}") from error
