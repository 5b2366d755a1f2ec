"""The listening side: a message is answered with one, within the rights of its sender.

It keeps nothing between messages but its store. A sender that may only read has its vectors and cursors used
for the answer, and forgotten.
"""

from __future__ import annotations

import logging
import sqlite3
from functools import partial
from typing import TYPE_CHECKING

from everview.engines.sqlite.rows import peers, serving
from everview.errors import EverviewError, StoreError, SyncError, WireError
from everview.replication.cuts.applying import Outcome
from everview.replication.protocol.questions import Party
from everview.replication.rights.rights import ALL, Rights
from everview.replication.wire.codec import decode, encode
from everview.replication.wire.messages import START, Columns, Message, News, Refusal
from everview.replication.wire.sites import Naming

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica

__all__ = ["OTHER_PROGRAM", "Listener", "follows"]

_LOG = logging.getLogger("everview")

OTHER_PROGRAM = "program"
"""The code of a refusal to a site with another program that has not said what that declares."""


class Listener:
    """Answers messages for a store."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.refused = 0
        """How many messages were answered by a refusal for what they say."""

    def answer(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message; by a refusal, where something is wrong."""
        try:
            return self.respond(data, rights)
        except WireError as error:
            return self._refuse("message", str(error), retry=error.retry)
        except StoreError as error:
            return self._refuse("store", str(error), retry=True)
        except EverviewError as error:
            return self._refuse("error", str(error), retry=False)

    def respond(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message, or say why not; WireError for bytes that are none, and the store's own errors."""
        try:
            return self._respond(data, rights)
        except WireError:
            raise
        except SyncError as error:
            _LOG.info("refused a message: %s", error)
            self.refused += 1
            return self._refuse("refused", str(error), retry=bool(error.retry))

    def _refuse(self, code: str, text: str, *, retry: bool) -> bytes:
        replica = self._replica
        shapes = replica.programs.ours if code == OTHER_PROGRAM else None
        own, refusal = [bytes.fromhex(replica.incarnation)], Refusal(code, text, retry)
        return encode(Message(replica.program, own, [replica.store.name], refusal=refusal, shapes=shapes))

    def _respond(self, data: bytes, rights: Rights) -> bytes:
        replica = self._replica
        message, columns = decode(data)
        if not replica.programs.note(message):
            return self._refuse(OTHER_PROGRAM, "this site runs another program", retry=False)
        named = replica.hear(message, rights)
        replica.refusals.hear(message, named, partial(replica.may_take, rights=rights))
        taken = None
        if message.page is not None:
            before = replica.head
            taken = replica.questions.take(message, columns, data, named, rights)
            if taken is Outcome.APPLIED and replica.head == before + 1:
                replica.heard.brought(named.sender, before)
        if message.greeting is not None:
            now_us = replica.store.environment.now_us()
            replica.heard.note(named.sender, named.name, message.greeting, replica.incarnation, now_us)
            with replica.telling() as connection:
                behind = replica.identity.is_behind(connection, message.greeting)
            if behind and rights.may_write_any:
                replica.go_back(rights)
            elif behind and replica.heard.warn(named.sender, named.name):  # it may lie: nothing is stored
                who, path = named.name or named.sender, replica.store.path
                _LOG.warning("%s, which may only read, has seen a later state of %s", who, path)
        with replica.telling() as connection:
            return self._told(connection, message, Party(named.sender, message.program, rights), taken)

    def _told(
        self, connection: sqlite3.Connection, message: Message, party: Party, taken: Outcome | None
    ) -> bytes:
        replica, sender, rights = self._replica, party.incarnation, party.rights
        naming = Naming(connection, replica.store.ledger.site)
        news = page = ask = None
        columns: list[Columns] = []
        if message.greeting is not None:
            news = replica.offers.news(connection, message.greeting, rights, message.program)
        if message.news is not None and follows(connection, party.writer, message.news):
            ask = replica.questions.ask(connection, party, message.news, naming)
        elif taken is Outcome.STAGED:
            ask = replica.questions.ask_on(connection, party, naming)
        if message.ask is not None:
            page, columns, missed = replica.offers.page(connection, message, naming, rights)
            news = missed or news
        if page.done if page is not None else news is not None and not news.places:
            replica.heard.has(sender, serving.head(connection).version)
        greets = message.greeting is not None or taken is not None
        return replica.message(
            naming,
            greeting=replica.offers.greeting(connection, sender, rights) if greets else None,
            news=news,
            ask=ask,
            page=page,
            columns=columns,
            introduces=message.shapes is not None,
            refused=replica.refusals.tell(naming, sender),
        )


def follows(connection: sqlite3.Connection, sender: str, news: News) -> bool:
    """Whether news begin no later than what was read of their sender: else removals would be missed.

    What was read is said of the streams that it was read of: a cursor of others says nothing of these.
    """
    (read, tag), scope = peers.cursor_on(connection, sender)
    since = news.since
    is_near = since.version < read or (since.version, since.tag) == (read, tag)
    return since == START or (scope == news.scope and is_near)
