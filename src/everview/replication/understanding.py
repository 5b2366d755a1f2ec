"""Understanding: whose message it is, which program its writer runs, and what of it is of use here."""

from __future__ import annotations

import logging

import msgspec

from everview.errors import SyncError
from everview.replication.messages import OTHER_PROGRAM, Message
from everview.replication.rights import ALL, Rights
from everview.replication.telling import Teller
from everview.replication.versions import remember, understood

_LOG = logging.getLogger("everview")

_SENDERS, _PROGRAMS = 10_000, 64
"""Of how many sites it is remembered which program they run, and of how many programs what they declare; the
others say it again.
"""


class Understanding(Teller):
    """A site that reads messages, also those of sites that run another program."""

    def must_introduce(self, message: Message) -> bool:
        """Whether a peer runs another program, and says so to be told what this one declares."""
        self._note_program(message)
        refused = message.refusal is not None and message.refusal.code == OTHER_PROGRAM
        return refused and message.versions is not None and message.program != self._store.program.hash

    def understood(self, message: Message, rights: Rights = ALL) -> Message:
        """A message without what another program than this one says in it; SyncError if it is not for us."""
        if message.refusal is not None:
            raise SyncError(message.refusal.text, retry=message.refusal.retry)
        if self._is_unknown(message):
            raise SyncError(self._other_program(message))
        self._check(message, rights)
        if message.program == self._store.program.hash:
            return message
        understood_ = understood(message, self._versions[message.program], self._declared)
        if understood_.untaken - self._untaken.get(message.sites[0], frozenset()):
            _LOG.warning(
                "%s runs a later program, in which %s has more columns; rows of it go there, and none come "
                "from there until this site is migrated, too",
                message.names[0] or message.sites[0],
                ", ".join(sorted(understood_.untaken)),
            )
        remember(self._untaken, message.sites[0], understood_.untaken, _SENDERS)
        if message.versions is None:  # its sender has said it elsewhere
            understood_ = msgspec.structs.replace(understood_, versions=self._versions[message.program])
        return understood_

    def _note_program(self, message: Message) -> None:
        """Take note of which program a site runs, and of what that declares."""
        remember(self._programs, message.sites[0], message.program, _SENDERS)
        if message.versions is not None and message.program != self._store.program.hash:
            remember(self._versions, message.program, message.versions, _PROGRAMS)

    def _is_unknown(self, message: Message) -> bool:
        """Whether a message is of a program of which it is not known what it declares."""
        self._note_program(message)
        return message.program != self._store.program.hash and message.program not in self._versions

    def _other_program(self, message: Message) -> str:
        return (
            f"the peer runs another program (hash {message.program[:12]}, not "
            f"{self._store.program.hash[:12]}), and does not say what that declares; a newer Everview does"
        )

    def _check(self, message: Message, rights: Rights = ALL) -> None:
        if message.sites[0] == self._knowledge.incarnation:
            raise SyncError(
                "the peer is this same site, or a copy of its file that is open at the same time; "
                "name another peer, or make the copy by `everview backup` and `everview restore`"
            )
        if rights.site is not None and message.names[0] != rights.site:
            raise SyncError(
                f"the token belongs to {rights.site!r}, and the site says it is {message.names[0]!r}; "
                f"use a token of {message.names[0]!r}, or a store made with --name {rights.site}"
            )
        known = self._knowledge.state.names.get(message.sites[0])
        if rights.site is not None and known not in (None, rights.site):
            raise SyncError(
                f"this store is known as {known!r}, and the token belongs to {rights.site!r}; a store that "
                f"is to go by another name is made from a backup: `everview restore --name {rights.site}`"
            )
        if not self._knowledge.membership.has_room(message):
            raise SyncError(
                "the message lists more members than a site can tell others of; give up those that do not "
                "exist by `everview expire`, and take away the token of who made them up"
            )
