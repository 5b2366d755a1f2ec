"""What a receiving site does with liveness and derivations, each alone, late, doubled, or forgotten."""

from __future__ import annotations

import itertools

import pytest
from tests.engines.sqlite.derivations.peers import FOREVER, Peer

from everview.engines.sqlite.derivations.hashing import key_hasher, row_hasher
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.parts import Arrival, Position
from everview.engines.sqlite.relations.base import VECTOR
from everview.engines.sqlite.scalars.storage import store_rows
from everview.errors import WireError
from everview.language.identity import tuple_id
from everview.language.program import Program
from everview.testing.fuzz import generate_case

PROGRAM = Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE s (b BIGINT NOT NULL, d BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
    CREATE TABLE w (x BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW j AS SELECT r.a, s.d FROM r JOIN s ON r.b = s.b;
    CREATE MATERIALIZED VIEW p AS SELECT n FROM k;
    CREATE MATERIALIZED VIEW q AS SELECT x + 1 AS y FROM w;
""")


def holder(number=1):
    peer = Peer(Engine(PROGRAM), number)
    peer.index()
    return peer


def receiver(number, *views):
    peer = Peer(Engine(PROGRAM, frozenset(views)), number)
    peer.index()
    for view in views:
        peer.follow(view)
    return peer


def only_stream(peer):
    (name,) = peer.engine.streams
    return name


def test_sections_of_a_cut_in_every_order():
    a = holder()
    a.write("insert", "r", [(1, 1), (2, 1)])
    a.write("insert", "s", [(1, 7)])
    a.write("delete", "r", [(2, 1)])
    stream = only_stream(receiver(2, "j"))
    _, head, sections = a.cut(stream, 0, limit=1)
    sections = [section for section in sections if section[1]]
    assert len(sections) == 4
    for order in itertools.permutations(sections):
        b = receiver(2, "j")
        for section in order:
            b.take((stream, head, [section]))
            b.take((stream, head, [section]))
        assert b.rows("j") == {(1, 7): 1}
        b.check_told()


def test_a_derivation_that_is_dead_on_arrival_lives_when_its_id_does():
    a, b = holder(), receiver(2, "j")
    stream = only_stream(b)
    a.write("insert", "r", [(1, 1)])
    a.write("insert", "s", [(1, 7)])
    early = a.cut(stream, 0)
    a.write("delete", "r", [(1, 1)])
    liveness_first = (stream, a.version, [s for s in a.cut(stream, 0)[2] if s[0] < 2])
    b.take(liveness_first)
    b.take(early)  # the derivation comes after its tuple's death
    assert b.rows("j") == {}
    head = a.version
    a.write("insert", "r", [(1, 1)])
    lengths = [s for s in a.cut(stream, head)[2] if s[0] < 2]
    b.take((stream, a.version, lengths))
    assert b.rows("j") == {(1, 7): 1}
    b.check_told()


def test_what_did_not_grow_is_not_sent_on():
    a, b, c = holder(), receiver(2, "j"), receiver(3, "j")
    stream = only_stream(b)
    a.write("insert", "r", [(1, 1)])
    a.write("insert", "s", [(1, 7)])
    assert b.take(a.cut(stream, 0)) == 3
    head = b.version
    assert b.take(a.cut(stream, 0)) == 0
    c.take(b.cut(stream, 0))
    assert c.rows("j") == {(1, 7): 1}
    assert b.take(c.cut(stream, 0)) == 0
    assert not any(rows for _, rows in b.cut(stream, head)[2])


def forget(peer, *, covered=True):
    """Let a peer forget what is dead, as if every member had everything."""
    if covered:
        peer.connection.execute(f"INSERT INTO {VECTOR} SELECT number, 1000000 FROM everview_sites")
    for stream in peer.engine.streams.values():
        for part in stream.held:
            part.collect(peer.connection, FOREVER)
    peer.connection.execute(f"DELETE FROM {VECTOR}")


def derivations(peer):
    (received,) = peer.engine.received.values()
    (branch,) = received.branches
    return peer.connection.execute(f"SELECT count(*) FROM {branch.table}").fetchone()[0]


def test_what_is_not_stable_is_not_forgotten():
    a, b = holder(), receiver(2, "j")
    stream = only_stream(b)
    a.write("insert", "r", [(1, 1)])
    a.write("insert", "s", [(1, 7)])
    b.take(a.cut(stream, 0))
    a.write("delete", "r", [(1, 1)])
    b.take(a.cut(stream, 2))
    forget(b, covered=False)
    assert derivations(b) == 1
    forget(b)
    assert derivations(b) == 0
    assert b.engine.streams[stream].held[0].garbage(b.connection) == 0


def test_a_relay_sends_again_what_has_revived():
    """The reader behind it may have forgotten the derivation that the relay still holds."""
    a, b, c = holder(), receiver(2, "j"), receiver(3, "j")
    stream = only_stream(b)
    a.write("insert", "r", [(1, 1)])
    a.write("insert", "s", [(1, 7)])
    b.take(a.cut(stream, 0))
    c.take(b.cut(stream, 0))
    a.write("delete", "r", [(1, 1)])
    b.take(a.cut(stream, 2))
    c.take(b.cut(stream, 1))
    forget(c)
    assert derivations(c) == 0
    head, seen = a.version, b.version
    a.write("insert", "r", [(1, 1)])
    b.take(a.cut(stream, head))
    c.take(b.cut(stream, seen))
    assert c.rows("j") == {(1, 7): 1}


def test_an_insertion_that_ends_between_two_pages_loses_no_derivation():
    """The tuple lives by another insertion, and was not yet sent for either."""
    a, stream = holder(), only_stream(receiver(2, "q"))
    a.write("insert", "w", [(1,)])
    a.write("insert", "w", [(2,)])
    a.write("insert", "w", [(1,)])
    branch = a.engine.offered(stream).parts[1]
    first = branch.read(a.connection, 0, None, 1)
    assert [row[0] for row in first.rows] == [2]
    second = branch.read(a.connection, 0, first.reached, 1)
    (last,) = a.connection.execute("SELECT max(version) FROM everview_r3_entries").fetchone()
    a.connection.execute("UPDATE everview_r3_entries SET cl = 2, version = 4 WHERE version = ?", (last,))
    third = branch.read(a.connection, 0, second.reached, 1)
    assert {row[0] for chunk in (first, second, third) for row in chunk.rows} == {2, 3}


def test_rows_that_grow_between_pages_come_again():
    a, b = holder(), receiver(2, "j")
    stream = only_stream(b)
    a.write("insert", "r", [(n, n) for n in range(6)])
    a.write("insert", "s", [(n, n) for n in range(6)])
    found, after = [], None
    branch = a.engine.offered(stream).parts[2]
    for step in range(30):
        chunk = branch.read(a.connection, 0, after, 1)
        found += chunk.rows
        if step < 3:
            a.write("delete", "r", [(5 - step, 5 - step)])
            a.write("insert", "r", [(5 - step, 5 - step)])
        after = chunk.reached
        if after is None:
            break
    assert {row[:2] for row in found} == {(n, n) for n in range(6)}


def test_a_version_from_the_future_waits_for_its_time():
    a, b = holder(), receiver(2, "p")
    stream = only_stream(b)
    a.write("insert", "k", [(1, 10)], stamp=100)
    b.take(a.cut(stream, 0))
    a.write("insert", "k", [(1, 20)], stamp=10**6)
    b.take(a.cut(stream, 1), limit=1000)
    assert b.rows("p") == {(10,): 1}
    forget(b)  # its derivation is waited for
    (keyed,) = b.engine.timed()
    assert keyed.next_time(b.connection) == 10**6
    assert keyed.come(b.connection, b.version + 1, 1000) == 0
    assert keyed.come(b.connection, b.version + 1, 10**6) == 1
    b.engine.propagate(b.connection, (keyed.delta,), b._changed, shrinks=True)
    assert b.rows("p") == {(20,): 1}
    b.check_told()


def test_a_row_that_is_written_again_lives_again():
    a, b = holder(), receiver(2, "p")
    stream = only_stream(b)
    for stamp, n in enumerate((10, 20, 10), start=1):
        a.write("insert", "k", [(1, n)], stamp=stamp)
        b.take(a.cut(stream, stamp - 1))
        assert b.rows("p") == {(n,): 1}
    b.check_told()


def test_an_id_that_was_collected_here_is_ignored():
    a, b = holder(), receiver(2, "j")
    stream = only_stream(b)
    a.write("insert", "r", [(1, 1)])
    _, _, sections = a.cut(stream, 0)
    rows = next(rows for number, rows in sections if number == 0 and rows)
    part = b.engine.streams[stream].parts[0]
    b.connection.execute(f"INSERT INTO {VECTOR} VALUES (1, 5)")
    assert part.merge(b.connection, Arrival(list(zip(*rows, strict=True)), 1, covered=True)) == 0
    b.connection.execute(f"DELETE FROM {VECTOR}")
    assert part.merge(b.connection, Arrival(list(zip(*rows, strict=True)), 1, covered=True)) == 1


def two_derivations():
    """A receiver, and a cut for it with two rows of the join."""
    a, b = holder(), receiver(2, "j")
    a.write("insert", "s", [(1, 7)])
    a.write("insert", "r", [(1, 1), (2, 1)])
    return b, *a.cut(only_stream(b), 0, limit=9)


def test_ids_that_die_within_the_message_that_brought_them():
    """An honest sender tells an id once; another must not make the counts wrong."""
    b, name, head, sections = two_derivations()
    liveness = sections[0][1]
    dead = [(id_, length + 1, site, seq) for id_, length, site, seq in liveness[:1]]
    b.take((name, head, [*sections[:1], (0, dead), *sections[1:]]))
    assert b.rows("j") == {(2, 7): 1}
    b.take((name, head, [(0, [(id_, length + 1, *rest) for id_, length, *rest in dead])]))
    assert b.rows("j") == {(1, 7): 1, (2, 7): 1}
    b.check_told()


def test_derivations_that_come_twice_in_one_message():
    b, name, head, sections = two_derivations()
    number, rows = sections[-1]
    b.take((name, head, [*sections, (number, rows[:1]), (number, [*rows, *rows])]))
    assert b.rows("j") == {(1, 7): 1, (2, 7): 1}
    b.check_told()


@pytest.mark.parametrize("view", ["j", "p", "q"])
def test_a_received_view_that_joins_anew_starts_empty(view):
    a, b = holder(), receiver(2, view)
    stream = only_stream(b)
    for relation, row in (("r", (1, 1)), ("s", (1, 7)), ("k", (1, 5)), ("w", (3,))):
        a.write("insert", relation, [row])
    b.take(a.cut(stream, 0))
    assert sum(b.rows(view).values()) == 1
    b.engine.clear(b.connection, stream, b._changed)
    assert b.rows(view) == {}
    b.check_told()
    b.take(a.cut(stream, 0))
    assert sum(b.rows(view).values()) == 1
    b.check_told()


@pytest.mark.parametrize("key", [("x", 1, 1), (2, 1, 1), (-1, 1, 1), (0, 1), (0, 1, 1, 1), (1,)])
def test_a_place_that_no_page_ended_at_is_refused(key):
    a, stream = holder(), only_stream(receiver(2, "j"))
    with pytest.raises(WireError):
        a.engine.offered(stream).parts[2].read(a.connection, 0, Position(5, key), 10)


def test_ids_are_those_of_the_specification():
    for seed in range(0, 60, 2):
        case = generate_case(seed)
        for statement in case.history:
            for write in statement:
                relation = case.program.relations[write.relation]
                stored = store_rows([f.type for f in relation.schema], write.rows)
                hashed = list(map(row_hasher(relation), stored))
                assert hashed == [tuple_id(relation, row) for row in write.rows]


def test_a_key_is_hashed_by_its_own_columns():
    keyed = PROGRAM.relations["k"]
    assert key_hasher(keyed)((1, 2)) == key_hasher(keyed)((1, 3)) != key_hasher(keyed)((2, 2))
