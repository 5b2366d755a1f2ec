"""A site's store as replication sees it: all that a site, its server and its transports call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everview.replication.awaiting import awaited_text
from everview.replication.backlog import LOOKED_AT
from everview.replication.batches import Batches
from everview.replication.catching_up import value_due
from everview.replication.collecting import collect, is_due, ripen
from everview.replication.convergence import convergence
from everview.replication.denying import Withheld, denied, withheld
from everview.replication.giving_up import checked_days, the_member
from everview.replication.renewal import renew
from everview.replication.report import Denied, OnProgress
from everview.replication.rights import Rights
from everview.replication.status import member_status, replication_status, waits_for
from everview.replication.wire import decode

if TYPE_CHECKING:
    from collections.abc import Collection

    from everview.replication.exchange import Exchange
    from everview.replication.messages import Message


class Replica(Batches):
    """The protocol over one store, and its upkeep. All methods may be called from any thread."""

    def exchange(self, peer: str, *, on_progress: OnProgress | None = None) -> Exchange:
        """Begin to sync with the peer at an address."""
        from everview.replication.exchange import Exchange  # noqa: PLC0415 - it is made of a replica

        return Exchange(self, peer, on_progress=on_progress)

    def withheld(self, data: bytes, rights: Rights) -> Withheld:
        """Return which of the names that a message says its sender may not read here, and not write."""
        message = decode(data)
        with self._store.exclusive():
            return withheld(self._store, self._store.writer.connection, message, rights)

    def denied(self, peer: str, told: Withheld) -> tuple[Denied, ...]:
        """Return what this site wanted of a peer, by what that says to withhold."""
        with self._store.exclusive():
            connection = self._store.writer.connection
            self._knowledge.refresh(connection)
            return denied(self._knowledge, connection, peer, told)

    def collect(self) -> int:
        """Forget what is dead and stable; return how many rows."""
        with self._committing() as connection:
            self._knowledge.membership.advance(self._writing.commit.version - 1, self._store.clock.last)
            return collect(self._knowledge, connection)

    def tidy(self) -> int:
        """Forget what has been dead and stable for a while, now and then; return how many rows."""
        if not is_due(self._knowledge):
            return 0
        with self._committing() as connection:
            self._knowledge.membership.advance(self._writing.commit.version - 1, self._store.clock.last)
            return ripen(self._knowledge, connection)

    def expire(self, incarnation: str) -> bool:
        """Give a member up: it is no longer waited for, and must join anew."""
        with self._committing():
            expired = self._knowledge.membership.expire(incarnation)
            self._knowledge.groups.lose_expired_sponsors()
            return expired

    def give_up(self, member: str) -> str:
        """Give a member up that is named by its name or incarnation; return the incarnation.

        DataError, with those there are, unless it is one other member that was not given up before.
        """
        with self._committing():
            found = the_member(self._knowledge, member)
            self._knowledge.membership.expire(found)
            self._knowledge.groups.lose_expired_sponsors()
            return found

    def find_member(self, member: str) -> dict[str, Any]:
        """Return what is known of the member that `give_up` would give up."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            found = the_member(self._knowledge, member)
            status = member_status(self._knowledge, self._store.writer.connection)
            (told,) = (one for one in status["members"] if one["incarnation"] == found)
            return dict(told)

    def declare_expiry(self, days: int) -> None:
        """Give members up from now on when nothing was heard of them for so many days; the store keeps it."""
        checked = checked_days(days)
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            if self._knowledge.state.expiry_days == checked:
                return
            try:
                with self._store.writing() as connection:
                    self._knowledge.refresh(connection)
                    self._knowledge.state.expiry_days = checked
                    self._knowledge.save(connection)
            except BaseException:
                self._knowledge.forget()
                raise

    def renew(self) -> None:
        """Take a new incarnation: the store is of an earlier time, though opening did not notice."""
        with self._committing() as connection:
            renew(self._knowledge, connection, self._writing.commit.version - 1, retire=True)

    def take_charge(self, *, alone: bool = False) -> bool:
        """Say that this store writes as its source from now on; return whether it may."""
        with self._committing():
            charged = self.closing is None or self.closing.charge.take(alone=alone)
            if charged and self.closing is not None:
                self.closing.restate()
            return charged

    def tick(self) -> int:
        """Value the versions whose time has come; return how many rows changed."""
        if not self.due:
            return 0
        with self._committing() as connection:
            commit = self._writing.commit
            grown = value_due(self._store, connection, commit.version, self._writing.collect)
            commit.grown |= grown > 0
            self._look_ahead(connection)
        return grown

    @property
    def receives_views(self) -> bool:
        """Whether some view here is fed by others."""
        engine = self._store.engine
        return bool(engine.received or engine.partials) or len(engine.own()) < len(engine.published)

    @property
    def due(self) -> bool:
        """Whether the time of some version from the future has come."""
        return self._next is not None and self._next <= self._store.clock.limit()

    def awaited(self, name: str) -> str:
        """Say what of a relation or view has not come from other sites yet; nothing if all has."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            own, state = self._knowledge.incarnation, self._knowledge.state
            return awaited_text(self._store.engine, state, own, name)

    def held_up(self, message: Message) -> str:
        """Say whom this site has to meet before it exchanges what a sender holds; nothing if nobody."""
        waits = self._waits_for()
        shared = set() if message.gossip is None else {*message.gossip.groups, *message.gossip.provisional}
        if message.request is not None:  # perhaps it waits as well, and serves nothing
            shared |= message.request.streams.keys()
        return _told_waiting({site for stream in shared for site in waits.get(stream, ())})

    @property
    def waiting(self) -> str:
        """Say whom this site has to meet before it goes on with other groups; nothing if nobody."""
        return _told_waiting({site for sites in self._waits_for().values() for site in sites})

    def _waits_for(self) -> dict[str, list[str]]:
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            return waits_for(self._knowledge)

    def members(self) -> dict[str, Any]:
        """Return of that what can be said without looking at rows."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            return member_status(self._knowledge, self._store.writer.connection)

    def status(self, *, counted: int = LOOKED_AT) -> dict[str, Any]:
        """Return what there is to say about other sites; of what waits, so many rows of a relation."""
        with self._store.exclusive():
            connection = self._store.writer.connection
            self._knowledge.refresh(connection)
            self._knowledge.membership.advance(self._knowledge.head(connection), self._store.clock.last)
            found = replication_status(self._knowledge, connection, counted)
            return found if self.closing is None else found | {"windows": self.closing.status()}

    def convergence(self) -> list[dict[str, Any]]:
        """Return what every site is known to lack of the relations that are held here."""
        with self._store.exclusive():
            connection = self._store.writer.connection
            self._knowledge.refresh(connection)
            self._knowledge.membership.advance(self._knowledge.head(connection), self._store.clock.last)
            return convergence(self._knowledge)


def _told_waiting(names: Collection[str]) -> str:
    sites = " or ".join(sorted(names))
    if not sites:
        return ""
    return (
        f"this site waits for {sites}, whose group it has to return to, or which did not list it; "
        f"sync with {sites}, or give it up by `everview expire`"
    )
