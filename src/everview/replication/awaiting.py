"""Awaiting: what a view is made from here that has not come from other sites yet, for people.

A view shows what its query gives over what is here. So a relation, or a view, that has just come to be hosted
empties the views that are computed from it from then on, until it comes; `explain` has to say so.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.engines.sqlite.engine import Engine
from everview.language.correlation import scans_of
from everview.replication.state import State

__all__ = ["awaited_text"]


def awaited_text(engine: Engine, state: State, own: str, name: str) -> str:
    """Say what of a relation or view has not come yet; nothing, if all has, or it waits for nobody."""
    streams = dict.fromkeys(_streams(engine, name))
    missing = [stream for stream in streams if stream not in state.joined and stream not in state.provisional]
    if not state.members.keys() - {own}:  # whoever has met nobody waits for nobody with what it writes
        missing = [stream for stream in missing if stream not in engine.exchange.hosts]
    if not missing:
        return ""
    what = f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} not come from other sites yet"
    if name in missing:
        return f"{what}: it shows what was written here."
    return f"{what}: until then {name} is made from the rest, and from what was written here."


def _streams(engine: Engine, name: str) -> Iterator[str]:
    """The relations and cores that a relation or view is made from here."""
    kept = engine.exchange.views.get(name)
    reads = (name,) if kept is None else scans_of(kept.plan)
    for read in sorted(set(reads)):
        if read in engine.streams:
            yield read
        elif read in engine.exchange.views and read != name:
            yield from _streams(engine, read)
