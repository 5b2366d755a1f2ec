"""What one group has forgotten of a key another group, founded apart, cannot know when they meet.

Of a deletion that is forgotten and a write that had not seen it either may win, the same everywhere (Groups 4
in docs/REPLICATION.md). Such a key is *unsettled* until a write has seen all others: the oracle does not say
who wins, only that all agree.
"""

from __future__ import annotations

from collections.abc import Iterable

from everview.language.relations import Semantics
from everview.testing.simulation.device import Device
from everview.testing.simulation.lattices import lengths, versions
from everview.testing.simulation.oracle import History


def note_forgotten(history: History, device: Device, devices: Iterable[Device]) -> None:
    """Note the keys that a site has forgotten while there was another group for their relation.

    The other may have been founded since: who leaves its own for it has forgotten them in the one it was in.
    """
    for name, relation in history.program.relations.items():
        state = device.state
        own, floor = state.joined.get(name) or state.former.get(name), state.floors.get(name, 0)
        if own is None or not floor or relation.semantics not in (Semantics.SET, Semantics.KEYED):
            continue
        groups = {other.state.joined.get(name) for other in devices}
        if any(group is not None and not _akin(own, group) for group in groups):
            held, seen = _held(device, name, relation.semantics), device.seen.get(name, frozenset())
            for key in {history.key(name, history.events[n].row) for n in seen} - held:
                of_key = frozenset(n for n in seen if history.key(name, history.events[n].row) == key)
                history.forgotten.setdefault((name, key), set()).add(of_key)


def _akin(one: str, other: str) -> bool:
    """Whether one group was founded again after the other."""
    return one.startswith(other) or other.startswith(one)


def _held(device: Device, name: str, semantics: Semantics) -> set[tuple[object, ...]]:
    connection, engine = device.store.writer.connection, device.store.engine
    if semantics is Semantics.SET:
        return set(lengths(connection, engine, name))
    return {key for key, _, _ in versions(connection, engine, name)}
