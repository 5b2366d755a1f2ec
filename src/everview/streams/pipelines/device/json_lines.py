"""JSON lines: a file that grows, read in large pieces, from where the last commit ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from everview.errors import DataError, StoreError
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.description import AggregateStage, Filter, MapStage, SetStage, Stage, TopStage
from everview.streams.pipelines.functions import Words, fields_of

PIECE = 16_000_000
"""How many bytes are one commit."""


class Lines:
    """Reads batches of events, decoding only the fields that the stages look at, where they say which."""

    def __init__(self, fields: frozenset[str] | None, texts: frozenset[str] = frozenset()) -> None:
        self._names = None if fields is None else tuple(sorted(fields))
        kind: Any = Any
        if self._names is not None:
            # A struct is decoded in half the time of a dict, and skips what it does not have.
            declared = [(f"f{i}", str | None if n in texts else Any) for i, n in enumerate(self._names)]
            names = {f"f{i}": name for i, name in enumerate(self._names)}
            kind = msgspec.defstruct("Event", declared, rename=names, gc=False)
        self._decoder = msgspec.json.Decoder(kind)

    def batches(self, path: Path, start: int, end: int | None = None) -> Iterator[tuple[Batch, int]]:
        """Yield batches of whole lines, each with the position behind it; half a last line waits."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}", path=str(path)) from error
        with file:
            size = os.fstat(file.fileno()).st_size
            if size < start:
                raise StoreError(
                    f"{path} has {size} bytes, and {start} of it have been taken in: it is another file, "
                    "or was cut; give the file that was begun, or a new one under another name",
                    path=str(path),
                )
            stop = size if end is None else end
            file.seek(start)
            while start < stop:
                piece = file.read(min(PIECE, stop - start))
                if not piece.endswith(b"\n"):
                    piece += file.readline()
                whole = piece[: piece.rfind(b"\n") + 1]
                if not whole:
                    return
                yield self._decoded(path, start, whole), start + len(whole)
                start += len(whole)
                file.seek(start)

    def _decoded(self, path: Path, start: int, piece: bytes) -> Batch:
        try:
            events = self._decoder.decode_lines(piece)
        except msgspec.DecodeError:
            raise self._complaint(path, start, piece) from None
        if self._names is None:
            return Batch(events, from_json=True)
        taken = [attrgetter(f"f{i}") for i in range(len(self._names))]
        columns = {name: list(map(take, events)) for name, take in zip(self._names, taken, strict=True)}
        return Batch(columns=columns, from_json=True)

    def _complaint(self, path: Path, start: int, piece: bytes) -> DataError:
        for line in piece.splitlines(keepends=True):
            try:
                if line.strip():
                    self._decoder.decode(line)
            except msgspec.DecodeError as error:
                return DataError(
                    f"{path}: the line at byte {start} is no event: {error}: {line[:80]!r}", value=line
                )
            start += len(line)
        return DataError(f"{path}: the lines from byte {start} cannot be decoded")


def lines_for(stages: tuple[Stage, ...]) -> Lines:
    """Return a reader for the events that feed these stages."""
    wanted: set[str] = set()
    texts: set[str] = set()
    for stage in stages:
        for function in _first(stage):
            found = fields_of(function)
            if found is None:
                return Lines(None)
            wanted |= found
            if isinstance(function, Words):
                texts |= found
    return Lines(frozenset(wanted) or None, frozenset(texts))


def _first(stage: Stage) -> list[Any]:
    """The functions that look at the source's own elements; one that is None looks at all of an element."""
    steps = stage.input.steps
    if steps:
        return [None] if isinstance(steps[0], Filter) else [steps[0].function]
    match stage:
        case SetStage() | TopStage():
            return [None]
        case MapStage(key=key, value=value):
            return [key] if value is None and key is not None else [key, value]
        case AggregateStage(value=value):
            return [value]
