"""A partition of a map: contributions by key, kept in the memory of the process that last had it.

A file has what some batches contributed, and the sum of the files is the state. A process that has the state
as of some of the files adds the others; one that has none, or another's, reads all.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import msgspec

from everview.hub.files import Files
from everview.streams.pipelines.description import MapStage, is_plain_count
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.hollow import Contribution, is_neutral
from everview.streams.pipelines.keys import Stored, load_key, store_key
from everview.streams.pipelines.ranking import Ranking, greatest
from everview.streams.pipelines.spark.record import STATE, Run

KEPT = 5_000_000
"""How many keys a process keeps in memory, of all partitions together."""

FILES = 30
"""How many files a partition has at most."""

_encoder = msgspec.msgpack.Encoder()
_known: OrderedDict[tuple[str, str, int], tuple[tuple[str, ...], dict[Stored, Any]]] = OrderedDict()


def packed(entries: Iterable[tuple[Any, Contribution]]) -> bytes:
    """Return contributions by key as bytes: keys, counts, and what they contribute beside, if anything."""
    listed = list(entries)
    keys = [store_key(key) for key, _ in listed]
    counts = [count for _, (count, _) in listed]
    found = [None if contribution is None else encode(contribution) for _, (_, contribution) in listed]
    return _encoder.encode([keys, counts, found])


def packed_counts(keys: list[Stored], counts: list[int]) -> bytes:
    """Return how often keys come as bytes, of a map that only counts."""
    return _encoder.encode([keys, counts, None])


class MapPart:
    """The entries of a partition: counts of a map that only counts, else pairs (count, contribution)."""

    def __init__(self, files: Files, stage: MapStage, part: int, runs: list[Run]) -> None:
        self._files = files
        self._stage = stage
        self._part = part
        self._plain = is_plain_count(stage)
        self.runs = list(runs)
        self._place = files.uri(""), stage.name, part
        paths = tuple(path for path, _ in runs)
        known, self.entries = _known.pop(self._place, ((), {}))
        if known != paths[: len(known)]:
            known, self.entries = (), {}
        for path in paths[len(known) :]:
            self._add(files.read(path))

    def _add(self, body: bytes) -> None:
        keys, counts, found = msgspec.msgpack.decode(body)
        if self._plain:
            self._count(zip(keys, counts, strict=True))
            return
        entries = self.entries
        inner = self._stage.inner
        for key, count, content in zip(keys, counts, found, strict=True):
            contribution = decode(content)
            if key in entries:
                old = entries[key]
                count, contribution = old[0] + count, inner.combine(old[1], contribution)  # noqa: PLW2901
            if count == 0 and is_neutral(inner, contribution):
                entries.pop(key, None)
            else:
                entries[key] = count, contribution

    def _count(self, pairs: Iterable[tuple[Stored, int]]) -> None:
        entries = self.entries
        gone = False
        for key, count in pairs:
            total = entries[key] = entries.get(key, 0) + count
            gone = gone or not total
        if gone:
            for key in [key for key, total in entries.items() if not total]:
                del entries[key]

    def merge(self, bodies: list[bytes]) -> list[Stored]:
        """Add contributions, written out in a new file; return the keys that changed."""
        if self._plain:
            delta = _summed(bodies)
            self._count(delta.items())
            touched, rows = list(delta), len(delta)
            together = packed_counts(touched, list(delta.values()))
        else:
            for body in bodies:
                self._add(body)
            together = _together(bodies)
            keys = msgspec.msgpack.decode(together)[0]
            touched, rows = list(dict.fromkeys(keys)), len(keys)
        whole = self.runs[0][1] if self.runs else 0
        later = sum(count for _, count in self.runs[1:]) + rows
        if self.runs and (later > 2 * max(whole, 1000) or len(self.runs) >= FILES):
            self.runs = []
            together = self._whole()
            rows = len(self.entries)
        path = f"{STATE}/{self._stage.name}-{self._part}-{uuid.uuid4().hex}"
        self._files.create(path, together)
        self.runs.append((path, rows))
        return touched

    def _whole(self) -> bytes:
        if self._plain:
            return packed_counts(list(self.entries), list(self.entries.values()))
        return packed((key, self._entry(key)) for key in self.entries)

    def keep(self) -> None:
        """Keep the state in memory, for the next batch."""
        _known[self._place] = tuple(path for path, _ in self.runs), self.entries
        while len(_known) > 1 and sum(len(entries) for _, entries in _known.values()) > KEPT:
            _known.popitem(last=False)

    def _entry(self, key: Stored) -> Contribution:
        return (self.entries[key], None) if self._plain else self.entries[key]

    def value(self, key: Stored) -> Any:
        """What a reader is shown of a key; None where there is none."""
        if key not in self.entries:
            return None
        return self.entries[key] if self._plain else self._stage.inner.value(self.entries[key][1])

    def values(self) -> dict[Any, Any]:
        """Key → value."""
        return {load_key(key): self.value(key) for key in self.entries}

    def contributions(self) -> dict[Stored, Contribution]:
        """Key → what was contributed."""
        return {key: self._entry(key) for key in self.entries}

    def contenders(self, ranking: Ranking, n: int, touched: list[Stored]) -> dict[Any, Any]:
        """Key → value of the keys of a ranking, and of those that changed and may belong into it."""
        keys: Iterable[Stored] = touched
        if self._plain and len(ranking) == n:
            least, entries = ranking[-1][1], self.entries
            keys = [key for key in touched if entries.get(key, 0) >= least]
        return self.values_at({*keys, *(store_key(key) for key, _ in ranking)})

    def ranking(self, n: int) -> Ranking:
        """The n keys with the greatest values."""
        return greatest(self.values().items(), n)

    def values_at(self, keys: Iterable[Stored]) -> dict[Any, Any]:
        """Key → value of some keys, without those that are not there."""
        if self._plain:
            entries = self.entries
            return {load_key(key): entries[key] for key in keys if key in entries}
        return {load_key(key): self.value(key) for key in keys if key in self.entries}


def _summed(bodies: list[bytes]) -> dict[Stored, int]:
    """How often keys come in several bodies together."""
    total: dict[Stored, int] = {}
    for body in bodies:
        keys, counts, _ = msgspec.msgpack.decode(body)
        if total:
            for key, count in zip(keys, counts, strict=True):
                total[key] = total.get(key, 0) + count
        else:
            total = dict(zip(keys, counts, strict=True))
            if len(total) != len(keys):  # a file that was made of several
                total = {}
                for key, count in zip(keys, counts, strict=True):
                    total[key] = total.get(key, 0) + count
    return total


def _together(bodies: list[bytes]) -> bytes:
    """One body of several; a key that is in two of them is in it twice, and adds up."""
    parts = [msgspec.msgpack.decode(body) for body in bodies]
    return _encoder.encode([[one for part in parts for one in part[place]] for place in range(3)])
