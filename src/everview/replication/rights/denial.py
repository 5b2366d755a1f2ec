"""Denying: what the rights of a token keep a site from reading at a peer, and from writing there.

The listening side knows the rights, so it says which of the names that the sender of a message has said
itself are *withheld*; no other name, since the token may tell nothing of it. The dialling side knows what it
needs the names for, and what it has written, and says what of that was *denied*.
"""

from __future__ import annotations

from typing import NamedTuple

from everview.engines.sqlite.rows import ledger
from everview.engines.sqlite.store import Store
from everview.language.partitions import includes
from everview.planner.published import view_of
from everview.replication.protocol.programs import Programs
from everview.replication.rights.grants import needed
from everview.replication.rights.rights import Rights
from everview.replication.transports.report import Denied
from everview.replication.wire.codec import decode

__all__ = ["Withheld", "denied", "withheld"]


class Withheld(NamedTuple):
    """Relations and views that the sender of a message may not read here, and may not write."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def withheld(store: Store, programs: Programs, data: bytes, rights: Rights) -> Withheld:
    """Return which of the names that a message says its sender may not read here, and not write."""
    message, _ = decode(data)
    if message.greeting is None or not programs.note(message):
        return Withheld()
    engine, names = store.engine, list(store.program.names())
    both = programs.declared(message.program, [*engine.shares, *engine.received])
    wanted = both if message.greeting.reads is None else message.greeting.reads
    reads = {view_of(one) for one in wanted if one in engine.tells and not rights.may_read(one)}
    chosen = {one.stream: frozenset(one.choices) for one in message.greeting.chosen}
    part = {name for name, limit in rights.parts if name in both and not includes(limit, chosen.get(name))}
    reads |= part.intersection(wanted)
    views_of, plans = engine.exchange.views_of, engine.plans
    taken = (view for one in both for view in views_of.get(one, (view_of(one),)) if view in plans)
    told = {*taken, *map(view_of, both & set(engine.shares))}
    writes = {view for view in told if not rights.may_write(view)} | part
    return Withheld(tuple(filter(reads.__contains__, names)), tuple(filter(writes.__contains__, names)))


def denied(store: Store, told: Withheld) -> tuple[Denied, ...]:
    """Return what this site wanted of a peer, by what that says to withhold."""
    with store.exclusive():
        written = set(map(view_of, ledger.written_streams(store.writer.connection)))
    exchange, views = store.engine.exchange, store.program.views
    for core in map(exchange.all_cores.__getitem__, store.engine.derives):
        if not written.isdisjoint(core.inputs):
            written |= {one for one in exchange.views_of[core.name] if views[one].authority is None}
    needs, wanted = needed(exchange), set(map(view_of, store.engine.shares))
    reads = (
        Denied("read", name, tuple(view for view, others in needs.items() if name in others))
        for name in told.reads
        if name in wanted
    )
    return (*reads, *(Denied("write", name) for name in told.writes if name in written))
