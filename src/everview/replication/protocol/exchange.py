"""An exchange: the dialling side of one sync, without input or output.

1. Both greet: how far each is, and how far it has read the other. The listener names what has changed since.
2. The dialler asks for that, and names what has changed here; where it remembers how far the listener has
   read it, it does so with its greeting.
3. Each answers the other's questions, page by page; the last page of a cut ends its direction.

Where nothing has changed on either side it ends after the first step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from everview.engines.sqlite.rows import peers, serving
from everview.errors import SyncError
from everview.replication.cuts.applying import Outcome
from everview.replication.protocol.listener import OTHER_PROGRAM, follows
from everview.replication.protocol.questions import Party
from everview.replication.rights.rights import ALL
from everview.replication.transports.report import OnProgress, Progress, SyncReport
from everview.replication.wire.codec import decode
from everview.replication.wire.messages import Columns, Greeting, Message, News, Page
from everview.replication.wire.sites import Named, Naming

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica

__all__ = ["Exchange"]

_STALLS = 3
"""How often an exchange may begin again, because a store turned out to have gone back in time."""


_OVERTAKEN = 1_000
"""How often it may begin again because another exchange was faster: that one then has come a page further."""


class Exchange:
    """One sync with a peer: `open`, then `receive` each answer and send what it returns, until None."""

    def __init__(
        self,
        replica: Replica,
        peer: str,
        *,
        on_progress: OnProgress | None = None,
        repairs: frozenset[str] = frozenset(),
    ) -> None:
        self.report = SyncReport()
        self._replica, self._peer, self._on_progress = replica, peer, on_progress
        self._met = self._greeted = ""
        self._repairs = repairs
        self._taken = self._given = False
        self._came = 0
        self._again = self._overtaken = 0
        self._introduced = False
        self._gave: set[str] = set()
        """The streams of which rows were given."""
        self._told: Greeting | None = None
        """The greeting by which the first message has said what has changed here, if it has."""

    def open(self, *, introduces: bool = False) -> bytes:
        """Return the first message; it says what the program declares to a peer that runs another."""
        self._taken = self._given = False
        with self._replica.telling() as connection:
            to = self._met or peers.who_answers(connection, self._peer)
            self._greeted = "" if self._repairs else to
            naming = Naming(connection, self._replica.store.ledger.site)
            greeting = self._replica.offers.greeting(connection, self._greeted)
            read = self._replica.heard.greetings.get(self._greeted)
            news = None
            if read is not None:
                news = self._replica.offers.news(connection, read, ALL, self._replica.program)
                news = news if news.places or news.ended else None
            self._told = None if news is None else read
            told = self._replica.message(naming, greeting=greeting, news=news, introduces=introduces)
            return self._sent(told)

    def receive(self, data: bytes) -> bytes | None:
        """Take an answer; return the next message to send, None when both directions are done."""
        message, columns = decode(data)
        self.report.received_bytes += len(data)
        is_refused = message.refusal is not None and message.refusal.code == OTHER_PROGRAM
        is_known = self._replica.programs.note(message)
        if (is_refused or not is_known) and not self._introduced:
            self._introduced = True
            return self.open(introduces=True)  # and it answers with what its own declares
        named = self._replica.hear(message)
        self._replica.refusals.hear(message, named, partial(self._replica.may_take, rights=ALL))
        begun = self._met == named.sender
        renewed = not begun and bool(self._met)  # it has found out that it went back in time
        self._met = named.sender
        if message.program == self._replica.program:
            self._replica.heard.answered(named.sender, message.greeting)
        if message.greeting is not None and (self._is_behind(message) or self._is_met_elsewhere(named)):
            return self._anew()
        taken = None
        if message.page is not None:
            taken = self._replica.questions.take(message, columns, data, named, ALL)
            self._count(message.page, taken)
            if taken is Outcome.REWOUND:
                return self._anew()
            if taken is Outcome.GAP:
                return self._behind_another()
        if renewed or (message.news is not None and self._is_read_again(named, message.news)):
            return self._anew()
        self._progress()
        return self._reply(message, named, taken)

    def _is_behind(self, message: Message) -> bool:
        assert message.greeting is not None
        with self._replica.telling() as connection:
            behind = self._replica.identity.is_behind(connection, message.greeting)
        if behind:
            self._replica.go_back()
        return behind

    def _is_met_elsewhere(self, named: Named) -> bool:
        """Whether it was read before, and greeted as a stranger: it has to hear how far it was read."""
        if self._repairs or named.sender == self._greeted:
            return False
        with self._replica.store.exclusive():
            read, _ = peers.cursor_on(self._replica.store.writer.connection, named.sender)
        return read != serving.START

    def _is_read_again(self, named: Named, news: News) -> bool:
        """Whether views here have become empty since it was greeted: then its news begin too late."""
        with self._replica.store.exclusive():
            return not follows(self._replica.store.writer.connection, named.sender, news)

    def _anew(self) -> bytes:
        self._again += 1
        if self._again > _STALLS:
            raise SyncError(
                f"{self._peer} and this store do not agree on who they are", peer=self._peer, retry=True
            )
        return self.open()

    def _behind_another(self) -> bytes:
        """Go on from where another exchange with this peer has brought the same cut meanwhile."""
        self._overtaken += 1
        if self._overtaken > _OVERTAKEN:
            raise SyncError(
                f"others sync with {self._peer} from here all the time", peer=self._peer, retry=True
            )
        return self.open()

    def _reply(self, message: Message, named: Named, taken: Outcome | None) -> bytes | None:
        replica, party = self._replica, Party(named.sender, message.program)
        with replica.telling() as connection:
            naming = Naming(connection, replica.store.ledger.site)
            ask = news = page = None
            columns: list[Columns] = []
            if message.news is not None:
                ask = replica.questions.ask(connection, party, message.news, naming, self._repairs)
                self._taken = ask is None
                if ask is None and message.greeting is not None:
                    replica.note_read(named.sender, message.greeting.head, message.news.scope)
            elif taken is Outcome.STAGED:
                ask = replica.questions.ask_on(connection, party, naming)
            elif taken is not None:
                self._taken = True
            if message.news is not None and message.greeting is not None and self._asks_at_once(message):
                pass
            elif message.news is not None and message.greeting is not None:
                news = replica.offers.news(connection, message.greeting, ALL, message.program)
                self._given = not news.places
                if not news.places and (self._told is not None or not news.ended):
                    news = None
            elif message.ask is None and not self._given:
                self._given = True  # it wants nothing of what has changed
            if message.ask is not None:
                page, columns, missed = replica.offers.page(connection, message, naming, ALL)
                news = missed or news
                self._given = page.done
                self._gave |= {share.place.stream for share in page.shares if share.rows or share.gone}
            refused = replica.refusals.tell(naming, named.sender)
            if ask is not None or news is not None or page is not None or refused:
                told = replica.message(
                    naming, ask=ask, news=news, page=page, columns=columns, refused=refused
                )
                return self._sent(told, page)
            replica.note_address(self._peer, named.sender)
        derived, self._gave = not self._gave.isdisjoint(replica.store.engine.joined_elsewhere), set()
        return self.open() if derived else None

    def _asks_at_once(self, message: Message) -> bool:
        """Whether the first message's news were enough.

        A listener that has read less does not ask. One that has come to want more asks for what it was told.
        """
        told, now = self._told, message.greeting
        if told is None or now is None or message.ask is None:
            return False
        return (now.reads, now.chosen) == (told.reads, told.chosen)

    def _count(self, page: Page, taken: Outcome) -> None:
        rows = _row_count(page)
        self._came += rows
        if taken is Outcome.APPLIED:
            self.report.received_rows += self._came
            self._came = 0

    def _sent(self, data: bytes, page: Page | None = None) -> bytes:
        self.report.sent_bytes += len(data)
        self.report.sent_rows += 0 if page is None else _row_count(page)
        return data

    def _progress(self) -> None:
        if self._on_progress is not None:
            doing = "sending" if self._taken else "receiving"
            self._on_progress(Progress.of(self._peer, doing, self.report))


def _row_count(page: Page) -> int:
    rows = sum(share.rows + (share.gone if share.mode in (1, 2) else 0) for share in page.shares)
    return rows + sum(derived.rows for derived in page.derived)
