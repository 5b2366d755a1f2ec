"""Questions: what a store asks of another, and what becomes of the pages that answer.

A page that is not the last of its cut is staged. The next question says how far that leads. The last page
applies the whole cut, in one commit.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from everview.engines.sqlite.rows import ledger, serving
from everview.errors import EverviewError, WireError
from everview.replication.cuts.applying import Outcome, apply
from everview.replication.cuts.derivations import resumes
from everview.replication.cuts.staging import Staged, Staging, key
from everview.replication.rights.rights import ALL, Rights
from everview.replication.wire.messages import START, Ask, Columns, Message, News, Page, Place, Resume, Wish
from everview.replication.wire.sites import Named, Naming

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica

__all__ = ["Party", "Questions"]

_OPEN = 256
"""How many questions may be open at once; of more the oldest is forgotten, and asked again."""


class Party(NamedTuple):
    """Who sits across: a store, the program that it runs, and what it may do here."""

    incarnation: str
    program: bytes
    rights: Rights = ALL

    @property
    def writer(self) -> str:
        """What its cursor and staged pages are kept under: other rights make it another one."""
        return self.incarnation + self.rights.writer


class _Question(NamedTuple):
    """What was asked, as whom; what of it is read again whole."""

    incarnation: str
    news: News
    repairs: frozenset[str]
    places: frozenset[Place]
    after: int
    """The question whose answer was staged last: two exchanges may ask for one cut at a time."""


class Questions:
    """What was asked and is not answered yet."""

    def __init__(self, replica: Replica) -> None:
        self._replica, self._store = replica, replica.store
        self._open: dict[int, _Question] = {}

    def ask(
        self,
        connection: sqlite3.Connection,
        party: Party,
        news: News,
        naming: Naming,
        repairs: frozenset[str] = frozenset(),
    ) -> Ask | None:
        """Ask for what has changed, of what is hosted here and may be written by the sender."""
        replica, ledger_, rights = self._replica, self._store.ledger, party.rights
        taken = replica.programs.shared(party.program, replica.shares, given=False)
        wanted = {name for name in taken if replica.may_take(name, rights)}
        staging = Staging(connection, party.writer)
        staged = staging.last()
        if staged is not None and frozenset(staged.repairs) != repairs:  # begun for something else
            staging.clear()
            staged = None
        wishes = []
        for place in news.places:
            if place.stream not in wanted or not replica.hosts(place, rights):
                continue
            partition, whole = ledger_.find(connection, place.stream, place.value), place.stream in repairs
            had = {} if whole or partition is None else ledger.vector(connection, partition.number)
            begun_ = {} if staged is None else staged.has.get(key(place), {})
            has = _numbered(connection, partition, begun_)
            wishes.append(Wish(place, naming.pairs(had), naming.pairs(has), whole))
        begun, received = {} if staged is None else staged.resumes, self._store.engine.received
        cores = [
            begun.get(place.stream, Resume(place.stream, START, []))
            for place in news.places
            if place.stream in received and replica.may_take(place.stream, rights)
        ]
        if not wishes and not cores:
            return None
        asked = frozenset([*(wish.place for wish in wishes), *(Place(core.core) for core in cores)])
        after, cut = 0 if staged is None else staged.cut, self._store.environment.tag()
        self._open[cut] = _Question(self._store.incarnation, news, repairs, asked, after)
        while len(self._open) > _OPEN:
            del self._open[next(iter(self._open))]
        passed = [place for place in news.places if place not in asked]
        return Ask(cut, news.since, wishes, cores, passed, news.scope, news.head)

    def ask_on(self, connection: sqlite3.Connection, party: Party, naming: Naming) -> Ask | None:
        """Ask for the next page of a cut that has begun."""
        staged = Staging(connection, party.writer).last()
        if staged is None:
            return None
        return self.ask(connection, party, staged.news, naming, frozenset(staged.repairs))

    def take(
        self, message: Message, columns: list[Columns], data: bytes, named: Named, rights: Rights
    ) -> Outcome:
        """Take a page: stage it, or apply the whole cut if it is the last one."""
        page, replica = message.page, self._replica
        assert page is not None
        question = self._open.pop(page.cut, None)
        if question is None or question.incarnation != self._store.incarnation:
            return Outcome.GAP
        told = [share.place for share in page.shares] + [Place(one.core) for one in page.derived]
        if not question.places.issuperset(told):
            raise WireError("a page tells what nobody has asked for", where="section")
        sender = named.sender + rights.writer
        if not page.done:
            with self._store.writing() as connection:
                staging = Staging(connection, sender)
                if staging.reached() != question.after:
                    return Outcome.GAP
                _stage(self._store.ledger, staging, connection, page, question, named, data)
            return Outcome.STAGED
        try:
            with replica.identity.committing() as connection:
                staging = Staging(connection, sender)
                if staging.reached() != question.after:
                    return Outcome.GAP
                cut = replica, connection, message, columns, named, staging, rights
                outcome = apply(*cut, news=question.news, repairs=question.repairs)
                staging.clear()
                if replica.writing.commit.grown:  # it is told soon: that need not be another commit
                    serving.note_head(connection, self._store.environment.tag() or 1)
                    replica.identity.lineage.told(connection)
        except EverviewError:  # what was staged may be what is wrong
            with self._store.writing() as connection:
                Staging(connection, sender).clear()
            raise
        return outcome


def _stage(
    known: ledger.Ledger,
    staging: Staging,
    connection: sqlite3.Connection,
    page: Page,
    question: _Question,
    named: Named,
    data: bytes,
) -> None:
    staged = staging.last() or Staged(question.news, {}, [])
    named.learn(connection)
    for share in page.shares:
        partition = known.partition(connection, share.place.stream, share.place.value)
        named.within(connection, partition, share.vector)
        has = staged.has.setdefault(key(share.place), {})
        for place, seen in zip(share.vector[::2], share.vector[1::2], strict=True):
            incarnation = named.incarnations[place]
            has[incarnation] = max(has.get(incarnation, 0), seen)
    here = [key(share.place) for share in page.shares]
    here += [key(Place(core)) for core in dict.fromkeys(derived.core for derived in page.derived)]
    going, repairs = staged.resumes | resumes(page), sorted(question.repairs)
    staging.add(Staged(question.news, staged.has, here, going, page.cut, repairs), data)


def _numbered(
    connection: sqlite3.Connection, partition: ledger.Partition | None, vector: dict[str, int]
) -> dict[int, int]:
    if not vector or partition is None:
        return {}
    sites = ledger.numbers_in(connection, partition).items()
    return {number: vector[incarnation] for incarnation, number in sites if incarnation in vector}
