"""What must hold of a site at any time, and of all of them in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from everview.engines.reference import evaluate_views
from everview.language.relations import Semantics
from everview.testing.simulation.device import Device
from everview.testing.simulation.lattices import fingerprint, marks, versions
from everview.testing.simulation.oracle import Event, History, Numbers
from everview.testing.simulation.published import contradiction, foreign, last_published, note_published
from everview.testing.simulation.reach import Links, Reach

Row = tuple[Any, ...]

Looks = tuple[Any, tuple[int, float, int], Numbers]
"""What a set was like when it was looked at: the store, its fingerprint, and the writes seen."""

_MANY = 10_000
"""Of more writes only what is new is compared with a set."""


class Wrong(AssertionError):  # noqa: N818 - it names what was found; tests read better so
    """A state that breaks what was promised."""


def check_device(device: Device, history: History, *, transfers: bool = False) -> None:
    """A site's relations are what the semantics make of the writes it has seen; its views follow from them.

    So nothing that was acknowledged and seen is lost, and nothing deleted returns, whatever came in which
    order. Where every transaction is a transfer, none is seen in part.
    """
    _value_what_has_come(device, history)
    program = device.store.program
    hosted = [name for name in program.relations if name in device.hosts]
    rows: dict[str, Counter[Row]] = {name: device.rows(name) for name in hosted}
    for name in hosted:
        seen = device.seen.get(name, frozenset())
        waiting = history.waiting(name, seen, device.come) | history.unsettled(name, seen)
        wanted = _but(history, name, waiting, history.contents(name, seen))
        found = _but(history, name, waiting, rows[name])
        if not _same(found, wanted):
            raise Wrong(f"{device.name} shows {name} {_differ(found, wanted)}")
    if wrong := contradiction(device, history):
        raise Wrong(wrong)
    if len(hosted) == len(program.relations):
        tables = {name: list(found.elements()) for name, found in (rows | foreign(device)).items()}
        for name, result in evaluate_views(program, tables).items():
            if name not in device.hosts:
                continue
            shown = device.rows(name)
            if not _same(shown, Counter(result.rows)):
                raise Wrong(f"{device.name} keeps view {name} {_differ(shown, Counter(result.rows))}")
            if transfers and name == "torn" and shown:
                raise Wrong(f"{device.name} shows transfers in part: {sorted(shown)}")


def _but(history: History, name: str, keys: set[Row], rows: Counter[Row]) -> Counter[Row]:
    """Rows but those of some keys."""
    if not keys:
        return rows
    return Counter({row: n for row, n in rows.items() if history.key(name, row) not in keys})


def _value_what_has_come(device: Device, history: History) -> None:
    limit = device.store.clock.limit()
    if device.replica.tick():
        note_published(device, history)  # versions came by a clock that was moved just now
    device.come |= {
        number
        for whole, numbers in device.seen.items()
        for number in numbers
        if 0 < history.events[number].stamp <= limit
        and history.program.relations[whole.rpartition(">")[2]].semantics is Semantics.KEYED
    }


def set_right(device: Device, history: History, was: str) -> list[Event]:
    """What has come by a site's clock is looked at anew: it may have been set back.

    Returned is what the site wrote last of a key, as the incarnation that it was, and has not come after all:
    it tells that again as of now.
    """
    limit = device.store.clock.limit()
    last: dict[tuple[str, Row], Event] = {}
    for number in sorted(device.come, key=_order(history)):
        event = history.events[number]
        last[event.relation, history.key(event.relation, event.row)] = event
    device.come = frozenset(number for number in device.come if history.events[number].stamp <= limit)
    floors = device.state.floors
    return [
        event
        for event in last.values()
        if event.incarnation == was and event.stamp > max(limit, floors.get(event.relation, 0))
    ]


def _order(history: History) -> Callable[[int], tuple[int, str]]:
    return lambda number: (history.events[number].stamp, history.events[number].incarnation)


def check_told_again(device: Device, history: History, ahead: Iterable[Event], since: int) -> None:
    """What a site wrote ahead of its time it has told again: its writes from this number on say the same."""
    told = {(e.relation, e.action, e.row) for e in history.events[since:]}
    for event in ahead:
        key = history.key(event.relation, event.row)
        said = {
            (action, row)
            for name, action, row in told
            if name == event.relation and history.key(name, row) == key
        }
        same = (event.action, event.row) in said if event.action == "insert" else said
        if not same:
            raise Wrong(f"{device.name} has not told {event.action} {event.relation}{event.row} again")


def _at(history: History, name: str, number: int) -> tuple[Row, int, str]:
    """The key, the stamp and the incarnation of a write to a keyed relation."""
    event = history.events[number]
    return history.key(name, event.row), event.stamp, event.incarnation


def retold(device: Device, history: History, *, returned: bool) -> int:
    """Record what a returning site has told again; a length or stamp that nobody wrote is wrong otherwise."""
    connection, engine = device.store.writer.connection, device.store.engine
    count = 0
    for name in engine.streams:
        relation = history.program.relations.get(name)
        if relation is None:
            continue
        seen = device.seen.get(name, frozenset())
        new: list[dict[str, Any]] = []
        if relation.semantics is Semantics.SET:
            looks = (device.store, fingerprint(connection, engine, name), seen)
            before = device.told.get(name)
            if before == looks:  # nothing came or went since all of it was looked at
                continue
            device.told[name] = looks
            known = history.longest(seen)
            found = _grown(device, history, name, before)
            for *cells, length in sorted(found - history.marks(seen), key=repr):
                row = tuple(cells)
                if length < known.get(row, 0) and row not in history.unsettled(name, seen):
                    raise Wrong(f"{device.name} has {name}{row} at length {length}, not {known[row]}")
                if length > known.get(row, 0):
                    action = "insert" if length % 2 else "delete"
                    new.append({"action": action, "row": row, "length": length})
        elif relation.semantics is Semantics.KEYED:
            told = {_at(history, name, number) for number in seen}
            for at, (action, row) in sorted(versions(connection, engine, name).items(), key=repr):
                if at not in told:
                    new.append({"action": action, "row": row, "stamp": at[1], "incarnation": at[2]})
        if new and not returned:
            raise Wrong(f"{device.name} has in {name} what nobody wrote: {new}")
        for what in new:
            event = Event(len(history.events), name, seen=seen, **what)
            history.record(event)
            device.seen[name] = device.seen.get(name, frozenset()) | {event.number}
        count += len(new)
    return count


def _grown(device: Device, history: History, name: str, before: Looks | None) -> set[Row]:
    """What of a set may be another than it has to be: all, or where there are many only what has grown.

    Provided that all which the writes seen since have made longer is in that: the rest was right before them.
    """
    connection, engine = device.store.writer.connection, device.store.engine
    seen = device.seen.get(name, frozenset())
    if before is not None and before[0] is device.store and len(seen) > _MANY and before[2] <= seen:
        grown = marks(connection, engine, name, since=before[1][2])
        earlier, known = history.longest(before[2]), history.longest(seen)
        written = [history.events[number].row for number in seen - before[2]]
        if all((*row, known[row]) in grown or known[row] == earlier.get(row, 0) for row in written):
            return grown
    return marks(connection, engine, name)


def check_all(devices: Iterable[Device], history: History, links: Links) -> int:
    """After healing: every site shows what all surviving writes make, and its views follow from that.

    Return how many relations and views, over all sites, the links let nothing get to: nothing is promised of
    those.
    """
    devices = list(devices)
    program, reach, unfed = history.program, Reach(devices, links), 0
    survived: dict[str, Numbers] = {name: frozenset() for name in program.relations}
    for device in devices:
        for whole, numbers in device.seen.items():
            if whole in survived and reach.gets(device, whole):
                survived[whole] |= numbers  # who has only derivations cannot give the rows back
    expected = _expected(devices, history, survived)
    for device in devices:
        streams = {name for name in device.store.engine.streams if reach.gets(device, name)}
        others = (other for other in devices if other is not device)
        shared = {n for other in others for n in other.store.engine.streams if reach.gets(other, n)}
        missing = sorted((streams & shared) - set(device.state.joined))
        if missing:
            raise Wrong(f"{device.name} never became a member of {missing}")
        for name in sorted(device.hosts):
            if not reach.is_fed(device, name):
                unfed += 1
                continue
            found = device.rows(name)
            if not _same(found, expected[name]):
                raise Wrong(f"in the end {device.name} shows {name} {_differ(found, expected[name])}")
    return unfed


def _expected(
    devices: list[Device], history: History, survived: dict[str, Numbers]
) -> Mapping[str, Counter[Row]]:
    """Relation or view → its rows; what was made of the same writes before is not made again."""
    wanted = {name: history.contents(name, numbers) for name, numbers in survived.items()}
    for name, numbers in survived.items():
        _check_latest(history, name, numbers, wanted[name])
        wanted[name] = _agreed(devices, history, name, wanted[name], history.unsettled(name, numbers))
    wanted |= last_published(devices, history)
    if (
        history.evaluated is None
        or history.evaluated[0].keys() != wanted.keys()
        or not all(_same(history.evaluated[0][n], wanted[n]) for n in wanted)
    ):
        history.evaluated = (wanted, _views(history, wanted))
    return wanted | history.evaluated[1]


def _views(history: History, wanted: dict[str, Counter[Row]]) -> dict[str, Counter[Row]]:
    if history.views is not None:
        return history.views(wanted)
    tables = {name: list(found.elements()) for name, found in wanted.items()}
    return {name: Counter(view.rows) for name, view in evaluate_views(history.program, tables).items()}


def _agreed(
    devices: list[Device], history: History, name: str, wanted: Counter[Row], unsettled: set[Row]
) -> Counter[Row]:
    """What is wanted; of keys that are unsettled, what the first site that holds them shows."""
    if not unsettled:
        return wanted
    shown = next((device.rows(name) for device in devices if name in device.hosts), Counter[Row]())
    inserted = {event.row for event in history.events if (event.relation, event.action) == (name, "insert")}
    chosen = shown - _but(history, name, unsettled, shown)
    if not chosen.keys() <= inserted:
        raise Wrong(f"{name} has rows that nobody wrote: {sorted(map(repr, chosen.keys() - inserted))}")
    return _but(history, name, unsettled, wanted) + chosen


def _check_latest(history: History, name: str, numbers: Numbers, rows: Counter[Row]) -> None:
    """Whoever wins, it is one of the latest writes: what all of them deleted does not return."""
    if history.program.relations[name].semantics is not Semantics.SET or numbers in history.looked_into:
        return
    unsettled = history.unsettled(name, numbers)
    for row, actions in history.latest(numbers):
        if row not in unsettled and ("insert" if rows[row] else "delete") not in actions:
            raise Wrong(f"{name}{row} is not what its latest writes say: {sorted(actions)}")
    history.looked_into.add(numbers)


def _same(found: Counter[Row], wanted: Counter[Row]) -> bool:
    """Compare as dictionaries do, which takes a tenth of the time: neither counts a row as often as never."""
    return dict.__eq__(found, wanted)


def _differ(found: Counter[Row], wanted: Counter[Row]) -> str:
    def listed(rows: Counter[Row]) -> str:
        return ", ".join(sorted(map(repr, rows.elements()))[:5]) or "nothing"

    return f"with {listed(found - wanted)} too much, and without {listed(wanted - found)}"
