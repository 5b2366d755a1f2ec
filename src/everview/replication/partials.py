"""Partial aggregates between sites: states of owners, each told whole or by what has changed.

A site that receives them tells, when it asks, where each owner stands with it: under `stream.input=` those of
which it has what the asked site had when it was last read, under `stream.input` the others. No group and no
membership is needed, for nobody waits for who is fed. `tests/model/partials.py` is the specification.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import msgspec

from everview.algebra.exact_text import is_exact_text
from everview.algebra.sketch_text import is_counts_text, is_marks_text
from everview.engines.sqlite.engine import OnChange
from everview.engines.sqlite.feeding import Feed
from everview.engines.sqlite.partials import (
    BEGINS,
    BEGINS_COLUMNS,
    ENTRIES,
    STANDING_COLUMNS,
    STANDINGS,
    ReceivedPartials,
    StoredPartials,
    Which,
)
from everview.engines.sqlite.parts import Position
from everview.errors import WireError
from everview.language.limits import LONGEST
from everview.replication.budget import Budget
from everview.replication.gossip import Register, known_of_sender
from everview.replication.knowledge import Knowledge
from everview.replication.messages import START, Gossip, Known, Message, Page, Section
from everview.replication.publishing import Place
from everview.replication.wire import check

_FORMS = {"exact": is_exact_text, "sketch_marks": is_marks_text, "sketch_counts": is_counts_text}
"""What a text of each aggregate must look like."""

EQUAL, CHANGED, WHOLE = 0, 1, 2
"""How an owner is told: the reader has it, or gets what has changed, or everything."""

Standing = Mapping[tuple[int, str], int]
"""How much of an owner's rows is known: (number of the input, incarnation) → commit."""


def order(standing: Standing) -> tuple[int, int, list[tuple[tuple[int, str], int]]]:
    """What standings are compared by: the greater one comes later.

    Who knows more incarnations of an owner, and then more commits, has the later state. Of two standings that
    nobody can join without rows all take the same.
    """
    return len(standing), sum(standing.values()), sorted(standing.items())


# Where owners stand.


def standings(
    knowledge: Knowledge, connection: sqlite3.Connection, stored: StoredPartials
) -> dict[str, dict[tuple[int, str], int]]:
    """Where each owner stands here: with its entries, or by the vectors of the relations.

    An owner that has versions from the future is left out: others may have valued them by now.
    """
    if isinstance(stored, ReceivedPartials):
        incarnations = knowledge.incarnations()
        return {
            owner: {(place, incarnations[site]): seq for (place, site), seq in found.items()}
            for owner, found in stored.standings(connection).items()
        }
    found: dict[str, dict[tuple[int, str], int]] = {}
    for place, relation in enumerate(stored.partials.inputs):
        for incarnation, seq in knowledge.membership.own(relation).vector.items():
            if seq:
                owner = knowledge.state.names.get(incarnation, "")
                found.setdefault(owner, {})[place, incarnation] = seq
    waiting = stored.waiting(connection) if isinstance(stored, Feed) else set()
    return {owner: standing for owner, standing in found.items() if owner not in waiting}


def with_standings(
    gossip: Gossip, knowledge: Knowledge, connection: sqlite3.Connection, register: Register, asked: str
) -> Gossip:
    """Return gossip that also tells the site that is asked where owners stand here."""
    told: list[Known] = []
    for stream, stored in knowledge.store.engine.partials.items():
        same = _agreeing(knowledge, connection, stored, asked)
        vectors: dict[str, list[int]] = {}
        for owner, standing in sorted(standings(knowledge, connection, stored).items()):
            mark = "=" if owner in same else ""
            for (place, incarnation), seq in sorted(standing.items()):
                vectors.setdefault(f"{stream}.{place}{mark}", []).extend((register.place(incarnation), seq))
        told += [Known(0, whole, vector, 0) for whole, vector in vectors.items()]
    return msgspec.structs.replace(gossip, known=[*gossip.known, *told]) if told else gossip


def _agreeing(
    knowledge: Knowledge, connection: sqlite3.Connection, stored: ReceivedPartials, asked: str
) -> set[str]:
    number = knowledge.numbers.get(asked)
    cursor = knowledge.state.cursors.get(asked, {}).get(stored.stream, START)
    return stored.agreeing(connection, number) if number is not None and cursor.head else set()


def _heard(
    message: Message, stored: StoredPartials, names: Mapping[str, str]
) -> tuple[dict[str, dict[tuple[int, str], int]], set[str]]:
    """Where the sender of a message says that owners stand with it, and which of that it had from here."""
    told, found = known_of_sender(message), dict[str, dict[tuple[int, str], int]]()
    same: set[str] = set()
    for place in range(len(stored.partials.inputs)):
        for mark in ("", "="):
            one = told.get(f"{stored.stream}.{place}{mark}")
            for incarnation, seq in () if one is None else one.vector.items():
                owner = names.get(incarnation, "")
                found.setdefault(owner, {})[place, incarnation] = seq
                if mark:
                    same.add(owner)
    return found, same


# A page.


class Asked(NamedTuple):
    """A stream that somebody reads: which owners it is told of, how, and where these stand here."""

    stored: StoredPartials
    which: Which
    told: Mapping[str, tuple[int, Standing]]
    """Owner → how it is told, and where it stands."""


def asked(
    knowledge: Knowledge,
    connection: sqlite3.Connection,
    stored: StoredPartials,
    message: Message,
    head: int,
) -> Asked:
    """What a request asks for of a stream, by one who has read it up to a commit."""
    theirs, same = _heard(message, stored, knowledge.state.names)
    since = head if head >= stored.floor(connection) else 0
    told: dict[str, tuple[int, Standing]] = {}
    for owner, standing in standings(knowledge, connection, stored).items():
        had = theirs.get(owner, {})
        if standing == had and owner not in same:
            told[owner] = EQUAL, standing
        elif order(standing) > order(had):
            told[owner] = (CHANGED if since and owner in same else WHOLE), standing
    return _asked(stored, told, since)


def asked_since(
    knowledge: Knowledge, connection: sqlite3.Connection, stored: StoredPartials, since: int
) -> Asked:
    """A stream for whoever finds it and has read it up to a commit."""
    since = since if since >= stored.floor(connection) else 0
    how = CHANGED if since else WHOLE
    found = standings(knowledge, connection, stored)
    return _asked(stored, {owner: (how, standing) for owner, standing in found.items()}, since)


def _asked(stored: StoredPartials, told: Mapping[str, tuple[int, Standing]], since: int) -> Asked:
    def those(how: int) -> frozenset[str]:
        return frozenset(owner for owner, (told_how, _) in told.items() if told_how == how)

    return Asked(stored, Which(those(WHOLE), those(CHANGED), since), told)


def read_partials(
    connection: sqlite3.Connection,
    asked: Asked,
    place: Place | None,
    budget: Budget,
    register: Register,
    head: int,
) -> tuple[list[Section], Place | None, bool]:
    """Return what a page has of a stream, the place to go on from, and whether that is the end.

    `head` is the last commit that is read.
    """
    if not asked.told:
        return [], None, True
    stored, which, sections = asked.stored, asked.which, list[Section]()
    floor, digest = stored.floor(connection), _digest(which)
    reached = _begun(place, floor, digest)
    begun = floor if reached is None or place is None else place[1][0]
    if reached is None:
        reached = Position(-1 if which.whole else which.since)
        if place is not None:
            sections.append(Section(stored.stream, BEGINS, 1, [[1]]))
    rows: list[Any] = []
    done = False
    while not done and not budget.is_used_up:
        chunk = stored.read(connection, which, reached, budget.limit(stored.columns), budget.room)
        if not budget.fits(chunk):
            break
        budget.take(chunk, stored.columns)
        rows += chunk.rows
        done = chunk.reached is None
        reached = chunk.reached or Position(head)
    if rows:
        columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)]
        sections.append(Section(stored.stream, ENTRIES, len(rows), columns))
    if done:
        sections.append(_standing_section(asked, register))
    return sections, [(reached.version, tuple(reached.key)), (begun, (digest,))], done


def _standing_section(asked: Asked, register: Register) -> Section:
    rows = [
        (owner, how, place, register.place(incarnation), seq)
        for owner, (how, standing) in sorted(asked.told.items())
        for (place, incarnation), seq in sorted(standing.items())
    ]
    columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)]
    return Section(asked.stored.stream, STANDINGS, len(rows), columns)


def _begun(place: Place | None, floor: int, digest: str) -> Position | None:
    """How far a reading has come; None when it has to begin anew.

    What is told whole may be other owners' than when it began; and entries may have gone that earlier pages
    had, and been forgotten: the floor is then above what it was, and above what has been read.
    """
    if place is None or len(place) != 2 or place[1][1] != (digest,):
        return None
    (version, key), (begun, _) = place
    return None if floor > max(version, begun) else Position(version, tuple(key))


def _digest(which: Which) -> str:
    said = repr((sorted(which.whole), which.since))
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


# A cut.


@dataclass(slots=True)
class PartialArrivals:
    """What a cut brings of partial aggregates: set aside page by page, and taken when it is whole."""

    knowledge: Knowledge
    connection: sqlite3.Connection
    streams: frozenset[str]
    """Those that may be taken from the sender."""
    dropped: int = 0
    """Entries of owners that the sender does not tell of."""
    _begun: set[str] = field(default_factory=set)
    _told: dict[str, dict[str, tuple[int, dict[tuple[int, str], int]]]] = field(default_factory=dict)

    def add(self, message: Message, section: Section) -> None:
        """Set a section aside."""
        stored = self.knowledge.store.engine.partials[section.stream]
        if section.part == BEGINS or section.stream not in self._begun:
            stored.void(self.connection)
            self._begun.add(section.stream)
        if section.part == BEGINS:
            check(section, BEGINS_COLUMNS, len(message.sites))
        elif section.part == STANDINGS:
            check(section, STANDING_COLUMNS, len(message.sites))
            self._told[section.stream] = self._standings(message, section, len(stored.partials.inputs))
        elif section.part == ENTRIES:
            check(section, stored.columns, len(message.sites))
            for place, aggregate in stored.partials.texts:
                fits = _FORMS[aggregate]
                if not all(text is None or fits(text) for text in section.columns[place]):
                    raise WireError(f"{section.stream} has a sum or sketch that is none", where="section")
            stored.stage(self.connection, self._possible(section))
        else:
            raise WireError(f"{section.stream} has no part {section.part}", where="section")

    def _standings(
        self, message: Message, section: Section, inputs: int
    ) -> dict[str, tuple[int, dict[tuple[int, str], int]]]:
        found: dict[str, tuple[int, dict[tuple[int, str], int]]] = {}
        for owner, how, place, site, seq in zip(*section.columns, strict=True):
            if how > WHOLE or place >= inputs or not 0 < seq <= LONGEST:
                raise WireError(f"{section.stream} stands where nothing can", where="section")
            found.setdefault(owner, (how, {}))[1][place, message.sites[site]] = seq
        return found

    def _possible(self, section: Section) -> Sequence[Sequence[Any]]:
        """Entries are there, or not."""
        alive = section.columns[-1]
        if section.count and max(alive) > 1:
            keep = [there <= 1 for there in alive]
            self.dropped += keep.count(False)
            return [list(compress(column, keep)) for column in section.columns]
        return section.columns

    def take(self, sender: str, page: Page, version: int, on_change: OnChange | None) -> int:
        """Go over to what is later and complete; return how many entries changed."""
        return sum(
            self._take(stream, told, sender, page, version, on_change) for stream, told in self._told.items()
        )

    def _take(
        self,
        stream: str,
        told: Mapping[str, tuple[int, Standing]],
        sender: str,
        page: Page,
        version: int,
        on_change: OnChange | None,
    ) -> int:
        knowledge, stored = self.knowledge, self.knowledge.store.engine.partials[stream]
        cursor = knowledge.state.cursors.get(sender, {}).get(stream, START)
        same = _agreeing(knowledge, self.connection, stored, sender)
        if page.froms[stream] > cursor.head or page.tags.get(cursor.head) != cursor.tag:
            same = set()
        mine = standings(knowledge, self.connection, stored)
        later = {
            owner: (how, standing)
            for owner, (how, standing) in told.items()
            if order(standing) > order(mine.get(owner, {}))
            if how == WHOLE or (how == CHANGED and owner in same)
        }
        whole = frozenset(owner for owner, (how, _) in later.items() if how == WHOLE)
        which = Which(whole, frozenset(later.keys() - whole), 0)
        engine = knowledge.store.engine
        grown = engine.take_partials(self.connection, stream, which, version, on_change)
        numbers = knowledge.numbers
        stored.stand(
            self.connection,
            {
                owner: {(place, numbers[inc]): seq for (place, inc), seq in standing.items()}
                for owner, (_, standing) in later.items()
            },
        )
        if page.head >= cursor.head:  # else what the sender had at the cursor is not told
            now = mine | {owner: dict(standing) for owner, (_, standing) in later.items()}
            agreeing = {owner for owner, (_, standing) in told.items() if now.get(owner) == standing}
            stored.agree(self.connection, numbers[sender], agreeing, told.keys() - agreeing)
        return grown

    def lacks(self, stream: str) -> bool:
        """Whether the sender has a later state of an owner, and told only what has changed in it."""
        stored = self.knowledge.store.engine.partials[stream]
        mine = standings(self.knowledge, self.connection, stored)
        told = self._told.get(stream, {})
        return any(order(standing) > order(mine.get(owner, {})) for owner, (_, standing) in told.items())


def partials_status(knowledge: Knowledge, connection: sqlite3.Connection) -> Mapping[str, Any]:
    """View → whether what owners' rows come to is received here, or told to others, and the owners known."""
    engine = knowledge.store.engine
    return {
        stored.partials.view: {
            "receives": isinstance(stored, ReceivedPartials),
            "owners": sorted(standings(knowledge, connection, stored)),
        }
        for stored in (*engine.partials.values(), *engine.feeding)
    }
