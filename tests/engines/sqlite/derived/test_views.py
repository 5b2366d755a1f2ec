"""Views hosted without their inputs: what travels, over which paths, and what is known of it."""

from __future__ import annotations

import msgspec
import pytest
from tests.engines.sqlite.derived.hosts import Host, assert_shows, expected, program

import everview as ev
from everview.errors import WireError
from everview.replication.rights.rights import ALL, Rights
from everview.replication.wire.codec import decode, encode
from everview.replication.wire.messages import Resume

PROGRAM = program(
    joined="SELECT r.a, s.d FROM r JOIN s ON r.b = s.b WHERE r.a < 5",
    single="SELECT b FROM r WHERE a < 5",
    cells="SELECT id, n FROM k WHERE n > 1",
    counted="SELECT x, count(*) AS n FROM g GROUP BY x",
    pairs="SELECT g.x, r.b FROM g JOIN r ON r.a = g.x",
)
FIGURE_1 = ev.Program.parse("""
    CREATE TABLE r0 (a TEXT NOT NULL, b TEXT NOT NULL, c TEXT NOT NULL);
    CREATE MATERIALIZED VIEW r2 AS SELECT DISTINCT a, b FROM r0;
    CREATE MATERIALIZED VIEW r4 AS SELECT DISTINCT b, c FROM r0;
    CREATE MATERIALIZED VIEW r5 AS SELECT r2.a, r2.b, r4.c FROM r2 JOIN r4 ON r2.b = r4.b;
""")


@pytest.fixture
def holder():
    found = Host(PROGRAM, "holder")
    found.insert("r", (1, 1), (2, 1), (3, 2), (9, 1))
    found.insert("s", (1, "x"), (2, "y"))
    found.insert("k", (1, 1), (2, 2), (3, 3))
    found.insert("g", (1,), (1,), (2,))
    return found


def test_nothing_is_told_twice(holder):
    host, other = Host(PROGRAM, "host", {"joined", "pairs"}), Host(PROGRAM, "other", {"joined", "pairs"})
    inputs, derivations = (3 + 2) + (4 + 3), 3 + 3
    assert host.read(holder).received_rows == inputs + derivations
    assert other.read(host).received_rows == inputs + derivations
    quiet = [host.read(holder), other.read(host), other.read(holder), host.read(other)]
    assert not any(report.received_rows for report in quiet[:2])
    holder.insert("s", (2, "z"))
    host.read(holder)
    assert other.read(host).received_rows == 2


def test_a_row_of_a_bag_has_a_name(holder):
    host = Host(PROGRAM, "host", {"pairs"})
    host.read(holder)
    assert host.rows("pairs") == [(1, 1), (1, 1), (2, 1)]
    assert "derivations from g ⋈ r: 3 in " in host.explain("pairs")
    assert "rows of g (all), their dots: 3 in " in host.explain("pairs")


def test_a_view_comes_from_hosts_of_the_views_that_it_is_made_of():
    """Streams, Figure 1: nobody whom s5 meets hosts r5, or all that it reads."""
    hosts = {"s0": {"r0"}, "s1": {"r0"}, "s2": {"r2"}, "s3": {"r2"}, "s4": {"r4"}, "s5": {"r5"}}
    s0, s1, s2, s3, s4, s5 = (Host(FIGURE_1, name, found) for name, found in hosts.items())
    paths = [(s0, s1), (s2, s0), (s3, s1), (s4, s0), (s4, s1), (s5, s2), (s5, s3), (s5, s4)]
    first, second, third = ("a1", "b1", "c1"), ("a2", "b1", "c1"), ("a3", "b1", "c3")

    def spread():
        for _ in range(2):
            for one, other in paths:
                one.read(other)

    s0.insert("r0", first)
    s0.insert("r0", second)
    spread()
    assert s5.rows("r5") == [first, second]
    s1.delete("r0", second)
    spread()
    assert s5.rows("r5") == [first]
    s0.insert("r0", third)
    s1.insert("r0", third)
    s1.delete("r0", third)
    s2.read(s0)
    s5.read(s2)
    s3.read(s1)
    s5.read(s3)  # s5 knows better than s2 now
    assert s2.rows("r2") == [("a1", "b1"), ("a3", "b1")]
    s2.read(s5)
    assert s2.rows("r2") == [("a1", "b1")]
    spread()
    assert s5.rows("r5") == [first]
    assert "or a view that it is a part of (r2, r5)" in s5.explain("r5")


def test_what_is_written_between_two_pages_comes_at_last(holder):
    """Rows of s drive most derivations, and their run goes on when that of r has ended."""
    host = Host(PROGRAM, "host", {"joined"})
    holder.insert("s", *((2, f"{n}") for n in range(60)))
    holder.replica.page_cells = 40
    late = iter(range(-30, 0))
    host.read(holder, meanwhile=lambda: [holder.insert("r", (a, 1)) for a in [next(late, -30)]])
    host.read(holder)
    assert len(holder.rows("r")) > 10
    assert_shows(host, holder)


def test_each_derivation_comes_once():
    """Also if two rows that it names are of one commit."""
    views = program(v="SELECT x.a, y.a AS other FROM r AS x JOIN r AS y ON x.b = y.b")
    holder, host = Host(views, "holder"), Host(views, "host", {"v"})
    holder.insert("r", (1, 1), (2, 1))
    assert host.read(holder).received_rows == 2 + 4
    holder.insert("r", (3, 1))
    assert host.read(holder).received_rows == 1 + 5
    assert_shows(host, holder)


def test_a_sender_that_went_back_tells_all_again(tmp_path):
    path = tmp_path / "one.db"
    one, host = Host(PROGRAM, "one", path=path), Host(PROGRAM, "host", {"joined"})
    one.insert("r", (1, 1))
    host.read(one)
    one.replica.close()
    before = path.read_bytes()
    one.open()
    one.insert("s", (1, "lost"))
    host.read(one)
    assert host.rows("joined") == [(1, "lost")]
    one.replica.close()
    for name in ("one.db", "one.db-wal", "one.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    path.write_bytes(before)
    one.open()
    one.insert("s", (1, "new"))
    host.read(one)
    assert (1, "new") in host.rows("joined")


def test_why_names_rows_and_their_writers(holder):
    host, far = Host(PROGRAM, "host", {"joined", "pairs", "cells"}), Host(PROGRAM, "far", {"joined"})
    host.read(holder)
    far.read(host)
    for one in (host, far):
        found = one.why("joined", (1, "x"))
        assert {(w.relation, w.origin) for w in found.tuples()} == {("r", "holder"), ("s", "holder")}
        assert found.monomials == holder.why("joined", (1, "x")).monomials
    assert len(host.why("pairs", (1, 1)).monomials) == 2
    assert [dict(w.values) for w in host.why("cells", (2, 2)).tuples()] == [{"id": 2, "n": 2}]


def test_a_core_is_told_to_those_who_may_read_one_of_its_views(holder):
    reader = Rights(reads=frozenset({"single"}), writes=frozenset())
    (core,) = Host(PROGRAM, "host", {"single"}).cores
    (other,) = Host(PROGRAM, "host", {"joined"}).cores
    streams = [core.core.name, core.inputs[0].stream, other.core.name, other.inputs[0].stream]
    assert [holder.replica.may_give(stream, reader) for stream in streams] == [True, True, False, False]
    assert all(holder.replica.may_give(stream, ALL) for stream in streams)
    host = Host(PROGRAM, "host", {"single"})
    assert not host.replica.may_take(core.core.name, Rights(writes=frozenset({"joined"})))
    assert host.replica.may_take(core.inputs[0].stream, Rights(writes=frozenset({"single"})))


# What no honest site says.


def changed(host, holder, change):
    """Let a page with derivations be changed on its way."""
    exchange = host.replica.exchange("holder")
    message = exchange.open()
    while message is not None:
        answer = holder.replica.answer(message)
        said, columns = decode(answer)
        if said.page is not None:
            page, columns = change(said.page, columns)
            answer = encode(msgspec.structs.replace(said, page=page), columns)
        message = exchange.receive(answer)


def derived_with(place, values):
    def change(page, columns):
        *rest, last = columns
        cells = list(last.rows)
        cells[place] = values(cells[place])
        return page, [*rest, msgspec.structs.replace(last, rows=cells)]

    return change


@pytest.mark.parametrize(
    ("place", "values"),
    [(0, lambda cells: ["x"] * len(cells)), (0, lambda cells: [None] * len(cells))]
    + [(place, lambda cells: [2**50] * len(cells)) for place in (2, 3, 4, 5)],
)
def test_derivations_that_are_none_are_refused(holder, place, values):
    host = Host(PROGRAM, "host", {"joined"})
    with pytest.raises(WireError):
        changed(host, holder, derived_with(place, values))
    host.read(holder)
    assert_shows(host, holder)


def test_derivations_of_rows_that_are_not_here_are_ignored(holder):
    host = Host(PROGRAM, "host", {"joined"})
    changed(host, holder, derived_with(3, lambda cells: [cell + 1_000 for cell in cells]))
    assert host.rows("joined") == []
    assert not list(host.cores[0].faults(host.store.writer.connection))


def test_a_derivation_told_twice_counts_once(holder):
    host = Host(PROGRAM, "host", {"joined"})

    def twice(page, columns):
        *rest, last = columns
        cells = [list(column) * 2 for column in last.rows]
        one = msgspec.structs.replace(page.derived[0], rows=2 * page.derived[0].rows)
        page = msgspec.structs.replace(page, derived=[one])
        return page, [*rest, msgspec.structs.replace(last, rows=cells)]

    changed(host, holder, twice)
    assert_shows(host, holder)
    assert expected(holder, "joined")


def test_a_place_that_was_never_said_is_none(holder):
    host = Host(PROGRAM, "host", {"joined"})
    exchange = host.replica.exchange("holder")
    said, _ = decode(exchange.receive(holder.replica.answer(exchange.open())))
    odd = [Resume(one.core, said.ask.since, [[2**62] * 3] * 2) for one in said.ask.cores]
    ask = msgspec.structs.replace(said.ask, cores=odd)
    exchange.receive(holder.replica.answer(encode(msgspec.structs.replace(said, ask=ask))))
    assert_shows(host, holder)
