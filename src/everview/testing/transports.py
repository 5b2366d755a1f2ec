"""What every transport promises (`everview.replication.transports.base`), checked.

Run it on a transport of your own::

    @contextmanager
    def link(first, second):
        with listening(second) as address:
            yield Link(MyTransport(address))

    check_transport(link)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from everview.errors import SyncError
from everview.language.program import Program
from everview.replication.transports.base import Replica, Transport
from everview.replication.transports.report import Progress, SyncReport
from everview.site import Site

__all__ = ["Link", "Party", "SiteParty", "check_transport"]

SEVERAL_PAGES = 21_000
"""So many rows take more than one page."""

PROGRAM = "CREATE TABLE number (n BIGINT); CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS s FROM number;"


class Party(Protocol):
    """A replica with something in it that can be counted: a set of numbers."""

    @property
    def replica(self) -> Replica:
        """What transports see."""

    def write(self, numbers: Sequence[int]) -> None:
        """Put numbers in, in one commit."""

    def read(self) -> set[int]:
        """Return all numbers."""

    def close(self) -> None:
        """Let go of it."""


@dataclass(frozen=True, slots=True)
class Link:
    """How two replicas meet: by which transport the first syncs; where nobody listens, the second too."""

    first: Transport
    second: Transport | None = None


class SiteParty:
    """A site in memory, under a program of its own for every name: no two have anything in common."""

    def __init__(self, name: str) -> None:
        self._relation = f"number_{name}"
        program = Program.parse(PROGRAM.replace("number", self._relation))
        self._site = Site.open(":memory:", program)
        self.replica: Replica = self._site.replica

    def write(self, numbers: Sequence[int]) -> None:
        """Insert them."""
        self._site.insert(self._relation, [(number,) for number in numbers])

    def read(self) -> set[int]:
        """Return them; the view must agree."""
        numbers = {number for (number,) in self._site.rows(self._relation)}
        ((total,),) = self._site.rows("total")
        _require((total or 0) == sum(numbers), "rows arrive as one commit, with the views over them")
        return numbers

    def close(self) -> None:
        """Close the site."""
        self._site.close()


MakeLink = Callable[[Replica, Replica], AbstractContextManager[Link]]
MakeParty = Callable[[str], Party]
"""Makes a party that runs the program of that name; parties meet only within a program."""


class _InterruptedError(Exception):
    """The caller gives up in the middle."""


def check_transport(link: MakeLink, make: MakeParty = SiteParty) -> None:
    """Check a transport; AssertionError says which promise it breaks."""
    for check in (
        _brings_everything,
        _moves_nothing_twice,
        _goes_on_after_writes,
        _survives_interruption,
        _tells_progress,
        _keeps_strangers_apart,
        _waits_for_news,
    ):
        first, second = make("same"), make("other" if check is _keeps_strangers_apart else "same")
        with closing(first), closing(second), link(first.replica, second.replica) as made:
            try:
                check(first, second, made)
            finally:
                for transport in (made.first, made.second, made.first):
                    if transport is not None:
                        transport.close()


def _meet(first: Party, second: Party, link: Link) -> SyncReport:
    """Let them sync until each has seen what the other had at the beginning."""
    report = link.first.sync(first.replica)
    if link.second is not None:
        report += link.second.sync(second.replica)
        report += link.first.sync(first.replica)
        report += link.second.sync(second.replica)
    return report


def _require(right: object, promise: str) -> None:
    if not right:
        raise AssertionError(f"a transport promises: {promise}")


def _brings_everything(first: Party, second: Party, link: Link) -> None:
    ours, theirs = set(range(SEVERAL_PAGES)), set(range(100_000, 100_000 + SEVERAL_PAGES))
    first.write(sorted(ours))
    second.write(sorted(theirs))
    report = _meet(first, second, link)
    _require(first.read() == ours | theirs, "after a sync the dialling side has everything")
    _require(second.read() == ours | theirs, "after a sync the other side has everything")
    _require(report.received_rows >= len(theirs), "a report counts the rows that came")
    _require(report.sent_rows >= len(ours), "a report counts the rows that went")
    _require(report.received_bytes > 500, "a report counts the bytes that came")
    _require(report.sent_bytes > 500, "a report counts the bytes that went")


def _moves_nothing_twice(first: Party, second: Party, link: Link) -> None:
    first.write([1, 2, 3])
    second.write([3, 4])
    _meet(first, second, link)
    again = _meet(first, second, link)
    _require(again.received_rows == 0, "what has come does not come again")
    _require(again.sent_rows == 0, "what has gone does not go again")
    _require(first.read() == second.read() == {1, 2, 3, 4}, "both have everything")


def _goes_on_after_writes(first: Party, second: Party, link: Link) -> None:
    for turn in range(5):
        first.write([10 * turn])
        second.write([10 * turn + 1])
        _meet(first, second, link)
        _require(first.read() == second.read(), "a transport can be used again and again")
        _require(len(first.read()) == 2 * turn + 2, "nothing is lost on the way")


def _survives_interruption(first: Party, second: Party, link: Link) -> None:
    """Stop after 1, 2, 3, … steps, with writes in between, and see that nothing is lost or in part."""
    ours, theirs = set(range(SEVERAL_PAGES)), set(range(100_000, 100_000 + SEVERAL_PAGES))
    first.write(sorted(ours))
    second.write(sorted(theirs))
    for steps in range(1, 8):
        left = iter(range(steps))

        def stop(_progress: Progress, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise _InterruptedError

        with suppress(_InterruptedError):
            link.first.sync(first.replica, on_progress=stop)
        _require(not theirs & first.read() or theirs <= first.read(), "a cut is applied whole")
        _require(not ours & second.read() or ours <= second.read(), "a cut is applied whole")
        first.write([-steps])
    _meet(first, second, link)
    everything = ours | theirs | set(range(-7, 0))
    _require(first.read() == second.read() == everything, "an interrupted sync can be done again")


def _tells_progress(first: Party, second: Party, link: Link) -> None:
    first.write(range(SEVERAL_PAGES))
    second.write(range(100_000, 100_000 + SEVERAL_PAGES))
    told: list[Progress] = []
    link.first.sync(first.replica, on_progress=told.append)
    _require(told, "progress is told")
    moved = [(p.sent_rows, p.received_rows, p.sent_bytes, p.received_bytes) for p in told]
    for before, after in pairwise(moved):
        _require(all(a <= b for a, b in zip(before, after, strict=True)), "progress only grows")
    _require({p.peer for p in told} == {link.first.peer}, "progress names the peer")


def _keeps_strangers_apart(first: Party, second: Party, link: Link) -> None:
    first.write([1])
    second.write([2])
    try:
        report = _meet(first, second, link)
    except SyncError as error:
        _require(error.peer == link.first.peer, "an error names the peer")
        _require(not error.retry, "to try again does not help against another program")
    else:
        _require(report.skipped_files, "files of another program are counted")
    _require(first.read() == {1}, "nothing comes from another program")
    _require(second.read() == {2}, "nothing goes to another program")


def _waits_for_news(first: Party, second: Party, link: Link) -> None:
    second.write([1])
    _meet(first, second, link)
    link.first.wait(0.05)  # what was heard of before the last sync may count as news once
    _require(not link.first.wait(0.05), "no news without a commit")
    second.write([2])
    if link.second is not None:
        link.second.sync(second.replica)
    _require(link.first.wait(10), "a commit of the other side is news")
    _meet(first, second, link)
    _require(first.read() == {1, 2}, "and a sync brings it")
