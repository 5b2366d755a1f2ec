"""Keyed relations whose rows are joined, against a twin of dictionaries: random histories of three stores."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from everview.algebra.lattices import GrowSet, Max, MergeMap
from everview.engines.sqlite import hosting
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.rows import serving, taking
from everview.engines.sqlite.rows.ledger import vector
from everview.engines.sqlite.rows.making import lattice_rows, stored_rows
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.language.program import Program
from everview.language.values import NAN
from everview.replication.protocol.exchange import Exchange
from everview.replication.protocol.replica import Replica

PROGRAM = Program.parse("""
CREATE TABLE m (a BIGINT, b TEXT, c DOUBLE, d BIGINT, e BIGINT, PRIMARY KEY (d, a)) WITH (merge = 'column');
CREATE TABLE g (a BIGINT PRIMARY KEY, b TEXT, c DOUBLE) WITH (merge = 'max');
CREATE TABLE l (a BIGINT PRIMARY KEY, b TEXT, c DOUBLE) WITH (merge = 'min');
CREATE TABLE k (a BIGINT PRIMARY KEY, b TEXT) WITH (merge = 'column');
CREATE MATERIALIZED VIEW v AS
    SELECT m.b, k.b AS other, count(*) AS n FROM m JOIN k ON m.a = k.a GROUP BY m.b, k.b;
""")


@dataclass
class Twin:
    """A site by the definition: live rows and the rows that were seen; (site, number) → key, cells."""

    site: str
    joined: Callable[[list[Any]], Any]
    live: dict[tuple[str, int], tuple[Any, Any]] = field(default_factory=dict)
    seen: set[tuple[str, int]] = field(default_factory=set)

    def of(self, key: Any) -> list[Any]:
        """The cells of the key's rows, each with its dot."""
        return [(dot, cells) for dot, (at, cells) in self.live.items() if at == key]

    def delete(self, key: Any) -> None:
        self.live = {dot: row for dot, row in self.live.items() if row[0] != key}

    def write(self, key: Any, cells: Any) -> None:
        self.delete(key)
        dot = (self.site, len(self.seen) + 1)
        self.live[dot] = (key, cells)
        self.seen.add(dot)

    def meet(self, other: Twin) -> None:
        both = self.live | other.live
        mine, theirs = self.seen - self.live.keys(), other.seen - other.live.keys()
        self.live = {dot: row for dot, row in both.items() if dot not in mine | theirs}
        other.live = dict(self.live)
        self.seen |= other.seen
        other.seen = set(self.seen)

    def shown(self) -> dict[Any, Any]:
        return {key: self.joined(self.of(key)) for key, _ in self.live.values()}


def latest(rows: list[Any]) -> Any:
    """Of each column (stamp, value) that of the greatest stamp, and of these that of the greatest dot."""
    places = range(len(rows[0][1]))
    return [
        max(((cells[n][0], dot, cells[n][1]) for dot, cells in rows), key=lambda c: c[:2]) for n in places
    ]


def extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def joined(rows: list[Any]) -> Any:
        columns = zip(*(cells for _, cells in rows), strict=True)
        return [choose((v for v in column if v is not None), key=order, default=None) for column in columns]

    return joined


def order(value: Any) -> Any:
    return value != value, value if value == value else 0  # NaN is beyond all numbers


class Device:
    """A store of PROGRAM as others meet it, and its twins by relation."""

    def __init__(
        self, name: str, now: Callable[[], int], joins: dict[str, Any], program: Program = PROGRAM
    ) -> None:
        self.program = program
        self.store = Store(":memory:", program, name, environment=Environment(now_us=now))
        self.writing, self.reading = Writing(self.store), Reading(self.store)
        self.replica, self.name = Replica(self.store, self.writing), name
        self.twins = {relation: Twin(self.replica.incarnation, join) for relation, join in joins.items()}

    def run(self, verb: str, relation: str, rows: list[Any]) -> int:
        write = getattr(self.writing, verb)
        return int(self.writing.run(lambda: write(self.program.relations[relation], rows)))

    def rows(self, name: str) -> list[Any]:
        return self.reading.sorted_rows(name, inside=False)

    def sync(self, other: Device) -> Any:
        exchange = Exchange(self.replica, other.name)
        message = exchange.open()
        while message is not None:
            message = exchange.receive(other.replica.answer(message))
        for relation, twin in self.twins.items():
            twin.meet(other.twins[relation])
        return exchange.report

    def check(self) -> None:
        """What is shown is what the twin says; digests are those of the rows; live rows are the twin's."""
        connection = self.store.writer.connection
        for name, stored in self.store.engine.relations.items():
            partition = self.store.ledger.partition(connection, name).number
            digest = serving.digest_of(connection, stored, partition, serving.head(connection).version)
            assert digest == serving.sum_rows(connection, stored.all_rows()), (self.name, name)
            live = [row[0] for row in connection.execute(stored.all_rows()) if row[0] is not None]
            assert len(live) == len(self.twins[name].live), (self.name, name)
            seen = vector(connection, partition)
            assert all(seen[dot >> 40] >= dot & (1 << 40) - 1 for dot in live)
        assert not connection.execute("SELECT * FROM everview_alarms").fetchall()


def write_merged(device: Device, relation: str, rng: random.Random) -> None:
    width = 3 if relation == "m" else 1
    rows = []
    for _ in range(rng.choice([1, 1, 2, 5])):
        key = rng.randrange(4)
        old = device.twins[relation].shown().get(key)
        cells = [rng.choice([None, "x", "y"]), rng.choice([0.5, NAN, None]), rng.randrange(3)][:width]
        if old is not None and rng.random() < 0.7:  # an edit of one column
            keep = rng.randrange(width)
            cells = [cell if n == keep else old[n][2] for n, cell in enumerate(cells)]
        rows.append((key, cells))
    rows = list(dict(rows).items())
    made = [(k, c[0], c[1], k % 2, c[2]) if relation == "m" else (k, c[0]) for k, c in rows]
    device.run("insert", relation, made)
    stamp, twin = device.store.clock.last, device.twins[relation]
    for key, cells in rows:
        old = twin.shown().get(key)
        same = [old is not None and repr(old[n][2]) == repr(cell) for n, cell in enumerate(cells)]
        stamps = [old[n][0] if same[n] else max(stamp, old[n][0] + 1 if old else 0) for n in range(width)]
        twin.write(key, list(zip(stamps, cells, strict=True)))


def write_extreme(device: Device, relation: str, rng: random.Random) -> None:
    twin, written = device.twins[relation], {}
    rows = [
        (rng.randrange(4), rng.choice([None, "x", "y", "z"]), rng.choice([None, 0.5, -1.0, NAN]))
        for _ in range(rng.choice([1, 1, 2, 5]))
    ]
    device.run("insert", relation, rows)
    for key, *cells in rows:
        written[key] = twin.joined(
            [(None, one) for one in ([written[key]] if key in written else []) + [cells]]
        )
    for key, cells in written.items():
        twin.write(key, twin.joined([*twin.of(key), (None, cells)]))


def shown(device: Device, relation: str) -> list[Any]:
    """What a twin shows, as rows."""
    found = device.twins[relation].shown().items()
    match relation:
        case "m":
            rows = [(k, c[0][2], c[1][2], k % 2, c[2][2]) for k, c in found]
        case "k":
            rows = [(k, c[0][2]) for k, c in found]
        case _:
            rows = [(k, *c) for k, c in found]
    return sorted(rows, key=lambda row: row[0])


def delete(device: Device, relation: str, rng: random.Random) -> None:
    key = rng.randrange(4)
    row = (key, None, None, key % 2, None) if relation == "m" else (key, None, None)
    device.run("delete", relation, [row[: len(PROGRAM.relations[relation].schema)]])
    device.twins[relation].delete(key)


JOINS = {"m": latest, "k": latest, "g": extreme(max), "l": extreme(min)}


@pytest.mark.parametrize("seed", range(40))
def test_random_histories(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if seed % 2:  # removals are soon forgotten, and readers are told of what lives
        monkeypatch.setattr(taking, "REMEMBERED", 0)
    clock = [1_000_000]

    def now() -> int:  # it often stands still, so that stamps of several sites are equal, and runs back
        clock[0] += rng.choice([0, 0, 0, 1, 5, -3])
        return clock[0]

    devices = [Device(f"d{n}", now, JOINS) for n in range(3)]
    for _ in range(50):
        device, relation = rng.choice(devices), rng.choice("mmkgl")
        if rng.random() < 0.6:
            if rng.random() < 0.2:
                delete(device, relation, rng)
            else:
                (write_merged if relation in "mk" else write_extreme)(device, relation, rng)
        else:
            other = rng.choice([one for one in devices if one is not device])
            device.sync(other)
            assert device.rows("v") == other.rows("v")
            report = device.sync(other)
            assert report.sent_rows == report.received_rows == 0
        device.check()
        for name in JOINS:
            assert repr(device.rows(name)) == repr(shown(device, name)), (seed, name)
        _check_view(device)
    for _ in range(2):
        for device in devices:
            for other in devices:
                if other is not device:
                    device.sync(other)
    for name in (*JOINS, "v"):
        assert repr(devices[0].rows(name)) == repr(devices[1].rows(name)) == repr(devices[2].rows(name))


def _check_view(device: Device) -> None:
    sql = PROGRAM.views["v"].plan
    rows = device.reading.rows_of(sql, inside=False)
    assert sorted(map(repr, rows)) == sorted(map(repr, device.rows("v")))


# Lattice values: nothing in the language makes such a relation yet.

SETS: GrowSet[str] = GrowSet()
COUNTS: MergeMap[str, int | None] = MergeMap(Max())


def grown(left: bytes, right: bytes) -> bytes:
    """Join (set, counts) in one canonical form."""
    (a, m), (b, n) = msgspec.msgpack.decode(left), msgspec.msgpack.decode(right)
    return coded(SETS.join(frozenset(a), frozenset(b)), dict(COUNTS.join(m, n)))


def coded(names: frozenset[str], counts: dict[str, int]) -> bytes:
    return msgspec.msgpack.encode((sorted(names), dict(sorted(counts.items()))))


@contextmanager
def lattices(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    with monkeypatch.context() as patch:
        patch.setattr(
            hosting,
            "stored_rows",
            lambda circuit, relation, name: (
                lattice_rows(circuit, relation, name, grown)
                if relation.name == "state"
                else stored_rows(circuit, relation, name)
            ),
        )
        yield Program.parse("""
            CREATE TABLE state (stage BIGINT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (stage, key))
            WITH (merge = 'column');
        """)


@pytest.mark.parametrize("seed", range(10))
def test_lattice_values_are_joined(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)

    def joined(rows: list[Any]) -> bytes:
        value = rows[0][1]
        for _, other in rows[1:]:
            value = grown(value, other)
        return bytes(value)

    with lattices(monkeypatch) as program:
        devices = [Device(f"d{n}", lambda: 1, {"state": joined}, program) for n in range(3)]
        for _ in range(60):
            device = rng.choice(devices)
            twin = device.twins["state"]
            if rng.random() < 0.6:
                key = (rng.randrange(2), rng.choice("ab"))
                if rng.random() < 0.1:
                    device.run("delete", "state", [(*key, b"")])
                    twin.delete(key)
                else:
                    given = [
                        coded(frozenset(rng.choices("xyzuvw", k=2)), {rng.choice("pq"): rng.randrange(9)})
                        for _ in range(rng.choice([1, 1, 2]))
                    ]
                    device.run("insert", "state", [(*key, value) for value in given])
                    twin.write(key, joined([*twin.of(key), *((None, value) for value in given)]))
            else:
                device.sync(rng.choice([one for one in devices if one is not device]))
            device.check()
            assert device.rows("state") == sorted((*key, value) for key, value in twin.shown().items())
