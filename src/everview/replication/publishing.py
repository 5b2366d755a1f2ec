"""Publishing: what sites tell each other of views that an authority publishes.

In every message a site tells where its rows of each published view stand, in two maps of gossip that have
numbers by stream: the epoch under `floors`, the mark under `collected`. So a sender knows what a reader
lacks, whoever that had it from. No cursor, no vector and no group is needed, for there is one authority, and
its states come one after the other. `tests/model/published.py` is the specification.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import msgspec

from everview.engines.sqlite.engine import Engine, OnChange
from everview.engines.sqlite.partials import ENTRIES
from everview.engines.sqlite.parts import Position
from everview.engines.sqlite.published import ROWS, STANDING, Later, Published, Standing, Told
from everview.engines.sqlite.store import Store
from everview.errors import WireError
from everview.language.limits import LONGEST
from everview.planner.partials import is_partials
from everview.planner.published import is_published
from everview.replication.budget import Budget
from everview.replication.messages import Gossip, Message, Page, Section
from everview.replication.rights import Rights
from everview.replication.wire import check

_LOG = logging.getLogger("everview")

_CHANCE = 1 << 30
"""So much chance is in an epoch, about a second: two that forgot the same epoch do not take the same one."""

CONTEST_US = 60_000_000
"""How long an authority leaves a later epoch alone that is not its own, once it has gone above one."""

At = tuple[int, int]
"""Epoch and mark."""

Place = list[tuple[int, tuple[Any, ...]]]
"""How far a reader has got in a published view: the last row, and what it began with."""


class Asked(NamedTuple):
    """A published view that somebody reads, and where what the reader has stands."""

    published: Published
    at: At


# Where rows stand.


def at_of(gossip: Gossip | None, stream: str) -> At:
    """Where a message says that its sender's rows of a stream stand."""
    if gossip is None or gossip.floors.get(stream, 0) > LONGEST:
        return 0, 0
    return gossip.floors.get(stream, 0), gossip.collected.get(stream, 0)


def row_count(page: Page | None) -> int:
    """How many rows a page has; where a published view stands is none, nor is where owners stand."""
    return 0 if page is None else sum(section.count for section in page.sections if _has_rows(section))


def _has_rows(section: Section) -> bool:
    if is_partials(section.stream):
        return section.part == ENTRIES
    return section.part != STANDING or not is_published(section.stream)


def with_standings(gossip: Gossip, engine: Engine, connection: sqlite3.Connection) -> Gossip:
    """Return gossip that also tells where published views stand."""
    stands = {stream: published.stands(connection) for stream, published in engine.published.items()}
    held = {stream: standing for stream, standing in stands.items() if standing.epoch}
    return msgspec.structs.replace(
        gossip,
        floors=gossip.floors | {stream: standing.epoch for stream, standing in held.items()},
        collected=gossip.collected | {stream: standing.mark for stream, standing in held.items()},
    )


def wanted(engine: Engine, connection: sqlite3.Connection) -> list[str]:
    """The published views that this site reads from others: all but those it publishes itself."""
    return [stream for stream, published in engine.published.items() if not published.is_own(connection)]


# The authority.


def new_epoch(store: Store, above: int = 0) -> Later:
    """Return an epoch above another, and above all that this site took before, even if it forgot them."""
    return Later(max(store.clock.stamp(), above), 1 + store.environment.tag() % _CHANCE)


def defend(store: Store, message: Message, rights: Rights) -> None:
    """Go above what others have of views that this site publishes, if that is later than what it has itself.

    Then it was put back from a backup and does not know, or another site has its name. Of two sites that both
    live neither gives in; but each goes above the other once a minute at most.
    """
    for stream, published in store.engine.published.items():
        at = at_of(message.gossip, stream)
        if published.view.authority != store.name or not at[0] or not rights.may_write(stream):
            continue
        connection, now_us = store.writer.connection, store.environment.now_us()
        if not published.is_passed(connection, at, now_us - CONTEST_US):
            continue
        with store.writing() as writer:
            times = published.defend(writer, new_epoch(store, at[0]), now_us)
        if times > 1:
            _LOG.warning(
                "another site publishes %s as %s, too: of two sites with that name only one may live",
                published.view.name,
                store.name,
            )


# A page.


class _Reading(NamedTuple):
    """A reading of a published view, over several pages: what it began with, and how far it has come."""

    epoch: int
    floor: int
    start: int
    whole: int
    reached: Position
    begins: int = 0

    @property
    def place(self) -> Place:
        """How it travels to the reader and back."""
        return [
            (self.reached.version, tuple(self.reached.key)),
            (self.epoch, (self.floor, self.start, self.whole)),
        ]


def _begun(place: Place | None, stands: Standing) -> _Reading | None:
    """The reading that goes on at a place; None when it has to begin anew.

    Rows may have gone that earlier pages had, and been forgotten: the floor is then above what it was, and
    above what has been read.
    """
    if place is None or len(place) != 2 or len(place[1][1]) != 3:
        return None
    (version, key), (epoch, (floor, start, whole)) = place
    if epoch != stands.epoch or stands.floor > max(version, floor):
        return None
    return _Reading(epoch, floor, start, whole, Position(version, tuple(key)))


def _begin(at: At, stands: Standing) -> _Reading:
    """What changed since the reader's state, if all of it is known here; else everything."""
    whole = int(stands.epoch != at[0] or stands.floor > at[1])
    start = 0 if whole else at[1]
    return _Reading(stands.epoch, stands.floor, start, whole, Position(-1 if whole else start), begins=1)


def read_published(
    connection: sqlite3.Connection, asked: Asked, place: Place | None, budget: Budget
) -> tuple[list[Section], Place | None, bool]:
    """Return what a page has of a published view, the place to go on from, and whether that is the end."""
    published, stands = asked.published, asked.published.stands(connection)
    reading = _begun(place, stands)
    if reading is None:
        if stands.at <= asked.at:
            return [], None, True
        reading = _begin(asked.at, stands)
    rows: list[Any] = []
    done, reached = False, reading.reached
    while not done and not budget.is_used_up:
        chunk = published.read(connection, reached, budget.limit(published.columns), budget.room)
        if not budget.fits(chunk):
            break
        budget.take(chunk, published.columns)
        rows += chunk.rows
        done = chunk.reached is None
        reached = chunk.reached or Position(stands.mark)
    told = Told(stands.epoch, stands.mark, stands.floor, reading.start, reading.whole, reading.begins)
    sections = [Section(published.stream, STANDING, 1, [[cell] for cell in told])]
    if rows:
        columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)]
        sections.append(Section(published.stream, ROWS, len(rows), columns))
    return sections, reading._replace(reached=reached).place, done


# A cut.


@dataclass(slots=True)
class Arrivals:
    """What a cut brings of published views: set aside page by page, and taken when it is whole."""

    engine: Engine
    connection: sqlite3.Connection
    streams: frozenset[str]
    """Those that may be taken from the sender."""
    dropped: int = 0
    """Rows that no authority can have published."""
    _told: dict[str, Told] = field(default_factory=dict)

    def add(self, message: Message, section: Section) -> None:
        """Set a section aside."""
        published = self.engine.published[section.stream]
        if section.part == STANDING:
            check(section, published.standing_columns, len(message.sites))
            self._begin(published, section)
        elif section.part == ROWS:
            check(section, published.columns, len(message.sites))
            self._stage(published, section)
        else:
            raise WireError(f"{section.stream} has no part {section.part}", where="section")

    def _begin(self, published: Published, section: Section) -> None:
        if section.count != 1:
            raise WireError(f"{section.stream} says {section.count} times where it stands", where="section")
        told = Told(*(column[0] for column in section.columns))
        if told.begins:
            published.void(self.connection)
        if (told.begins or published.stream in self._told) and 0 < told.epoch <= LONGEST:
            self._told[published.stream] = told

    def _stage(self, published: Published, section: Section) -> None:
        told = self._told.get(published.stream)
        if told is None:
            return
        weights, marks = section.columns[-2:]
        rows = section.columns
        if section.count and (max(weights) > LONGEST or max(marks) > told.mark):
            keep = [
                weight <= LONGEST and mark <= told.mark for weight, mark in zip(weights, marks, strict=True)
            ]
            self.dropped += keep.count(False)
            rows = [list(compress(column, keep)) for column in rows]
        published.stage(self.connection, rows)

    def take(self, on_change: OnChange | None) -> int:
        """Go over to what is later and complete; return how many views did."""
        taken = 0
        for stream, told in self._told.items():
            published = self.engine.published[stream]
            if published.fits(self.connection, told):
                self.engine.take(self.connection, stream, told, on_change)
                taken += 1
            else:
                published.void(self.connection)
        return taken

    def is_up_to_date(self, stream: str) -> bool:
        """Whether a view is now where the sender has it, or further."""
        told = self._told.get(stream)
        return told is None or self.engine.published[stream].stands(self.connection).at >= told[:2]


# Files, which are for whoever finds them.


def asked_since(engine: Engine, connection: sqlite3.Connection, since: int) -> list[Asked]:
    """All published views, for a reader that has what the batches up to a commit had."""
    return [Asked(published, published.told(connection, since)) for published in engine.published.values()]


def note_told(engine: Engine, connection: sqlite3.Connection, page: Page) -> None:
    """Remember where published views stood at the end of a batch."""
    for section in page.sections:
        if section.part == STANDING and section.stream in engine.published:
            told = Told(*(column[0] for column in section.columns))
            engine.published[section.stream].note_told(connection, page.head, told)


def has_all(engine: Engine, connection: sqlite3.Connection, message: Message, head: int) -> bool:
    """Whether the writer of a request has what batches up to a commit told of the views that it reads."""
    streams: Iterable[str] = () if message.request is None else message.request.streams
    return all(
        at_of(message.gossip, stream) >= engine.published[stream].told(connection, head)
        for stream in streams
        if stream in engine.published
    )


def publishing_status(store: Store, connection: sqlite3.Connection) -> Mapping[str, Any]:
    """View → who publishes it, which state is here, and whether another site did so in the last hour, too."""
    now_us = store.environment.now_us()
    return {
        published.view.name: {
            "authority": published.view.authority,
            "publishes": published.is_own(connection),
            "epoch": published.stands(connection).epoch,
            "mark": published.stands(connection).mark,
            "contested": published.is_contested(connection, now_us),
        }
        for published in store.engine.published.values()
    }
