"""The record of a pipeline on Spark: what its stages have, and how far its sources are in, in one file.

Records are numbered and created only if absent; the greatest counts. Files that it does not name count for
nothing, so a batch is in with its record or not at all, and of two drivers one finds the number taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from everview.errors import StoreError
from everview.hub.files import Files
from everview.streams.pipelines.encoding import decode, encode

RECORDS = "records"
STATE = "state"
"""Where the files are that a record names."""

KEPT = 3
"""How many records are kept, and what they name."""

Run = tuple[str, int]
"""The path of a file, and how many rows it has."""


@dataclass(slots=True)
class State:
    """All that a pipeline has, but for the rows that are in files."""

    number: int = 0
    signatures: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    """Source → producer → number of its last batch."""
    runs: dict[str, dict[int, list[Run]]] = field(default_factory=dict)
    """Stage → partition → files, oldest first."""
    aggregates: dict[str, Any] = field(default_factory=dict)
    """Stage → what was contributed."""
    rankings: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    """Top-N → partition of its map → ranking."""
    hollow: dict[str, Any] = field(default_factory=dict)
    """Aggregate → the contribution that waits."""
    pending: dict[str, list[Any]] = field(default_factory=dict)
    """Map → what waits: partitions, each with a file."""
    waiting: dict[str, int] = field(default_factory=dict)
    """Stage → how many changes wait."""
    fired: dict[str, float] = field(default_factory=dict)
    dots: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Stage → source of deltas → runs of their numbers."""
    forms: dict[str, str] = field(default_factory=dict)
    """Set → how it keeps its elements: as rows of these columns, or each as its bytes."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """Source → files that have been taken in."""

    def copy(self) -> State:
        """Return a state that can be changed, to become the next record."""
        made: State = _loaded(_stored(self))
        return made

    def named(self) -> set[str]:
        """The files that it names."""
        paths = {run[0] for parts in self.runs.values() for runs in parts.values() for run in runs}
        return paths | {path for waits in self.pending.values() for _, path in waits}


def latest(files: Files) -> State:
    """Return the state of the last record, of a new pipeline an empty one."""
    names = files.list(RECORDS)
    return _loaded(files.read(f"{RECORDS}/{names[-1]}")) if names else State()


def commit(files: Files, state: State) -> None:
    """Make a state the next record; StoreError when another driver has made one of that number."""
    state.number += 1
    if not files.create(f"{RECORDS}/{state.number:012d}", _stored(state)):
        raise StoreError(
            f"another driver has written record {state.number} of this pipeline: close that one, "
            "or open this one again"
        )


def sweep(files: Files, *, opening: bool = False) -> None:
    """Remove old records, and files that no record names; while batches run only those of old records."""
    names = files.list(RECORDS)
    old, kept = names[:-KEPT], names[-KEPT:]
    named: set[str] = set()
    for name in kept:
        named |= _loaded(files.read(f"{RECORDS}/{name}")).named()
    if opening:
        doubtful = {entry.path for entry in files.find(STATE)}
    else:
        doubtful = set()
        for name in old:
            doubtful |= _loaded(files.read(f"{RECORDS}/{name}")).named()
    for path in doubtful - named:
        files.remove_file(path)
    for name in old:
        files.remove_file(f"{RECORDS}/{name}")


def _stored(state: State) -> bytes:
    return encode([getattr(state, one.name) for one in fields(State)])


def _loaded(content: bytes) -> State:
    return State(*decode(content))
