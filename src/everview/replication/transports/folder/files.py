"""Files: cuts for everybody who finds them, in a folder that sites share.

A file answers a reader who has read the rest of the folder. It says which vectors that reader has, and which
it has afterwards. It fits every reader whose vectors include the former, wherever those came from; a snapshot
requires nothing. So nobody is listed and nobody is asked.

A file consists of the pages of a cut and, at last, a summary: a message that greets with the head to which
the file leads, and that asks the question to which the pages are the answer.

A core's files, for sites that host a view without its inputs, follow each other: one tells the derivations
since the last, or all of them. So they also fit only who has read their writer's files before them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import msgspec

from everview.engines.sqlite.derived.reduced import core_of
from everview.engines.sqlite.derived.telling import NOBODY
from everview.engines.sqlite.rows import ledger, peers, serving
from everview.engines.sqlite.rows.serving import Mode, Reader
from everview.errors import WireError
from everview.replication.cuts.applying import Outcome, apply
from everview.replication.cuts.derivations import give_derivations, resumes
from everview.replication.cuts.giving import PAGE_BYTES, PAGE_CELLS, page_for
from everview.replication.cuts.staging import key
from everview.replication.protocol.offers import scope_of
from everview.replication.protocol.replica import Replica
from everview.replication.rights.rights import ALL
from everview.replication.status.status import subject_of
from everview.replication.transports.folder.summaries import (
    Span,
    Summary,
    Vector,
    Vectors,
    includes,
    join,
    meet,
)
from everview.replication.wire.codec import decode, peek
from everview.replication.wire.messages import (
    START,
    Ask,
    Columns,
    Cursor,
    Ended,
    Greeting,
    Message,
    News,
    Page,
    Place,
    Resume,
    Share,
    Wish,
)
from everview.replication.wire.sites import Named, Naming, beginnings, incarnation_of

__all__ = ["Files", "Piece"]


class Messages(Protocol):
    """The messages of a file, each of which is read when it is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> bytes: ...


class Piece(NamedTuple):
    """A message of a file, and how many rows it tells of."""

    data: bytes
    rows: int


class _Pages:
    """The pages of a file, which are read as they are needed."""

    def __init__(self, frames: Messages, heads: Sequence[Message]) -> None:
        self._frames, self.heads = frames, heads
        self._read: tuple[int, tuple[Message, list[Columns]]] | None = None
        """The page that was read last: mostly it has several partitions."""

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """In which pages before the last one there is something of a partition, or of a core."""
        found: dict[str, list[int]] = {}
        for number, head in enumerate(self.heads[:-1]):
            assert head.page is not None
            told = {key(share.place) for share in head.page.shares if share.rows}
            for one in told | {key(Place(one.core)) for one in head.page.derived}:
                found.setdefault(one, []).append(number)
        return found

    def pages(self, place: Place) -> Iterator[tuple[Message, list[Columns]]]:
        """Yield those before the last one that have rows of a partition, one by one."""
        yield from map(self.page, self._numbers.get(key(place), ()))

    def page(self, number: int) -> tuple[Message, list[Columns]]:
        """Return a page; WireError unless its rows lie beyond those of the pages before."""
        if self._read is not None and self._read[0] == number:
            return self._read[1]
        message, columns = decode(self._frames[number])
        assert message.page is not None
        sites, before = [incarnation_of(name) for name in message.sites], self._before(number)
        for share, own in zip(message.page.shares, columns[: len(message.page.shares)], strict=True):
            led = before.get(share.place, {})
            # Numbers go up from where a site's rows begin: `Named.dots` checks that.
            firsts = ((sites[own.sites[at]], own.numbers[at]) for at in beginnings(own.sites))
            if any(number <= led.get(site, 0) for site, number in firsts):
                raise WireError(f"a row of {share.place.stream} comes twice", where="section")
        self._read = number, (message, columns)
        return message, columns

    def _before(self, number: int) -> dict[Place, dict[str, int]]:
        """Return to where the pages before one lead."""
        found: dict[Place, dict[str, int]] = {}
        for head in self.heads[:number]:
            sites = head.sites
            for share in head.page.shares if head.page is not None else ():
                led = {incarnation_of(sites[at]): seen for at, seen in _pairs(share.vector)}
                join(found.setdefault(share.place, {}), led)
        return found


class Files:
    """A store, or a core of it, as a folder sees it. All methods may be called from any thread."""

    def __init__(self, replica: Replica, core: str = "") -> None:
        self._replica, self._store, self._core = replica, replica.store, core

    @property
    def cores(self) -> dict[str, Files]:
        """What there is to tell of views to sites without their inputs, by core."""
        return {core: Files(self._replica, core) for core in self._store.engine.derives}

    @property
    def is_received(self) -> bool:
        """Whether the core comes from other sites."""
        return self._core in self._store.engine.received

    @property
    def _streams(self) -> list[str]:
        """What files tell of: what is held as it is, or the inputs of the core."""
        engine = self._store.engine
        if self._core:
            return [name for name in engine.tells if core_of(name) == self._core]
        return [name for name in engine.shares if name not in engine.hollow]

    # What there is.

    def read(self, data: bytes) -> Summary:
        """Return what a file says of itself; WireError for other bytes, SyncError for another program."""
        message, _ = decode(data)
        if message.greeting is None or message.ask is None or message.page is not None:
            raise WireError("the file does not end with a summary", where="header")
        self._replica.programs.note(message)
        sites = [incarnation_of(name) for name in message.sites]
        spans = {}
        for wish in message.ask.wishes:
            required = {sites[at]: seen for at, seen in _pairs(wish.had) if seen}
            reached = dict(required)
            join(reached, {sites[at]: seen for at, seen in _pairs(wish.has)})
            spans[wish.place] = Span(required, reached)
        if len(spans) < len(message.ask.wishes):
            raise WireError("the summary names a partition twice", where="header")
        taken = self._taken(message, [place.stream for place in spans])
        ours = (place for place in spans if place.stream in taken and self._replica.hosts(place))
        return Summary(message, sites[0], spans, frozenset(ours))

    def _taken(self, message: Message, streams: Collection[str]) -> set[str]:
        told = self._streams
        hosted = [name for name in streams if name in told and name in self._replica.shares]
        return self._replica.programs.shared(message.program, hosted, given=False)

    def seen(self) -> dict[Place, dict[str, int]]:
        """Return the vectors of what is held here, by partition."""
        with self._store.exclusive():
            return self._seen(self._store.writer.connection)

    def _seen(self, connection: sqlite3.Connection) -> dict[Place, dict[str, int]]:
        relations, tells = self._store.program.relations, self._store.engine.tells
        streams = {tells[name].partition: name for name in self._streams}
        found: dict[Place, dict[str, int]] = {
            Place(name): {} for name in streams.values() if name not in relations
        }
        for stream, value, incarnation, seen in connection.execute(
            f"SELECT p.stream, p.value, s.incarnation, v.seen FROM {ledger.VECTORS} AS v "
            f"JOIN {ledger.PARTITIONS} AS p ON p.number = v.partition "
            f"JOIN {ledger.SITES} AS s ON s.number = v.site WHERE v.seen > 0"
        ):
            if stream in streams:
                found.setdefault(Place(streams[stream], value), {})[incarnation] = seen
        return found

    def is_ahead(self, summary: Summary) -> bool:
        """Whether a file knows more of this store than it does itself: then that went back in time."""
        own = self._replica.incarnation
        with self._store.exclusive():
            connection = self._store.writer.connection
            seen = self._seen(connection)
            told = serving.Cursor(summary.head.version, summary.head.tag)
            if summary.writer == own and serving.is_foreign(connection, told):
                return True
            return not self._core and any(
                summary.spans[place].reached.get(own, 0) > seen.get(place, {}).get(own, 0)
                for place in summary.ours
            )

    def read_of(self, writer: str) -> Cursor:
        """Return how far a writer's files of the core were read."""
        with self._store.exclusive():
            return self._read_of(self._store.writer.connection, writer)

    def _read_of(self, connection: sqlite3.Connection, writer: str) -> Cursor:
        return Cursor(*peers.cursor_on(connection, writer + self._core)[0])

    def follows(self, summary: Summary, read: Cursor) -> bool:
        """Whether a file of the core goes on where its writer's were read to, and leads further."""
        return summary.head.version > read.version and summary.since.version <= read.version

    def has_news(self, former: Iterable[Summary]) -> bool:
        """Whether there is more to tell of the core than these files of this store say."""
        with self._store.exclusive():
            connection = self._store.writer.connection
            marks, since = self._marks(connection, former)
            told = {place: vector for place, (_, vector) in marks.items()}
            teller = self._store.engine.derives[self._core]
            if self._seen(connection) != told or teller.has_news(connection, since.version):
                return True
            return bool(self._ended(connection, since))

    def _ended(self, connection: sqlite3.Connection, since: Cursor) -> list[Ended]:
        """Return which stores are lost, of those that wrote what is told of."""
        return self._replica.offers.ended(connection, since, map(subject_of, self._streams))

    # Writing.

    def write(self, had: Vectors, former: Iterable[Summary] = ()) -> Iterator[Piece]:
        """Yield the messages of a file for readers who have seen this much, the summary last.

        `former` are files that this store has written. Removals since then are all that it need tell where
        they led no further than what readers have. What has not changed since is left out, unless readers
        lack it: a file of others on which one of these relied may be lost.
        """
        readers: dict[Place, Reader] = {}
        marks: dict[Place, tuple[int, Vector]] = {}
        since: Cursor | None = None
        resume = Resume(self._core, START, [])
        while True:
            with self._replica.telling() as connection:
                if since is None:
                    self._replica.offers.prepare(self._streams)
                    marks, since = self._marks(connection, former)
                    if self._core:
                        had = {place: vector for place, (_, vector) in marks.items()}
                seen = self._seen(connection)
                changed = [
                    place
                    for place, vector in seen.items()
                    if vector != marks.get(place, (0, None))[1] or not includes(had.get(place, {}), vector)
                ]
                for place in set(changed) - readers.keys():
                    required = meet(seen[place], had.get(place, {}))
                    version, vector = marks.get(place, (0, {}))
                    start = version if includes(required, vector) else 0
                    numbers = ledger.numbers_in(connection, self._partition(connection, place))
                    readers[place] = Reader({numbers[site]: n for site, n in required.items()}, since=start)
                naming = Naming(connection, self._store.ledger.site)
                offers = {place.stream: self._store.engine.tells[place.stream] for place in readers}
                page, columns = page_for(
                    connection, self._store.ledger, offers, readers, naming, cells=PAGE_CELLS
                )
                if page.done and self._core:
                    told = connection, self._store.engine.derives, Ask(0, since, [], [resume])
                    most = PAGE_CELLS, PAGE_BYTES, NOBODY
                    page, columns = give_derivations(*told, page, columns, naming, *most)
                    resume = resumes(page).get(self._core, resume)
                if not page.done:
                    for share in page.shares:
                        number = self._partition(connection, share.place).number
                        _stage(readers[share.place], share, ledger.vector(connection, number), naming)
                page, columns = _told(page, columns)
                piece = Piece(self._replica.message(naming, page=page, columns=columns), _rows(page))
                summary = b""
                if page.done:
                    summary = self._summary(connection, page.head, since, readers, changed)
            yield piece
            if summary:
                yield Piece(summary, 0)
                return

    def _partition(self, connection: sqlite3.Connection, place: Place) -> ledger.Partition:
        partition = self._store.engine.tells[place.stream].partition
        return self._store.ledger.partition(connection, partition, place.value)

    def _marks(
        self, connection: sqlite3.Connection, former: Iterable[Summary]
    ) -> tuple[dict[Place, tuple[int, Vector]], Cursor]:
        """Return at which commit each partition was last written, its vector then, and the last of these."""
        marks: dict[Place, tuple[int, Vector]] = {}
        since = START
        for one in sorted(former, key=lambda one: one.head.version):
            if serving.knows(connection, serving.Cursor(one.head.version, one.head.tag)):
                since = one.head
                marks.update((place, (since.version, span.reached)) for place, span in one.spans.items())
        return marks, since

    def _summary(
        self,
        connection: sqlite3.Connection,
        head: Cursor,
        since: Cursor,
        readers: Mapping[Place, Reader],
        changed: Collection[Place],
    ) -> bytes:
        naming = Naming(connection, self._store.ledger.site)
        wishes = []
        for place in sorted(changed, key=lambda place: (place.stream, place.value)):
            reached = ledger.vector(connection, self._partition(connection, place).number)
            had = readers[place].had
            more = {site: seen for site, seen in reached.items() if seen > had.get(site, 0)}
            wishes.append(Wish(place, naming.pairs(had), naming.pairs(more)))
        reads = self._streams if self.is_received else None
        news = News(START, 0, [], 0, self._ended(connection, START))
        greeting, ask = Greeting(head, since, 0, b"", reads), Ask(0, since, wishes)
        return self._replica.message(naming, greeting=greeting, news=news, ask=ask, introduces=True)

    # Taking.

    def take(self, summary: Summary, frames: Messages) -> tuple[Outcome, int]:
        """Apply a file's pages in one commit; return what became of it, and of how many rows it told.

        GAP: it does not fit, or no longer does.
        """
        heads = [peek(frames[number]) for number in range(len(frames) - 1)]
        pages = _Pages(frames, heads)
        last, columns = self._last(summary, pages)
        named = Named(last.sites, last.names)
        replica = self._replica
        with replica.telling():  # removals are logged from the first meeting on, also where that is a file
            pass
        with replica.identity.committing() as connection:
            read = self._read_of(connection, summary.writer)
            follows = not self._core or self.follows(summary, read)
            if not follows or not summary.fits(self._seen(connection)):
                return Outcome.GAP, 0
            news = self._news(connection, summary)
            outcome = apply(replica, connection, last, columns, named, pages, ALL, news=news)
            if self._core and outcome is Outcome.APPLIED:
                head = serving.Cursor(summary.head.version, summary.head.tag)
                peers.note_cursor(connection, summary.writer + self._core, head, 0)
        return outcome, sum(_rows(head.page, summary.ours) for head in heads if head.page is not None)

    def _last(self, summary: Summary, pages: _Pages) -> tuple[Message, list[Columns]]:
        """Return the last page, with what is taken of it; WireError unless the pages are the summary's."""
        heads = pages.heads
        done = [head.page.done for head in heads if head.page is not None]
        of_one = all((head.sites[0], head.program) == _signed(summary) for head in heads)
        if not heads or done != [False] * (len(heads) - 1) + [True] or not of_one:
            raise WireError("the pages are not those of the file's summary", where="header")
        if any(one.core != self._core for head in heads if head.page for one in head.page.derived):
            raise WireError("the pages have derivations of something else", where="header")
        message, columns = pages.page(len(heads) - 1)
        page = message.page
        assert page is not None
        columns, derived = columns[: len(page.shares)], columns[len(page.shares) :]
        pairs = [pair for pair in zip(page.shares, columns, strict=True) if pair[0].place in summary.ours]
        sites = [incarnation_of(name) for name in message.sites]
        led = {share.place: {sites[at]: n for at, n in _pairs(share.vector) if n} for share, _ in pairs}
        for place in summary.ours:
            required, reached = summary.spans[place]
            if led.get(place, required) != reached:
                raise WireError(f"{place.stream} is not led to where the summary says", where="header")
        page = msgspec.structs.replace(page, shares=[share for share, _ in pairs])
        return msgspec.structs.replace(message, page=page), [*(own for _, own in pairs), *derived]

    def _news(self, connection: sqlite3.Connection, summary: Summary) -> News | None:
        """The news that a file is of its writer; None where a gap lies before it.

        Cores have cursors of their own here, and an exchange has one for all: where a core is received, only
        that moves it.
        """
        if self._store.engine.received:
            return None
        read, scope = peers.cursor_on(connection, summary.writer)
        if summary.head.version <= read.version:
            return None
        if summary.is_snapshot:
            streams = sorted({place.stream for place in summary.ours})
            scope = scope_of(streams, self._replica.offers.chosen(connection))
        elif not 0 < summary.since.version <= read.version:
            return None
        return News(summary.since, scope, [])


def _signed(summary: Summary) -> tuple[bytes, bytes]:
    return summary.message.sites[0], summary.message.program


def _pairs(vector: Sequence[int]) -> Iterator[tuple[int, int]]:
    yield from zip(vector[::2], vector[1::2], strict=True)


def _stage(reader: Reader, share: Share, reached: Iterable[int], naming: Naming) -> None:
    """Count what is in a page as had, when the next one is chosen; `reached` are the sites of its vector."""
    sites = {naming.place(site): site for site in reached}
    reader.has = {sites[at]: seen for at, seen in _pairs(share.vector)}


def _told(page: Page, columns: Sequence[Columns]) -> tuple[Page, list[Columns]]:
    """Leave out partitions of which a page tells nothing."""
    pairs = zip(page.shares, columns[: len(page.shares)], strict=True)
    said = [pair for pair in pairs if pair[0].rows or (page.done and pair[0].mode != Mode.SAME)]
    derived = columns[len(page.shares) :]
    replaced = msgspec.structs.replace(page, shares=[share for share, _ in said], resumes=[])
    return replaced, [*(own for _, own in said), *derived]


def _rows(page: Page, places: Collection[Place] | None = None) -> int:
    """How many rows a page tells of: those that come, those that went, and derivations."""
    return sum(one.rows for one in page.derived) + sum(
        share.rows + (share.gone if share.mode in (Mode.SINCE, Mode.LOG) else 0)
        for share in page.shares
        if places is None or share.place in places
    )
