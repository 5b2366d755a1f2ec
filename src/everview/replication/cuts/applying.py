"""Applying a cut: all of its pages in one commit, or nothing.

For every partition what went is removed first, then rows that were not seen are added, page by page, and the
sender's vector is joined at last.
"""

from __future__ import annotations

import enum
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import add, ne
from typing import TYPE_CHECKING, NamedTuple, Protocol

from everview.engines.sqlite.connections import lengthen_log
from everview.engines.sqlite.rows import ledger, peers, serving
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import number_of, site_of
from everview.engines.sqlite.rows.ledger import Partition
from everview.engines.sqlite.rows.permits import Permit, restore
from everview.engines.sqlite.rows.refusals import not_the_owners, note_refused, text_of, without_successor
from everview.engines.sqlite.rows.serving import Mode, Removals, Rows
from everview.engines.sqlite.rows.taking import Part, Taking, trim_log, undo
from everview.engines.sqlite.windows.closing import TOO_LATE
from everview.errors import WireError
from everview.language.windowed import CLOSED
from everview.replication.cuts.derivations import take_derivations
from everview.replication.wire.checks import check_columns
from everview.replication.wire.messages import Columns, Message, News, Place, Share
from everview.replication.wire.sites import Named, beginnings

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica
    from everview.replication.rights.rights import Rights

__all__ = ["Outcome", "Pages", "apply"]

_TOGETHER = 100_000
"""So many rows go through the views at once: more of them meet in one page of a view, and in one group."""

_LOG = logging.getLogger("everview")


class Outcome(enum.Enum):
    """What became of a page."""

    STAGED = "it is kept until the cut is whole"
    APPLIED = "the cut is applied"
    GAP = "nobody has asked for it, or for something else since"
    BEYOND = "it has seen more of a lost store than anybody who holds the relation"
    REWOUND = "the sender knows more of this store than it does itself"


class Pages(Protocol):
    """The pages of a cut that came before its last one."""

    def pages(self, place: Place) -> Iterator[tuple[Message, list[Columns]]]:
        """Yield those that have rows of a partition, one by one."""


def apply(
    replica: Replica,
    connection: sqlite3.Connection,
    last: Message,
    columns: list[Columns],
    named: Named,
    staging: Pages,
    rights: Rights,
    *,
    news: News | None,
    repairs: frozenset[str] = frozenset(),
) -> Outcome:
    """Apply a cut whose last page has come: the answer to news of its sender, some of it read again whole.

    A file that does not follow what was read of its writer is about no news: then no cursor moves.
    """
    page, store = last.page, replica.store
    assert page is not None
    named.learn(connection)
    store.ledger.load(connection)  # another process may have written
    streams = {share.place.stream for share in page.shares} & replica.shares.keys()
    written = {one: store.engine.written_in(one) for one in streams if replica.may_take(one, rights)}
    applying = _Applying(replica, connection, last, columns, named, staging, repairs, rights)
    parts = [
        applying.part(last, columns, page.shares[number], number)
        for place, number in applying.numbers(last).items()
        if place.stream in written and replica.hosts(place, rights)
    ]
    behind = [
        (written[part.share.place.stream], part.share.place.value)
        for part in parts
        if replica.identity.is_overtaken(
            connection, written[part.share.place.stream], part.partition, part.vector
        )
    ]
    if behind:
        replica.identity.rewound(connection, behind)
        return Outcome.REWOUND
    led = {
        part.share.place.stream: (part.vector, part.share.whole)
        for part in parts
        if part.share.place.stream in store.engine.hollow
    }
    if not replica.endings.fits(connection, led):
        return Outcome.BEYOND
    for part in sorted(parts, key=lambda part: part.share.place.stream != CLOSED):
        applying.take(part, written[part.share.place.stream])
    received = store.engine.received
    cores = {name: core for name, core in received.items() if replica.may_take(name, rights)}
    take_derivations(replica, connection, last, columns, named, staging, cores)
    store.ledger.forget()
    store.ledger.load(connection)
    if news is not None:
        read = serving.Cursor(page.head.version, page.head.tag)
        peers.note_cursor(connection, named.sender + rights.writer, read, news.scope)
    if replica.closing is not None:
        replica.closing.heard(share.place.stream for share in page.shares)
    lengthen_log(connection)
    return Outcome.APPLIED


class _Told(NamedTuple):
    """What a page has of a partition: its share and columns, and its sites and vector in this store."""

    share: Share
    columns: Columns
    partition: Partition
    named: Named
    vector: dict[int, int]


@dataclass(slots=True)
class _Applying:
    """A cut that is being applied, partition by partition."""

    replica: Replica
    connection: sqlite3.Connection
    last: Message
    columns: list[Columns]
    named: Named
    staging: Pages
    repairs: frozenset[str]
    rights: Rights
    _page: tuple[Message, dict[Place, int]] | None = None
    """Where the partitions stand in the page that was looked at last."""

    def part(self, message: Message, columns: list[Columns], share: Share, number: int) -> _Told:
        """Return a share of a page, with its sites numbered as in its partition here."""
        known, named = self.replica.store.ledger, self.named
        if message is not self.last:
            named = Named(message.sites, message.names)
            named.learn(self.connection)
        partition = known.partition(self.connection, share.place.stream, share.place.value)
        named = named.within(self.connection, partition, share.vector)
        return _Told(share, columns[number], partition, named, named.vector(share.vector, named.numbers))

    def take(self, told: _Told, written: str) -> None:
        """Apply what the cut has of a partition; the store's own rows of it are written in a stream."""
        replica, connection, own = self.replica, self.connection, self.replica.store.ledger
        share, columns, partition, named, vector = told
        stored = replica.shares[share.place.stream]
        if vector.get(own.site_in(partition), 0) > own.written(connection, written, share.place.value):
            self._alarm(share, "is said by %s to have more of this store than it wrote")
            return
        removals = _removals(share, columns, named)
        permit = self._permit(stored)
        part = Part(stored, partition, vector, removals, share.place.stream in self.repairs, permit)
        taking = Taking(connection, replica.writing.commit, part)
        refused, late = self._take_rows(told, part, taking)
        digest = taking.finish()
        self._take_back(stored, partition, taking)
        if refused:
            why = f"only the site named in {stored.relation.owner} writes such rows"
            self._undo(stored, partition, refused, why)
        if late := [one for one in late if one not in refused]:
            self._undo(stored, partition, late, TOO_LATE)
        if permit is not None:
            self._limit(stored, partition, permit)
        self._compare(share, digest, vector, partition.number)
        trim_log(connection, stored, partition.number)
        if replica.closing is not None and share.place.stream == CLOSED:
            replica.closing.step_aside()  # before what others have refused is gone

    def _take_rows(self, told: _Told, part: Part, taking: Taking) -> tuple[list[int], list[int]]:
        """Remove what went and add what came; return the rows that are not their owners', and late ones."""
        closing, stored, changed = self.replica.closing, part.stored, taking.remove()
        refused: list[int] = []
        late: list[int] = []
        staged = 0
        for rows in self._rows(told, stored, taking.had):
            taking.add(rows)
            refused += not_the_owners(self.connection, stored, rows)
            if closing is not None and not part.repairs:
                late += closing.too_late(stored, rows, taking.had)
            staged += len(rows.dots)
            if staged >= _TOGETHER:
                self._carry_rows(stored, nets=changed)
                changed, staged = False, 0
        if changed or staged:
            self._carry_rows(stored, nets=changed and staged > 0)
        if followed := stored.follow(self.connection):
            self._carry(followed)
        return refused, late

    def _carry_rows(self, stored: StoredRows, *, nets: bool) -> None:
        """Carry what rows that went and came have changed; of a row that did both nothing is left."""
        if nets:
            stored.net(self.connection)
        self._carry((stored.delta,))

    def _carry(self, deltas: tuple[str, ...]) -> None:
        """Carry what has changed through all views."""
        engine, collect = self.replica.store.engine, self.replica.writing.collect
        engine.propagate(self.connection, deltas, collect, shrinks=True)

    def _rows(self, told: _Told, stored: StoredRows, had: Mapping[int, int]) -> Iterator[Rows]:
        """The rows of a partition in all pages of the cut; each page goes on above those before it."""
        above: dict[int, int] = {}
        for message, columns in self.staging.pages(told.share.place):
            number = self.numbers(message).get(told.share.place)
            if number is not None and message.page is not None:
                part = self.part(message, columns, message.page.shares[number], number)
                yield from self._rows_in(message, part, stored, had, above)
        yield from self._rows_in(self.last, told, stored, had, above)

    def numbers(self, message: Message) -> dict[Place, int]:
        """Return where the partitions stand in a page."""
        if self._page is None or self._page[0] is not message:
            shares = message.page.shares if message.page is not None else []
            found = {share.place: number for number, share in enumerate(shares)}
            if len(found) < len(shares):
                raise WireError("a page has a partition twice", where="section")
            self._page = message, found
        return self._page[1]

    def _rows_in(
        self, message: Message, told: _Told, stored: StoredRows, had: Mapping[int, int], above: dict[int, int]
    ) -> Iterator[Rows]:
        share, columns, _, named, seen = told
        if not share.rows:
            return
        stream, programs = share.place.stream, self.replica.programs
        rows = stored.completed(programs.widened(message.program, stream, columns.rows))
        check_columns(stream, rows, stored.columns, share.rows)
        stored.check(rows)
        stored.check_value(rows, share.place.value)
        dots, begins = named.dots(columns.sites, columns.numbers), beginnings(columns.sites)
        if len(begins) > 1 and len(set(dots)) < len(dots):
            raise WireError("two rows of a page have one dot", where="section")
        lasts = [dots[place - 1] for place in (*begins[1:], len(dots))]
        if any(number_of(last) > seen.get(site_of(last), 0) for last in lasts):
            raise WireError("a row lies beyond its sender's vector", where="section")
        firsts = [dots[place] for place in begins]
        if any(number_of(first) <= above.get(site_of(first), 0) for first in firsts):
            raise WireError("a row comes in two pages of a cut", where="section")
        above.update((site_of(last), max(number_of(last), above.get(site_of(last), 0))) for last in lasts)
        is_new = all(number_of(first) > had.get(site_of(first), 0) for first in firsts)
        yield Rows(rows, dots, {}, is_all=True, is_new=is_new)

    def _take_back(self, stored: StoredRows, partition: Partition, taking: Taking) -> None:
        """Write rows of this site's own again that somebody else has removed: nobody else can."""
        replica = self.replica
        lost = without_successor(self.connection, stored, taking.lost)
        if lost and replica.closing is not None:
            lost = replica.closing.take_back(stored, lost)
        if lost:
            commit, collect = replica.writing.commit, replica.writing.collect
            replica.store.engine.insert(self.connection, stored.stream, lost, commit, collect)
            serving.forget_digest(self.connection, partition.number)

    def _permit(self, stored: StoredRows) -> Permit | None:
        """What decides which changes stay; None where the sender may insert and delete."""
        stream, rights = stored.stream, self.rights
        inserts, deletes = rights.may_insert(stream), rights.may_delete(stream)
        if (inserts and deletes) or stream not in self.replica.store.program.relations:
            return None
        return Permit(self.connection, stored, inserts=inserts, deletes=deletes)

    def _limit(self, stored: StoredRows, partition: Partition, permit: Permit) -> None:
        """Undo what the sender may not do, so that all agree, the sender, too."""
        replica, connection, sender = self.replica, self.connection, self.named
        may, refused = "insert" if self.rights.may_insert(stored.stream) else "delete", permit.refused()
        why = f"{sender.name or sender.sender} may only {may} rows of {stored.stream}"
        back = permit.lost()
        if refused:
            self._undo(stored, partition, refused, why)
        if not back:
            return
        dots = restore(connection, replica.writing.commit, stored, partition, [row for row, _ in back])
        self._carry((stored.delta,))
        shown = (one for one in zip(dots, back, strict=True) if one[1][1])
        told = {dot: text_of(stored, row) for dot, (row, _) in shown}
        now_us, reads = replica.store.environment.now_us(), self.rights.may_read(stored.stream)
        note_refused(connection, stored, told, why, replica.store.name, now_us)
        replica.refusals.note(sender.sender, stored.stream, told.items() if reads else (), why)
        _LOG.warning("%d rows of %s were added again: %s", len(back), stored.stream, why)

    def _undo(self, stored: StoredRows, partition: Partition, dots: list[int], why: str) -> None:
        """Remove rows again that may not be here, and remember them for the answer."""
        store, sender = self.replica.store, self.named.name or self.named.sender
        said = note_refused(self.connection, stored, dots, why, store.name, store.environment.now_us())
        told = said if stored.is_partitioned else {}  # of which each store numbers values by itself
        undo(self.connection, self.replica.writing.commit, stored, partition, dots)
        self._carry((stored.delta,))
        self.replica.refusals.note(
            self.named.sender, stored.stream, ((dot, told.get(dot, "")) for dot in dots), why
        )
        _LOG.warning("%d rows of %s from %s were refused: %s", len(dots), stored.stream, sender, why)

    def _compare(self, share: Share, digest: tuple[int, int], vector: dict[int, int], partition: int) -> None:
        """Equal vectors mean equal rows; an alarm where digests say otherwise."""
        if ledger.vector(self.connection, partition) != vector:
            return
        if digest == tuple(share.digest):
            peers.clear_alarms(self.connection, share.place.stream, share.place.value, self.named.sender)
        else:
            self._alarm(share, "differs from that of %s although both have seen the same")

    def _alarm(self, share: Share, what: str) -> None:
        """Remember that something is wrong with a partition, here or at a peer, and say so."""
        stream, now_us = share.place.stream, self.replica.store.environment.now_us()
        peers.raise_alarm(self.connection, stream, share.place.value, self.named.sender, now_us)
        peer = self.named.name or self.named.sender
        _LOG.error(f"%s {what}; `everview repair %s` reads it again", stream, peer, stream)


def _removals(share: Share, columns: Columns, named: Named) -> Removals:
    mode = Mode(share.mode)
    if mode is Mode.SAME:
        return Removals(mode)
    dots = named.dots(columns.gone[0], columns.gone[1])
    if mode is not Mode.LIVE:
        return Removals(mode, dots)
    highs = list(map(add, dots, columns.gone[2]))
    if len(set(dots)) < len(dots) or any(map(ne, map(site_of, dots), map(site_of, highs))):
        raise WireError(
            "an interval of live rows begins like another, or ends at another site", where="section"
        )
    return Removals(mode, dots, highs)
