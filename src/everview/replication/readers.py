"""Readers: who takes views that an authority publishes, and where what they have stands.

Such a reader need not be a member of anything: there is nothing that is kept for it, and it is in no list. It
is remembered only so that people see how far behind it is, so what is lost of this with a crash is no loss.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.published import STANDING
from everview.planner.published import view_of
from everview.replication.messages import Message, Page
from everview.replication.publishing import At, at_of
from everview.replication.rights import Rights
from everview.replication.state import Reader, State

MOST = 10_000
"""So many are remembered: those that were heard of last."""


def note_reader(state: State, engine: Engine, message: Message, rights: Rights, now_us: int) -> None:
    """A site asks for published views, and says where what it has of them stands."""
    asked = () if message.request is None else message.request.streams
    reads = [stream for stream in asked if stream in engine.published and rights.may_read(stream)]
    if reads:
        state.readers.pop(message.sites[0], None)
        stands = {stream: at_of(message.gossip, stream) for stream in reads}
        state.readers[message.sites[0]] = Reader(stands, now_us)
        while len(state.readers) > MOST:
            del state.readers[next(iter(state.readers))]


def note_given(state: State, incarnation: str, page: Page) -> None:
    """A reader is sent the end of a cut, and will have it; if not, it says so when it asks again.

    Else whoever asks once in a while would be behind all the time by what came since it asked before.
    """
    reader = state.readers.get(incarnation)
    if reader is None or not page.done:
        return
    given = {
        section.stream: (section.columns[0][0], section.columns[1][0])
        for section in page.sections
        if section.part == STANDING and section.stream in reader.stands
    }
    if given:
        state.readers[incarnation] = Reader({**reader.stands, **given}, reader.heard_us)


def forget_readers(state: State, since_us: int) -> None:
    """Forget who was not heard of since then."""
    state.readers = {site: one for site, one in state.readers.items() if one.heard_us >= since_us}


def readers_status(state: State, engine: Engine, connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Who reads published views, which, and how many commits of their authority lie before what is here."""
    here = {stream: published.stands(connection).at for stream, published in engine.published.items()}
    return [
        {
            "incarnation": incarnation,
            "name": state.names.get(incarnation, ""),
            "holds": sorted(map(view_of, reader.stands)),
            "expired": incarnation in state.expired,
            "heard_us": reader.heard_us,
            "lag": max((_lag(here[s], at) for s, at in reader.stands.items() if s in here), default=0),
            "read": 0,
        }
        for incarnation, reader in sorted(state.readers.items())
    ]


def _lag(here: At, there: At) -> int:
    """Of another epoch a reader has nothing that counts."""
    if there >= here:
        return 0
    return here[1] - there[1] if here[0] == there[0] else here[1]
