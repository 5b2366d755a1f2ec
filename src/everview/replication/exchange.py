"""An exchange: the dialling side of one sync, without input or output.

Both directions go in one conversation. Each message asks for the next page and answers what the other side
asked; it ends when a whole cut was taken from the peer and one was given to it.
"""

from __future__ import annotations

from everview.errors import SyncError
from everview.planner.partials import is_partials
from everview.planner.published import is_published
from everview.replication.arriving import Applied, Outcome
from everview.replication.messages import START, Message, Page
from everview.replication.publishing import row_count
from everview.replication.replica import Replica
from everview.replication.report import OnProgress, Progress, SyncReport
from everview.replication.telling import Served
from everview.replication.wire import decode, encode

__all__ = ["Exchange", "Progress", "SyncReport"]

_STALLS = 4
"""How many messages may pass without anything moving before it is given up."""


class Exchange:
    """One sync with a peer: `open`, then `receive` each answer and send what it returns, until None."""

    def __init__(self, replica: Replica, peer: str, *, on_progress: OnProgress | None = None) -> None:
        self.report = SyncReport()
        self._replica, self._peer, self._on_progress = replica, peer, on_progress
        self._taken = self._given = self._settled = self._untaken = False
        self._came = self._went = self._head = 0
        self._stalls = self._refused = 0
        self._reached = b""
        self._ended = self._again = self._introduced = False
        self._feeds = self._fed_again = False
        self._unfounded: set[str] = set()
        self._asked_again = False

    def open(self) -> bytes:
        """Return the first message."""
        self._replica.tick()
        return self._send(self._replica.ask(self._peer))

    def receive(self, data: bytes) -> bytes | None:
        """Take an answer; return the next message to send, None when both directions are done."""
        message = decode(data)
        self.report.received_bytes += len(data)
        if not self._introduced and self._replica.must_introduce(message):
            self._introduced = True
            return self._send(self._replica.ask(self._peer, incarnation=message.sites[0]))
        try:
            message = self._replica.understood(message)
            applied = self._replica.hear(message, data, self._peer)
        except SyncError as error:
            if error.peer is None:
                error.peer = self._peer
            raise
        if self._ended:
            self._look_whether_taken(message)
        moved = row_count(message.page)
        settled = applied is not None and applied.outcome in (Outcome.APPLIED, Outcome.STALE)
        self._count(moved, cut_ends=applied is not None, settled=settled)
        staged = message.page is not None and applied is None  # perhaps without rows: we may have them all
        self._stalls = 0 if staged or settled else self._stalls + 1
        self._refused += applied is not None and not settled
        if applied is not None:
            self._note(applied, settled=settled)
        if message.request is not None and self._ended and not self._again:
            self._given, self._again = False, True  # the peer has left its group for ours: it needs the whole
        self._unfounded |= self._replica.unfounded(message)
        give = self._give(message, moved)
        self._progress()
        if give is None and self._taken and self._given:
            if self._unfounded - self._replica.joined and not self._asked_again:
                # Asked by its name it has founded none, and said so to nobody: now it does, and we found.
                self._taken, self._given, self._asked_again = False, False, True
                return self._send(self._replica.ask(self._peer, incarnation=message.sites[0]))
            self._replica.tidy()
            self._say_held_up(message)
            return None
        stalled = max(self._stalls, self._refused) > _STALLS
        if stalled and (applied is None or applied.outcome is Outcome.REFUSED):
            self._say_held_up(message)
            return None  # neither has anything for the other
        if stalled:
            raise SyncError(self._why_stalled(message), peer=self._peer, retry=True)
        last = self._ended = give is not None and give.page.done
        given = row_count(None if give is None else give.page) + self.report.sent_rows
        if last and given and self._replica.receives_views:
            self._taken = False  # what we tell changes what we are told of views: ask once more
        if self._taken:
            reply = self._replica.tell(give, message.sites[0])
        else:
            reply = self._replica.ask(self._peer, give=give, incarnation=message.sites[0])
        self._given = self._given or last
        return self._send(reply)

    def _note(self, applied: Applied, *, settled: bool) -> None:
        """Take note of what became of a cut: what is still to be taken, and to be given."""
        self._taken |= settled
        if applied.outcome in (Outcome.LEFT, Outcome.REWOUND):
            self._taken = False
            self._given = False
        if applied.joined:
            self._given = False  # there is more to give now than there was before
        if applied.grown and self._given and self._feeds and not self._fed_again:
            # A newcomer's rows come after ours were given: what its views are by them goes now.
            self._taken, self._given, self._fed_again = False, False, True
        if applied.outcome is Outcome.REFUSED and self._given:
            self._taken = True  # there is nothing for us there

    def _give(self, message: Message, moved: int) -> Served | None:
        """What the peer asks for, unless it was given, or there is nothing to say to it."""
        if message.request is None or self._given:
            return None
        self._feeds = any("#" in stream for stream in message.request.streams)
        give = self._replica.serve(message)
        if give is None:
            return None
        if not give.page.froms and not self._taken:
            return None  # a stranger has nothing to say before it has joined
        if self._taken and not moved and self._replica.has_it_all(message, give):
            self._given = True
            return None
        if give.page.reached != self._reached:
            self._reached = give.page.reached  # what is given moves as well
            self._stalls = self._refused = 0
        return give

    def _count(self, moved: int, *, cut_ends: bool, settled: bool) -> None:
        """Count rows that came; not those of a cut that was not taken: they come again, or never."""
        self.report.received_rows += moved
        self._came += moved
        if cut_ends:
            if not settled:
                self.report.received_rows -= self._came
            self._came, self._settled = 0, settled

    def _look_whether_taken(self, message: Message) -> None:
        """See by its answer whether the peer has taken the cut that was given to it."""
        own, gossip = self._replica.incarnation, message.gossip
        if gossip is None or own not in message.sites:
            read = 0
        else:
            read = gossip.cursors.get(message.sites.index(own), START).head
        self._untaken = bool(self._went) and read < self._head
        if self._untaken:
            self.report.sent_rows -= self._went  # they go again, or never
        self._went = 0

    def _say_held_up(self, message: Message) -> None:
        """Say so if the two have not agreed, for one of them has to meet somebody else first."""
        if not self._settled:
            self.report.held_up = self._replica.held_up(message)
        if self._untaken and not self.report.held_up:
            self.report.held_up = (
                f"{self._peer} has not taken what was sent; `everview status` there says whom it waits for"
            )

    def _why_stalled(self, message: Message) -> str:
        if waits := self._replica.held_up(message):
            return f"nothing is exchanged with {self._peer} yet: {waits}"
        return f"nothing moved in the last {_STALLS} messages with {self._peer}; try again"

    def _send(self, message: Message) -> bytes:
        data = encode(message)
        self.report.sent_bytes += len(data)
        if message.page is not None:
            self.report.sent_rows += row_count(message.page)
            self._went += _with_cursors(message.page)
            self._head = message.page.head
        return data

    def _progress(self) -> None:
        if self._on_progress is not None:
            doing = "sending" if self._taken else "receiving"
            self._on_progress(Progress.of(self._peer, doing, self.report))


def _with_cursors(page: Page) -> int:
    """How many rows of a page are of streams in which their reader says how far it is."""
    return sum(
        section.count
        for section in page.sections
        if not is_published(section.stream) and not is_partials(section.stream)
    )
