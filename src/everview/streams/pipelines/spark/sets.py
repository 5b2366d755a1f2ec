"""A partition of a set: its elements in sorted runs of Arrow, found by the hash of their key.

A run never changes; a batch adds one, and runs of like size are merged. An element that lost against another
with its key may still lie in a run: which one stands for a key is always the one with the greatest bytes.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.hub.files import Files
from everview.hub.runs import equal
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.spark.record import STATE, Run

HASH = "_hash"
KEY, ELEMENT = "_key", "_element"
"""The columns of elements that are no rows: their key, and their bytes."""

FANOUT = 4
"""How many runs of like size become one."""

_MAPPED = 256
_maps: OrderedDict[tuple[str, str], pa.Table] = OrderedDict()

Flags = NDArray[np.bool_]


class SetPart:
    """The runs of one partition; `key` names the column of rows that is their key."""

    def __init__(self, files: Files, name: str, part: int, runs: list[Run], key: str) -> None:
        self._files = files
        self._name = name
        self._part = part
        self._key = key
        self.runs = list(runs)

    def admit(self, table: pa.Table) -> tuple[pa.Table, list[Any]]:
        """Take rows in; return those that now stand for their keys, and the elements that no longer do."""
        table = _once(_sorted(table), self._key)
        hashes = table.column(HASH).to_numpy()
        known: Flags = np.zeros(len(hashes), dtype=bool)
        doubtful: Flags = np.zeros(len(hashes), dtype=bool)
        opened = [self._opened(path) for path, _ in self.runs]
        for run in opened:
            theirs = run.column(HASH).to_numpy()
            places = np.searchsorted(theirs, hashes)
            places[places == len(theirs)] = 0
            hit = np.flatnonzero(theirs[places] == hashes) if len(theirs) else np.empty(0, dtype=np.int64)
            if len(hit):
                same = _same(table, hit, run, places[hit])
                known[hit[same]] = True
                doubtful[hit[~same]] = True
        gone: list[Any] = []
        for place in np.flatnonzero(doubtful & ~known):
            rivals = _rivals(opened, int(hashes[place]), self._key, table, int(place))
            if rivals:
                mine, standing = _bytes_of(table, int(place)), max(rivals)
                if mine > standing:
                    gone.append(decode(standing))
                else:
                    known[place] = True
        admitted = table.filter(pa.array(~known)) if known.any() else table
        self._write(admitted)
        return admitted, gone

    def _write(self, table: pa.Table) -> None:
        if table.num_rows:
            self.runs.append(self._made(table))
        while len(self.runs) >= FANOUT and _alike(self.runs[-FANOUT:]):
            tables = [self._opened(path) for path, _ in self.runs[-FANOUT:]]
            self.runs[-FANOUT:] = [
                self._made(_standing(pa.concat_tables(tables, promote_options="default"), self._key))
            ]

    def _made(self, table: pa.Table) -> Run:
        path = f"{STATE}/{self._name}-{self._part}-{uuid.uuid4().hex}"
        self._files.create(path, packed_table(table))
        return path, table.num_rows

    def contents(self) -> Iterator[Batch]:
        """The elements that stand for their keys."""
        if self.runs:
            tables = [self._opened(path) for path, _ in self.runs]
            yield batch_of(_standing(pa.concat_tables(tables, promote_options="default"), self._key))

    def _opened(self, path: str) -> pa.Table:
        known = self._files.uri(""), path
        if known not in _maps:
            source = pa.memory_map(self._files.local(path))
            _maps[known] = pa.ipc.open_file(source).read_all()
            while len(_maps) > _MAPPED:
                _maps.popitem(last=False)
        _maps.move_to_end(known)
        return _maps[known]


def packed_table(table: pa.Table) -> bytes:
    """A table as the bytes of a file of Arrow's."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def batch_of(table: pa.Table) -> Batch:
    """Return the elements of a run."""
    names = [name for name in table.column_names if name != HASH]
    if names == [KEY, ELEMENT]:
        return Batch([decode(element) for element in table.column(ELEMENT).to_pylist()])
    return Batch(columns={name: table.column(name) for name in names})


def _sorted(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.argsort(table.column(HASH).to_numpy(), kind="stable"))).combine_chunks()


def _standing(table: pa.Table, key: str) -> pa.Table:
    return _once(_sorted(table), key)


def _once(table: pa.Table, key: str) -> pa.Table:
    """Of sorted rows, one for each key: of several the one with the greatest bytes."""
    hashes = table.column(HASH).to_numpy()
    later = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    if not len(later):
        return table
    dropped: Flags = np.zeros(len(hashes), dtype=bool)
    same = _same(table, later, table, later - 1)
    dropped[later[same]] = True
    for value in np.unique(hashes[later[~same]]):
        start, end = np.searchsorted(hashes, value, "left"), np.searchsorted(hashes, value, "right")
        places = [place for place in range(start, end) if not dropped[place]]
        best: dict[Any, tuple[bytes, int]] = {}
        for place in places:
            mine = _bytes_of(table, place), place
            of_key = table.column(key)[place].as_py()
            best[of_key] = max(best.get(of_key, mine), mine)
        kept = {place for _, place in best.values()}
        dropped[[place for place in places if place not in kept]] = True
    return table.filter(pa.array(~dropped))


def _rivals(runs: Iterable[pa.Table], value: int, key: str, table: pa.Table, place: int) -> list[bytes]:
    """The bytes of all elements that runs have for the key of a row."""
    wanted = table.column(key)[place].as_py()
    found = []
    for run in runs:
        theirs = run.column(HASH).to_numpy()
        for other in range(np.searchsorted(theirs, value, "left"), np.searchsorted(theirs, value, "right")):
            if run.column(key)[other].as_py() == wanted:
                found.append(_bytes_of(run, other))  # noqa: PERF401 - three things at once read worse
    return found


def _bytes_of(table: pa.Table, place: int) -> bytes:
    if ELEMENT in table.column_names:
        element: bytes = table.column(ELEMENT)[place].as_py()
        return element
    return encode({name: table.column(name)[place].as_py() for name in table.column_names if name != HASH})


def _same(ours: pa.Table, mine: NDArray[np.int64], theirs: pa.Table, others: NDArray[np.int64]) -> Flags:
    """Whether rows of one table are those of another, pair by pair."""
    same: Flags = np.ones(len(mine), dtype=bool)
    for name in ours.column_names:
        if name != HASH:
            left, right = ours.column(name).take(pa.array(mine)), theirs.column(name).take(pa.array(others))
            if pa.types.is_nested(left.type):  # Arrow does not compare those
                same &= [a == b for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)]
            else:
                same &= equal(left, right)
    return same


def _alike(runs: list[Run]) -> bool:
    rows = [count for _, count in runs]
    return max(rows) <= FANOUT * max(1, min(rows))
