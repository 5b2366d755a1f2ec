"""Progress: the replicated half of a windowed CRDT, as a lattice (Windows §3.3).

A processor that closes a window writes down what it had: its local state, and up to which message. A window
is closed when all that take part in it have written, and its value is then the join of their states. An entry
is written once, so nothing that arrives later, again or in another order can change a closed window.

Who takes part in a window is decided by the windows before it alone: in an entry a processor may say that it
leaves, or that others join with the next window. So all who can tell a window's value agree on whose entries
it needs; a new processor cannot slip into a window that some have taken for closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from everview.algebra import checks
from everview.algebra.lattices.merge_map import MergeMap
from everview.algebra.lattices.write_once import EMPTY, Cell, WriteOnce
from everview.algebra.laws import Lattice
from everview.errors import DataError

__all__ = ["Closing", "Progress", "Start", "Windowed"]

S = TypeVar("S")

Place = tuple[int, str]
"""A window's number, and a processor."""


@dataclass(frozen=True, slots=True)
class Closing(Generic[S]):
    """What a processor had when it closed a window.

    `index` is the number of the message that it goes on with; `joins` names those that take part from the
    next window on, each with the number of its first message; one that `leaves` takes part in none after it.
    """

    state: S
    index: int
    joins: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    leaves: bool = False

    def __post_init__(self) -> None:
        checks.natural(self.index, "a message's number")
        for processor, index in self.joins.items():
            checks.name(processor, "a processor's name")
            checks.natural(index, "a message's number")


@dataclass(frozen=True, slots=True)
class Start(Generic[S]):
    """Where a processor begins, or goes on after a failure: in which window, with what, at which message."""

    window: int
    state: S
    index: int


@dataclass(frozen=True, slots=True)
class Progress(Generic[S]):
    """What is known of all processors: the finished map F and the global progress Gp, from window `floor` on.

    Windows below the floor were collected; `members` are those that take part in the window at the floor.
    """

    floor: int
    members: frozenset[str] | Cell
    finished: Mapping[str, int]
    entries: Mapping[Place, Closing[S] | Cell]


@dataclass(frozen=True, slots=True)
class Windowed(Lattice[Progress[S]], Generic[S]):
    """A lattice `values`, in windows 0, 1, 2, …, of processors of whom `members` begin.

    Joined are F by the greater window, Gp entry by entry, and the floor by the greater one, which what lies
    below it cannot undo. The local state and the window's number belong to one processor and are not here: a
    join does not touch them (Windows, Definition 4).
    """

    values: Lattice[S]
    members: frozenset[str]

    def __post_init__(self) -> None:
        for member in self.members:
            checks.name(member, "a processor's name")
        if not self.members:
            raise DataError("a windowed CRDT needs a processor to begin with", expected="a set of names")

    # A lattice.

    def bottom(self) -> Progress[S]:
        """Nobody has closed a window."""
        return Progress(0, self.members, MappingProxyType({}), MappingProxyType({}))

    def join(self, a: Progress[S], b: Progress[S], /) -> Progress[S]:
        """What both know together."""
        cells: MergeMap[Place, Closing[S] | Cell] = MergeMap(WriteOnce())
        names: WriteOnce[frozenset[str]] = WriteOnce()
        entries = cells.join(a.entries, b.entries)
        finished = {
            p: max(a.finished.get(p, -1), b.finished.get(p, -1)) for p in {**a.finished, **b.finished}
        }
        if a.floor == b.floor:
            return Progress(a.floor, names.join(a.members, b.members), MappingProxyType(finished), entries)
        newer = max(a, b, key=lambda progress: progress.floor)
        entries = MappingProxyType({place: e for place, e in entries.items() if place[0] >= newer.floor})
        return Progress(newer.floor, newer.members, MappingProxyType(finished), entries)

    def single(self, processor: str, window: int, closing: Closing[S]) -> Progress[S]:
        """What is known of one closing alone: what a processor tells the others."""
        place = (checks.natural(window, "a window's number"), checks.name(processor, "a processor's name"))
        nothing = self.bottom()
        entries: Mapping[Place, Closing[S] | Cell] = MappingProxyType({place: closing})
        return Progress(nothing.floor, nothing.members, MappingProxyType({processor: window}), entries)

    # Reading.

    def closed(self, progress: Progress[S]) -> int:
        """The last window that is closed, from the first on; −1 when none is."""
        last = -1 if not progress.floor else progress.floor - 1
        for window, _, missing in self._walk(progress):
            if not missing:
                last = window
        return last

    def awaited(self, progress: Progress[S], window: int) -> frozenset[str]:
        """The processors that a window waits for, as far as they are known; none when it is closed."""
        for number, _, missing in self._walk(progress):
            if missing or number == window:
                return missing
        return frozenset()

    def is_closed(self, progress: Progress[S], window: int) -> bool:
        """Whether a window's value is known; that of a collected one is known no longer."""
        return progress.floor <= window <= self.closed(progress)

    def value(self, progress: Progress[S], window: int) -> S:
        """The value of a closed window; DataError when it is not closed, or was collected.

        NonDeterminismError when a processor closed it with two different states.
        """
        if window < progress.floor:
            raise DataError(f"window {window} was collected: the first that is kept is {progress.floor}")
        if not self.is_closed(progress, window):
            names = ", ".join(sorted(self.awaited(progress, window)))
            raise DataError(f"window {window} is not closed: it waits for {names or 'nobody'}", value=window)
        value = self.values.bottom()
        for number, members, _ in self._walk(progress):
            if number == window:
                for member in sorted(members):
                    value = self.values.join(value, self._entry(progress, window, member).state)
        return value

    def start(self, progress: Progress[S], processor: str) -> Start[S] | None:
        """Where a processor begins, or where it goes on: in the window after its last entry.

        None when it takes part in no window that is known of, or has left.

        It goes on with its own state, not with what was joined of all, and reads its messages again from the
        number in that entry: what it did after that is done again, with the same outcome.
        """
        found: Start[S] | None = None
        for window, members, _ in self._walk(progress):
            if processor not in members:
                found = None
                continue
            if (window, processor) in progress.entries:
                entry = self._entry(progress, window, processor)
                found = None if entry.leaves else Start(window + 1, entry.state, entry.index)
            elif found is None:
                found = Start(window, self.values.bottom(), members[processor])
        # It may have closed more windows than others: these are not walked to, but its entries are there.
        while found is not None and (found.window, processor) in progress.entries:
            entry = self._entry(progress, found.window, processor)
            found = None if entry.leaves else Start(found.window + 1, entry.state, entry.index)
        return found

    def collect(self, progress: Progress[S], keep: int) -> Progress[S]:
        """Forget the closed windows but for the last `keep`: as far back as a message may read, at least one.

        Whoever learns of the new floor learns of the entries above it as well, its own among them, and goes
        on from those; so nobody is left behind in a window from which it would read what was collected.
        """
        floor = self.closed(progress) + 1 - checks.positive(keep, "how many windows to keep")
        if floor <= progress.floor:
            return progress
        members = next(frozenset(members) for window, members, _ in self._walk(progress) if window == floor)
        entries = MappingProxyType({place: e for place, e in progress.entries.items() if place[0] >= floor})
        return Progress(floor, members, progress.finished, entries)

    def _entry(self, progress: Progress[S], window: int, processor: str) -> Closing[S]:
        cell = progress.entries.get((window, processor), EMPTY)
        cells: WriteOnce[Closing[S]] = WriteOnce()
        entry = cells.read(cell, f"window {window} of {processor}")
        if entry is None:
            raise DataError(f"{processor} has not closed window {window}", value=window)
        return entry

    def _walk(self, progress: Progress[S]) -> Iterator[tuple[int, Mapping[str, int], frozenset[str]]]:
        """From the floor on: a window, who takes part and its first message, and whose entries are missing.

        The first window with one missing is the last: who takes part in later ones is not known yet.
        """
        cells: WriteOnce[frozenset[str]] = WriteOnce()
        names = cells.read(progress.members, f"who takes part in window {progress.floor}")
        window, members = progress.floor, dict.fromkeys(names or (), 0)
        while members:
            missing = frozenset(m for m in members if (window, m) not in progress.entries)
            yield window, MappingProxyType(members), missing
            if missing:
                return
            entries = {member: self._entry(progress, window, member) for member in sorted(members)}
            members = {member: 0 for member, entry in entries.items() if not entry.leaves}
            for entry in entries.values():
                for joining, index in entry.joins.items():
                    members[joining] = max(index, members.get(joining, 0)) if joining in members else index
            window += 1
