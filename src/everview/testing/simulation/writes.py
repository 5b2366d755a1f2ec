"""Writing in a world: transactions at a device, and what the oracle is told of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from everview.language.relations import Semantics
from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.device import Device
from everview.testing.simulation.lattices import lengths, versions
from everview.testing.simulation.oracle import Event
from everview.testing.simulation.world import World

Row = tuple[Any, ...]
Done = tuple[str, str, Row, int]
"""Action, relation, row, and how many rows that changed."""


def write(world: World, device: Device, operations: list[tuple[str, str, Row]], crash: int = 0) -> None:
    """A transaction; what it did is recorded if it was committed, though the process may have died.

    Rows that have an owner are the device's own.
    """
    operations = [operation for operation in operations if operation[1] in device.hosts]
    done: list[Done] = []
    head = device.head

    def record() -> None:
        if device.head > head:
            _record(world, device, done)

    with world.acting(device, crash, after=record), device.writing.transaction():
        for action, name, cells in operations:
            relation = world.program.relations[name]
            row = cells if relation.owner is None else (*cells, device.name)
            change = device.writing.insert if action == "insert" else device.writing.delete
            done.append((action, name, row, change(relation, [row])))


def load(world: World, device: Device, action: str, name: str, rows: list[Row]) -> None:
    """A transaction of many rows of a set, or of a keyed relation, that nobody writes at the same time."""
    relation, history = world.program.relations[name], world.history
    is_set = relation.semantics is Semantics.SET
    with world.acting(device), device.writing.transaction():
        change = device.writing.insert if action == "insert" else device.writing.delete
        change(relation, rows)
        seen, start = device.seen.get(name, frozenset()), len(history.events)
        known = history.longest(seen)
        stamp, incarnation = device.writing.commit.stamp, device.incarnation
        for row in rows:
            length = known.get(row, 0)
            if is_set and (length % 2 == 1) is (action == "insert"):
                continue
            number = len(history.events)
            history.record(Event(number, name, action, row, seen, 1, length + 1, stamp, incarnation))
        device.seen[name] = seen | frozenset(range(start, len(history.events)))
        world.counts["rows loaded"] += len(rows)


def _record(world: World, device: Device, done: list[Done]) -> None:
    """Tell the oracle of a transaction that was committed.

    An insertion counts even if nothing appeared: a key has a new version, a bag one more, and an add-wins
    relation a fresh insertion; only a set is as it was. Of several writes to a key the last counts.
    """
    history, semantics = world.history, {n: r.semantics for n, r in world.program.relations.items()}
    effective = [d for d in done if d[3] or (d[0] == "insert" and semantics[d[1]] is not Semantics.SET)]
    last = {(name, history.key(name, row)): i for i, (_, name, row, _) in enumerate(effective)}
    connection, engine = device.store.writer.connection, device.store.engine
    left = Counter((name, row) for _, name, row, _ in effective)
    for i, (action, name, row, count) in enumerate(effective):
        seen, length, stamp, incarnation = device.seen.get(name, frozenset()), 0, 0, ""
        if semantics[name] is Semantics.SET:
            left[name, row] -= 1
            length = lengths(connection, engine, name).get(row, 0) - left[name, row]
            _check_length(world, device, name, row, action, length)
        elif semantics[name] is Semantics.KEYED:
            key, incarnation = history.key(name, row), device.incarnation
            if last[name, key] != i:
                continue
            own = [s for k, s, inc in versions(connection, engine, name) if (k, inc) == (key, incarnation)]
            stamp = max(own, default=0)
        number = len(history.events)
        history.record(Event(number, name, action, row, seen, max(count, 1), length, stamp, incarnation))
        device.seen[name] = seen | {number}
        world.counts["writes"] += 1


def _check_length(world: World, device: Device, name: str, row: Row, action: str, length: int) -> None:
    """A write is above all that its site had seen, and by one where nothing was ever forgotten."""
    before = world.history.longest(device.seen.get(name, frozenset())).get(row, 0)
    floor = device.store.floors.get(name, 0)
    seen = device.seen.get(name, frozenset())
    above = length > before or row in world.history.unsettled(name, seen)
    if not above or (length % 2 == 1) is not (action == "insert"):
        raise Wrong(f"{device.name} writes {name}{row} at length {length}, having seen {before}")
    if not floor and length != before + 1:
        raise Wrong(f"{device.name} writes {name}{row} at length {length}, not {before + 1}")
